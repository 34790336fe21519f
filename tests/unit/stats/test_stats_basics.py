"""Checked counts, results without NaN, Holm, and seeds."""

import math

import numpy as np
import pytest

from counterbalance.errors import DegenerateDataError, InputError
from counterbalance.stats.counts import slot_counts, sum_by_group, whole_numbers
from counterbalance.stats.estimate import Result, checked_level
from counterbalance.stats.multiplicity import draws_needed, holm
from counterbalance.stats.resampling import bootstrap_sums, generator, weight_blocks


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["estimate", "low", "high", "p"])
def test_a_result_never_holds_what_is_not_a_number(name, value):
    with pytest.raises(DegenerateDataError, match=name):
        Result(method="test", **{name: value})


def test_a_result_holds_plain_numbers_and_says_why_it_is_not_ok():
    assert type(Result(method="test", estimate=np.float64(0.5)).estimate) is float
    with pytest.raises(InputError, match="needs a reason"):
        Result(method="test", status="undefined")
    with pytest.raises(InputError, match="unknown status"):
        Result(method="test", status="fine")


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, math.nan])
def test_levels_are_shares(level):
    with pytest.raises(InputError, match="between 0 and 1"):
        checked_level(level)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1, 2], [1, 2, 3]], "separate strata"),
        ([[1.0, math.nan]], "separate strata"),
        ([[1, -1]], "expected a count"),
        ([[0.5, 1]], "expected a count"),
        ([1, 2], "expected"),
        ([[1], [2]], "at least 2 slots"),
        ([["a", "b"]], "separate strata"),
    ],
)
def test_what_is_not_a_table_of_counts_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        whole_numbers("correct", table)


def test_more_correct_than_calls_is_refused_with_its_place():
    with pytest.raises(InputError, match=r"row 1, slot 2: 3 correct of 2"):
        slot_counts([[1, 1], [1, 3]], [[2, 2], [2, 2]])
    with pytest.raises(InputError, match="same"):
        slot_counts([[1, 1]], [[1, 1, 1]])


def test_items_without_calls_are_left_out_and_empty_slots_are_named():
    counts = slot_counts([[1, 0, 0], [0, 0, 0]], [[2, 0, 1], [0, 0, 0]])
    assert counts.size == {"n_items": 1, "n_calls": 3}
    assert counts.empty_slots is not None
    assert counts.empty_slots.endswith("slot 2")


def test_bool_answers_count_as_one_call():
    assert slot_counts(np.array([[True, False]]), np.ones((1, 2))).correct.tolist() == [[1, 0]]


def test_items_of_one_group_are_added_up():
    assert sum_by_group([[1, 0], [2, 2], [0, 3]], ["b", "a", "b"]).tolist() == [[1, 3], [2, 2]]
    with pytest.raises(InputError, match="one group for each item"):
        sum_by_group([[1, 0]], ["a", "b"])


def test_holm_by_hand():
    # sorted .005 .01 .03 .04: x4 = .02, x3 = .03, x2 = .06, x1 = .04 which must not fall below .06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_skipped_tests_still_count():
    assert holm([0.01, None, None]) == [pytest.approx(0.03), None, None]


@pytest.mark.parametrize("p", [0.0, -0.1, 1.1, math.nan])
def test_holm_refuses_what_no_test_can_give(p):
    with pytest.raises(InputError, match="p-value 1"):
        holm([0.5, p])


def test_draws_needed_lets_one_of_the_family_pass():
    assert draws_needed(0.05, 1) == 20
    assert draws_needed(0.05, 20) == 400
    # One draw fewer gives .05 exactly, which is not below it.
    assert holm([1 / (draws_needed(0.05, 20) + 1)] + [1.0] * 19)[0] < 0.05
    assert holm([1 / draws_needed(0.05, 20)] + [1.0] * 19)[0] == pytest.approx(0.05)
    with pytest.raises(InputError):
        draws_needed(0.05, 0)


@pytest.mark.parametrize("seed", [None, 1.5, -1, "42", True])
def test_seeds_are_explicit(seed):
    with pytest.raises(InputError, match="seed"):
        generator(seed)


def test_a_generator_is_used_as_it_is():
    rng = np.random.default_rng(1)
    assert generator(rng) is rng


def test_cluster_weights_draw_as_many_items_as_there_are():
    weights = np.concatenate(list(weight_blocks(7, 500, np.random.default_rng(1))))
    assert weights.shape == (500, 7)
    assert (weights.sum(axis=1) == 7).all()
    # A count of Binomial(7, 1/7) has variance 6/7.
    assert weights.var() == pytest.approx(6 / 7, abs=0.06)
    with pytest.raises(InputError, match="resamples"):
        next(weight_blocks(7, 0, np.random.default_rng(1)))


@pytest.mark.parametrize("items", [1, 7, 300])
def test_kept_weights_are_the_drawn_ones(items):
    """Weights of a whole-number seed are kept for the next statistic; those of a generator are drawn as they come."""
    drawn = np.concatenate(list(weight_blocks(items, 60, np.random.default_rng(3))))
    for _ in range(2):
        kept = np.concatenate(list(weight_blocks(items, 60, 3)))
        assert kept.dtype == drawn.dtype
        assert (kept == drawn).all()
    assert items == 1 or (np.concatenate(list(weight_blocks(items, 60, 4))) != drawn).any()


def test_block_size_does_not_change_the_stream(monkeypatch):
    values = np.random.default_rng(2).normal(size=(9, 3))
    whole = bootstrap_sums(values, 50, 4)
    monkeypatch.setattr("counterbalance.stats.resampling._BLOCK", 60)
    assert (bootstrap_sums(values, 50, 4) == whole).all()
