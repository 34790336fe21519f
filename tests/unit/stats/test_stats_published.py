"""The published view: Pearson, V, Bergsma, rho, classifier, run-level bootstrap."""

import itertools

import numpy as np
import pytest
from scipy import stats

from counterbalance.stats.contingency import bergsma_v, contingency_test, pearson_chi2
from counterbalance.stats.published import (
    classify_v0_1,
    classify_v0_2,
    question_level_effects,
    run_level_bootstrap,
    run_level_effects,
    slot_rank_correlation,
)


def one_table(hits, calls):
    return np.array([hits], dtype=float), np.array([calls], dtype=float)


@pytest.mark.parametrize("wrong", [(0, 4, 2, 2), (2, 0, 4, 2), (2, 2, 0, 4)])
def test_grok_cell_from_all_three_tables(wrong):
    correct, n = one_table(300 - np.array(wrong), [300] * 4)
    found = contingency_test(correct, n)
    v, rho = run_level_bootstrap(correct, n, seed=1)
    assert found.chi2.estimate == pytest.approx(4.0268, abs=5e-5)
    assert found.v.estimate == pytest.approx(0.05793, abs=5e-6)
    assert found.chi2.p == pytest.approx(0.2586, abs=5e-5)
    assert v.estimate == found.v.estimate
    assert rho.estimate == pytest.approx(-0.3162, abs=5e-5)
    assert classify_v0_1(found.v.estimate, rho.estimate) == "content_ambiguity"
    assert classify_v0_2(found.v.estimate, found.chi2.p, rho.estimate) == "inactive"


def test_chi2_agrees_with_scipy_for_unequal_slots():
    rng = np.random.default_rng(3)
    for _ in range(20):
        calls = rng.integers(5, 40, 5)
        hits = rng.integers(1, calls)
        expected = stats.chi2_contingency(np.stack([hits, calls - hits], axis=1), correction=False)
        found = contingency_test(*one_table(hits, calls))
        assert found.chi2.estimate == pytest.approx(expected.statistic)
        assert found.chi2.p == pytest.approx(expected.pvalue)
        assert found.v.estimate == pytest.approx(
            stats.contingency.association(np.stack([hits, calls - hits], axis=1), method="cramer")
        )


def test_identities_of_pearson_and_cmh(respondent):
    """X2 = 4 sum(C_s - Cbar)^2 / (N p q); X2 / CMH = (24/23) (1 - between-question share of variance)."""
    correct, n, _ = next(iter(respondent(1, accuracy=0.75, tau=0.5, noise=0.5)))
    slots, items, total = correct.sum(axis=0), correct.sum(axis=1), n.sum()
    p = correct.sum() / total
    squares = ((slots - slots.mean()) ** 2).sum()
    chi2 = contingency_test(correct, n).chi2.estimate
    assert chi2 == pytest.approx(4 * squares / (total * p * (1 - p)))
    # CMH from its general form: hypergeometric covariances of each question's table, summed over questions.
    shape = np.diag(np.full(4, 1 / 4)) - 1 / 16
    covariance = sum(c * (24 - c) / 23 for c in items) * shape
    excess = slots - items.sum() / 4
    cmh = excess[:3] @ np.linalg.solve(covariance[:3, :3], excess[:3])
    share = items / 24
    between = share.var() / (p * (1 - p))
    assert chi2 / cmh == pytest.approx(24 / 23 * (1 - between))


@pytest.mark.parametrize(
    ("items", "above", "critical"),
    [(25, 0.682, 0.1141), (50, 0.392, 0.0807), (100, 0.112, 0.0571), (200, 0.0074, 0.0403)],
)
def test_v_of_independent_calls(items, above, critical):
    calls = 6 * items
    hits = np.random.default_rng(1).binomial(calls, 0.75, (40_000, 4)).astype(float)
    v = np.sqrt(pearson_chi2(hits, np.full(hits.shape, float(calls))) / (4 * calls))
    assert v.mean() == pytest.approx(1.5958 / np.sqrt(4 * calls), rel=0.01)
    assert (v >= 0.05).mean() == pytest.approx(above, abs=0.012)
    assert (v >= critical).mean() == pytest.approx(0.05, abs=0.005)


def test_v_floor_is_p_below_3916_at_1200_calls():
    rng = np.random.default_rng(2)
    for wrong in rng.integers(50, 100, (300, 4)):
        found = contingency_test(*one_table(300 - wrong, [300] * 4))
        assert (found.v.estimate >= 0.05) == (found.chi2.estimate >= 3.0 - 1e-12) == (found.chi2.p <= 0.39163)
        assert (found.v.estimate >= 0.080699) == (found.chi2.p <= 0.05)


def test_the_floor_is_inert_beside_p_until_3126_calls():
    critical = stats.chi2.isf(0.05, 3)
    assert np.sqrt(critical / 3125) >= 0.05 > np.sqrt(critical / 3127)
    assert classify_v0_2(0.0499, 0.01, -1.0) == "inactive"


def test_bergsma_values():
    assert bergsma_v(0.058**2 * 1200, 1200, 4) == pytest.approx(0.029371, abs=5e-7)
    assert bergsma_v(0.10**2 * 1200, 1200, 4) == pytest.approx(0.086627, abs=5e-7)
    assert bergsma_v(0.0500**2 * 1200, 1200, 4) == 0


@pytest.mark.parametrize(
    ("hits", "reason"), [([6, 6, 6, 6], "every call is correct"), ([0, 0, 0, 0], "no call is correct")]
)
def test_degenerate_tables(hits, reason):
    found = contingency_test(*one_table(hits, [6] * 4))
    assert (found.chi2.estimate, found.chi2.p, found.v.estimate, found.v_bergsma.estimate) == (0, 1, 0, 0)
    assert found.chi2.status == "degenerate"
    assert reason in found.chi2.reason


def test_a_slot_without_calls_has_no_row_and_is_named():
    found = contingency_test(*one_table([5, 3, 0], [8, 8, 0]))
    expected = stats.chi2_contingency([[5, 3], [3, 5]], correction=False)
    assert found.chi2.p == pytest.approx(expected.pvalue)
    assert "slot 3" in found.chi2.reason


def test_p_that_underflows_is_not_zero():
    assert 0 < contingency_test(*one_table([9000, 0], [9000, 9000])).chi2.p < 1e-300


def test_rho_over_all_24_orders():
    rho, defined = slot_rank_correlation(np.array(list(itertools.permutations([0.1, 0.2, 0.3, 0.4]))))
    values, times = np.unique(rho.round(9), return_counts=True)
    half = {-1.0: 1, -0.8: 3, -0.6: 1, -0.4: 4, -0.2: 2}
    expected = half | {0.0: 2} | {-value: count for value, count in half.items()}
    assert dict(zip(values.tolist(), times.tolist(), strict=True)) == expected
    assert (rho <= -0.5).mean() == pytest.approx(5 / 24)
    assert defined.all()


def test_rho_of_pure_end_effects():
    for profile in ([0.8, 0.8, 0.8, 0.5], [0.8, 0.5, 0.5, 0.5]):
        assert slot_rank_correlation(profile)[0] == pytest.approx(-0.774597, abs=5e-7)
    dropped = [[*rest, 0.1] for rest in itertools.permutations([0.7, 0.8, 0.9])]
    rho = np.sort(slot_rank_correlation(dropped)[0])
    assert rho == pytest.approx([-1, -0.8, -0.8, -0.4, -0.4, -0.2])
    assert (rho <= -0.5).mean() == 0.5


def test_rho_agrees_with_scipy_with_ties():
    for profile in np.random.default_rng(4).integers(0, 4, (60, 6)) / 4:
        rho, defined = slot_rank_correlation(profile)
        if np.ptp(profile) == 0:
            assert not defined
        else:
            assert rho == pytest.approx(stats.spearmanr(np.arange(6), profile).statistic)


def test_classifier_edges():
    assert classify_v0_1(0.0499, -1.0) == "inactive"
    assert classify_v0_1(0.05, -0.5) == "processing_load"
    assert classify_v0_1(0.05, -0.49) == "content_ambiguity"
    assert classify_v0_1(0.05, None) is None
    assert classify_v0_2(0.2, 0.05, -1.0) == "inactive"
    assert classify_v0_2(0.2, 0.0499, -1.0) == "processing_load"
    assert classify_v0_1(0.2, -0.3, rho_threshold=-0.2) == "processing_load"


def test_half_of_pure_last_drops_are_called_processing_load(respondent):
    """The published confusion, a drop of 1.0 in the last slot: all active, .515 of them processing load."""
    cells = respondent(6, accuracy=0.75, tau=0.3, noise=0.3, cells=400, bonus=(0, 0, 0, -1.0))
    rho, _ = slot_rank_correlation(cells.correct.sum(axis=1) / cells.n.sum(axis=1))
    assert (rho <= -0.5).mean() == pytest.approx(0.515, abs=0.08)


def test_run_level_bootstrap_is_the_gather_of_single_calls():
    """Percentiles agree with an explicit resampling of the 1,200 calls, within simulation error."""
    correct, n = one_table([250, 240, 225, 210], [300] * 4)
    v, rho = run_level_bootstrap(correct, n, n_resamples=4000, seed=1)
    slot = np.repeat(np.arange(4), 300)
    hit = np.concatenate([np.arange(300) < count for count in (250, 240, 225, 210)])
    rng = np.random.default_rng(9)
    draws = []
    for _ in range(1500):
        pick = rng.integers(0, 1200, 1200)
        calls = np.bincount(slot[pick], minlength=4).astype(float)
        hits = np.bincount(slot[pick], weights=hit[pick], minlength=4)
        draws.append(float(np.sqrt(pearson_chi2(hits, calls) / 1200)))
    assert [v.low, v.high] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.008)
    assert v.status == rho.status == "descriptive"
    assert rho.low == -1


def test_run_level_bootstrap_repeats_with_its_seed():
    correct, n = one_table([5, 4, 6, 2], [6] * 4)
    assert run_level_bootstrap(correct, n, seed=8) == run_level_bootstrap(correct, n, seed=8)
    assert run_level_bootstrap(correct, n, seed=8) != run_level_bootstrap(correct, n, seed=9)


def test_rho_of_equal_slots_is_undefined():
    v, rho = run_level_bootstrap(*one_table([5, 5, 5, 5], [6] * 4), seed=1)
    assert v.estimate == 0
    assert (rho.estimate, rho.status) == (None, "undefined")


def test_question_level_bootstrap_is_the_gather_of_whole_items():
    """The same draws of items, and the table of each resample by hand."""
    correct = np.random.default_rng(3).binomial(6, [0.9, 0.8, 0.7, 0.5], (20, 4)).astype(float)
    n = np.full(correct.shape, 6.0)
    found = question_level_effects(correct, n, n_resamples=400, seed=5)
    v, bergsma, rho = [], [], []
    for row in np.random.default_rng(5).integers(0, 20, (400, 20)):
        table = contingency_test(correct[row], n[row])
        v.append(table.v.estimate)
        bergsma.append(table.v_bergsma.estimate)
        rho.append(stats.spearmanr(np.arange(4), correct[row].sum(axis=0)).statistic)
    for result, drawn in ((found.v, v), (found.bergsma, bergsma), (found.rho, rho)):
        assert [result.low, result.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]))
        assert result.status == "descriptive"
    assert found.v.estimate == contingency_test(correct, n).v.estimate


def widths(cells, effects):
    found = [effects(correct, n, n_resamples=299, seed=1) for correct, n, _ in cells]
    # Cells whose slots happen to be equally accurate have no rho.
    results = {name: [getattr(f, name) for f in found] for name in ("v", "bergsma", "rho")}
    return {name: np.mean([r.high - r.low for r in rs if r.low is not None]) for name, rs in results.items()}


@pytest.mark.parametrize(
    ("nuisance", "bonus", "run", "question"),
    [
        # Mean widths of 95% intervals by simulation: V, Bergsma's V, rho.
        ({"tau": 0.3, "noise": 0.3}, 0.0, (0.087, 0.093, 1.718), (0.076, 0.076, 1.519)),
        ({"tau": 0.3, "noise": 0.3}, 0.6, (0.105, 0.125, 0.602), (0.105, 0.125, 0.394)),
        ({"tau": 1.0}, 0.6, (0.104, 0.121, 0.804), (0.154, 0.176, 1.080)),
    ],
)
def test_widths_of_published_intervals_by_unit(respondent, nuisance, bonus, run, question):
    """Where items have slot effects of their own, resampling calls is too narrow by a third."""
    planted = tuple(bonus * step for step in (0.5, 1 / 6, -1 / 6, -0.5))
    cells = respondent(31, accuracy=0.75, bonus=planted, cells=60, **nuisance)
    for effects, expected in ((run_level_effects, run), (question_level_effects, question)):
        found = widths(cells, effects)
        assert found["v"] == pytest.approx(expected[0], rel=0.08)
        assert found["bergsma"] == pytest.approx(expected[1], rel=0.12)
        assert found["rho"] == pytest.approx(expected[2], rel=0.25)


def test_one_item_has_no_question_level_interval():
    found = question_level_effects([[5, 4, 6, 2]], [[6] * 4], seed=1)
    assert (found.v.status, found.v.low) == ("degenerate", None)
    assert found.v.estimate > 0
    assert "at least 2" in found.v.reason
    assert found.rho.low is None


@pytest.mark.parametrize("effects", [run_level_effects, question_level_effects])
def test_rho_that_no_resample_changes_has_no_interval(effects):
    correct = np.array([[2, 0, 0]] * 4)
    rho = effects(correct, np.full((4, 3), 2), seed=1, n_resamples=200).rho
    assert (rho.status, rho.low, rho.high) == ("degenerate", None, None)
    assert rho.estimate == pytest.approx(-np.sqrt(3) / 2)


def test_an_estimate_outside_of_its_biased_resamples_is_told():
    correct = np.array([[3, 0, 0, 3], [0, 3, 3, 0], [1, 2, 1, 2], [2, 1, 2, 1]])
    v = question_level_effects(correct, np.full((4, 4), 6), seed=1, n_resamples=2000, level=0.5).v
    assert v.estimate == 0.0 < v.low < v.high
    assert v.reason.endswith("the estimate lies outside, so biased are the resamples")


def test_a_table_without_calls_has_no_number():
    found = contingency_test(np.zeros((3, 4)), np.zeros((3, 4)))
    for result in (found.chi2, found.v, found.v_bergsma):
        assert (result.status, result.estimate, result.p, result.reason) == ("undefined", None, None, "no scored calls")


@pytest.mark.parametrize("effects", [run_level_effects, question_level_effects])
def test_what_is_said_of_an_interval_is_so(respondent, effects):
    """That an interval lies above 0 by its bias is said of V alone, and only where it does lie above 0."""
    for correct, n, _ in respondent(6, accuracy=0.7, tau=0.3, noise=0.3, items=50, cells=4):
        found = effects(correct, n, n_resamples=199, seed=1)
        assert found.v.low > 0
        assert found.bergsma.low == 0
        assert "its interval lies above 0 without any effect" in found.v.reason
        assert "as if the calls of one item were independent" in found.bergsma.reason
        assert "above 0" not in found.bergsma.reason
    # One wrong call of 40: a third of the resamples have none, and V is then 0.
    one_wrong = np.ones((10, 4))
    one_wrong[0, 3] = 0
    found = effects(one_wrong, np.ones((10, 4)), n_resamples=199, seed=1)
    assert found.v.low == 0 < found.v.high
    assert "above 0" not in found.v.reason
