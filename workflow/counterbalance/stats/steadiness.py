"""How steady an item's answers are over its orders: does the choice change, and how often is it the usual one."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from counterbalance.stats.disagreement import Choices
from counterbalance.stats.estimate import FEW_ITEMS, Result
from counterbalance.stats.proportions import clustered_shares, wilson

Ints = npt.NDArray[np.int64]

_SAME = "share of items answered with one option in all calls"
_FLIPS = "share of items whose chosen option changes"
_USUAL = "share of an item's answers that choose its most frequent option, mean over items"


@dataclass(frozen=True)
class ItemAnswers:
    """Items with at least two answers, since one answer cannot change.

    Attributes
    ----------
    unit
        Unit of inference of each item, shape (items,).
    answers, usual
        Answers, and how many of them chose the item's most frequent option, shape (items,).
    """

    unit: Ints
    answers: Ints
    usual: Ints

    @property
    def consistent(self) -> npt.NDArray[np.bool_]:
        """Whether all answers of an item chose one option, shape (items,)."""
        return np.asarray(self.answers == self.usual)


@dataclass(frozen=True)
class Steadiness:
    """Share of items that are answered alike in all orders, share that are not, and the mean share of usual answers."""

    consistency: Result
    flip_rate: Result
    usual_share: Result


def item_answers(choices: Choices) -> ItemAnswers:
    """Count the answers of each item by option; calls that were asked once more have no part."""
    kept = ~choices.extra
    item, option = choices.item[kept], choices.option[kept]
    n_items, width = int(choices.item.max(initial=-1)) + 1, int(option.max(initial=0)) + 1
    pairs, counts = np.unique(item * width + option, return_counts=True)
    usual = np.zeros(n_items, dtype=np.int64)
    np.maximum.at(usual, pairs // width, counts)
    answers = np.bincount(item, minlength=n_items).astype(np.int64)
    unit = np.zeros(n_items, dtype=np.int64)
    unit[choices.item] = choices.unit
    enough = answers >= 2
    return ItemAnswers(unit[enough], answers[enough], usual[enough])


def steadiness(choices: Choices, *, level: float = 0.95) -> Steadiness:
    """Estimate how steady answers are, with intervals over units.

    Parameters
    ----------
    choices
        Answered calls.

    Returns
    -------
    Steadiness
        ``undefined`` where no item was answered twice. `n_items` are items also where they form groups; the reason then
        says how many groups there are.
    """
    found = item_answers(choices)
    same = consistency(found, level=level)
    if same.n_items == 0:
        nothing = replace(same, method=_USUAL)
        return Steadiness(same, replace(nothing, method=_FLIPS), nothing)
    usual = _over_units(found.unit, found.usual / found.answers, level)
    usual = replace(usual, method=f"{_USUAL}; {usual.method}", n_calls=same.n_calls)
    return Steadiness(same, _complement(same), usual)


def consistency(found: ItemAnswers, *, level: float = 0.95) -> Result:
    """Return the share of items that are answered with one option in all calls.

    Parameters
    ----------
    found
        Items that were answered twice or more.

    Returns
    -------
    Result
        ``undefined`` where there are none.

    Notes
    -----
    An item is one trial, right or wrong in one way, so that Wilson's interval is exact in kind where each item is its
    own unit; items of one group are taken together (`clustered_shares`).
    """
    n_items = len(found.unit)
    if n_items == 0:
        return Result(method=_SAME, n_items=0, n_calls=0, status="undefined", reason="no item was answered twice")
    same = found.consistent
    alone = len(np.unique(found.unit)) == n_items
    share = wilson(int(same.sum()), n_items, level=level) if alone else _over_units(found.unit, same, level)
    return replace(share, method=f"{_SAME}; {share.method}", n_calls=int(found.answers.sum()))


def _over_units(unit: Ints, values: npt.ArrayLike, level: float) -> Result:
    """Return the mean of a share per item, the unit of inference being that of the item."""
    units, place = np.unique(unit, return_inverse=True)
    n_items, n_units = len(unit), len(units)
    sums, items = (
        np.bincount(place, weights=np.asarray(weights, dtype=np.float64), minlength=n_units).reshape(-1, 1)
        for weights in (values, np.ones(n_items))
    )
    share = clustered_shares(sums, items, level=level)[0]
    return share if n_units == n_items else in_groups(share, n_items)


def in_groups(share: Result, n_items: int) -> Result:
    """Return a share over groups of items with the number of its items, and say how many groups they form.

    Parameters
    ----------
    share
        Of `clustered_shares`, a row for each group.
    """
    several = share.n_items != 1
    units = f"{share.n_items} groups, which are the units" if several else "one group, which is the unit"
    reason = f"{n_items} items in {units}"
    if share.status == "degenerate":
        alike = f"all {share.n_items} groups have" if several else "the one group has"
        reason = f"{alike} the share {share.estimate:g}, so that nothing tells how much groups differ; {reason}"
    elif (share.n_items or 0) < FEW_ITEMS:
        reason += "; intervals from so few groups tend to be too narrow"
    return replace(share, n_items=n_items, reason=reason, method=share.method.replace("over items", "over groups"))


def _complement(share: Result) -> Result:
    """Return the share of items that change from that of items that do not."""
    estimate, low, high = (None if value is None else 1 - value for value in (share.estimate, share.high, share.low))
    method = share.method.replace(_SAME, _FLIPS)
    reason = f"of the items that never change: {share.reason}" if share.status == "degenerate" else share.reason
    return replace(share, method=method, estimate=estimate, low=low, high=high, reason=reason)
