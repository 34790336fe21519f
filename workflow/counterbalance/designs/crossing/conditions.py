"""The conditions of a crossing: three dials, ten coherent settings, each with a name.

Source: the names are those of arXiv 2609.30716. Which dials belong to which name follows from its contrasts, and is our
reading where they leave it open. Why the other eight settings make no sense is said where a study is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from counterbalance.config.experiments import Crossing, why_incoherent
from counterbalance.errors import ConfigError

Header = Literal["neutral", "framed"]
Body = Literal["verbatim", "mixed", "loaded"]
Cues = Literal[0, 1, 2]
Role = Literal["stale", "recent"]
Assignment = Mapping[Role, str]

ROLES: tuple[Role, Role] = ("stale", "recent")

_ASSIGNMENTS: Mapping[Body, tuple[Assignment, ...]] = {
    "verbatim": ({"stale": "same", "recent": "same"},),
    "mixed": ({"stale": "a", "recent": "b"}, {"stale": "b", "recent": "a"}),
    # The wording is the role here: exchanging it would exchange the roles.
    "loaded": ({"stale": "stale", "recent": "recent"},),
}


@dataclass(frozen=True)
class Condition:
    """One coherent setting of the dials.

    Attributes
    ----------
    assignments
        Which wording each block has: one way, or both ways of a pair of wordings, which are averaged.
    """

    name: str
    header: Header
    body: Body
    cues: Cues

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        return _ASSIGNMENTS[self.body]

    @property
    def words(self) -> str:
        """The dials, for people."""
        cues = {0: "no cue", 1: "1 cue", 2: "2 cues"}[self.cues]
        return f"{self.header} header, {self.body} body, {cues}"


CONDITIONS: Mapping[str, Condition] = {
    condition.name: condition
    for condition in (
        Condition("T1", "neutral", "verbatim", 0),
        Condition("T1c", "neutral", "verbatim", 2),
        Condition("T2", "neutral", "mixed", 1),
        Condition("T2c", "neutral", "mixed", 2),
        Condition("T3", "framed", "verbatim", 0),
        Condition("T3c", "framed", "verbatim", 2),
        Condition("T4", "framed", "mixed", 1),
        Condition("T4c", "framed", "mixed", 2),
        Condition("T5", "framed", "loaded", 1),
        Condition("T5b", "framed", "loaded", 2),
    )
}

CELL_BLOCKS: Mapping[str, tuple[tuple[Role, int], tuple[Role, int]]] = {
    "e1": (("stale", 0), ("recent", 1)),
    "e2": (("recent", 1), ("stale", 0)),
    "e3": (("stale", 1), ("recent", 0)),
    "e4": (("recent", 0), ("stale", 1)),
}
"""By cell: role and answer (0 is A, 1 is B) of the block printed first and of the one printed second."""


def find_condition(header: Header, body: Body, cues: Cues) -> Condition:
    """Return the condition with these dials.

    Raises
    ------
    ConfigError
        If the combination is incoherent, with the reason.
    """
    for condition in CONDITIONS.values():
        if (condition.header, condition.body, condition.cues) == (header, body, cues):
            return condition
    raise ConfigError(
        f"condition {{header: {header}, body: {body}, cues: {cues}}} is incoherent: "
        f"{why_incoherent(header, body, cues)}; the ten coherent ones are in docs/crossing.md"
    )


def chosen_conditions(crossing: Crossing) -> list[Condition]:
    """Return the conditions of an experiment, in the order of their names; loading the study has checked them."""
    if crossing.conditions == "all":
        return list(CONDITIONS.values())
    found = [find_condition(dials.header, dials.body, dials.cues) for dials in crossing.conditions]
    return sorted(found, key=lambda condition: condition.name)


def all_settings() -> Sequence[tuple[Header, Body, Cues]]:
    """Return all eighteen combinations of the dials."""
    return [(h, b, c) for h in get_args(Header) for b in get_args(Body) for c in get_args(Cues)]
