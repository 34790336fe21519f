"""Each rule at, below and above its boundary, and every reason for which a prediction cannot be judged."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.prereg.judge import judge
from counterbalance.prereg.predictions import PREDICTIONS

CELL = {"experiment": "letters", "model": "fair", "subset": "sums"}
OTHER = {"experiment": "letters", "model": "planted", "subset": "sums"}
UP, DOWN = 0.1 + 2**-56, 0.1 - 2**-56


def estimate(quantity="q", cell=None, **columns):
    row = dict.fromkeys(SCHEMAS["estimates"].arrow.names)
    row |= {"method": "by hand", "n_items": 3, "n_calls": 6, "status": "ok", "quantity": quantity}
    return row | (cell or CELL) | columns


def judged(rule, rows, **prediction):
    entry = {"id": "P1", **CELL, "quantity": "q", "rule": rule, **prediction}
    table = judge(PREDICTIONS.validate_python([entry], strict=False), table_from_rows(rows, SCHEMAS["estimates"]))
    (row,) = table.to_pylist()
    return row


@pytest.mark.parametrize(
    ("rule", "numbers", "columns", "verdict"),
    [
        ("at_least", {"value": 0.1}, {"estimate": 0.1}, "confirmed"),
        ("at_least", {"value": 0.1}, {"estimate": DOWN}, "falsified"),
        ("at_most", {"value": 0.1}, {"estimate": 0.1}, "confirmed"),
        ("at_most", {"value": 0.1}, {"estimate": UP}, "falsified"),
        ("at_most", {"value": 0.1}, {"estimate": 0.1, "status": "descriptive"}, "confirmed"),
        ("between", {"low": 0.1, "high": 0.2}, {"estimate": 0.1}, "confirmed"),
        ("between", {"low": 0.1, "high": 0.2}, {"estimate": 0.2}, "confirmed"),
        ("between", {"low": 0.1, "high": 0.2}, {"estimate": DOWN}, "falsified"),
        ("between", {"low": 0.1, "high": 0.2}, {"estimate": 0.3}, "falsified"),
        ("interval_above", {"value": 0.1}, {"low": UP, "high": 0.4}, "confirmed"),
        ("interval_above", {"value": 0.1}, {"low": 0.1, "high": 0.4}, "falsified"),
        ("interval_below", {"value": 0.1}, {"low": 0.0, "high": DOWN}, "confirmed"),
        ("interval_below", {"value": 0.1}, {"low": 0.0, "high": 0.1}, "falsified"),
        ("p_below", {"value": 0.1}, {"p": DOWN}, "confirmed"),
        ("p_below", {"value": 0.1}, {"p": 0.1}, "falsified"),
        ("p_below", {"value": 0.1}, {"p": 0.01, "p_adjusted": 0.2}, "falsified"),
        ("p_below", {"value": 0.1}, {"p": 0.2, "p_adjusted": 0.01}, "confirmed"),
        ("p_at_least", {"value": 0.1}, {"p": 0.1}, "confirmed"),
        ("p_at_least", {"value": 0.1}, {"p": DOWN}, "falsified"),
        ("p_at_least", {"value": 0.1}, {"p": 0.01, "p_adjusted": 0.2}, "confirmed"),
        ("label_is", {"value": "linear"}, {"label": "linear"}, "confirmed"),
        ("label_is", {"value": "linear"}, {"label": "flat"}, "falsified"),
        ("label_is", {"value": "not_measurable"}, {"label": "not_measurable", "status": "not_measurable"}, "confirmed"),
    ],
)
def test_rules_and_their_boundaries(rule, numbers, columns, verdict) -> None:
    row = judged(rule, [estimate(**columns)], **numbers)
    assert row["verdict"] == verdict
    assert row["reason"]


@pytest.mark.parametrize(
    ("rule", "ours", "other", "verdict"),
    [
        ("greater_than", UP, 0.1, "confirmed"),
        ("greater_than", 0.1, 0.1, "falsified"),
        ("less_than", DOWN, 0.1, "confirmed"),
        ("less_than", 0.1, 0.1, "falsified"),
        ("less_than", 0.3, 0.1, "falsified"),
    ],
)
def test_comparisons_are_strict(rule, ours, other, verdict) -> None:
    rows = [estimate(estimate=ours), estimate(cell=OTHER, estimate=other)]
    assert judged(rule, rows, than={**OTHER, "quantity": "q"})["verdict"] == verdict


def test_constant_data_with_an_exact_bound_are_judged_by_their_point() -> None:
    constant = estimate(estimate=1.0, low=0.88, high=1.0, status="degenerate", reason="all the same")
    assert judged("at_least", [constant], value=0.9)["verdict"] == "confirmed"
    assert judged("at_most", [constant], value=0.9)["verdict"] == "falsified"
    assert judged("interval_above", [constant], value=0.5)["verdict"] == "not_evaluable"


@pytest.mark.parametrize(
    ("rule", "numbers", "rows", "says"),
    [
        ("at_least", {"value": 0}, [], "q is not among the estimates of letters/fair/sums"),
        ("at_least", {"value": 0}, [estimate(estimate=1.0, status="degenerate", reason="one item")], "one item"),
        ("at_most", {"value": 0}, [estimate(label="word")], "q has no estimate"),
        ("interval_above", {"value": 0}, [estimate(estimate=1.0, low=0.5)], "q has no high"),
        ("interval_below", {"value": 0}, [estimate(estimate=1.0, high=0.5)], "q has no low"),
        ("p_below", {"value": 0.5}, [estimate(estimate=1.0)], "q has no p"),
        ("p_below", {"value": 0.5}, [estimate(p=0.1, status="not_measurable", reason="few items")], "few items"),
        ("p_at_least", {"value": 0.5}, [estimate(p=0.9, status="undefined")], "undefined"),
        ("label_is", {"value": "x"}, [estimate(estimate=1.0)], "q has no label"),
        ("label_is", {"value": "x"}, [estimate(label="y", status="degenerate", reason="no reply")], "no reply"),
        ("less_than", {"than": {**OTHER, "quantity": "r"}}, [estimate(estimate=1.0)], "r is not among"),
        (
            "less_than",
            {"than": {**OTHER, "quantity": "r"}},
            [estimate(estimate=1.0), estimate("r", OTHER, estimate=0.5, status="degenerate", reason="all right")],
            "r is degenerate: all right",
        ),
    ],
)
def test_what_cannot_be_judged_says_why(rule, numbers, rows, says) -> None:
    row = judged(rule, rows, **numbers)
    assert row["verdict"] == "not_evaluable"
    assert says in row["reason"]


@pytest.mark.parametrize("where", [{"label": "not_measurable"}, {"status": "not_measurable", "label": "no_bias_seen"}])
def test_no_finding_in_a_cell_that_could_not_find_is_no_confirmation(where) -> None:
    rows = [estimate(p=0.9), estimate("verdict", reason="detectable V is 0.4", **where)]
    row = judged("p_at_least", rows, value=0.05)
    assert row["verdict"] == "not_evaluable"
    assert "could not have shown an effect: detectable V is 0.4" in row["reason"]
    assert judged("p_below", rows, value=0.05)["verdict"] == "falsified"
    assert (
        judged("p_at_least", [estimate(p=0.9), estimate("verdict", label="no_bias_seen")], value=0.05)["verdict"]
        == "confirmed"
    )


def test_another_cells_verdict_does_not_matter() -> None:
    rows = [estimate(p=0.9), estimate("verdict", OTHER, label="not_measurable")]
    assert judged("p_at_least", rows, value=0.05)["verdict"] == "confirmed"


def test_numbers_that_four_digits_cannot_tell_apart_are_shown_in_full() -> None:
    assert judged("at_most", [estimate(estimate=UP)], value=0.1)["reason"] == f"estimate {UP!r}"
    assert judged("at_most", [estimate(estimate=0.123456)], value=0.1)["reason"] == "estimate 0.1235"


def test_a_row_carries_what_was_predicted_and_what_was_found() -> None:
    row = judged("interval_above", [estimate(estimate=0.3, low=0.2, high=0.4, level=0.95)], value=0.1)
    assert row["expected"] == "whole interval above 0.1"
    assert row["reason"] == "0.95 interval 0.2 to 0.4"
    assert (row["estimate"], row["low"], row["high"]) == (0.3, 0.2, 0.4)


@settings(max_examples=50, deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_opposite_rules_are_never_both_falsified(value, point) -> None:
    verdicts = {judged(rule, [estimate(estimate=point)], value=value)["verdict"] for rule in ("at_least", "at_most")}
    assert verdicts == ({"confirmed"} if value == point else {"confirmed", "falsified"})
