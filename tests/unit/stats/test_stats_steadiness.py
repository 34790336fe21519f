"""Changed choices: counted by hand, by item and by group."""

import numpy as np
import pytest

from counterbalance.stats.disagreement import Choices
from counterbalance.stats.proportions import clustered_shares, wilson
from counterbalance.stats.steadiness import consistency, item_answers, steadiness


def choices(rows, unit=None):
    item, order, option, extra = (np.array(column) for column in zip(*rows, strict=True))
    return Choices(unit=np.array(unit)[item] if unit else item, item=item, order=order, option=option, extra=extra)


ROWS = [
    # Item 0: one option in all three orders; the extra call that differs has no part.
    *((0, order, 7, False) for order in range(3)),
    (0, 0, 8, True),
    # Item 1: two of three answers choose option 2. Item 2: two of four, the rest single.
    *((1, order, option, False) for order, option in enumerate((2, 2, 0))),
    *((2, order, option, False) for order, option in enumerate((5, 5, 6, 7))),
    # Item 3 was answered once, and item 4 only as an extra call.
    (3, 0, 1, False),
    (4, 0, 1, True),
]


def test_items_are_counted_as_by_hand():
    found = item_answers(choices(ROWS))
    assert found.unit.tolist() == [0, 1, 2]
    assert found.answers.tolist() == [3, 3, 4]
    assert found.usual.tolist() == [3, 2, 2]
    assert found.consistent.tolist() == [True, False, False]


def test_shares_of_items_with_wilson_and_their_complement():
    found = steadiness(choices(ROWS))
    expected = wilson(1, 3)
    assert (found.consistency.estimate, found.consistency.low, found.consistency.high) == pytest.approx(
        (1 / 3, expected.low, expected.high)
    )
    assert (found.flip_rate.estimate, found.flip_rate.low, found.flip_rate.high) == pytest.approx(
        (2 / 3, 1 - expected.high, 1 - expected.low)
    )
    assert found.usual_share.estimate == pytest.approx((1 + 2 / 3 + 1 / 2) / 3)
    assert (found.flip_rate.n_items, found.flip_rate.n_calls) == (3, 10)


def test_items_of_one_group_are_taken_together():
    """Twenty groups of five items that all change or all do not are twenty observations."""
    rows = [(item, order, order * (item // 5 % 2), False) for item in range(100) for order in (0, 1)]
    found = steadiness(choices(rows, unit=[item // 5 for item in range(100)]))
    expected = clustered_shares(np.repeat([[5.0], [0.0]], 10, axis=0), np.full((20, 1), 5.0))[0]
    assert found.flip_rate.estimate == 0.5
    assert (found.flip_rate.low, found.flip_rate.high) == pytest.approx((expected.low, expected.high))
    assert (found.flip_rate.n_items, found.usual_share.n_items, found.flip_rate.n_calls) == (100, 100, 200)
    for share in (found.consistency, found.flip_rate, found.usual_share):
        assert share.reason == "100 items in 20 groups, which are the units"
    assert found.flip_rate.high - found.flip_rate.low > 2 * (wilson(50, 100).high - 0.5)


def test_nothing_answered_twice_gives_no_number():
    found = steadiness(choices([(0, 0, 1, False), (1, 0, 1, True)]))
    assert {found.consistency.status, found.flip_rate.status, found.usual_share.status} == {"undefined"}


@pytest.mark.parametrize(
    ("n_groups", "says"),
    [
        (1, "the one group has the share 1, so that nothing tells how much groups differ; 6 items in one group"),
        (3, "all 3 groups have the share 1, so that nothing tells how much groups differ; 6 items in 3 groups"),
    ],
)
def test_groups_that_are_alike_are_not_called_items(n_groups, says):
    rows = [(item, order, 7, False) for item in range(6) for order in (0, 1)]
    found = steadiness(choices(rows, unit=[item % n_groups for item in range(6)]))
    assert found.consistency.reason.startswith(says)
    assert found.flip_rate.reason == f"of the items that never change: {found.consistency.reason}"
    assert "over groups" in found.consistency.method
    assert (found.consistency.status, found.consistency.n_items) == ("degenerate", 6)
    # Exact over groups: with all of n alike, the lower bound is .025^(1/n).
    assert found.consistency.low == pytest.approx(0.025 ** (1 / n_groups))


def test_few_groups_are_said_to_be_few():
    rows = [(item, order, order * (item // 2 % 2), False) for item in range(8) for order in (0, 1)]
    found = steadiness(choices(rows, unit=[item // 2 for item in range(8)]))
    assert found.flip_rate.reason == (
        "8 items in 4 groups, which are the units; intervals from so few groups tend to be too narrow"
    )


def test_consistency_alone_is_that_of_steadiness():
    same = choices(ROWS)
    assert consistency(item_answers(same)) == steadiness(same).consistency
