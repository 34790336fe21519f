"""How often a model disagrees with itself: asked twice in one order, and asked in two orders."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result, checked_level, few_items
from counterbalance.stats.proportions import clopper_pearson
from counterbalance.stats.resampling import Seed, bootstrap_sums, percentile_limits

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_ROUNDING = 1e-12
# With fewer, a resample misses them all with a probability of at least exp(-3) = .0498 and the limit of a bootstrap
# sticks to the common value.
_FEW_DIFFERING = 4
_SAME = "share of pairs of calls in the same order that choose different options"
_OTHER = "share of pairs of calls in two different orders that choose different options"
_EXCESS = "disagreement in two orders less that in the same order, over items with both"
_ABSENT = {
    _SAME: "no prompt was answered twice in the same order; `repeat_share`, or `repeats` of 2 or more, asks again",
    _OTHER: "no item was answered in two different orders",
}


@dataclass(frozen=True)
class Choices:
    """Which option each answered call chose.

    Attributes
    ----------
    unit, item
        Shape (calls,), from 0: the unit of inference (the group of items that share a source), and the item.
    order
        Shape (calls,): which arrangement of the item's options was asked, from 0.
    option
        Shape (calls,): which option was chosen, a code that means the same in all calls of an item.
    extra
        Shape (calls,): True for calls that were asked once more in an order drawn for it. They count for pairs in the
        same order alone, since an order that happens to be asked twice must not weigh double among the orders.
    """

    unit: Ints
    item: Ints
    order: Ints
    option: Ints
    extra: Flags


@dataclass(frozen=True)
class Disagreement:
    """The repeat floor, the order effect, and by how much the second is above the first."""

    same_order: Result
    other_order: Result
    excess: Result


def disagreement(choices: Choices, *, level: float = 0.95, n_resamples: int = 9999, seed: Seed) -> Disagreement:
    """Estimate the probability that two calls of one item choose different options, by whether the order changed.

    Parameters
    ----------
    choices
        Answered calls; calls without an answer are the business of the outcome counts.

    Returns
    -------
    Disagreement
        `undefined` where no prompt was answered twice, or no item in two orders.

    Raises
    ------
    InputError
        If the arrays differ in length.

    Notes
    -----
    For item i let n_ia be its answered calls in order a and c_iao those of them that chose option o. Among the
    C(n_ia, 2) pairs of calls in the same order, C(n_ia, 2) - sum_o C(c_iao, 2) disagree; their shares over all orders
    of the item, s_i, is an unbiased estimate of the probability that two independent calls in one order differ,
    because every pair is of two different calls. In the same way t_i is the share of pairs that disagree among the
    pairs in two different orders. The estimates are the means of s_i and of t_i over the items that have such pairs,
    and the excess is the mean of t_i - s_i over the items that have both. Its expectation is half the mean squared
    distance between the distributions of choices in two orders: 0 if order does not matter, and never negative.

    Intervals of the two shares: percentile bootstrap over units. Where fewer than 4 units differ from all others, which
    the bootstrap cannot see as chance, the bound is exact: at most a share q of all units differs (Clopper and Pearson
    1934), and those that do lie anywhere between 0 and 1. Few prompts are asked twice, so s is skewed and a bootstrap
    of t - s would be too sure; its limits come from those of t and s over the same items and their correlation r over
    resamples, which keeps the skewness: d - sqrt(a^2 + b^2 - 2 r a b) with a = t - low(t), b = high(s) - s, and the
    like above (Zou and Donner 2008, Statistics in Medicine 27, 1693-1702).
    """
    checked_level(level)
    if len({len(values) for values in vars(choices).values()}) != 1:
        raise InputError("choices: the arrays differ in length; give one entry for each answered call in each of them")
    n_items = int(choices.item.max(initial=-1)) + 1
    unit = np.zeros(n_items, dtype=np.int64)
    unit[choices.item] = choices.unit
    same, other = _pairs(choices, n_items, same=True), _pairs(choices, n_items, same=False)
    both = same.known & other.known
    columns = (
        _Column(_SAME, same.share, same.known, int(same.calls[same.known].sum())),
        _Column(_OTHER, other.share, other.known, int(other.calls[other.known].sum())),
        _Column(_SAME, same.share, both, int(same.calls[both].sum())),
        _Column(_OTHER, other.share, both, int(other.calls[both].sum())),
    )
    means = _means(columns, unit, level=level, n_resamples=n_resamples, seed=seed)
    lacking = [result.reason for result in means.results[:2] if result.status == "undefined"]
    if lacking or not both.any():
        reason = lacking[0] if lacking else "no item was answered both twice in one order and in two orders"
        excess = Result(method=_EXCESS, n_items=0, n_calls=0, status="undefined", reason=reason)
    else:
        excess = _excess(means.results[2], means.results[3], means.correlation, level)
    return Disagreement(means.results[0], means.results[1], excess)


@dataclass(frozen=True)
class _Pairs:
    """By item: share of pairs that disagree, whether there are pairs, and the calls that are in one."""

    share: Array
    known: Flags
    calls: Ints


@dataclass(frozen=True)
class _Column:
    """By item: the share, and whether the item has one."""

    what: str
    values: Array
    known: Flags
    n_calls: int


@dataclass(frozen=True)
class _Means:
    """A result for each column, and the correlation of the last two over resamples."""

    results: list[Result]
    correlation: float


def _pairs(choices: Choices, n_items: int, *, same: bool) -> _Pairs:
    kept = np.ones(len(choices.item), dtype=bool) if same else ~choices.extra
    item, order, option = choices.item[kept], choices.order[kept], choices.option[kept]
    in_order, agreeing = _twos(n_items, item, order), _twos(n_items, item, order, option)
    if same:
        pairs, agree = in_order, agreeing
        calls = _calls_asked_twice(n_items, item, order)
    else:
        pairs, agree = _twos(n_items, item) - in_order, _twos(n_items, item, option) - agreeing
        calls = np.bincount(item, minlength=n_items).astype(np.int64)
    known = pairs > 0
    share = np.divide(pairs - agree, pairs, out=np.zeros(n_items), where=known)
    return _Pairs(share, known, calls)


def _twos(n_items: int, item: Ints, *keys: Ints) -> Array:
    """Return by item the number of pairs of calls that are alike in all keys."""
    of, counts = _alike(item, *keys)
    return np.bincount(of, weights=counts * (counts - 1) / 2, minlength=n_items).astype(np.float64)


def _calls_asked_twice(n_items: int, item: Ints, order: Ints) -> Ints:
    of, counts = _alike(item, order)
    return np.bincount(of, weights=np.where(counts > 1, counts, 0), minlength=n_items).astype(np.int64)


def _alike(item: Ints, *keys: Ints) -> tuple[Ints, Ints]:
    """Return item and size of each set of calls that are alike in item and all keys."""
    code, width = item, 1
    for key in keys:
        base = int(key.max(initial=0)) + 1
        code, width = code * base + key, width * base
    found, counts = np.unique(code, return_counts=True)
    return found // width, counts


def _means(columns: Sequence[_Column], unit: Ints, *, level: float, n_resamples: int, seed: Seed) -> _Means:
    n_units = int(unit.max(initial=-1)) + 1
    sums = np.zeros((n_units, 2 * len(columns)))
    for place, column in enumerate(columns):
        np.add.at(sums[:, 2 * place], unit[column.known], column.values[column.known])
        np.add.at(sums[:, 2 * place + 1], unit[column.known], 1.0)
    drawn = bootstrap_sums(sums, n_resamples, seed) if n_units else np.zeros((0, sums.shape[1]))
    pairs = [slice(2 * place, 2 * place + 2) for place in range(len(columns))]
    results = [_mean(column, sums[:, pair], drawn[:, pair], level) for column, pair in zip(columns, pairs, strict=True)]
    last = drawn[drawn[:, -1] > 0, -4:]
    return _Means(results, _correlation(last[:, 0] / last[:, 1], last[:, 2] / last[:, 3]))


def _correlation(first: Array, second: Array) -> float:
    """Return the correlation of two series, and 0, which only widens intervals, where one of them is constant."""
    if len(first) < 2 or min(first.std(), second.std()) < _ROUNDING:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _mean(column: _Column, sums: Array, draws: Array, level: float) -> Result:
    has = sums[:, 1] > 0
    n_units = int(has.sum())
    if n_units == 0:
        return Result(method=column.what, n_items=0, n_calls=0, status="undefined", reason=_ABSENT[column.what])
    estimate = float(sums[:, 0].sum() / sums[:, 1].sum())
    common, n_common = _most_frequent(sums[has, 0] / sums[has, 1])
    differing = n_units - n_common
    found = Result(
        method=f"{column.what}, mean over items; percentile bootstrap over items ({len(draws)} resamples)",
        estimate=estimate,
        level=level,
        n_items=n_units,
        n_calls=column.n_calls,
        reason=few_items(n_units),
    )
    if differing >= _FEW_DIFFERING:
        drawn = draws[draws[:, 1] > 0]
        low, high = percentile_limits(drawn[:, 0] / drawn[:, 1], level)
        return replace(found, low=low, high=high)
    # At most this share of all units differs from the common value, and those that do lie between 0 and 1.
    most = clopper_pearson(differing, n_units, level=level).high or 0.0
    text = f"only {differing} of {n_units} items differ" if differing else f"all {n_units} items are the same"
    return replace(
        found,
        method=f"{column.what}, mean over items; exact bound over items",
        low=min(common - most * common, estimate),
        high=max(common + most * (1 - common), estimate),
        status="ok" if differing else "degenerate",
        reason=f"{text} (share {common:.4g}): a bootstrap would be too sure",
    )


def _excess(same: Result, other: Result, correlation: float, level: float) -> Result:
    method = f"{_EXCESS}; limits from both intervals and their correlation (Zou and Donner)"
    s, s_low, s_high = _numbers(same)
    t, t_low, t_high = _numbers(other)
    constant = same.status == other.status == "degenerate"
    notes = dict.fromkeys(share.reason for share in (same, other) if share.reason)
    return Result(
        method=method,
        estimate=t - s,
        low=t - s - _distance(t - t_low, s_high - s, correlation),
        high=t - s + _distance(t_high - t, s - s_low, correlation),
        level=level,
        n_items=same.n_items,
        n_calls=other.n_calls,
        status="degenerate" if constant else "ok",
        reason="; ".join(notes) or None,
    )


def _numbers(share: Result) -> tuple[float, float, float]:
    return share.estimate or 0.0, share.low or 0.0, share.high or 0.0


def _distance(a: float, b: float, correlation: float) -> float:
    return math.sqrt(max(0.0, a**2 + b**2 - 2 * correlation * a * b))


def _most_frequent(values: Array) -> tuple[float, int]:
    # Shares that were computed differ in their last digits where they are meant to be equal.
    rounded, counts = np.unique(np.round(values / _ROUNDING) * _ROUNDING, return_counts=True)
    best = int(counts.argmax())
    return float(rounded[best]), int(counts[best])
