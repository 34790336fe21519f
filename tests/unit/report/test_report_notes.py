from collections.abc import Mapping

import pytest

from counterbalance.config import Analysis
from counterbalance.report.mcq.notes import MIXED, Context, caution, headline, lead, sentence, verdict_words
from counterbalance.report.mcq.slots import read_slots
from counterbalance.report.numbers import Number

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


def test_a_null_says_what_it_would_have_seen() -> None:
    numbers = cell(verdict={"label": "no_bias_seen"}, detectable_V={"estimate": 0.08})
    assert say(numbers) == "A V of .080 or more would have been seen with 80% power."
    assert say(cell(verdict={"label": "no_bias_seen"})) == "How small a bias would have been seen is not known."


def test_not_measurable_is_no_evidence_of_absence() -> None:
    reason = {"label": "not_measurable", "status": "not_measurable", "reason": "r"}
    text = say(cell(verdict=reason, detectable_V={"estimate": 0.24, "status": "not_measurable", "reason": "r"}))
    assert text.startswith("Only a V of .240 or more would have been seen with 80% power, and the plan asks for .100")
    assert "no evidence that there is no bias" in text
    assert say(cell(verdict=reason)) == "R."


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
