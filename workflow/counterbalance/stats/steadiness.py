"""How steady an item's answers are over its orders: does the choice change, and how often is it the usual one."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from counterbalance.stats.counts import Array
from counterbalance.stats.disagreement import Choices
from counterbalance.stats.estimate import Result
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
        ``undefined`` where no item was answered twice.

    Notes
    -----
    An item is one trial, right or wrong in one way, so that Wilson's interval is exact in kind where each item is its
    own unit; items of one group are taken together (`clustered_shares`). Usual answers are a share per item, which is
    1 for an item that never changes and at least 1 / k.
    """
    found = item_answers(choices)
    n_items, n_calls = len(found.unit), int(found.answers.sum())
    units, place = np.unique(found.unit, return_inverse=True)

    def per_unit(values: Array) -> Array:
        return np.bincount(place, weights=values, minlength=len(units)).reshape(-1, 1).astype(np.float64)

    def shares(values: Array) -> Result:
        return clustered_shares(per_unit(values), per_unit(np.ones(n_items)), level=level)[0]

    same = found.consistent.astype(np.float64)
    if n_items == 0:
        nothing = Result(method=_SAME, n_items=0, n_calls=0, status="undefined", reason="no item was answered twice")
        return Steadiness(nothing, replace(nothing, method=_FLIPS), replace(nothing, method=_USUAL))
    alone = len(units) == n_items
    consistency = wilson(int(same.sum()), n_items, level=level) if alone else shares(same)
    consistency = replace(consistency, method=f"{_SAME}; {consistency.method}", n_calls=n_calls)
    usual = shares(found.usual / found.answers)
    usual = replace(usual, method=f"{_USUAL}; {usual.method}", n_calls=n_calls)
    return Steadiness(consistency, _complement(consistency), usual)


def _complement(share: Result) -> Result:
    """Return the share of items that change from that of items that do not."""
    estimate, low, high = (None if value is None else 1 - value for value in (share.estimate, share.high, share.low))
    method = share.method.replace(_SAME, _FLIPS)
    reason = f"of the items that never change: {share.reason}" if share.reason else None
    return replace(share, method=method, estimate=estimate, low=low, high=high, reason=reason)
