"""Named cells with planted truth: nulls of many kinds, and slot effects of known shape and size."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from counterbalance.arrangements import Scheme
from counterbalance.config.models import GenerateRead, LogprobRead, Read
from counterbalance.simulation.respondent import Population, Respondent, ability_for, population

Shape = Literal["monotone", "first_boost", "last_drop", "middle_drop", "null"]

ReadKind = Literal["generate", "logprob"]

_LISTED_TOKENS = 20
_STEPS = 14
_MANY_ITEMS = 240_000


@dataclass(frozen=True)
class Scenario:
    """One kind of cell.

    Attributes
    ----------
    name, what
        Short name, unique; and what is planted, in words.
    nuisance
        The respondent before its mean ability is set.
    accuracy
        Accuracy that it would have without its slot bonus.
    refused_slot
        Slot of the correct option in which alone calls are refused, or None for all.
    balanced_slot
        Slot whose bonus is set so that its accuracy equals the others', or None.
    exceptions
        Tests whose level is known not to hold here, with the reason.
    """

    name: str
    what: str
    nuisance: Respondent
    accuracy: float = 0.75
    n_items: int = 50
    scheme: Scheme = "exhaustive"
    n_orders: int | None = None
    read: ReadKind = "generate"
    refusal_rate: float = 0.0
    refused_slot: int | None = None
    repeats: int = 1
    balanced_slot: int | None = None
    exceptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_null(self) -> bool:
        """Whether no slot effect is common to the items."""
        return self.balanced_slot is not None or len(set(self.nuisance.slot_bonus)) == 1

    @cached_property
    def respondent(self) -> Respondent:
        """The respondent with the mean ability that gives the accuracy."""
        able = replace(self.nuisance, ability_mean=ability_for(self.accuracy, self.nuisance))
        return able if self.balanced_slot is None else _balance(able, self.balanced_slot)

    @cached_property
    def population(self) -> Population:
        return population(self.respondent) if self.balanced_slot is None else population(self.respondent, _MANY_ITEMS)


def read_settings(kind: ReadKind) -> Read:
    """Return the settings of a way to read a planted respondent."""
    if kind == "logprob":
        return LogprobRead(kind="logprob", top=_LISTED_TOKENS)
    return GenerateRead(kind="generate")


def bonus(shape: Shape, size: float) -> tuple[float, ...]:
    """Return the bonus by slot, four slots, of a shape; `size` is the distance of the highest slot to the lowest."""
    match shape:
        case "monotone":
            return tuple(size * step for step in (0.5, 1 / 6, -1 / 6, -0.5))
        case "first_boost":
            return (size, 0.0, 0.0, 0.0)
        case "last_drop":
            return (0.0, 0.0, 0.0, -size)
        case "middle_drop":
            return (0.0, -size, 0.0, 0.0)
        case "null":
            return (0.0, 0.0, 0.0, 0.0)


def respondent(
    shape: Shape = "null", size: float = 0.0, *, tau: float = 0.0, noise: float = 0.0, **other: float
) -> Respondent:
    """Return a respondent to four options; `tau` is the spread of items' own slot effects."""
    return Respondent(slot_bonus=bonus(shape, size), item_slot_sd=(tau,), call_noise=noise, **other)


def _balance(unbalanced: Respondent, slot: int) -> Respondent:
    """Set a slot's bonus, by bisection, so that its accuracy is that of the other slots."""
    low, high = -0.5, 0.5
    found = unbalanced
    for _ in range(_STEPS):
        middle = (low + high) / 2
        values = list(unbalanced.slot_bonus)
        values[slot] = middle
        found = replace(unbalanced, slot_bonus=tuple(values))
        correct = population(found, _MANY_ITEMS).correct
        others = (correct.sum() - correct[slot]) / (len(correct) - 1)
        low, high = (middle, high) if correct[slot] < others else (low, middle)
    return found


_NOTHING = "no call ever changes with the slot, so no test can reject"
_CEILING = "so near to the ceiling that few items change with the slot, which makes the test conservative"
_UNEQUAL = (
    "slots differ in how much items scatter, which is no slot effect but breaks exchangeability; the recentred "
    "bootstrap is the check for this"
)
_PICKED = "a slot that scatters more is picked more often, so that picks do differ here; only accuracy is equal"
_MISSING = "answers are missing by position, which leaves the test of accuracy alone; the one of picks is not made"
_TESTS = ("relabelling.accuracy", "relabelling.picks", "recentred.accuracy", "bias", "shape")

NULLS = (
    Scenario("N0", "no effect of any kind, no noise", respondent(), exceptions=dict.fromkeys(_TESTS, _NOTHING)),
    Scenario("N1a", "call noise .5", respondent(noise=0.5)),
    Scenario("N1b", "call noise 1, all items alike", respondent(noise=1.0, ability_sd=0.0, distractor_sd=0.0)),
    Scenario("N1c", "call noise .5, very unequal items", respondent(noise=0.5, ability_sd=4.0)),
    Scenario(
        "N2a",
        "items' own slot effects .25, no noise",
        respondent(tau=0.25),
        exceptions={"recentred.accuracy": "few items change with the slot, which makes the bootstrap conservative"},
    ),
    Scenario("N2b", "items' own slot effects .5, no noise", respondent(tau=0.5)),
    Scenario("N2c", "items' own slot effects 1, no noise", respondent(tau=1.0)),
    Scenario("N2d", "items' own slot effects 2, no noise", respondent(tau=2.0)),
    Scenario("N2e", "options' own slot effects .5, no noise", respondent(option_slot_sd=0.5)),
    Scenario("N3a", "own slot effects .5, noise .5, accuracy .50", respondent(tau=0.5, noise=0.5), accuracy=0.50),
    Scenario("N3b", "own slot effects .5, noise .5, accuracy .75", respondent(tau=0.5, noise=0.5)),
    Scenario(
        "N3c",
        "own slot effects .5, noise .5, accuracy .95",
        respondent(tau=0.5, noise=0.5),
        accuracy=0.95,
        exceptions={"recentred.accuracy": _CEILING, "relabelling.picks": _CEILING},
    ),
    Scenario(
        "N3d",
        "own slot effects .5, noise .5, accuracy .985",
        respondent(tau=0.5, noise=0.5),
        accuracy=0.985,
        exceptions=dict.fromkeys(_TESTS, _CEILING),
    ),
    Scenario("N3e", "own slot effects 1, noise .5, items nearly alike", respondent(tau=1.0, noise=0.5, ability_sd=1.0)),
    Scenario("N4", "own slot effects .3, noise .3", respondent(tau=0.3, noise=0.3)),
    Scenario(
        "N5",
        "own slot effects 2 in the first slot, .3 in the others, equal accuracy",
        Respondent(slot_bonus=bonus("null", 0), item_slot_sd=(2.0, 0.3, 0.3, 0.3)),
        balanced_slot=0,
        exceptions={"relabelling.accuracy": _UNEQUAL, "shape": _UNEQUAL, "relabelling.picks": _PICKED, "bias": _PICKED},
    ),
    Scenario("N6", "as N3b, a tenth of the calls refused", respondent(tau=0.5, noise=0.5), refusal_rate=0.1),
    Scenario("N7", "as N3b, four orders (williams)", respondent(tau=0.5, noise=0.5), scheme="williams"),
    Scenario("N8", "as N3b, six sampled orders", respondent(tau=0.5, noise=0.5), scheme="sampled", n_orders=6),
    Scenario("N9", "as N3b, 14 items", respondent(tau=0.5, noise=0.5), n_items=14),
    Scenario(
        "N10", "as N3b, log-probabilities, williams", respondent(tau=0.5, noise=0.5), read="logprob", scheme="williams"
    ),
    Scenario(
        "N11",
        "call noise .5, four orders (williams), each asked twice",
        respondent(noise=0.5),
        scheme="williams",
        repeats=2,
    ),
    Scenario(
        "N12",
        "as N7, 30% of the calls refused where the correct option is last",
        respondent(tau=0.5, noise=0.5),
        scheme="williams",
        refusal_rate=0.3,
        refused_slot=3,
        exceptions=dict.fromkeys(("relabelling.picks", "bias"), _MISSING),
    ),
)

PLANTED = (
    Scenario("P1", "monotone .5", respondent("monotone", 0.5, tau=0.3, noise=0.3)),
    Scenario("P2", "monotone 1", respondent("monotone", 1.0, tau=0.3, noise=0.3)),
    Scenario("P3", "first slot +.5", respondent("first_boost", 0.5, tau=0.3, noise=0.3)),
    Scenario("P4", "last slot -.5", respondent("last_drop", 0.5, tau=0.3, noise=0.3)),
    Scenario("P5", "monotone 1, no noise", respondent("monotone", 1.0, tau=0.3)),
    Scenario("P6", "monotone 1, accuracy .95", respondent("monotone", 1.0, tau=0.3, noise=0.3), accuracy=0.95),
    Scenario("P7", "monotone 1, accuracy .40", respondent("monotone", 1.0, tau=0.3, noise=0.3), accuracy=0.40),
    Scenario("C1", "monotone .15", respondent("monotone", 0.15, tau=0.3, noise=0.3)),
    Scenario("C2", "monotone .3", respondent("monotone", 0.3, tau=0.3, noise=0.3)),
    Scenario("C3", "monotone .6", respondent("monotone", 0.6, tau=0.3, noise=0.3)),
    Scenario("C4", "monotone .6, own slot effects 1, no noise", respondent("monotone", 0.6, tau=1.0)),
    Scenario("C5", "last slot -.4", respondent("last_drop", 0.4, tau=0.3, noise=0.3)),
    Scenario("C6", "monotone .6, accuracy .95", respondent("monotone", 0.6, tau=0.3, noise=0.3), accuracy=0.95),
    Scenario("C7", "monotone .3, 200 items", respondent("monotone", 0.3, tau=0.3, noise=0.3), n_items=200),
    Scenario(
        "C8",
        "monotone .6, log-probabilities, williams",
        respondent("monotone", 0.6, tau=0.3, noise=0.3),
        read="logprob",
        scheme="williams",
    ),
    Scenario(
        "C9",
        "monotone 1, four orders (williams), each asked twice",
        respondent("monotone", 1.0, tau=0.3, noise=0.3),
        scheme="williams",
        repeats=2,
    ),
)

SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in (*NULLS, *PLANTED)}
