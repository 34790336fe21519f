"""Wilson, Clopper-Pearson and clustered shares; BCa intervals."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from counterbalance.errors import InputError
from counterbalance.stats.proportions import clopper_pearson, clustered_shares, wilson
from counterbalance.stats.resampling import bca_means

AD_SERIES = Path(__file__).parents[4] / "shared" / "data" / "ad_series" / "T1_T1c_cells.csv"

REFERENCE = [
    # hits, n, Clopper-Pearson, Wilson
    (1, 1, (0.025000, 1.0), (0.206549, 1.0)),
    (5, 5, (0.478176, 1.0), (0.565518, 1.0)),
    (6, 6, (0.540742, 1.0), (0.609666, 1.0)),
    (8, 11, (0.390257, 0.939782), (0.434355, 0.902539)),
    (12, 15, (0.519109, 0.956688), (0.548146, 0.929525)),
    (3, 15, (0.043312, 0.480891), (0.070475, 0.451854)),
    (30, 60, (0.368062, 0.631938), (0.377350, 0.622650)),
    (40, 60, (0.533127, 0.783131), (0.540569, 0.772707)),
    (1, 10, (0.002529, 0.445016), (0.017876, 0.404150)),
    (0, 10, (0.0, 0.308497), (0.0, 0.277533)),
    (10, 10, (0.691503, 1.0), (0.722467, 1.0)),
    (17, 20, (0.621073, 0.967929), (0.639581, 0.947631)),
    (57, 75, (0.647476, 0.851131), (0.652212, 0.842451)),
    (40, 100, (0.303295, 0.502791), (0.309401, 0.497997)),
    (180, 200, (0.849787, 0.937841), (0.850594, 0.934330)),
    (57, 144, (0.315397, 0.480647), (0.319665, 0.477415)),
]


@pytest.mark.parametrize(("hits", "n", "exact", "score"), REFERENCE)
def test_binomial_intervals(hits, n, exact, score):
    found = clopper_pearson(hits, n)
    assert (found.low, found.high) == pytest.approx(exact, abs=5.1e-7)
    found = wilson(hits, n)
    assert (found.low, found.high) == pytest.approx(score, abs=5.1e-7)
    assert found.estimate == hits / n


def test_no_trials_give_no_number():
    assert wilson(0, 0).estimate is None
    assert clopper_pearson(0, 0).status == "undefined"
    with pytest.raises(InputError):
        wilson(3, 2)


def test_pooled_share_and_question_level_width():
    """Twenty items of ten equal replies are twenty observations, not two hundred."""
    hits = np.repeat([[10.0], [0.0]], 10, axis=0)
    found = clustered_shares(hits, np.full((20, 1), 10.0))[0]
    assert found.estimate == 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 20), rel=0.1)
    assert (found.n_items, found.n_calls) == (20, 200)


@pytest.mark.parametrize("share", [0, 1])
def test_constant_items_get_the_exact_bound(share):
    found = clustered_shares(np.full((20, 1), 6 * share), np.full((20, 1), 6))[0]
    expected = stats.binomtest(20 * share, 20).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.status == "degenerate"
    assert found.high > found.low


def test_equal_shares_between_0_and_1_get_wilson():
    found = clustered_shares(np.full((20, 1), 3), np.full((20, 1), 6))[0]
    expected = stats.binomtest(10, 20).proportion_ci(0.95, "wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.status == "degenerate"


def test_shares_of_unequal_calls_weigh_by_calls():
    """Ten items asked fifty times with a share of .6 and ten asked twice with .5: the variance of the ratio by hand."""
    n = np.array([[50.0], [2.0]] * 10)
    hits = np.array([[30.0], [1.0]] * 10)
    found = clustered_shares(hits, n)[0]
    r = 31 / 52
    variance = 20 / 19 * 10 * ((30 - 50 * r) ** 2 + (1 - 2 * r) ** 2) / 520**2
    # 10 items differ from the other 10, so t has 9 degrees of freedom or the plain 19: the narrower is given.
    effective, t = r * (1 - r) / variance, stats.t.isf(0.025, 19)
    assert found.estimate == pytest.approx(r)
    centre = (r + t**2 / (2 * effective)) / (1 + t**2 / effective)
    assert (found.low + found.high) / 2 == pytest.approx(centre)
    assert (found.n_items, found.n_calls) == (20, 520)


def test_one_answer_an_item_is_wilson_with_t():
    """Independent items: the effective n is n - 1 by the unbiased variance, and t takes the place of z."""
    hits = np.repeat([[1.0], [0.0]], [30, 20], axis=0)
    found = clustered_shares(hits, np.ones((50, 1)))[0]
    n, t = 49, stats.t.isf(0.025, 49)
    # Wilson's limits are the roots of (p - 0.6)^2 = t^2 p (1 - p) / n.
    roots = np.roots([1 + t**2 / n, -(1.2 + t**2 / n), 0.36])
    assert [found.low, found.high] == pytest.approx(sorted(roots))


def test_few_differing_items_do_not_make_the_interval_narrow():
    """Two of 25 items lost half of their calls: nothing is known of items that are wholly wrong, which may exist."""
    hits = np.full((25, 1), 24.0)
    hits[:2] = 12
    found = clustered_shares(hits, np.full((25, 1), 24.0))[0]
    t = stats.t.isf(0.025, 24)
    share = 0.96
    variance = 25 / 24 * ((hits / 24 - share) ** 2).sum() / 25**2
    mixed = 0.2 * variance + 0.8 * share * (1 - share) / 25
    n = share * (1 - share) / mixed
    roots = np.roots([1 + t**2 / n, -(2 * share + t**2 / n), share**2])
    assert [found.low, found.high] == pytest.approx(sorted(roots))
    assert found.low < 0.87


@pytest.mark.parametrize(("items", "accuracy", "planted"), [(25, 0.95, (0.3, 0.1, -0.1, -0.3)), (50, 0.95, (0,) * 4)])
def test_coverage_near_the_ceiling(respondent, items, accuracy, planted):
    """Where a percentile bootstrap over items covers .76 and .87. Truth from one cell of many items."""
    noise = {"tau": 0.3, "noise": 0.3, "bonus": planted}
    cells = respondent(21, accuracy=accuracy, items=items, cells=300, **noise)
    (many,) = respondent(22, accuracy=accuracy, items=60_000, **noise)
    truth = many[0].sum() / many[1].sum()
    found = [clustered_shares(c.sum(axis=1, keepdims=True), n.sum(axis=1, keepdims=True))[0] for c, n, _ in cells]
    covered = np.mean([result.low <= truth <= result.high for result in found])
    assert 0.925 <= covered <= 0.995


def test_columns_without_calls():
    hits, n = [[1, 0], [0, 0], [2, 0]], [[2, 0], [0, 0], [2, 0]]
    first, second = clustered_shares(hits, n)
    assert second.status == "undefined"
    assert first.n_items == 2
    assert "only 2 items" in first.reason
    assert [r.status for r in clustered_shares(np.zeros((0, 2)), np.zeros((0, 2)))] == ["undefined"] * 2
    with pytest.raises(InputError):
        clustered_shares([[2]], [[1]])
    with pytest.raises(InputError):
        clustered_shares([[1, 1]], [[1]])


@pytest.mark.parametrize("level", [0.8, 0.95])
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_a_share_lies_in_its_interval_and_that_between_0_and_1(level, items):
    hits, n = np.array([[min(pair), max(pair)] for pair in items]).T[:, :, None]
    (found,) = clustered_shares(hits, n, level=level)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert found.low < found.high


def test_bca_of_clusters_is_that_of_the_mean_over_items():
    """Clusters of 1 to 4 items: resampling, jackknife and limits written out with the items themselves."""
    rng = np.random.default_rng(5)
    size = rng.integers(1, 5, 15)
    items = [rng.gamma(2.0, size=count) for count in size]
    found = bca_means([[group.mean() for group in items]], items=size, n_resamples=999, seed=3)[0]
    drawn = np.random.default_rng(3).integers(0, 15, (999, 15))
    means = np.array([np.concatenate([items[place] for place in row]).mean() for row in drawn])
    whole = np.concatenate(items).mean()
    left_out = np.array([np.concatenate(items[:q] + items[q + 1 :]).mean() for q in range(15)])
    pull = left_out.mean() - left_out
    acceleration = (pull**3).sum() / 6 / (pull**2).sum() ** 1.5
    bias = stats.norm.ppf((means < whole).mean())
    shares = [
        stats.norm.cdf(bias + (bias + z) / (1 - acceleration * (bias + z))) for z in stats.norm.ppf([0.025, 0.975])
    ]
    assert found.estimate == pytest.approx(whole)
    assert [found.low, found.high] == pytest.approx(np.quantile(means, shares))
    with pytest.raises(InputError, match="clusters"):
        bca_means([[1.0, 2.0]], items=[1], seed=1)


def test_bca_in_one_call_equals_scipy_series_by_series():
    series = np.random.default_rng(1).gamma(2.0, size=(5, 13))
    for stream, seed in (("legacy", {"random_state": 42}), ("modern", {"rng": 42})):
        for row, found in zip(series, bca_means(series, seed=42, stream=stream, n_resamples=999), strict=True):
            one = stats.bootstrap((row,), np.mean, method="BCa", n_resamples=999, **seed).confidence_interval
            assert (found.low, found.high) == pytest.approx((one.low, one.high), abs=1e-12)
            assert found.estimate == pytest.approx(row.mean())


@pytest.mark.parametrize("digits", [1, 2, 3, 17])
def test_the_legacy_stream_is_that_of_scipy_where_resampled_means_tie(digits):
    """Rounded cells have many resamples whose mean is that of the items but for its last digit."""
    cells = np.random.default_rng(4).normal(-0.4, 0.3, size=(4, 24, 13)).round(digits)
    series = (cells[0] - cells[1] - cells[2] + cells[3]) / 4
    for row, found in zip(series, bca_means(series, seed=42, stream="legacy", n_resamples=999), strict=True):
        one = stats.bootstrap((row,), np.mean, method="BCa", n_resamples=999, random_state=42).confidence_interval
        assert (found.low, found.high) == pytest.approx((one.low, one.high), abs=1e-10)


def test_streams_differ_and_blocks_do_not_matter(monkeypatch):
    series = np.random.default_rng(1).normal(size=(2, 12))
    modern, legacy = (bca_means(series, seed=42, stream=stream, n_resamples=999) for stream in ("modern", "legacy"))
    assert modern[0].low != legacy[0].low
    monkeypatch.setattr("counterbalance.stats.resampling._BLOCK", 24 * 100)
    again = bca_means(series, seed=42, stream="legacy", n_resamples=999)
    assert [r.low for r in again] == pytest.approx([r.low for r in legacy], abs=1e-12)
    with pytest.raises(InputError, match="legacy"):
        bca_means(series, seed=np.random.default_rng(1), stream="legacy")


def test_constant_and_single_series_have_no_interval():
    """Also where rounding makes equal values differ in the last digit."""
    table = np.vstack([np.ones(20), np.linspace(0, 1, 20), np.tile([0.1 + 0.2, 0.3], 10)])
    constant, varied, rounded = bca_means(table, seed=1, n_resamples=99)
    assert (constant.estimate, constant.low, constant.status) == (1.0, None, "degenerate")
    assert varied.status == "ok"
    assert rounded.status == "degenerate"
    assert bca_means([[0.5]], seed=1)[0].status == "degenerate"
    assert bca_means(np.zeros((2, 0)), seed=1)[0].status == "undefined"
    with pytest.raises(InputError):
        bca_means([[np.nan, 1.0]], seed=1)


def serial(condition, *, kept):
    with AD_SERIES.open(encoding="utf-8") as handle:
        rows = [row for row in csv.DictReader(handle) if row["condition"] == condition]
    cells = np.array([[float(row[f"e{i}"]) for i in (1, 2, 3, 4)] for row in rows if row["kept"] == "1" or not kept])
    return cells @ np.array([1, -1, -1, 1]) / 4


@pytest.mark.skipif(not AD_SERIES.is_file(), reason="../shared/data/ad_series is not beside the repository")
def test_published_serial_effects_with_the_legacy_stream():
    """arXiv 2609.30716: serial effects of T1 and T1c and their difference, all printed digits."""
    series = np.stack([serial("T1", kept=True), serial("T1c", kept=True)])
    found = bca_means([*series, series[1] - series[0]], seed=42, stream="legacy")
    printed = [(round(r.estimate, 3), round(r.low, 3), round(r.high, 3)) for r in found]
    assert printed == [(-0.485, -0.611, -0.283), (-0.884, -1.074, -0.708), (-0.400, -0.578, -0.237)]
    assert (series < 0).sum(axis=1).tolist() == [12, 13]
    unfiltered = serial("T1c", kept=False) - serial("T1", kept=False)
    found = bca_means([unfiltered], seed=42, stream="legacy")
    assert (round(found[0].estimate, 3), round(found[0].low, 3), round(found[0].high, 3)) == (-0.407, -0.573, -0.251)


@pytest.mark.skipif(not AD_SERIES.is_file(), reason="../shared/data/ad_series is not beside the repository")
def test_published_ninety_percent_interval():
    found = bca_means([serial("T1", kept=True)], seed=42, stream="legacy", level=0.9)[0]
    assert (round(found.low, 3), round(found.high, 3)) == (-0.592, -0.318)


@pytest.mark.parametrize(
    ("calls", "worth"),
    [([1, 1, 1, 200] * 5, (5 * 203) ** 2 / (5 * (3 + 200**2))), ([24] * 20, None), ([24, 48] * 10, None)],
)
def test_calls_that_lie_in_a_few_items_get_a_caveat(calls, worth):
    """The number of equal clusters that unequal ones are worth, by hand."""
    right = [n // 2 + (place % 3 == 0) * (n > 1) for place, n in enumerate(calls)]
    (found,) = clustered_shares(np.array(right).reshape(-1, 1), np.array(calls).reshape(-1, 1))
    assert found.status == "ok"
    if worth is None:
        assert found.reason is None
    else:
        assert f"the 20 items are worth {worth:.1f} of equal size" in found.reason
