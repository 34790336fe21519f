"""The one word for a cell, from estimates written by hand."""

import pytest

from counterbalance.config import Analysis
from counterbalance.designs.mcq.quantities import describe
from counterbalance.designs.mcq.verdict import verdict
from counterbalance.errors import InputError


def rows(accuracy=(1.0, "ok"), picks=(1.0, "ok"), detectable=(0.08, "ok"), mark="", missing=1.0):
    def row(quantity, p, status, estimate=None):
        reason = None if status == "ok" else "because"
        return {
            "quantity": f"{quantity}{mark}",
            "p": p,
            "p_adjusted": p,
            "status": status,
            "estimate": estimate,
            "reason": reason,
            "n_items": 10,
            "n_calls": 40,
        }

    found = [
        row("relabelling.accuracy", *accuracy),
        row("relabelling.picks", *picks),
        row("relabelling.unanswered", missing, "ok"),
        row("detectable_V.family", None, detectable[1], detectable[0]),
        *(row(f"accuracy.slot_{slot}", None, "ok", 0.5) for slot in (1, 2, 3, 4)),
    ]
    return {entry["quantity"]: entry for entry in found}


UNSEEN = (0.2, "not_measurable")
REJECTS = (0.01, "ok")


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (rows(accuracy=(0.04, "ok")), "bias"),
        (rows(picks=(0.04, "ok")), "bias"),
        (rows(accuracy=(0.05, "ok")), "no_bias_seen"),
        (rows(), "no_bias_seen"),
        (rows(detectable=(0.2, "not_measurable")), "not_measurable"),
        (rows(detectable=(None, "undefined")), "not_measurable"),
        (rows((1.0, "degenerate"), (1.0, "degenerate")), "degenerate"),
        (rows((1.0, "degenerate"), (0.01, "ok")), "bias"),
        (rows((None, "undefined"), (None, "undefined"), (None, "undefined")), "not_measurable"),
    ],
)
def test_the_verdict_follows_from_corrected_tests_and_detectable_v(given, label) -> None:
    assert verdict(Analysis(), given).label == label


def test_a_null_says_what_it_could_have_seen() -> None:
    assert "0.080" in str(verdict(Analysis(), rows()).reason)
    assert "0.200" in str(verdict(Analysis(), rows(detectable=(0.2, "not_measurable"))).reason)


@pytest.mark.parametrize(
    ("first", "other", "label", "said"),
    [
        ({}, {}, "no_bias_seen", "0.080 among the items with 4 options and V of 0.080 among the items with 5 options"),
        ({}, {"accuracy": REJECTS}, "bias", "accuracy differs between slots among the items with 5 options"),
        ({"detectable": UNSEEN}, {"picks": REJECTS}, "bias", "picks differ between slots among the items with 5"),
        ({"picks": REJECTS}, {}, "bias", "picks differ between slots among the items with 4 options"),
        ({}, {"detectable": UNSEEN}, "not_measurable", "0.200 or more among the items with 5 options"),
        ({}, dict.fromkeys(("accuracy", "picks"), (1.0, "degenerate")), "not_measurable", "with 5 options, so there"),
    ],
)
def test_items_with_another_number_of_options_have_a_part_in_the_verdict(first, other, label, said) -> None:
    found = verdict(Analysis(), rows(**first) | rows(**other, mark="@k=5"))
    assert found.label == label
    assert said in str(found.reason)
    assert (found.n_items, found.n_calls) == (20, 80)


def test_a_part_that_one_model_answered_is_no_stratum() -> None:
    found = verdict(Analysis(), rows() | rows(accuracy=REJECTS, mark="@k=5@model=m"))
    assert (found.label, found.n_items) == ("no_bias_seen", 10)


def test_answers_that_go_missing_by_position_are_told_and_allow_no_null() -> None:
    picks = (None, "not_measurable")
    found = verdict(Analysis(), rows(picks=picks, missing=0.001))
    assert found.label == "not_measurable"
    assert "answers go missing by position" in str(found.reason)
    biased = verdict(Analysis(), rows(accuracy=REJECTS, picks=picks, missing=0.001))
    assert biased.label == "bias"
    assert str(biased.reason).startswith("accuracy differs between slots; answers go missing by position")


def test_alpha_is_the_plan_s() -> None:
    assert verdict(Analysis(alpha=0.01), rows(accuracy=(0.04, "ok"))).label == "no_bias_seen"


def test_every_quantity_has_a_meaning_and_a_typo_has_none() -> None:
    for name in ("accuracy", "accuracy.slot_4", "status.refused.slot_2", "verdict", "accuracy.slot_1@k=3"):
        assert describe(name).endswith(".")
    with pytest.raises(InputError, match="accurcy"):
        describe("accurcy")
