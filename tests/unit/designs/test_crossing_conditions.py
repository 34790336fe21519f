"""Ten of eighteen settings of the dials make sense; the others are refused with the reason."""

import pytest

from counterbalance.config.models import Crossing, Dials
from counterbalance.designs.crossing.conditions import (
    CELL_BLOCKS,
    CONDITIONS,
    all_settings,
    chosen_conditions,
    find_condition,
)
from counterbalance.errors import ConfigError


def coherent(header, body, cues):
    """Say it again from the words of the design, not from its table."""
    if body == "verbatim":
        return cues in (0, 2)
    return cues > 0 and (body == "mixed" or header == "framed")


def test_exactly_ten_of_eighteen_are_coherent() -> None:
    settings = all_settings()
    assert len(settings) == len(set(settings)) == 18
    found = []
    for header, body, cues in settings:
        if coherent(header, body, cues):
            found.append(find_condition(header, body, cues).name)
        else:
            with pytest.raises(ConfigError, match="incoherent"):
                find_condition(header, body, cues)
    assert sorted(found) == sorted(CONDITIONS)
    assert len(found) == 10


@pytest.mark.parametrize(
    ("dials", "reason"),
    [
        (("neutral", "verbatim", 1), "the same words"),
        (("framed", "mixed", 0), "what the two wordings of a mixed body differ by"),
        (("framed", "loaded", 0), "what the two wordings of a loaded body differ by"),
        (("neutral", "loaded", 1), "framed whatever the header says"),
    ],
)
def test_the_reason_is_said(dials, reason) -> None:
    with pytest.raises(ConfigError, match=reason):
        find_condition(*dials)


def test_only_mixed_bodies_have_two_assignments() -> None:
    for condition in CONDITIONS.values():
        assert len(condition.assignments) == (2 if condition.body == "mixed" else 1)
        if condition.body == "loaded":
            assert condition.assignments[0] == {"stale": "stale", "recent": "recent"}
    # 14 items: four mixed conditions with eight prompts each, six others with four.
    assert 14 * 4 * sum(len(condition.assignments) for condition in CONDITIONS.values()) == 784


def test_the_four_cells_are_those_of_the_definition() -> None:
    # From the table of the design: first block, second block.
    assert {cell: tuple(f"{role} {'AB'[a]}" for role, a in blocks) for cell, blocks in CELL_BLOCKS.items()} == {
        "e1": ("stale A", "recent B"),
        "e2": ("recent B", "stale A"),
        "e3": ("stale B", "recent A"),
        "e4": ("recent A", "stale B"),
    }


def test_a_study_chooses_by_dials_and_no_condition_twice() -> None:
    plain = Dials(header="neutral", body="verbatim", cues=0)
    loaded = Dials(header="framed", body="loaded", cues=2)
    assert [c.name for c in chosen_conditions(Crossing(conditions=[loaded, plain], cues=["now"]))] == ["T1", "T5b"]
    assert len(chosen_conditions(Crossing(cues=["now"]))) == 10
    with pytest.raises(ConfigError, match="T1 is there twice"):
        chosen_conditions(Crossing(conditions=[plain, plain], cues=["now"]))
