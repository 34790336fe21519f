"""The equivalence test and the sign-flip test against other routes to the same numbers."""

import itertools

import numpy as np
import pytest
from scipy import stats

from counterbalance.errors import InputError
from counterbalance.stats.resampling import bca_means, bca_means_at_levels
from counterbalance.stats.signflip import EXACT_ITEMS, sign_flip_means
from counterbalance.stats.tost import tost_mean


@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.1])
def test_tost_is_the_larger_of_two_one_sided_t_tests(shift):
    row = np.random.default_rng(1).normal(shift, 0.2, 13)
    below = stats.ttest_1samp(row, 0.15, alternative="less").pvalue
    above = stats.ttest_1samp(row, -0.15, alternative="greater").pvalue
    assert tost_mean(row, 0.15).p == pytest.approx(max(below, above))
    assert tost_mean(-row, 0.15).p == pytest.approx(tost_mean(row, 0.15).p)


def test_tost_by_hand():
    # mean 1, sd 1, n 4: t = (1 + 2) / .5 = 6 and (1 - 2) / .5 = -2 with 3 degrees of freedom
    row = [0, 2, 1 - 0.5**0.5, 1 + 0.5**0.5]
    assert tost_mean(row, 2.0).p == pytest.approx(stats.t.cdf(-2, 3))


def test_tost_without_spread_or_items_has_a_status():
    assert tost_mean([0.1] * 5, 0.15).status == "degenerate"
    assert tost_mean([0.1], 0.15).status == tost_mean([], 0.15).status == "undefined"
    assert tost_mean([0.1] * 5, 0.15).p is None
    for bound in (0, -1, np.nan, np.inf):
        with pytest.raises(InputError, match="bound"):
            tost_mean([1, 2], bound)
    with pytest.raises(InputError, match="finite"):
        tost_mean([1, np.nan], 0.1)


@pytest.mark.parametrize("n", [1, 2, 6, 9])
def test_sign_flips_listed_one_by_one(n):
    row = np.random.default_rng(n).normal(0.4, 1, n)
    sums = [abs(sum(sign * value for sign, value in zip(signs, row, strict=True)))
            for signs in itertools.product((1, -1), repeat=n)]  # fmt: skip
    expected = sum(total >= abs(row.sum()) - 1e-12 for total in sums) / 2**n
    assert sign_flip_means([row], seed=1)[0].p == pytest.approx(expected)


def test_sign_flips_of_equal_values_give_the_smallest_p():
    exact, all_zero = sign_flip_means([[0.3] * 13, [0.0] * 13], seed=1)
    assert exact.p == 2 / 2**13
    assert all_zero.p == 1


def test_many_items_are_drawn_and_agree_with_scipy():
    row = np.random.default_rng(9).normal(0.3, 1, 30)
    assert len(row) > EXACT_ITEMS
    found = sign_flip_means([row], seed=3, n_draws=19_999)[0]
    expected = stats.permutation_test(
        (row,), np.mean, permutation_type="samples", n_resamples=19_999, rng=4, vectorized=True
    ).pvalue
    # two Monte Carlo estimates: five standard errors apart at most
    assert found.p == pytest.approx(expected, abs=5 * np.sqrt(2 * expected / 19_999))
    assert sign_flip_means([row], seed=3, n_draws=99)[0].p == sign_flip_means([row], seed=3, n_draws=99)[0].p
    assert 0 < sign_flip_means([np.ones(30)], seed=3, n_draws=99)[0].p <= 0.02


def test_sign_flips_without_items():
    assert sign_flip_means(np.zeros((2, 0)), seed=1)[0].status == "undefined"
    with pytest.raises(InputError, match="finite"):
        sign_flip_means([[np.inf]], seed=1)


@pytest.mark.parametrize("stream", ["modern", "legacy"])
def test_levels_share_resamples_and_equal_single_calls(stream):
    table = np.random.default_rng(6).exponential(size=(3, 11))
    table[1] = 2.0
    both = bca_means_at_levels(table, levels=(0.95, 0.8), seed=5, n_resamples=499, stream=stream)
    for place, level in enumerate((0.95, 0.8)):
        alone = bca_means(table, level=level, seed=5, n_resamples=499, stream=stream)
        assert [results[place] for results in both] == alone
    assert both[1][0].status == both[1][1].status == "degenerate"
    with pytest.raises(InputError, match="no levels"):
        bca_means_at_levels(table, levels=(), seed=5)
    with pytest.raises(InputError, match="between 0 and 1"):
        bca_means_at_levels(table, levels=(0.95, 95), seed=5)
