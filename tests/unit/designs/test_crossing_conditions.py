"""Ten of eighteen settings of the dials make sense; the others are refused with the reason."""

import json

import pytest
import yaml
from crossing_cases import make_study

from counterbalance.config import load_study
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


PLAIN = "{header: neutral, body: verbatim, cues: 0}"


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (f"[{PLAIN}, {{header: neutral, body: loaded, cues: 1}}]", "dials.1: condition {header: neutral, body: loaded"),
        (f"[{PLAIN}, {PLAIN}]", f"key experiments.0.crossing: crossing.conditions: condition {PLAIN} is there twice"),
        (f"[{PLAIN}, {PLAIN.replace('0', '3')}]", "dials.1.cues: Input should be 0, 1 or 2 (found 3)"),
        ("T1", "expected `all`, or a list of conditions such as - {header: neutral, body: verbatim, cues: 0} (found"),
    ],
)
def test_loading_a_study_refuses_wrong_conditions_with_their_line(tmp_path, conditions, expected) -> None:
    study = make_study(tmp_path)
    value = json.loads(study.path.read_text(encoding="utf-8"))
    del value["experiments"][0]["crossing"]["conditions"]
    text = yaml.safe_dump(value, sort_keys=False)
    lines = text.replace("  crossing:\n", f"  crossing:\n    conditions: {conditions}\n").splitlines()
    study.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    place = next(n for n, line in enumerate(lines, start=1) if "conditions:" in line)
    with pytest.raises(ConfigError) as caught:
        load_study(study.path)
    assert expected in str(caught.value)
    (message,) = str(caught.value).splitlines()
    where = place - 1 if "twice" in expected else place
    assert message.startswith(f"{study.path} line {where}, key experiments.0.crossing")
