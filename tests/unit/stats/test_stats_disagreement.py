"""The repeat floor: pairs counted by hand and one by one, planted probabilities, and what constant data may claim."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.errors import InputError
from counterbalance.stats.disagreement import Choices, disagreement

Call = tuple[int, int, int, bool]
"""Item, order, option, extra."""


def choices(calls: list[Call], unit: list[int] | None = None) -> Choices:
    item, order, option, extra = (np.array(column) for column in zip(*calls, strict=True))
    return Choices(unit=np.array(unit)[item] if unit else item, item=item, order=order, option=option, extra=extra)


def test_pairs_are_counted_as_by_hand() -> None:
    found = disagreement(
        choices(
            [
                # Same order: 1 of 2 pairs differs. Two orders, without the extra calls: the one pair differs.
                (0, 0, 1, False),
                (0, 0, 2, True),
                (0, 1, 3, False),
                (0, 1, 3, True),
                # Never asked twice in one order. Two orders: 1-1 agrees, 1-2 and 1-2 differ.
                (1, 0, 1, False),
                (1, 1, 1, False),
                (1, 2, 2, False),
            ]
        ),
        n_resamples=99,
        seed=1,
    )
    assert found.same_order.estimate == pytest.approx(1 / 2)
    assert found.other_order.estimate == pytest.approx((1 + 2 / 3) / 2)
    # Only item 0 has both.
    assert found.excess.estimate == pytest.approx(1 - 1 / 2)
    assert (found.same_order.n_items, found.same_order.n_calls) == (1, 4)
    assert (found.other_order.n_items, found.other_order.n_calls) == (2, 5)
    assert found.excess.n_items == 1


def one_by_one(calls: list[Call], same: bool) -> float | None:
    """The definition, pair by pair."""
    shares = []
    for item in {call[0] for call in calls}:
        mine = [call for call in calls if call[0] == item and (same or not call[3])]
        pairs = [(a, b) for a, b in itertools.combinations(mine, 2) if (a[1] == b[1]) == same]
        if pairs:
            shares.append(sum(a[2] != b[2] for a, b in pairs) / len(pairs))
    return sum(shares) / len(shares) if shares else None


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3), st.booleans()), min_size=1, max_size=40)
)
@settings(max_examples=50, deadline=None)
def test_counting_agrees_with_going_through_all_pairs(calls: list[Call]) -> None:
    items = {item: place for place, item in enumerate(sorted({call[0] for call in calls}))}
    calls = [(items[item], *rest) for item, *rest in calls]
    found = disagreement(choices(calls), n_resamples=99, seed=1)
    for result, same in ((found.same_order, True), (found.other_order, False)):
        expected = one_by_one(calls, same)
        assert result.estimate == (None if expected is None else pytest.approx(expected))
        assert (result.status == "undefined") == (expected is None)
        if result.estimate is not None:
            assert 0 <= result.low <= result.estimate <= result.high <= 1
            assert result.low < result.high


def planted(rng, n_items: int, by_order, share: float) -> list[Call]:
    """Calls that choose option o in order a with probability by_order[a][o]; some prompts are asked once more."""
    calls = []
    for item, (order, chances) in itertools.product(range(n_items), enumerate(by_order)):
        again = rng.random() < share
        for extra in (False, True)[: 1 + again]:
            calls.append((item, order, int(rng.choice(len(chances), p=chances)), extra))
    return calls


def test_planted_disagreement_is_recovered() -> None:
    first, second = (0.9, 0.1, 0.0), (0.5, 0.1, 0.4)
    calls = planted(np.random.default_rng(5), 400, [first, second, first, second], 0.5)
    found = disagreement(choices(calls), n_resamples=999, seed=1)
    # By hand: 1 - sum p^2 is .18 and .58; 1 - sum pq is .54. Of the six pairs of orders, four are unlike.
    same = (0.18 + 0.58) / 2
    other = (4 * 0.54 + 0.18 + 0.58) / 6
    for result, truth in ((found.same_order, same), (found.other_order, other), (found.excess, other - same)):
        assert result.estimate == pytest.approx(truth, abs=0.04)
        assert result.low < truth < result.high
        assert result.status == "ok"


def test_an_order_that_is_asked_twice_does_not_weigh_double_among_orders() -> None:
    calls = [(item, order, int(order == 0), False) for item in range(12) for order in range(3)]
    plain = disagreement(choices(calls), n_resamples=99, seed=1)
    again = disagreement(choices([*calls, *((item, 0, 1, True) for item in range(12))]), n_resamples=99, seed=1)
    assert plain.other_order.estimate == again.other_order.estimate == pytest.approx(2 / 3)


def test_a_deterministic_respondent_has_a_floor_of_0_with_an_upper_bound() -> None:
    calls = [(item, order, 0, extra) for item in range(40) for order in range(3) for extra in (False, True)]
    found = disagreement(choices(calls), n_resamples=99, seed=1)
    assert (found.same_order.estimate, found.same_order.low, found.same_order.status) == (0, 0, "degenerate")
    # No disagreement in 40 items: the exact 97.5% bound is 1 - .025^(1/40).
    assert found.same_order.high == pytest.approx(1 - 0.025 ** (1 / 40))
    assert found.excess.estimate == 0
    assert found.excess.low < 0 < found.excess.high
    assert found.excess.status == "degenerate"
    assert "bootstrap would be too sure" in (found.same_order.reason or "")


def test_a_respondent_that_follows_the_slot_and_never_wavers_is_above_its_floor() -> None:
    calls = [(item, order, order, extra) for item in range(40) for order in range(4) for extra in (False, True)]
    found = disagreement(choices(calls), n_resamples=99, seed=1)
    assert (found.same_order.estimate, found.other_order.estimate, found.excess.estimate) == (0, 1, 1)
    assert found.excess.low > 0.8
    assert found.excess.high >= 1


def test_few_items_that_differ_get_an_exact_bound_and_no_bootstrap() -> None:
    calls = [(item, 0, int(item < 2 and extra), extra) for item in range(30) for extra in (False, True)]
    same = disagreement(choices(calls), n_resamples=999, seed=1).same_order
    assert same.estimate == pytest.approx(2 / 30)
    assert same.status == "ok"
    assert "only 2 of 30 items differ" in (same.reason or "")
    # Clopper and Pearson's upper limit for 2 of 30, as in any table of them.
    assert same.high == pytest.approx(0.2207, abs=5e-4)


def test_noise_alone_is_seldom_taken_for_an_effect_of_order() -> None:
    # Every item keeps the same chances in all orders, and few prompts are asked twice: the excess is 0.
    rng = np.random.default_rng(11)
    above = 0
    for seed in range(60):
        calls = []
        for item in range(40):
            p = min(0.5, rng.exponential(0.04))
            calls += [(item, *call[1:]) for call in planted(rng, 1, [(1 - p, p)] * 12, 0.1)]
        excess = disagreement(choices(calls), n_resamples=199, seed=seed).excess
        above += excess.low is not None and excess.low > 0
    # At 2.5% the chance of more than 5 of 60 is below .01.
    assert above <= 5


def test_items_of_one_source_count_as_one() -> None:
    rng = np.random.default_rng(3)
    calls = planted(rng, 40, [(0.7, 0.3)] * 3, 1.0)
    alone = disagreement(choices(calls), n_resamples=199, seed=1).same_order
    together = disagreement(choices(calls, [item // 4 for item in range(40)]), n_resamples=199, seed=1).same_order
    assert (alone.n_items, together.n_items) == (40, 10)
    assert together.estimate == alone.estimate


def test_without_repeats_or_without_orders_there_is_no_number_and_a_reason() -> None:
    found = disagreement(choices([(0, 0, 1, False), (0, 1, 1, False)]), n_resamples=99, seed=1)
    assert found.same_order.status == found.excess.status == "undefined"
    assert "no prompt was answered twice" in (found.excess.reason or "")
    assert found.other_order.estimate == 0
    found = disagreement(choices([(0, 0, 1, False), (0, 0, 1, True)]), n_resamples=99, seed=1)
    assert found.other_order.reason == "no item was answered in two different orders"
    assert found.excess.reason == found.other_order.reason


def test_arrays_of_different_lengths_are_refused() -> None:
    short = np.zeros(1, dtype=np.int64)
    with pytest.raises(InputError, match="differ in length"):
        disagreement(Choices(short, short, short, np.zeros(2, dtype=np.int64), short.astype(bool)), seed=1)
