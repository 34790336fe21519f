"""Before and after an interruption: exact p by hand, planted change found, random splits left alone."""

import math

import numpy as np
import pytest

from counterbalance.errors import InputError
from counterbalance.stats.interruption import Half, compare_halves


def halves(slot, right, item, earlier, slots=3):
    def half(mine):
        n = int(item.max()) + 1
        picks = np.zeros((n, slots))
        np.add.at(picks, (item[mine], slot[mine]), 1.0)
        return Half(
            np.bincount(item[mine], weights=right[mine], minlength=n),
            np.bincount(item[mine], minlength=n).astype(float),
            picks,
        )

    return half(earlier), half(~earlier)


def test_the_exact_p_is_the_hypergeometric_one() -> None:
    # 4 of 4 right before, 0 of 4 after: each of the two extreme splits has a chance of 1 / C(8, 4).
    item = np.arange(8)
    slot = np.zeros(8, dtype=int)
    found = compare_halves(*halves(slot, item < 4, item, item < 4), n_resamples=99, seed=1)
    assert found.accuracy.p == pytest.approx(2 / math.comb(8, 4))
    assert found.accuracy.estimate == -1
    assert found.picks_test.p == 1
    assert found.picks_test.status == "degenerate"


def test_random_splits_of_one_model_are_left_alone_and_a_change_is_found() -> None:
    rng = np.random.default_rng(2)
    item = np.repeat(np.arange(30), 24)
    ps, picks = [], []
    for seed in range(40):
        # Items differ much, and the calls of one item are alike: the split is still random call by call.
        right = rng.random(30)[item].round() == 1
        slot = rng.choice(3, size=30)[item]
        earlier = rng.permutation(len(item)) < 300
        found = compare_halves(*halves(slot, right, item, earlier), n_resamples=199, seed=seed)
        ps.append(found.accuracy.p)
        picks.append(found.picks_test.p)
    # Of 40 tests at 5%, more than 6 reject with a chance of about .01.
    assert sum(p < 0.05 for p in ps) <= 6
    assert sum(p < 0.05 for p in picks) <= 6
    right = rng.random(len(item)) < np.where(earlier, 0.9, 0.6)
    slot = np.where(rng.random(len(item)) < np.where(earlier, 0.2, 0.5), 0, rng.choice(3, size=len(item)))
    found = compare_halves(*halves(slot, right, item, earlier), n_resamples=499, seed=1)
    assert found.accuracy.p < 1e-6
    assert found.accuracy.low < -0.3 < found.accuracy.high
    assert found.picks_test.p == pytest.approx(1 / 500)
    assert found.picks[0].low > 0


def test_constant_answers_get_bounds_and_not_an_interval_of_no_width() -> None:
    item = np.repeat(np.arange(20), 4)
    earlier = np.arange(80) % 4 < 2
    found = compare_halves(*halves(np.ones(80, dtype=int), np.ones(80, bool), item, earlier), n_resamples=99, seed=1)
    assert (found.accuracy.estimate, found.accuracy.p, found.accuracy.status) == (0, 1, "degenerate")
    # 20 of 20 items each: the exact lower limit is .025^(1/20).
    assert found.accuracy.high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert found.accuracy.low == -found.accuracy.high


def test_an_empty_part_has_no_numbers() -> None:
    item = np.arange(5)
    nobody = np.zeros(5, dtype=bool)
    found = compare_halves(*halves(np.zeros(5, dtype=int), item < 2, item, nobody), n_resamples=99, seed=1)
    assert found.accuracy.status == found.picks_test.status == "undefined"
    assert found.accuracy.p is None


def test_other_items_are_refused() -> None:
    one = Half(np.zeros(2), np.zeros(2), np.zeros((2, 3)))
    with pytest.raises(InputError, match="different units"):
        compare_halves(one, Half(np.zeros(3), np.zeros(3), np.zeros((3, 3))), seed=1)
