"""Agreement of two reads: worked examples, limits from items, and what is left undefined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.errors import InputError
from counterbalance.stats.agreement import agreement
from counterbalance.stats.estimate import Result
from counterbalance.stats.proportions import clopper_pearson, wilson


def one_hot(slots: list[int], k: int) -> np.ndarray:
    return np.eye(k, dtype=int)[slots]


def limits(result: Result) -> tuple[float | None, ...]:
    return result.estimate, result.low, result.high


def test_kappa_of_a_two_by_two_table() -> None:
    """20 both first, 5 first/second, 10 second/first, 15 both second: o = .7, e = .5 x .6 + .5 x .4 = .5, kappa .4."""
    first = one_hot([0] * 25 + [1] * 25, 2)
    second = one_hot([0] * 20 + [1] * 5 + [0] * 10 + [1] * 15, 2)
    items = np.arange(50)
    found = agreement(items, items, first, second)
    assert found.share.estimate == pytest.approx(0.7)
    assert found.kappa.estimate == pytest.approx(0.4)
    assert (found.kappa.low, found.kappa.high) == pytest.approx(
        ((found.share.low - 0.5) / 0.5, (found.share.high - 0.5) / 0.5)
    )
    # An item asked once agrees in every order exactly if it agrees.
    assert found.every_order.estimate == found.share.estimate


def test_every_order_counts_items_and_share_counts_prompts() -> None:
    """Three items in four orders: all four, three and none agree."""
    first = one_hot([0, 1, 2, 0] * 3, 3)
    second = one_hot([0, 1, 2, 0, 0, 1, 2, 1, 1, 2, 0, 1], 3)
    found = agreement(np.repeat([0, 1, 2], 4), [0, 1, 2], first, second)
    assert found.share.estimate == pytest.approx(7 / 12)
    assert found.every_order.estimate == pytest.approx(1 / 3)
    assert {result.n_items for result in vars(found).values()} == {3}
    assert {result.n_calls for result in vars(found).values()} == {12}


def test_repeated_calls_count_as_the_share_of_their_pairs_that_agree() -> None:
    """Two calls chose A and B, three chose A, A and B: of the six pairs 2 + 1 agree."""
    found = agreement([0, 1], [0, 1], [[1, 1], [2, 0]], [[2, 1], [2, 0]])
    assert found.share.estimate == pytest.approx((3 / 6 + 1) / 2)
    assert found.share.n_calls == 4


def test_perfect_agreement_has_an_exact_bound_and_no_interval_of_no_width() -> None:
    slots = [0, 1, 2] * 10
    found = agreement(np.repeat(np.arange(10), 3), np.arange(10), one_hot(slots, 3), one_hot(slots, 3))
    bound = clopper_pearson(10, 10)
    assert (found.share.status, found.kappa.status) == ("degenerate", "degenerate")
    assert (found.share.low, found.share.high) == (bound.low, 1.0)
    assert found.kappa.estimate == pytest.approx(1)
    assert found.kappa.low == pytest.approx((bound.low - 1 / 3) / (2 / 3))


def test_kappa_is_undefined_where_both_always_name_one_slot() -> None:
    found = agreement([0, 1], [0, 1], one_hot([2, 2], 4), one_hot([2, 2], 4))
    assert found.share.estimate == 1
    assert (found.kappa.status, found.kappa.estimate, found.kappa.low) == ("undefined", None, None)
    assert "same one slot" in str(found.kappa.reason)


def test_the_group_is_the_unit_of_every_interval() -> None:
    """Twelve items that agree in all or no order, each three times over in one group: n stays 12."""
    agrees = [1] * 9 + [0] * 3
    first, second = one_hot([0] * 12, 2), one_hot([1 - value for value in agrees], 2)
    once = agreement(np.arange(12), np.arange(12), first, second)
    copied = agreement(np.arange(36), np.repeat(np.arange(12), 3), first.repeat(3, axis=0), second.repeat(3, axis=0))
    for name in ("share", "every_order", "kappa"):
        single, grouped = getattr(once, name), getattr(copied, name)
        assert grouped.n_items == 12
        assert (grouped.estimate, grouped.low, grouped.high) == pytest.approx(
            (single.estimate, single.low, single.high)
        )
    plain = wilson(9, 12)
    assert once.share.low < plain.low < plain.high < once.share.high


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 5), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_estimate_lies_in_its_limits_and_the_reads_can_be_swapped(k: int, n_items: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(n_items), 3)
    first, second = (one_hot(list(rng.integers(0, k, len(item))), k) for _ in range(2))
    found, swapped = (
        agreement(item, np.arange(n_items), first, second),
        agreement(item, np.arange(n_items), second, first),
    )
    for name in ("share", "every_order", "kappa"):
        result = getattr(found, name)
        if result.estimate is not None:
            assert result.low - 1e-12 <= result.estimate <= result.high + 1e-12
        assert result.estimate == pytest.approx(getattr(swapped, name).estimate)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="not answered in one of the reads"):
        agreement([0], [0], [[1, 0]], [[0, 0]])
    with pytest.raises(InputError, match=r"expected \(prompts, k\)"):
        agreement([0], [0], [[1, 0]], [[1, 0, 0]])
    with pytest.raises(InputError, match="at least one prompt"):
        agreement([], [], np.zeros((0, 2)), np.zeros((0, 2)))
