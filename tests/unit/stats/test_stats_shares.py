"""Wilson, Clopper-Pearson and clustered shares; BCa intervals."""

import csv
from pathlib import Path

import numpy as np
import pytest
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
    found = clustered_shares(hits, np.full((20, 1), 10.0), n_resamples=4000, seed=1)[0]
    assert found.estimate == 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 20), rel=0.1)
    assert (found.n_items, found.n_calls) == (20, 200)


@pytest.mark.parametrize("share", [0, 1])
def test_constant_items_get_the_exact_bound(share):
    found = clustered_shares(np.full((20, 1), 6 * share), np.full((20, 1), 6), seed=1)[0]
    expected = stats.binomtest(20 * share, 20).proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.status == "degenerate"
    assert found.high > found.low


def test_equal_shares_between_0_and_1_get_wilson():
    found = clustered_shares(np.full((20, 1), 3), np.full((20, 1), 6), seed=1)[0]
    expected = stats.binomtest(10, 20).proportion_ci(0.95, "wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.status == "degenerate"


def test_shares_of_unequal_calls_stay_between_those_of_the_items():
    """A ratio of sums: items asked fifty times and items asked twice, all with shares of .5 to .6."""
    n = np.array([[50], [2]] * 10)
    hits = np.array([[30], [1]] * 10)
    found = clustered_shares(hits, n, n_resamples=999, seed=1)[0]
    assert found.estimate == pytest.approx(31 / 52)
    assert 0.5 < found.low < found.estimate < found.high < 0.6


def test_columns_without_calls_and_resamples_without_calls():
    hits, n = [[1, 0], [0, 0], [2, 0]], [[2, 0], [0, 0], [2, 0]]
    first, second = clustered_shares(hits, n, n_resamples=200, seed=1)
    assert second.status == "undefined"
    assert first.n_items == 2
    assert "resamples held no call" in first.reason
    assert "only 2 items" in first.reason
    assert [r.status for r in clustered_shares(np.zeros((0, 2)), np.zeros((0, 2)), seed=1)] == ["undefined"] * 2
    with pytest.raises(InputError):
        clustered_shares([[2]], [[1]], seed=1)
    with pytest.raises(InputError):
        clustered_shares([[1, 1]], [[1]], seed=1)


def test_bca_in_one_call_equals_scipy_series_by_series():
    series = np.random.default_rng(1).gamma(2.0, size=(5, 13))
    for stream, seed in (("legacy", {"random_state": 42}), ("modern", {"rng": 42})):
        for row, found in zip(series, bca_means(series, seed=42, stream=stream, n_resamples=999), strict=True):
            one = stats.bootstrap((row,), np.mean, method="BCa", n_resamples=999, **seed).confidence_interval
            assert (found.low, found.high) == pytest.approx((one.low, one.high), abs=1e-12)
            assert found.estimate == pytest.approx(row.mean())


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
