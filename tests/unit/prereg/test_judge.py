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
    assert judged("interval_above", [constant], value=0.8)["verdict"] == "confirmed"
    assert judged("interval_above", [constant], value=0.88)["verdict"] == "falsified"
    assert judged("interval_below", [constant], value=0.9)["verdict"] == "falsified"


@pytest.mark.parametrize("missing", ["low", "high"])
def test_constant_data_without_an_exact_bound_are_not(missing) -> None:
    constant = estimate(estimate=1.0, low=0.88, high=1.0, status="degenerate", reason="all the same") | {missing: None}
    for rule in ("interval_above", "at_least"):
        row = judged(rule, [constant], value=0.8)
        assert (row["verdict"], row["reason"]) == ("not_evaluable", "q is degenerate: all the same")


LARGE = {"estimate": 0.174, "status": "not_measurable", "reason": "a V of 0.1 would not be found"}


@pytest.mark.parametrize(
    ("rule", "numbers", "verdict"),
    [
        ("at_most", {"value": 0.1}, "falsified"),
        ("at_most", {"value": 0.2}, "confirmed"),
        ("between", {"low": 0.1, "high": 0.2}, "confirmed"),
        ("greater_than", {"than": {**OTHER, "quantity": "detectable_V"}}, "confirmed"),
    ],
)
def test_a_detectable_v_larger_than_planned_is_a_number_all_the_same(rule, numbers, verdict) -> None:
    rows = [estimate("detectable_V", **LARGE), estimate("detectable_V", OTHER, estimate=0.08)]
    assert judged(rule, rows, quantity="detectable_V", **numbers)["verdict"] == verdict


def test_but_not_where_there_is_none_or_more_than_one_model_answered() -> None:
    nothing = estimate("detectable_V", status="not_measurable", reason="all calls have the same outcome")
    row = judged("at_most", [nothing], quantity="detectable_V", value=0.1)
    assert (row["verdict"], "same outcome" in row["reason"]) == ("not_evaluable", True)
    mixed = [estimate("models_returned", estimate=2), estimate("detectable_V", **LARGE)]
    assert judged("at_most", mixed, quantity="detectable_V", value=0.2)["verdict"] == "not_evaluable"
    part = [*mixed, estimate("detectable_V@model=one", **LARGE)]
    assert judged("at_most", part, quantity="detectable_V@model=one", value=0.2)["verdict"] == "confirmed"
    too_few = estimate("contrast.c", estimate=0.3, status="not_measurable", reason="only 3 items")
    assert judged("at_least", [too_few], quantity="contrast.c", value=0.1)["verdict"] == "not_evaluable"


def test_an_outcome_that_no_call_had_is_a_count_of_zero_with_its_exact_bound() -> None:
    answered = estimate("status.ok", estimate=0.98, low=0.9, high=0.99, level=0.95, n_items=50, n_calls=1200)
    slot = answered | {"quantity": "status.ok.slot_2", "n_items": 20}
    row = judged("at_most", [answered], quantity="status.refused", value=0.05)
    assert (row["verdict"], row["estimate"], row["low"]) == ("confirmed", 0, 0)
    # Nobody of n: the exact upper bound of a two-sided 95% interval is 1 - .025^(1/n).
    assert row["high"] == pytest.approx(1 - 0.025 ** (1 / 50))
    assert judged("at_least", [answered], quantity="status.refused", value=0.01)["verdict"] == "falsified"
    assert judged("interval_below", [answered], quantity="status.refused", value=0.08)["verdict"] == "confirmed"
    assert judged("interval_below", [answered], quantity="status.refused", value=0.07)["verdict"] == "falsified"
    row = judged("interval_below", [answered, slot], quantity="status.refused.slot_2", value=0.5)
    assert row["high"] == pytest.approx(1 - 0.025 ** (1 / 20))


def test_its_bound_counts_groups_where_items_form_some() -> None:
    rows = [estimate("status.ok", estimate=0.98, low=0.9, high=0.99, level=0.95, n_items=50, n_calls=1200)]
    rows += [estimate("groups", estimate=10.0, status="descriptive", reason="a count")]
    row = judged("at_most", rows, quantity="status.refused", value=0.05)
    assert row["high"] == pytest.approx(1 - 0.025 ** (1 / 10))


def test_an_outcome_is_not_zero_where_nobody_was_asked_or_the_word_is_none() -> None:
    answered = estimate("status.ok", estimate=0.98, low=0.9, high=0.99, level=0.95)
    for quantity, rows in (
        ("status.reffused", [answered]),
        ("status.refused.slot_9", [answered]),
        ("status.refused@k=5", [answered]),
        ("status.refused", [estimate("status.ok", status="undefined", reason="no calls")]),
        ("status.refused", [answered | {"model": "planted"}]),
    ):
        row = judged("at_most", rows, quantity=quantity, value=0.05)
        assert row["verdict"] == "not_evaluable"
        assert f"{quantity} is not among the estimates" in row["reason"]
    mixture = answered | {"status": "not_measurable", "reason": "two models answered"}
    row = judged("at_most", [mixture, estimate("models_returned", estimate=2)], quantity="status.refused", value=0.05)
    assert (row["verdict"], row["reason"]) == ("not_evaluable", "status.refused is not_measurable: two models answered")


def test_a_share_without_an_interval_gives_a_zero_without_one() -> None:
    count = estimate("status.ok.e1", estimate=1.0, status="descriptive", reason="a count of calls")
    assert judged("at_most", [count], quantity="status.unlisted.e1", value=0.05)["verdict"] == "confirmed"
    row = judged("interval_below", [count], quantity="status.unlisted.e1", value=0.05)
    assert (row["verdict"], row["reason"]) == ("not_evaluable", "status.unlisted.e1 has no low: a count of calls")


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


@pytest.mark.parametrize("part", ["", "@k=5", "@model=one", "@k=5@model=one"])
def test_what_a_part_of_a_cell_could_have_shown_is_its_own_matter(part) -> None:
    able = {"estimate": 0.08}
    for verdict, own, expected in (
        ("no_bias_seen", LARGE, "not_evaluable"),
        ("not_measurable", able, "confirmed"),
        ("no_bias_seen", able, "confirmed"),
    ):
        rows = [estimate("verdict", label=verdict), estimate("detectable_V", **able)] if part else []
        rows += [estimate(f"relabelling.accuracy{part}", p=0.6), estimate(f"detectable_V{part}", **own)]
        row = judged("p_at_least", rows, quantity=f"relabelling.accuracy{part}", value=0.05)
        assert row["verdict"] == expected
        assert (LARGE["reason"] in row["reason"]) == (expected == "not_evaluable")


def test_a_corrected_p_needs_a_v_that_would_be_seen_at_the_corrected_level() -> None:
    rows = [estimate("relabelling.accuracy", p=0.4, p_adjusted=0.8), estimate("chi2.published", p=0.4)]
    rows += [estimate("detectable_V", estimate=0.08), estimate("detectable_V.family", **LARGE)]
    assert judged("p_at_least", rows, quantity="relabelling.accuracy", value=0.05)["verdict"] == "not_evaluable"
    assert judged("p_at_least", rows, quantity="chi2.published", value=0.05)["verdict"] == "confirmed"


def test_a_part_without_either_has_the_cells_verdict() -> None:
    rows = [estimate("verdict", label="not_measurable", reason="few"), estimate("serial.plain@all", p=0.6)]
    assert judged("p_at_least", rows, quantity="serial.plain@all", value=0.05)["verdict"] == "not_evaluable"


def test_what_was_found_refutes_even_where_finding_nothing_would_not_confirm() -> None:
    rows = [estimate(p=0.01), estimate("verdict", label="not_measurable")]
    assert judged("p_at_least", rows, value=0.05)["verdict"] == "falsified"


def test_another_cells_verdict_does_not_matter() -> None:
    rows = [estimate(p=0.9), estimate("verdict", OTHER, label="not_measurable")]
    assert judged("p_at_least", rows, value=0.05)["verdict"] == "confirmed"


def test_numbers_that_four_digits_cannot_tell_apart_are_shown_in_full() -> None:
    assert judged("at_most", [estimate(estimate=UP)], value=0.1)["reason"] == f"estimate {UP!r}"
    assert judged("at_most", [estimate(estimate=0.123456)], value=0.1)["reason"] == "estimate 0.1235"


def test_a_row_carries_what_was_predicted_and_what_was_found() -> None:
    row = judged("interval_above", [estimate(estimate=0.3, low=0.2, high=0.4, level=0.95)], value=0.1)
    assert row["expected"] == "whole interval above 0.1"
    assert row["reason"] == "95% interval 0.2 to 0.4"
    assert (row["estimate"], row["low"], row["high"]) == (0.3, 0.2, 0.4)


@settings(max_examples=50, deadline=None)
@given(st.floats(-1, 1), st.floats(-1, 1))
def test_opposite_rules_are_never_both_falsified(value, point) -> None:
    verdicts = {judged(rule, [estimate(estimate=point)], value=value)["verdict"] for rule in ("at_least", "at_most")}
    assert verdicts == ({"confirmed"} if value == point else {"confirmed", "falsified"})
