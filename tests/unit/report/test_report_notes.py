from collections.abc import Mapping

import pytest

from counterbalance.config import Analysis
from counterbalance.config.contrasts import ContrastFile
from counterbalance.report.crossing.cells import _effect_notes
from counterbalance.report.mcq.caveats import caveats
from counterbalance.report.mcq.notes import MIXED, Context, caution, headline, lead, sentence, verdict_words
from counterbalance.report.mcq.slots import read_slots
from counterbalance.report.numbers import Number
from counterbalance.report.planned import contrast_notes, contrast_rows
from counterbalance.stats.estimate import few_items

CONTEXT = Context(Analysis(), 0.25)


def cell(**values: Mapping[str, object]) -> dict[str, Number]:
    row: dict[str, object] = dict.fromkeys(Number.__dataclass_fields__)
    row |= {"method": "m", "n_items": 50, "n_calls": 1200, "status": "ok"}
    names = {name: name.replace("__", ".") for name in values}
    return {names[name]: Number.from_row({**row, "quantity": names[name], **fields}) for name, fields in values.items()}


BIASED = cell(
    verdict={"label": "bias"},
    picks__slot_1={"estimate": 0.93},
    picks__slot_2={"estimate": 0.07},
    accuracy__slot_1={"estimate": 0.9},
    accuracy__slot_2={"estimate": 0.2},
    V__corrected={"estimate": 0.21, "low": 0.15, "high": 0.28},
    relabelling__accuracy={"p_adjusted": 0.0002},
    relabelling__picks={"p_adjusted": 0.012},
)


def say(numbers: dict[str, Number], context: Context = CONTEXT) -> str:
    return sentence(numbers, read_slots(numbers, ["A", "B"]), context).replace("\u00a0", " ")


def test_a_bias_is_told_in_full() -> None:
    assert say(BIASED) == (
        "Picks slot A in 93% of its answers (an even split would be 25%). "
        "Right in 90% of answers when the correct option is in slot A, in 20% when it is in slot B. "
        "V .210 [.150, .280]; Holm p < .001 on accuracy and p = .012 on picks."
    )


def test_an_uneven_number_of_options_has_no_even_split() -> None:
    assert "even split" not in say(BIASED, Context(Analysis(), None))


def test_a_null_says_what_it_would_have_seen_at_the_level_of_its_verdict() -> None:
    seen = {"detectable_V": {"estimate": 0.05}, "detectable_V.family": {"estimate": 0.08}}
    words = "A V of .080 or more would have been seen with 80% power, the correction for all tests included."
    assert say(cell(verdict={"label": "no_bias_seen"}, **seen)) == words
    assert say(cell(verdict={"label": "no_bias_seen"})) == "How small a bias would have been seen is not known."


def test_not_measurable_gives_the_verdicts_reason_and_is_no_evidence_of_absence() -> None:
    reason = {"label": "not_measurable", "status": "not_measurable", "reason": "only a V of 0.240 would have been seen"}
    text = say(cell(verdict=reason, detectable_V={"estimate": 0.24, "status": "not_measurable", "reason": "r"}))
    assert text == "Only a V of 0.240 would have been seen. This is no evidence that there is no bias."


def test_a_bias_among_items_with_another_number_of_options_is_told() -> None:
    found = {"label": "bias", "reason": "accuracy differs between slots among the items with 5 options"}
    tests = {"relabelling.accuracy": {"p_adjusted": 0.5}, "relabelling.accuracy@k=5": {"p_adjusted": 0.002}}
    text = say(cell(verdict=found, **tests))
    assert "Accuracy differs between slots among the items with 5 options." in text
    assert "= .500 on accuracy and" in text
    assert "= .002 on accuracy (5 options)" in text


def test_a_degenerate_cell_gives_its_reason() -> None:
    numbers = cell(verdict={"label": "degenerate", "status": "degenerate", "reason": "no answer changes with the slot"})
    assert say(numbers) == "No answer changes with the slot."
    assert lead("degenerate") == "Answers by position: nothing to test."


def test_a_cell_without_a_verdict_says_so() -> None:
    assert say({}) == "The estimates give no reason."
    assert lead("") == "No verdict was reached."
    assert (verdict_words(""), verdict_words("some_new_word")) == ("No verdict", "some new word")


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        (
            ["bias", "bias", "no_bias_seen", "not_measurable", "degenerate", ""],
            "2 of 6 cells answer by position; 1 shows no bias and would have shown V ≥ .10 with 80% power; 1 could not "
            "have shown it either way; 1 has nothing to test; 1 has no verdict.",
        ),
        (["no_bias_seen"], "The one cell shows no bias and would have shown V ≥ .10 with 80% power."),
        (["bias"], "The one cell answers by position."),
        (
            ["degenerate", "degenerate", "new_word"],
            "None of 3 cells is seen to answer by position; 2 have nothing to test; 1 has no verdict.",
        ),
    ],
)
def test_the_headline_counts_every_cell(verdicts: list[str], text: str) -> None:
    assert headline(verdicts, Analysis()) == text


FLOOR = {
    "disagreement__same_order": {"estimate": 0.04, "low": 0.01, "high": 0.08},
    "disagreement__other_order": {"estimate": 0.21, "low": 0.15, "high": 0.28},
}


def test_the_order_effect_stands_beside_the_floor() -> None:
    text = "The model disagrees with itself in 4% of repeats; with another order in 21%."
    assert text in say(cell(verdict={"label": "bias"}, **FLOOR))
    assert text in say(cell(verdict={"label": "no_bias_seen"}, **FLOOR))
    never = {**FLOOR, "disagreement__same_order": {"estimate": 0.0, "low": 0.0, "high": 0.07, "status": "degenerate"}}
    assert "disagrees with itself in no repeat (at most 7%); with another" in say(cell(**never))
    unknown = {**FLOOR, "disagreement__same_order": {"status": "undefined", "reason": "no prompt was answered twice"}}
    assert "disagrees" not in say(cell(**unknown))


def test_a_bias_that_is_not_shown_to_be_above_the_floor_is_cautioned() -> None:
    doubtful = {"disagreement__excess": {"estimate": 0.02, "low": -0.03, "high": 0.07}}
    found = {"label": "bias"}
    assert caution(cell(verdict=found, **doubtful)).startswith("Caution: that two orders disagree more often")
    assert ".020 [−.030, .070]" in say(cell(verdict=found, **doubtful))
    assert caution(cell(verdict={"label": "no_bias_seen"}, **doubtful)) == ""
    clear = {"disagreement__excess": {"estimate": 0.17, "low": 0.11, "high": 0.24}}
    assert caution(cell(verdict=found, **clear)) == ""
    assert caution(cell(verdict=found, disagreement__excess={"status": "undefined", "reason": "r"})) == ""


def test_a_mixture_is_told_first_and_nothing_else_is() -> None:
    reason = "the calls were answered by more than one model: 48 by a, 24 by b; each part is estimated alone"
    mixed = {**BIASED, **cell(models_returned={"estimate": 2, "status": "descriptive", "reason": reason})}
    assert say(mixed) == f"T{reason[1:]}."
    assert headline([MIXED, "bias"], Analysis()) == (
        "1 of 2 cells answers by position; 1 was answered by more than one model."
    )


def number(quantity: str, **fields) -> Number:
    row = dict.fromkeys(Number.__dataclass_fields__) | {"n_items": 4, "n_calls": 16, "status": "ok", "estimate": 0.5}
    return Number.from_row(row | {"quantity": quantity, "method": "m"} | fields)


def test_a_caveat_names_its_numbers_and_the_reason() -> None:
    few, other = few_items(4), "only 2 of 4 items differ (share 1): a bootstrap would be too sure"
    rows = [
        number("accuracy", reason=few),
        number("accuracy.slot_1", reason=few),
        number("accuracy.slot_2", reason=few),
        number("V.corrected", reason=few),
        number("accuracy@k=5", reason=few_items(3), n_items=3),
        number("disagreement.other_order", reason=other),
        number("contrast.first", reason="pools a and b"),
        number("shape.label", reason="not separable", label="undetermined"),
        number("picks.slot_1", reason="of no use", status="not_measurable"),
        number("accuracy@model=m1", reason=few),
    ]
    assert caveats({row.quantity: row for row in rows}) == [
        "Intervals of accuracy, accuracy by slot and V tend to be too narrow, for they rest on only 4 items.",
        "Intervals of accuracy (items with 5 options) tend to be too narrow, for they rest on only 3 items.",
        f"Disagreement in another order: {other}.",
        "Planned contrast first: pools a and b.",
    ]


def test_reasons_below_a_crossings_table_name_effects_and_conditions() -> None:
    few, same = "only 5 items", "all 5 items have the same value"
    rows = [
        number(f"{effect}.{condition}", reason=few if effect in ("token", "serial") else same, status="not_measurable")
        for effect in ("token", "role", "order", "serial")
        for condition in ("T1", "T1c")
    ]
    rows[2] = number("role.T1")
    assert _effect_notes({row.quantity: row for row in rows}, ["T1", "T1c"], "") == [
        f"Token and serial in every condition: {few}.",
        f"Role in T1c: {same}.",
        f"Order in every condition: {same}.",
    ]


def test_contrasts_with_one_caveat_share_a_line() -> None:
    plan = ContrastFile.model_validate(
        {
            "schema": "counterbalance/contrasts/1",
            "contrasts": [{"id": name, "expression": "T1.serial", "status": "descriptive"} for name in ("a", "b", "c")],
        }
    )
    reasons = {"a": "all the same; descriptive", "b": "all the same; pools x; descriptive", "c": "descriptive"}
    rows = [number(f"contrast.{name}", reason=text, status="descriptive") for name, text in reasons.items()]
    shown = contrast_rows({row.quantity: row for row in rows}, plan)
    assert contrast_notes(shown) == [("a, b", "all the same"), ("b", "pools x")]
