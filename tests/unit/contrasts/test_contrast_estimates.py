"""Evaluation per item on one common set, estimates against scipy, families, statuses and warnings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from counterbalance.config.yaml import parse_yaml
from counterbalance.contrasts import EffectTable, Resampling, estimate_contrasts, estimate_means
from counterbalance.contrasts.evaluate import evaluate
from counterbalance.contrasts.plan import plan_contrasts
from counterbalance.errors import InputError
from counterbalance.stats.multiplicity import holm

FAST = Resampling(n_resamples=499, seed=7)


def plan_of(*contrasts, conditions=None):
    value = {
        "schema": "counterbalance/contrasts/1",
        "contrasts": [
            {"id": name, "expression": text, "status": "inferential", **more} for name, text, more in contrasts
        ],
    }
    if conditions is not None:
        value["conditions"] = conditions
    return plan_contrasts(value, {}, source="test", effects=("role", "serial"))


def table_of(**conditions):
    """Conditions as lists of (role, serial), items i0, i1, ...; None where the item is absent."""
    n = max(len(rows) for rows in conditions.values())
    return EffectTable.build(
        [f"i{place}" for place in range(n)],
        {
            name: {
                effect: {f"i{place}": row[column] for place, row in enumerate(rows) if row is not None}
                for column, effect in enumerate(("role", "serial"))
            }
            for name, rows in conditions.items()
        },
    )


def test_every_operation_item_by_item():
    table = table_of(X=[(1, -2), (-3, 4)], Y=[(10, 20), (30, 40)])
    plan = plan_of(
        ("a", "X.role + Y.role", {}),
        ("b", "Y.serial - 2 * X.serial / 4", {}),
        ("c", "abs(X.role) - abs(X.serial)", {}),
        ("d", "mean(a, b, X.role)", {}),
        ("e", "-(a - b) + 0.5", {}),
        ("f", "Y.role / X.serial", {"status": "descriptive"}),
    )
    values = {found.planned.id: found.values.tolist() for found in evaluate(plan, table)}
    assert values == {
        "a": [11, 27],
        "b": [21, 38],
        "c": [-1, -1],
        "d": [11, pytest.approx(62 / 3)],
        "e": [10.5, 11.5],
        "f": [-5, 7.5],
    }


def test_items_have_to_be_in_every_condition_that_is_used():
    table = table_of(X=[(1, 1), None, (3, 3)], Y=[(5, 5), (6, 6), (8, 8)], Z=[None, (1, 1), (1, 1)])
    plan = plan_of(("xy", "Y.role - X.role", {}), ("y", "Y.role", {}), ("all", "xy + Z.role", {}))
    assert [found.values.tolist() for found in evaluate(plan, table)] == [[4, 5], [5, 6, 8], [6]]
    assert [found.estimate.n for found in estimate_contrasts(plan, table, FAST)] == [2, 3, 1]


def test_what_is_not_in_the_data_is_told_and_the_rest_is_estimated():
    plan = plan_of(("a", "X.serial - T9.serial", {}), ("b", "a + X.role", {}), ("c", "X.serial", {}))
    a, b, c = estimate_contrasts(plan, table_of(X=[(0, k) for k in range(8)]), FAST)
    for found in (a, b):
        assert found.estimate.evaluation == "not_evaluable"
        assert "condition T9 not in the data, which have X" in found.estimate.reason
        assert [interval.level for interval in found.estimate.intervals] == [0.95, 0.9]
    assert c.estimate.estimate == 3.5


def test_numbers_too_large_to_average_are_told():
    plan = plan_of(("a", "1e300 * X.role", {}), ("b", "a - a", {}), ("c", "1e300 * a - 1e300 * a", {}))
    found = evaluate(plan, table_of(X=[(1, 0), (2, 0)]))
    assert ["too large" in (entry.reason or "") for entry in found] == [True, False, True]


@pytest.mark.parametrize("stream", ["modern", "legacy"])
def test_all_numbers_against_scipy(stream):
    row = np.random.default_rng(3).gamma(2, 0.2, 13) - 0.3
    (found,) = estimate_means([row], [0.2], Resampling(stream=stream, n_resamples=999))
    source = {"random_state": 42} if stream == "legacy" else {"rng": 42}
    for interval in found.intervals:
        expected = stats.bootstrap(
            (row,), np.mean, method="BCa", n_resamples=999, confidence_level=interval.level, **source
        ).confidence_interval
        assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=1e-12)
    assert [interval.level for interval in found.intervals] == [0.95, 0.9]
    assert found.estimate == pytest.approx(row.mean())
    assert found.sd == pytest.approx(np.std(row, ddof=1))
    one_sided = (
        stats.ttest_1samp(row, -0.2, alternative="greater").pvalue,
        stats.ttest_1samp(row, 0.2, alternative="less").pvalue,
    )
    assert found.p_tost == pytest.approx(max(one_sided))
    assert (found.n_negative, found.n_positive) == ((row < 0).sum(), (row > 0).sum())
    assert found.sign_consistency == pytest.approx(found.n_positive / 13)


def test_one_call_for_many_series_gives_what_single_calls_give():
    rng = np.random.default_rng(5)
    rows = [rng.normal(size=n) for n in (9, 12, 9, 12, 12)]
    together = estimate_means(rows, [0.15] * 5, FAST)
    for row, found in zip(rows, together, strict=True):
        (alone,) = estimate_means([row], [0.15], FAST)
        assert found.p == alone.p
        for one, two in zip(found.intervals, alone.intervals, strict=True):
            assert (one.low, one.high) == pytest.approx((two.low, two.high), abs=1e-12)
    with pytest.raises(InputError, match="2 series and 1 bounds"):
        estimate_means(rows[:2], [0.15], FAST)


@pytest.mark.parametrize(
    ("row", "evaluation", "estimate", "reason"),
    [
        ([], "undefined", None, "no items"),
        ([0.4], "degenerate", 0.4, "only 1 item"),
        ([0.1 + 0.2, 0.3, 0.3], "degenerate", 0.3, "all 3 items have the same value"),
        ([0.0] * 12, "degenerate", 0.0, "same value"),
        ([0.1, 0.5], "too_few", 0.3, "only 2 items"),
        ([0.1, 0.2, 0.4, 0.5, 0.6], "too_few", 0.36, "only 5 items"),
    ],
)
def test_little_data_get_a_status_and_never_an_empty_interval(row, evaluation, estimate, reason):
    (found,) = estimate_means([np.array(row)], [0.15], FAST)
    assert found.evaluation == evaluation
    assert reason in found.reason
    assert found.estimate == (None if estimate is None else pytest.approx(estimate))
    assert found.excludes_zero is None
    for interval in found.intervals:
        assert (interval.low is None) == (interval.high is None)
        assert interval.low is None or interval.low < interval.high
    if evaluation != "too_few":
        assert found.p_tost is None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-5, 5, allow_subnormal=False), min_size=0, max_size=9))
def test_no_data_at_all_give_a_number_that_is_none(row):
    (found,) = estimate_means([np.array(row)], [0.15], Resampling(n_resamples=99))
    numbers = [found.estimate, found.sd, found.p, found.p_tost, *(i.low for i in found.intervals)]
    assert all(value is None or np.isfinite(value) for value in numbers)
    assert found.evaluation == "ok" or found.reason


def test_holm_runs_within_each_family_and_counts_what_could_not_be_tested():
    rng = np.random.default_rng(11)
    table = table_of(
        **{name: list(rng.normal(shift, 1, (12, 2))) for name, shift in (("X", 0.8), ("Y", 0.5), ("Z", 0))}
    )
    plan = plan_of(
        ("a", "X.role", {"family": "F"}),
        ("b", "Y.role", {"family": "F"}),
        ("gone", "Q.role", {"family": "F"}),
        ("c", "Z.role", {"family": "G"}),
        ("d", "Z.serial", {}),
    )
    found = {entry.planned.id: entry for entry in estimate_contrasts(plan, table, FAST)}
    raw = {name: entry.estimate.p for name, entry in found.items()}
    assert [found[name].p_adjusted for name in ("a", "b", "gone")] == holm([raw["a"], raw["b"], None])
    assert found["a"].p_adjusted >= 3 * min(raw["a"], raw["b"])
    assert found["c"].p_adjusted == raw["c"]
    assert found["d"].p_adjusted is None


def warnings_of(plan, table):
    return {found.planned.id: found.warnings for found in estimate_contrasts(plan, table, FAST)}


def test_pooling_arms_that_differ_is_warned_of_and_others_are_not():
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 0.1, (3, 12))
    table = table_of(
        X=[(0, value) for value in noise[0] - 1],
        Y=[(0, value) for value in noise[1] + 1],
        Z=[(0, value) for value in noise[2] - noise[2].mean() + noise[0].mean() - 1],
    )
    plan = plan_of(
        ("differ", "mean(X.serial, Y.serial)", {}),
        ("alike", "mean(X.serial, Z.serial)", {}),
        ("outer", "2 * differ", {}),
        ("three", "mean(X.serial, Y.serial, Z.serial)", {}),
    )
    found = warnings_of(plan, table)
    assert len(found["differ"]) == 1
    assert found["differ"][0].startswith("pools X.serial and Y.serial, which differ by -")
    assert found["alike"] == ()
    assert found["outer"] == found["differ"]
    assert [text.split(",")[0] for text in found["three"]] == [
        "pools X.serial and Y.serial",
        "pools Y.serial and Z.serial",
    ]


def test_comparing_cells_with_other_cue_counts_is_warned_of():
    rows = [(0, value) for value in np.random.default_rng(4).normal(size=8)]
    plan = plan_of(
        ("same", "X.serial - Y.serial", {}),
        ("other", "X.serial - Z.serial", {}),
        ("through", "same + other", {}),
        ("about", "X.serial - Z.serial", {"about_cues": True}),
        ("unknown", "X.serial - Q.serial", {}),
        ("absent", "Z.serial - R.serial", {}),
        conditions={"X": {"cues": 2}, "Y": {"cues": 2}, "Z": {"cues": 0}, "Q": {}, "R": {"cues": 1}},
    )
    found = warnings_of(plan, table_of(X=rows, Y=rows[::-1], Z=rows[1:] + rows[:1], Q=rows))
    assert found["same"] == found["about"] == ()
    assert "cue counts differ (X 2, Z 0)" in found["other"][0]
    assert "cue counts differ (X 2, Y 2, Z 0)" in found["through"][0]
    assert found["unknown"] == ("cue counts of Q not declared: not checked",)
    assert "Z 0, R 1" in found["absent"][0]


def test_no_word_about_cues_where_none_are_declared():
    rows = [(0, value) for value in np.random.default_rng(4).normal(size=8)]
    plan = plan_of(("a", "X.serial - Y.serial", {}), conditions={"X": {}, "Y": {}})
    assert warnings_of(plan, table_of(X=rows, Y=rows[::-1]))["a"] == ()


def test_a_ratio_shows_both_readings():
    plan = plan_of(("r", "X.role / X.serial", {"status": "descriptive"}))
    (found,) = estimate_contrasts(plan, table_of(X=[(1, 1), (4, 2), (1, 4), (9, 3), (2, 1), (3, 2), (5, 2)]), FAST)
    ratios = [1, 2, 0.25, 3, 2, 1.5, 2.5]
    assert found.estimate.estimate == pytest.approx(sum(ratios) / 7)
    assert found.ratio_of_means == pytest.approx(25 / 15)
    assert "mean of the items' ratios 1.750, ratio of the means 1.667" in found.warnings[0]
    assert found.estimate.p is None
    assert found.estimate.p_tost is None


def test_a_ratio_with_a_zero_below_has_no_mean_of_ratios():
    plan = plan_of(("r", "X.role / X.serial", {"status": "descriptive"}))
    (found,) = estimate_contrasts(plan, table_of(X=[(1, 0), (4, 2), (1, 4)]), FAST)
    assert found.estimate.evaluation == "not_evaluable"
    assert "the denominator is 0 for item 'i0'" in found.estimate.reason
    assert found.ratio_of_means == pytest.approx(1)
    (none,) = estimate_contrasts(plan, table_of(X=[(1, 2), (4, -2)]), FAST)
    assert none.ratio_of_means is None
    assert "ratio of the means undefined" in none.warnings[0]


def test_effect_tables_are_checked():
    with pytest.raises(InputError, match="listed twice"):
        EffectTable.build(["a", "a"], {})
    with pytest.raises(InputError, match=r"X\.role: item 'b' is not among"):
        EffectTable.build(["a"], {"X": {"role": {"b": 1.0}}})
    with pytest.raises(InputError, match=r"X\.role, item 'a': found nan"):
        EffectTable.build(["a"], {"X": {"role": {"a": float("nan")}}})
    with pytest.raises(InputError, match=r"X\.serial: has other items"):
        EffectTable.build(["a", "b"], {"X": {"role": {"a": 1.0}, "serial": {"b": 1.0}}})


def test_yaml_lines_reach_the_messages():
    value, lines = parse_yaml(
        "schema: counterbalance/contrasts/1\ncontrasts:\n  - id: a\n    status: legacy\n    expression: T1.x\n",
        source="c.yaml",
    )
    with pytest.raises(Exception, match=r"c\.yaml line 5, contrast a, column 1: no effect 'x'"):
        plan_contrasts(value, lines, source="c.yaml", effects=("serial",))
