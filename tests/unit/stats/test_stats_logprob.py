"""Label log-probabilities and the slot bonus."""

import itertools

import numpy as np
import pytest

from counterbalance.contrasts.nats import label_logprobs
from counterbalance.errors import InputError
from counterbalance.stats.resampling import bca_means

ROTATIONS = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]


def calls(contents, slots, orders):
    """Label log-probabilities where an option's chance in a slot is in proportion to content x slot weight."""
    item, option, values = [], [], []
    for number, content in enumerate(contents):
        for order in orders:
            weight = np.asarray(content)[list(order)] * np.asarray(slots)
            item.append(number)
            option.append(order)
            values.append(np.log(weight / weight.sum()))
    return np.array(item), np.array(option), np.array(values)


def test_a_multiplicative_bonus_comes_out_exactly_and_content_cancels():
    """Content (.2, .5, .3) under weights (4, 2, 1): the bonus is the centred log of the weights."""
    item, option, values = calls([(0.2, 0.5, 0.3), (0.6, 0.3, 0.1)], (4, 2, 1), ROTATIONS)
    found = label_logprobs(item, option, values, np.zeros(values.shape, bool), seed=1)
    expected = np.log([4, 2, 1]) - np.log([4, 2, 1]).mean()
    assert [r.estimate for r in found.bonus] == pytest.approx(expected)
    assert {r.status for r in found.bonus} == {"degenerate"}
    assert [r.estimate for r in found.mean] == pytest.approx(values.mean(axis=0))
    assert found.n_censored_items == 0


def test_bonus_survives_missing_calls():
    orders = list(itertools.permutations(range(4)))
    contents = np.random.default_rng(1).dirichlet(np.ones(4), 6)
    item, option, values = calls(contents, (8, 4, 2, 1), orders)
    kept = np.random.default_rng(2).random(len(item)) < 0.6
    found = label_logprobs(item[kept], option[kept], values[kept], np.zeros((kept.sum(), 4), bool), seed=1)
    expected = np.log(2) * np.array([1.5, 0.5, -0.5, -1.5])
    assert [r.estimate for r in found.bonus] == pytest.approx(expected)
    # The plain slot means do not cancel the content any more.
    means = np.array([r.estimate for r in found.mean])
    assert np.abs(means - means.mean() - expected).max() > 0.01


def test_balanced_bonus_is_the_centred_mean_with_bca_over_items():
    rng = np.random.default_rng(3)
    orders = np.tile(ROTATIONS, (30, 1))
    item = np.repeat(np.arange(30), 3)
    values = -rng.gamma(2.0, size=(90, 3))
    found = label_logprobs(item, orders, values, np.zeros(values.shape, bool), seed=42, stream="legacy")
    means = values.reshape(30, 3, 3).mean(axis=1)
    expected = bca_means((means - means.mean(axis=1, keepdims=True)).T, seed=42, stream="legacy")
    assert [(r.estimate, r.low, r.high) for r in found.bonus] == [
        pytest.approx((e.estimate, e.low, e.high)) for e in expected
    ]
    assert sum(r.estimate for r in found.bonus) == pytest.approx(0)
    assert (found.bonus[0].n_items, found.bonus[0].n_calls) == (30, 90)


def test_orders_that_do_not_separate_slot_from_option_are_counted():
    """One order only, or an order and its reverse over four slots, leave the bonus open."""
    item, option, values = calls([(0.1, 0.2, 0.3, 0.4)], (8, 4, 2, 1), list(itertools.permutations(range(4))))
    more = calls([(0.4, 0.3, 0.2, 0.1)], (8, 4, 2, 1), [(0, 1, 2, 3), (3, 2, 1, 0)])
    item, option, values = np.r_[item, more[0] + 1], np.vstack([option, more[1]]), np.vstack([values, more[2]])
    found = label_logprobs(item, option, values, np.zeros(values.shape, bool), seed=1)
    assert found.bonus[0].n_items == 1
    assert found.bonus[0].n_calls == 24
    assert "1 items left out" in found.bonus[0].reason
    assert found.mean[0].n_items == 2
    only = label_logprobs(*more, np.zeros((2, 4), bool), seed=1)
    assert only.bonus[0].status == "undefined"
    assert "1 items left out" in only.bonus[0].reason


def test_censored_values_understate_the_spread_and_are_counted():
    rng = np.random.default_rng(4)
    contents = rng.dirichlet(np.ones(4), 20)
    orders = list(itertools.permutations(range(4)))
    item, option, values = calls(contents, (8, 4, 2, 1), orders)
    bound = np.sort(values, axis=1)[:, 1:2]
    censored = values < bound
    found = label_logprobs(item, option, np.maximum(values, bound), censored, seed=1, n_resamples=199)
    spread = found.bonus[0].estimate - found.bonus[3].estimate
    assert 0.2 < spread < np.log(8)
    assert found.n_censored_items == 20
    assert f"{censored.sum()} values in 20 of 20 items" in found.bonus[0].reason
    assert found.mean[3].estimate > values[:, 3].mean()


def test_no_calls_give_no_numbers():
    found = label_logprobs([], np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 3)), seed=1)
    assert {r.status for r in found.mean + found.bonus} == {"undefined"}


def test_prior_is_the_slot_weights_with_content_taken_out():
    """Content (.2, .5, .3) under weights (4, 2, 1): the prior is 4/7, 2/7, 1/7, not the mean probability 5/9, ..."""
    item, option, values = calls([(0.2, 0.5, 0.3), (0.6, 0.3, 0.1)], (4, 2, 1), ROTATIONS)
    found = label_logprobs(item, option, values, np.zeros(values.shape, bool), seed=1)
    assert [r.estimate for r in found.prior] == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert np.exp(values[:3]).mean(axis=0) == pytest.approx([0.55555556, 0.29365079, 0.15079365])


def test_prior_is_the_mean_of_the_items_own():
    rng = np.random.default_rng(3)
    values = np.log(rng.dirichlet(np.ones(3), 90))
    item, orders = np.repeat(np.arange(30), 3), np.tile(ROTATIONS, (30, 1))
    found = label_logprobs(item, orders, values, np.zeros(values.shape, bool), seed=1, n_resamples=199)
    odds = np.exp(values.reshape(30, 3, 3).mean(axis=1))
    expected = (odds / odds.sum(axis=1, keepdims=True)).mean(axis=0)
    assert [r.estimate for r in found.prior] == pytest.approx(expected)
    assert all(r.low < r.estimate < r.high for r in found.prior)


def test_copies_of_an_item_in_one_group_add_no_certainty():
    """Every item four times, as one group: the same limits as once, where separate items would halve the width."""
    rng = np.random.default_rng(3)
    once = np.log(rng.dirichlet(np.ones(3), (20, 3)))
    item, orders = np.repeat(np.arange(20), 3), np.tile(ROTATIONS, (20, 1))
    single = label_logprobs(item, orders, once.reshape(-1, 3), np.zeros((60, 3), bool), seed=1, n_resamples=499)
    values = np.repeat(once, 4, axis=0).reshape(-1, 3)
    fourfold = (np.repeat(np.arange(80), 3), np.tile(ROTATIONS, (80, 1)), values, np.zeros((240, 3), bool))
    grouped = label_logprobs(*fourfold, units=np.arange(80) // 4, seed=1, n_resamples=499)
    for name in ("mean", "bonus", "prior"):
        for a, b in zip(getattr(single, name), getattr(grouped, name), strict=True):
            assert (b.low, b.estimate, b.high) == pytest.approx((a.low, a.estimate, a.high))
            assert (b.n_items, b.n_calls) == (20, 240)
    with pytest.raises(InputError, match="one group for each item"):
        label_logprobs(*fourfold, units=[0], seed=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logprobs": [[-np.inf, -1.0]]}, "mark it censored"),
        ({"logprobs": [[np.nan, -1.0]]}, "finite"),
        ({"logprobs": [[0.1, -1.0]]}, "at most"),
        ({"logprobs": [[-1.0, -1.0], [-1.0]]}, "separate strata"),
        ({"logprobs": [[-1.0]]}, "slots"),
        ({"options": [[0, 0]]}, "permutation"),
        ({"options": [[0, 1, 2]]}, "shape"),
        ({"items": [1]}, "without gaps"),
    ],
)
def test_malformed_input_is_refused(change, message):
    given = {"items": [0], "options": [[0, 1]], "logprobs": [[-1.0, -2.0]], "censored": [[False, False]]}
    with pytest.raises(InputError, match=message):
        label_logprobs(**(given | change), seed=1)
