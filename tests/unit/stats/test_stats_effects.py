"""Cluster-corrected V, planned contrasts and the shape label."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from counterbalance.stats.contingency import contingency_test
from counterbalance.stats.counts import slot_counts
from counterbalance.stats.relabel import relabel_accuracy
from counterbalance.stats.shape import planned_contrasts
from counterbalance.stats.simultaneous import largest_by_sign_flips, simultaneous_means
from counterbalance.stats.slotmeans import item_parts, observed_means
from counterbalance.stats.vcc import cluster_corrected_v, corrected_v

SIX = np.full((8, 4), 6)


def by_the_page(correct, calls):
    """V^2 = max(0, sum_s (m_s - m)^2 - ss / Q) / (k m (1 - m)) with equal calls, written out."""
    share = correct / calls
    centred = share - share.mean(axis=1, keepdims=True)
    ss = centred.var(axis=0, ddof=1).sum()
    m = share.mean()
    k = share.shape[1]
    excess = ((share.mean(axis=0) - m) ** 2).sum() - ss / len(share)
    return np.sqrt(max(0.0, excess) / (k * m * (1 - m)))


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_corrected_v_is_the_published_formula_for_equal_calls(k):
    rng = np.random.default_rng(k)
    for _ in range(10):
        correct = rng.binomial(6, np.linspace(0.9, 0.4, k), (12, k))
        found = cluster_corrected_v(correct, np.full(correct.shape, 6), n_resamples=99, seed=1)
        assert found.estimate == pytest.approx(by_the_page(correct, 6))


def test_factor_is_the_number_of_slots_so_that_v_is_sqrt_chi2_over_n():
    """With the scatter between items taken away, the corrected V is the published V, whatever the slots' calls."""
    calls = np.tile([4, 8, 6, 2, 10], (40, 1))
    correct = np.tile([4, 6, 3, 1, 2], (40, 1))
    found = corrected_v(observed_means(slot_counts(correct, calls)))[0]
    assert found == pytest.approx(contingency_test(correct, calls).v.estimate)


def test_covariance_with_equal_calls_is_that_of_the_item_accuracies(respondent):
    correct, n, _ = next(iter(respondent(1, accuracy=0.75, tau=0.5, noise=0.5)))
    means = observed_means(slot_counts(correct, n))
    assert means.covariance[0] == pytest.approx(np.cov((correct / 6).T) / 50)


def test_slot_covariance_with_unequal_calls_agrees_with_the_jackknife():
    rng = np.random.default_rng(5)
    n = rng.integers(1, 7, (60, 3))
    correct = rng.binomial(n, rng.uniform(0.2, 0.9, (60, 1)))
    found = observed_means(slot_counts(correct, n)).covariance[0]
    left_out = np.array([np.delete(correct, q, 0).sum(0) / np.delete(n, q, 0).sum(0) for q in range(60)])
    jackknife = np.cov(left_out.T) * 59**2 / 60
    assert found == pytest.approx(jackknife, rel=0.1, abs=2e-5)


@pytest.mark.parametrize(
    ("planted", "expected"), [((0, 0, 0, 0), 0.012), ((0.3, 0.1, -0.1, -0.3), 0.094), ((0, 0, 0, -0.4), 0.071)]
)
def test_mean_corrected_v_over_simulated_cells(respondent, planted, expected):
    """Reference means of E[Vcbc] over simulated data sets, tau = noise = .3."""
    cells = respondent(8, accuracy=0.75, tau=0.3, noise=0.3, bonus=planted, cells=500)
    found = [corrected_v(observed_means(slot_counts(correct, n)))[0] for correct, n, _ in cells]
    assert np.mean(found) == pytest.approx(expected, abs=0.005)


def test_interval_covers_no_effect_where_v_is_biased_upwards(respondent):
    covered, biased = 0, []
    for correct, n, _ in respondent(9, accuracy=0.75, tau=1.0, cells=100):
        found = cluster_corrected_v(correct, n, n_resamples=299, seed=1)
        covered += found.low == 0
        biased.append(contingency_test(correct, n).v.estimate)
    assert np.mean(biased) == pytest.approx(0.070, abs=0.01)
    assert covered >= 92


def test_interval_is_repeatable_and_blocks_do_not_matter(respondent, monkeypatch):
    correct, n, _ = next(iter(respondent(1, accuracy=0.75, tau=0.5, bonus=(0.4, 0, 0, -0.4))))
    whole = cluster_corrected_v(correct, n, n_resamples=200, seed=3)
    monkeypatch.setattr("counterbalance.stats.resampling._BLOCK", 1000)
    again = cluster_corrected_v(correct, n, n_resamples=200, seed=3)
    assert (again.low, again.high) == pytest.approx((whole.low, whole.high))
    assert whole.low < whole.estimate < whole.high


def test_no_unstable_item_is_degenerate_with_a_bound():
    correct = SIX.copy()
    correct[:3] = 0
    found = cluster_corrected_v(correct, SIX, n_resamples=99, seed=1)
    assert (found.estimate, found.low, found.status) == (0.0, None, "degenerate")
    # (1 - u)^8 = .05
    assert f"{1 - 0.05 ** (1 / 8):.1%}" in found.reason


def test_same_effect_in_every_item_has_no_width():
    correct = SIX.copy()
    correct[:, 3] = 0
    found = cluster_corrected_v(correct, SIX, n_resamples=99, seed=1)
    assert found.status == "degenerate"
    assert found.estimate == pytest.approx(1.0)
    shapes = planned_contrasts(correct, SIX, n_resamples=99, seed=1)
    assert (shapes.last.estimate, shapes.last.status) == (-1.0, "degenerate")
    assert shapes.label.label == "last_drop"


def test_too_few_items_or_empty_slots_are_undefined():
    assert cluster_corrected_v([[6, 3]], [[6, 6]], seed=1).status == "undefined"
    assert "slot 2" in cluster_corrected_v([[6, 0], [3, 0]], [[6, 0], [6, 0]], seed=1).reason
    assert planned_contrasts([[6, 3]], [[6, 6]], seed=1).label.status == "undefined"


def test_contrasts_by_hand():
    correct = np.array([[6, 5, 4, 0], [6, 3, 2, 2], [5, 4, 6, 4], [6, 6, 5, 1]] * 3)
    found = planned_contrasts(correct, np.full(correct.shape, 6), n_resamples=99, seed=1)
    slots = correct.mean(axis=0) / 6
    slope = np.polyfit(np.arange(4), slots, 1)[0]
    assert found.linear.estimate == pytest.approx(3 * slope)
    assert found.first.estimate == pytest.approx(slots[0] - slots[1:].mean())
    assert found.last.estimate == pytest.approx(slots[3] - slots[:3].mean())
    assert found.middle.estimate == pytest.approx(slots[1:3].mean() - slots[[0, 3]].mean())
    for result in (found.linear, found.first, found.last, found.middle):
        assert (result.low + result.high) / 2 == pytest.approx(result.estimate)


@pytest.mark.parametrize(
    ("bonus", "label"),
    [
        ((0.6, 0.2, -0.2, -0.6), "linear_decline"),
        ((-0.6, -0.2, 0.2, 0.6), "linear_rise"),
        ((1.2, 0, 0, 0), "first_boost"),
        ((-1.2, 0, 0, 0), "first_drop"),
        ((0, 0, 0, 1.2), "last_boost"),
        ((0, 0, 0, -1.2), "last_drop"),
        ((0, -1.2, 0, 0), "middle_drop"),
        ((0, 1, 1, 0), "middle_boost"),
        ((1.2, 0, 1.2, 0), "other_shape"),
        ((0, 0, 0, 0), "inactive"),
    ],
)
def test_planted_shapes_get_their_names(respondent, bonus, label):
    """Also a pure last drop, half of which the published classifier takes for a trend."""
    cells = respondent(10, accuracy=0.7, tau=0.3, noise=0.3, items=100, bonus=bonus, cells=12)
    labels = [planned_contrasts(correct, n, n_resamples=299, seed=1).label.label for correct, n, _ in cells]
    assert labels.count(label) >= 9


def test_support_is_how_often_a_shape_fits_best_over_resampled_items():
    """Twelve items, each resample fitted by least squares, shape by shape; no random part is shared but the draws."""
    correct = np.random.default_rng(4).binomial(6, [0.8, 0.7, 0.7, 0.4], (12, 4))
    found = planned_contrasts(correct, np.full(correct.shape, 6), n_resamples=200, seed=9).support
    shapes = {"linear": [[0, 1, 2, 3]], "first": [[1, 0, 0, 0]], "last": [[0, 0, 0, 1]]}
    shapes["middle"] = [[0, 1, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0]]

    def best(profile):
        def left(shape):
            return np.polynomial.polynomial.polyfit(shape, profile, 1, full=True)[1][0][0]

        return min(shapes, key=lambda name: min(left(np.array(shape)) for shape in shapes[name]))

    drawn = np.random.default_rng(9).integers(0, 12, (200, 12))
    names = [best(correct[row].mean(axis=0)) for row in drawn]
    assert found.label == {"linear": "linear_decline", "last": "last_drop"}[best(correct.mean(axis=0))]
    assert found.estimate == pytest.approx(names.count(best(correct.mean(axis=0))) / 200, abs=0.011)
    assert found.status == "descriptive"


def test_a_flat_profile_has_no_best_shape():
    assert planned_contrasts(SIX, SIX, n_resamples=99, seed=1).support.status == "undefined"


@pytest.mark.parametrize("k", [3, 5])
def test_middle_slots_of_other_lists(k):
    correct = np.tile([5] + [2] * (k - 2) + [5], (30, 1)) + np.random.default_rng(1).integers(0, 2, (30, k))
    found = planned_contrasts(correct, np.full(correct.shape, 6), n_resamples=199, seed=1)
    assert found.middle.high < 0
    assert found.label.label == "middle_drop"


def test_two_slots_have_no_middle():
    correct = np.random.default_rng(1).binomial(6, [0.9, 0.4], (50, 2))
    assert planned_contrasts(correct, np.full(correct.shape, 6), n_resamples=99, seed=1).middle.status == "undefined"


def test_two_slots_do_not_separate_shapes():
    correct = np.random.default_rng(1).binomial(6, [0.9, 0.4], (50, 2))
    found = planned_contrasts(correct, np.full(correct.shape, 6), n_resamples=299, seed=1)
    assert found.first.low > 0
    assert found.label.label == "undetermined"
    assert found.label.reason == "not separable: linear, first, last"


def test_weak_effects_are_not_given_another_shape(respondent):
    """A trend of .6 nats in 50 items: wrong names stay rare, and half of the cells get the right one."""
    cells = respondent(11, accuracy=0.75, tau=0.3, noise=0.3, bonus=(0.3, 0.1, -0.1, -0.3), cells=60)
    labels = [planned_contrasts(correct, n, n_resamples=199, seed=1).label.label for correct, n, _ in cells]
    wrong = sum(labels.count(name) for name in {*labels} - {"linear_decline", "undetermined", "inactive"})
    assert wrong <= 6
    assert labels.count("linear_decline") > 20


def test_a_model_that_nearly_always_takes_the_first_slot_is_named(respondent):
    """So few items vary that a bootstrap over items has no critical value in most of these cells."""
    cells = respondent(3, accuracy=0.25, tau=0.3, noise=0.3, items=25, bonus=(6, 0, 0, 0), cells=10)
    for correct, n, _ in cells:
        found = planned_contrasts(correct, n, n_resamples=299, seed=1)
        assert contingency_test(correct, n).v.estimate > 0.85
        assert found.label.label == "first_boost"
        assert 0 < found.first.low < found.first.estimate <= found.first.high <= 1


def test_all_items_but_one_in_the_first_slot():
    correct = np.tile([6, 0, 0, 0], (50, 1))
    correct[0] = [2, 3, 0, 1]
    found = planned_contrasts(correct, np.full(correct.shape, 6), n_resamples=299, seed=1)
    assert (found.label.label, found.label.status) == ("first_boost", "ok")
    # With u the share of items for which one or none of 50 has a chance of .05, the contrast is at least 1 - 2 u.
    u = optimize.brentq(lambda share: stats.binom.cdf(1, 50, share) - 0.05, 1e-6, 1 - 1e-6)
    assert (found.first.low, found.first.high) == pytest.approx((1 - 2 * u, 1.0))


def test_one_varying_item_could_have_shown_nothing():
    correct = np.full((50, 4), 6)
    correct[0, 3] = 0
    found = planned_contrasts(correct, np.full(correct.shape, 6), n_resamples=299, seed=1)
    u = optimize.brentq(lambda share: stats.binom.cdf(1, 50, share) - 0.05, 1e-6, 1 - 1e-6)
    assert (found.last.low, found.last.high) == pytest.approx((-u, u))
    assert (found.label.status, found.label.label) == ("not_measurable", "inactive")


@pytest.mark.parametrize("alpha", [0.05, 0.3, 0.9])
def test_a_cell_is_inactive_just_where_the_relabelling_test_says_so(respondent, alpha):
    cells = respondent(14, accuracy=0.9, tau=0.5, noise=0.5, items=20, bonus=(0.2, 0, 0, 0), cells=15)
    for correct, n, _ in cells:
        test = relabel_accuracy(correct, n, n_draws=199, seed=6, alpha=alpha).result
        alone = planned_contrasts(correct, n, n_resamples=199, seed=6, alpha=alpha)
        assert (alone.label.label == "inactive") == (test.p >= alpha)
        assert planned_contrasts(correct, n, n_resamples=199, seed=6, alpha=alpha, relabelling=test) == alone


def test_intervals_hold_together(respondent):
    """Of 200 cells without bias, near the ceiling: Binomial(200, .05) exceeds 21 once in two thousand times."""
    cells = respondent(15, accuracy=0.9, tau=0.5, noise=0.5, items=25, cells=200)
    missed = 0
    for correct, n, _ in cells:
        found = planned_contrasts(correct, n, n_resamples=199, seed=1)
        planned = (found.linear, found.first, found.last, found.middle)
        missed += not all(result.low <= 0 <= result.high for result in planned)
    assert missed <= 21


def test_sign_flips_are_those_of_all_patterns():
    """Six items, all 64 patterns: p by hand, half of the ties counted."""
    values = np.array([[3.0, 1.0], [2.0, -1.0], [1.0, 2.0], [4.0, 0.0], [2.0, 1.0], [-1.0, 1.0]])
    signs = np.array(list(product([-1, 1], repeat=6)))
    drawn = np.abs(signs @ values) / np.sqrt((values**2).sum(axis=0))
    observed = np.abs(values.sum(axis=0)) / np.sqrt((values**2).sum(axis=0))

    def mid_p(statistics, target):
        return (statistics > target + 1e-9).mean() + np.isclose(statistics, target).mean() / 2

    first, both = largest_by_sign_flips([values[:, :1], values], n_draws=40_000, seed=3)
    assert first == pytest.approx(mid_p(drawn[:, 0], observed[0]), abs=0.01)
    assert both == pytest.approx(mid_p(drawn.max(axis=1), observed.max()), abs=0.01)


def test_series_of_zeros_are_not_rejected():
    assert largest_by_sign_flips([np.zeros((9, 1)), np.ones((9, 1))], n_draws=99, seed=1)[0] == 1.0
    assert largest_by_sign_flips([np.zeros((9, 1))], n_draws=99, seed=1) == [1.0]


def test_one_mean_has_the_limits_of_student():
    values = np.random.default_rng(2).normal(1.0, 0.2, (40, 1))
    found = simultaneous_means(values, np.array([9.0]), level=0.9, n_draws=200_000, seed=1)
    half = stats.t.ppf(0.95, 38) * values.std(ddof=1) / np.sqrt(40)
    assert not found.exact
    assert found.high[0] - values.mean() == pytest.approx(half, rel=0.01)


def test_parts_of_items_add_up_to_the_slot_accuracies():
    rng = np.random.default_rng(5)
    n = rng.integers(0, 7, (20, 4))
    counts = slot_counts(rng.binomial(n, 0.6), n)
    parts, table = item_parts(counts), observed_means(counts)
    assert parts.mean(axis=0) == pytest.approx(table.mean[0])
    assert np.cov(parts, rowvar=False) / 20 == pytest.approx(table.covariance[0])


def test_equal_slots_everywhere_are_degenerate():
    found = planned_contrasts(SIX, SIX, n_resamples=99, seed=1)
    assert (found.label.status, found.label.label) == ("degenerate", "inactive")
    assert found.linear.status == "degenerate"
