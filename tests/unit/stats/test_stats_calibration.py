"""What the tests do under known truth: sizes, power, the smallest detectable V, and no NaN on any input."""

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from counterbalance.errors import InputError
from counterbalance.simulation.cells import design_orders
from counterbalance.simulation.respondent import ability_for as mean_ability
from counterbalance.simulation.respondent import choose, tally, utilities
from counterbalance.simulation.scenarios import respondent as planted_respondent
from counterbalance.simulation.sizes import effect_curve
from counterbalance.stats.contingency import contingency_test, pearson_chi2
from counterbalance.stats.counts import slot_counts
from counterbalance.stats.detectable import (
    Nuisance,
    _rejection_rate,
    _thresholds,
    detectable_v,
    fit_nuisance,
    min_unstable,
)
from counterbalance.stats.proportions import clustered_shares
from counterbalance.stats.published import question_level_effects, run_level_bootstrap
from counterbalance.stats.relabel import recentred_bootstrap, relabel_accuracy, relabel_picks
from counterbalance.stats.shape import planned_contrasts
from counterbalance.stats.vcc import cluster_corrected_v

PLAIN = planted_respondent(tau=0.3, noise=0.3)


def rates(cells):
    """Shares of cells with p < .05: Pearson, relabelled accuracy, relabelled picks."""
    chi2 = pearson_chi2(cells.correct.sum(axis=1), cells.n.sum(axis=1))
    accuracy = [relabel_accuracy(c, n, n_draws=399, seed=1).result.p < 0.05 for c, n, _ in cells]
    picks = [relabel_picks(p, n_draws=399, seed=1).result.p < 0.05 for _, _, p in cells]
    return float((stats.chi2.sf(chi2, 3) < 0.05).mean()), float(np.mean(accuracy)), float(np.mean(picks))


def test_size_with_slot_effects_of_single_questions(respondent):
    """Slot noise of sd 1, no call noise: Pearson's true size is .34, relabelling keeps .05."""
    pearson, accuracy, picks = rates(respondent(1, accuracy=0.75, tau=1.0, cells=300))
    assert pearson == pytest.approx(0.344, abs=0.08)
    assert 0.02 <= accuracy <= 0.09
    assert 0.02 <= picks <= 0.09


def test_size_with_call_noise_only(respondent):
    """Call noise of .5: Pearson hardly ever rejects (.001), relabelling keeps .05."""
    pearson, accuracy, picks = rates(respondent(2, accuracy=0.75, noise=0.5, cells=300))
    assert pearson <= 0.01
    assert 0.02 <= accuracy <= 0.09
    assert 0.02 <= picks <= 0.09


def test_power_against_a_planted_trend(respondent):
    """A trend of .6 nats from first slot to last in 50 items: power .79 for Pearson, .98 for relabelled accuracy."""
    cells = respondent(3, accuracy=0.75, tau=0.3, noise=0.3, bonus=(0.3, 0.1, -0.1, -0.3), cells=150)
    pearson, accuracy, picks = rates(cells)
    assert pearson == pytest.approx(0.79, abs=0.12)
    assert accuracy >= 0.90
    assert picks >= 0.95


@pytest.mark.parametrize(
    ("items", "accuracy", "nuisance", "expected"),
    [
        (50, 0.5, {"tau": 0.3, "noise": 0.3}, 0.075),
        (50, 0.7, {"tau": 0.3, "noise": 0.3}, 0.076),
        (50, 0.9, {"tau": 0.3, "noise": 0.3}, 0.083),
        (50, 0.97, {"tau": 0.3, "noise": 0.3}, 0.104),
        (50, 0.7, {"tau": 1.0}, 0.152),
        (100, 0.7, {"tau": 0.3, "noise": 0.3}, 0.052),
    ],
)
def test_detectable_v_from_cells_without_effect(respondent, items, accuracy, nuisance, expected):
    """Reference: V at which the relabelling test on accuracy has power .8, by simulating that test itself."""
    cells = respondent(4, accuracy=accuracy, items=items, cells=15, **nuisance)
    found = [detectable_v(c, n, n_simulations=200, seed=1).result.estimate for c, n, _ in cells]
    assert np.median(found) == pytest.approx(expected, rel=0.2)


def test_a_bonus_costs_accuracy_in_the_model_as_in_a_respondent(respondent):
    """Slot accuracies under a trend of 1.2 nats, from the distance of the end slots alone, near the ceiling."""
    bonus = (0.6, 0.2, -0.2, -0.6)
    found, base = (
        cell.correct[0].sum(axis=0) / cell.n[0].sum(axis=0)
        for cell in (
            respondent(13, accuracy=0.95, tau=0.3, noise=0.3, items=40_000, bonus=planted)
            for planted in (bonus, (0, 0, 0, 0))
        )
    )
    distance = stats.norm.ppf(found[0]) - stats.norm.ppf(found[3])
    assert stats.norm.cdf(_thresholds(distance, base.mean(), 4)) == pytest.approx(found, abs=0.005)
    assert found.mean() < base.mean() - 0.004


def test_the_fast_null_rejects_where_relabelling_does(respondent):
    """Same cells, few items that change: the moment-matched rule and the test itself reject equally often."""
    cells = respondent(12, accuracy=0.75, tau=0.3, noise=0.3, bonus=(0.3, 0.1, -0.1, -0.3), items=25, cells=400)
    share = cells.correct / cells.n
    deviations = share - share.mean(axis=2, keepdims=True)
    deviations[np.abs(deviations) < 1e-9] = 0
    fast = _rejection_rate(deviations, slot_counts(cells.correct[0], cells.n[0]), 0.05)
    drawn = np.mean([relabel_accuracy(c, n, n_draws=499, seed=1).result.p < 0.05 for c, n, _ in cells])
    assert fast == pytest.approx(drawn, abs=0.02)


def test_an_effect_in_the_data_is_not_taken_for_nuisance(respondent):
    """The smallest detectable V of a strongly biased cell stays near that of the same cell without bias."""
    found = []
    for bonus in ((0, 0, 0, 0), (0.6, 0.2, -0.2, -0.6)):
        cells = respondent(5, accuracy=0.7, tau=0.3, noise=0.3, bonus=bonus, cells=7)
        found.append(np.median([detectable_v(c, n, n_simulations=300, seed=1).result.estimate for c, n, _ in cells]))
    assert found[1] == pytest.approx(found[0], rel=0.3)


def test_nuisance_is_recovered_from_its_own_model():
    rng = np.random.default_rng(6)
    item, slot, call = (
        np.sqrt(x) * rng.standard_normal(s)
        for x, s in ((0.5, (20_000, 1, 1)), (0.2, (20_000, 4, 1)), (0.3, (20_000, 4, 6)))
    )
    correct = (item + slot + call < stats.norm.ppf(0.8)).sum(axis=2)
    found = fit_nuisance(correct, np.full(correct.shape, 6))
    assert found.accuracy == pytest.approx(0.8, abs=0.01)
    assert found.between_items == pytest.approx(0.5, abs=0.02)
    assert found.item_slots == pytest.approx(0.2, abs=0.02)


def test_nuisance_without_repeats_in_a_slot_has_no_slot_share():
    rng = np.random.default_rng(7)
    correct = (rng.standard_normal((5000, 1)) + rng.standard_normal((5000, 4)) < 0).astype(int)
    found = fit_nuisance(correct, np.ones(correct.shape))
    assert found == Nuisance(found.accuracy, found.between_items, 0.0)
    assert found.between_items == pytest.approx(0.5, abs=0.03)


def test_detectable_v_in_a_family_is_that_of_the_smaller_alpha(respondent):
    correct, n, _ = next(iter(respondent(9, accuracy=0.75, tau=0.3, noise=0.3)))
    family = detectable_v(correct, n, tests=20, n_simulations=200, seed=1).result
    strict = detectable_v(correct, n, alpha=0.05 / 20, n_simulations=200, seed=1).result
    assert family.estimate == strict.estimate > detectable_v(correct, n, n_simulations=200, seed=1).result.estimate
    assert "0.05 / 20 (Holm's first step in a family of 20 tests)" in family.method
    with pytest.raises(InputError, match="at least 1"):
        detectable_v(correct, n, tests=0, seed=1)


def test_the_v_of_a_family_is_found_at_its_level(respondent):
    """Median over cells without bias, planted in others: the test at alpha / 20 finds it with about the power meant.

    The V of a test alone is found there in half as many cells.
    """
    able = replace(PLAIN, ability_mean=mean_ability(0.75, PLAIN))
    orders = design_orders("exhaustive", None, n_items=50, k=4, seed=1)
    unbiased = list(respondent(7, accuracy=0.75, tau=0.3, noise=0.3, cells=9))
    power = {}
    for tests in (1, 20):
        values = [detectable_v(c, n, tests=tests, n_simulations=200, seed=1).result.estimate for c, n, _ in unbiased]
        biased = effect_curve(able).with_v(float(np.median(values)))
        rng = np.random.default_rng(2)
        found = tally(choose(utilities(biased.effects(100, 50, rng), orders), able.call_noise, rng), orders)
        p = [relabel_accuracy(correct, found.n, n_draws=999, seed=1).result.p for correct in found.correct]
        power[tests] = np.mean(np.array(p) < 0.05 / 20)
    assert power[20] == pytest.approx(0.8, abs=0.13)
    assert power[1] < 0.62


def test_the_interval_of_detectable_v_holds_its_scatter_between_cells(respondent):
    """Like cells give unlike values, for each estimates its nuisance; 95% intervals hold their median."""
    cells = respondent(24, accuracy=0.75, tau=0.3, noise=0.3, cells=24)
    found = [detectable_v(c, n, n_simulations=200, measurable_v=0.9, seed=1).result for c, n, _ in cells]
    values = np.array([result.estimate for result in found])
    assert np.quantile(values, 0.9) / np.quantile(values, 0.1) > 1.2
    held = [result.low <= np.median(values) <= result.high for result in found]
    assert sum(held) >= 20  # of 24, where .95 is meant: P(fewer) = .01
    assert {result.level for result in found} == {0.95}


def test_small_or_noisy_cells_are_not_measurable(respondent):
    """Q = 25 with slot noise of sd 1 could not have shown V = .10; more items can."""
    few = next(iter(respondent(8, accuracy=0.7, tau=1.0, items=25)))
    many = next(iter(respondent(8, accuracy=0.7, tau=1.0, items=250)))
    found = detectable_v(few[0], few[1], n_simulations=300, seed=1).result
    assert found.status == "not_measurable"
    assert found.estimate > 0.1
    assert detectable_v(many[0], many[1], n_simulations=300, seed=1).result.status == "ok"


def test_cells_that_cannot_show_anything():
    six = np.full((50, 4), 6)
    assert "same outcome" in detectable_v(six, six, seed=1).result.reason
    three = detectable_v([[6, 3, 3, 3]] * 3, six[:3], seed=1)
    assert (three.result.status, three.result.estimate, three.nuisance) == ("not_measurable", None, None)
    assert "4 must change" in three.result.reason
    one_slot = detectable_v(np.tile([3, 0], (50, 1)), np.tile([6, 0], (50, 1)), seed=1)
    assert one_slot.result.status == "not_measurable"


def test_fewest_unstable_items():
    """p = k^-(m - 1) must fall below alpha: 4^-3 = .016 < .05, 2^-5 = .031 < .05, 5^-2 = .04 < .05."""
    assert [min_unstable(k, 0.05) for k in (4, 2, 5)] == [4, 6, 3]
    assert min_unstable(10, 0.1) == 3
    for k in (2, 3, 4, 6):
        for alpha in (0.1, 0.05, 0.01, 0.001):
            m = min_unstable(k, alpha)
            assert k ** -(m - 1.0) < alpha <= k ** -(m - 2.0) * (1 + 1e-9)


def test_detectable_v_is_quick(respondent):
    correct, n, _ = next(iter(respondent(9, accuracy=0.75, tau=0.3, noise=0.3)))
    start = time.process_time()
    detectable_v(correct, n, seed=1)
    assert time.process_time() - start < 1.5


@st.composite
def cells(draw):
    """Any counts: single items, empty slots and items, all right, none right."""
    items, k = draw(st.integers(0, 6)), draw(st.integers(2, 5))
    n = np.array(draw(st.lists(st.integers(0, 4), min_size=items * k, max_size=items * k)), dtype=int)
    share = draw(st.sampled_from(["none", "all", "any"]))
    drawn = [draw(st.integers(0, int(count))) for count in n] if share == "any" else n * (share == "all")
    return np.array(drawn, dtype=int).reshape(items, k), n.reshape(items, k)


@settings(max_examples=50, deadline=None)
@given(cells())
def test_no_input_gives_nan_or_an_interval_without_width(cell):
    """A result refuses NaN when it is made, so that getting one at all is half of the test."""
    correct, n = cell
    table = contingency_test(correct, n)
    shapes = planned_contrasts(correct, n, n_resamples=60, seed=1)
    results = [
        table.chi2,
        table.v,
        table.v_bergsma,
        *run_level_bootstrap(correct, n, n_resamples=60, seed=1),
        cluster_corrected_v(correct, n, n_resamples=60, seed=1),
        shapes.linear,
        shapes.first,
        shapes.last,
        shapes.label,
        relabel_accuracy(correct, n, n_draws=60, seed=1).result,
        relabel_picks(correct, n_draws=60, seed=1).result,
        recentred_bootstrap(correct, n, n_resamples=60, seed=1),
        detectable_v(correct, n, n_simulations=20, seed=1).result,
        shapes.middle,
        shapes.support,
        *vars(question_level_effects(correct, n, n_resamples=60, seed=1)).values(),
        *clustered_shares(correct, n),
    ]
    for result in results:
        assert (result.low is None) == (result.high is None)
        if result.status in {"ok", "descriptive"} and result.low is not None and "rho" not in result.method:
            assert result.low < result.high, result
        if result.estimate is None:
            assert result.label or result.status in {"undefined", "not_measurable"}
        assert result.n_calls <= n.sum()


@settings(max_examples=40, deadline=None)
@given(cells(), st.randoms())
def test_order_of_items_changes_no_statistic(cell, random):
    correct, n = cell
    order = random.sample(range(len(n)), len(n))

    def estimates(c, m):
        shapes = planned_contrasts(c, m, n_resamples=1, seed=1)
        table = contingency_test(c, m)
        found = [
            table.chi2,
            table.v_bergsma,
            cluster_corrected_v(c, m, n_resamples=1, seed=1),
            shapes.linear,
            shapes.first,
            shapes.last,
            relabel_accuracy(c, m, n_draws=20, seed=1).result,
            shapes.middle,
            *vars(question_level_effects(c, m, n_resamples=1, seed=1)).values(),
            *clustered_shares(c, m),
        ]
        return [result.estimate for result in found] + [relabel_accuracy(c, m, n_draws=20, seed=1).result.p]

    before, after = estimates(correct, n), estimates(correct[order], n[order])
    for a, b in zip(before, after, strict=True):
        assert (a is None) == (b is None)
        assert a is None or b == pytest.approx(a, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(cells())
def test_reversing_the_slots_reverses_what_has_a_direction(cell):
    correct, n = cell
    forward, backward = (
        planned_contrasts(c, m, n_resamples=1, seed=1) for c, m in ((correct, n), (correct[:, ::-1], n[:, ::-1]))
    )
    if forward.linear.estimate is not None:
        assert backward.linear.estimate == pytest.approx(-forward.linear.estimate, abs=1e-9)
        assert backward.first.estimate == pytest.approx(forward.last.estimate, abs=1e-9)
    v, w = (cluster_corrected_v(c, m, n_resamples=1, seed=1) for c, m in ((correct, n), (correct[:, ::-1], n[:, ::-1])))
    assert v.estimate == (None if w.estimate is None else pytest.approx(w.estimate, abs=1e-6))


def test_large_cells_get_the_asymptotic_value(respondent, monkeypatch):
    correct, n, _ = next(iter(respondent(10, accuracy=0.7, tau=0.3, noise=0.3, items=300)))
    simulated = detectable_v(correct, n, n_simulations=400, seed=1).result
    monkeypatch.setattr("counterbalance.stats.detectable._LARGE", 100)
    asymptotic = detectable_v(correct, n, seed=1).result
    assert asymptotic.estimate == pytest.approx(simulated.estimate, rel=0.08)
    assert "noncentral" in asymptotic.method
