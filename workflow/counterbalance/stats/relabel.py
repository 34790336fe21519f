"""The primary test: are slots exchangeable within an item? And its sensitivity analysis."""

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError
from counterbalance.stats.counts import NO_CALLS, Array, Size, SlotCounts, slot_counts, whole_numbers
from counterbalance.stats.estimate import Result, Status
from counterbalance.stats.resampling import Seed, bootstrap_sums, generator

Mask = npt.NDArray[np.bool_]

_TOLERANCE = 1e-9
_BLOCK = 2_000_000
_STATISTIC = "sum over slots of the squared mean deviation from the item's own mean"


@dataclass(frozen=True)
class Relabelling:
    """A slot-relabelling test.

    Attributes
    ----------
    result
        Statistic as the estimate, and p. ``degenerate`` with p = 1 where no item's value changes with the slot;
        ``not_measurable`` where even the most extreme relabelling of these data has p >= alpha.
    n_unstable
        Items whose value changes with the slot; only they carry information.
    n_relabellings
        Distinct joint relabellings of the data, all equally likely under the null.
    enumerated
        Whether p is exact, from all of them, or Monte Carlo.
    p_floor
        Smallest p that the test could have given.
    """

    result: Result
    n_unstable: int
    n_relabellings: int
    enumerated: bool
    p_floor: float


def relabel_accuracy(
    correct: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    n_draws: int = 9999,
    seed: Seed,
    alpha: float = 0.05,
    enumerate_up_to: int = 20_000,
) -> Relabelling:
    """Test whether accuracy depends on the slot of the correct option in a way common to all items.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).
    n_draws
        Random relabellings, where there are too many to list.
    enumerate_up_to
        List all distinct relabellings where there are no more than this.

    Notes
    -----
    Null: within an item, its slot accuracies could have been carried by the slots in any order. Effects of slot that
    differ from item to item are part of the null, since they may differ freely. Each item counts equally.

    With complete calls this is the exchange of counts. Where calls are missing, or a scheme asks other slots for
    other items, an item's accuracies in the slots asked are centred on their mean and exchanged among these slots
    only, so the pattern of what is missing stays as it is. That is exact if calls are missing independently of the
    slot; if not, accuracies from fewer calls scatter more and the test is approximate.

    ``p = (b + 1) / (m + 1)`` over m random relabellings, ties counted as extreme; ``b / m`` over all of them, where
    the data themselves are one. Source: Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9, article 39.
    """
    counts = slot_counts(correct, n)
    return _relabelling(*_shares(counts), counts.n_calls, "accuracy", n_draws, seed, alpha, enumerate_up_to)


def relabel_unanswered(
    unanswered: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    n_draws: int = 9999,
    seed: Seed,
    alpha: float = 0.05,
    enumerate_up_to: int = 20_000,
) -> Relabelling:
    """Test whether calls go without a usable answer more often where the correct option stands in some slots.

    Parameters
    ----------
    unanswered, n
        Calls without a usable answer and all calls, shape (items, slots), by the slot of the correct option.

    Notes
    -----
    As `relabel_accuracy`. Where it rejects, the null of `relabel_picks` does not hold: an answer that is missing where
    the correct option stood in some slot is mostly a right pick of that slot, so the other slots look preferred.
    """
    counts = slot_counts(unanswered, n)
    return _relabelling(*_shares(counts), counts.n_calls, "unanswered calls", n_draws, seed, alpha, enumerate_up_to)


def relabel_picks(
    picks: npt.ArrayLike,
    *,
    n_draws: int = 9999,
    seed: Seed,
    alpha: float = 0.05,
    enumerate_up_to: int = 20_000,
) -> Relabelling:
    """Test whether some slots are chosen more often than others in a way common to all items.

    Parameters
    ----------
    picks
        How often each slot was chosen, shape (items, slots). Items without a choice are left out; each item's choices
        are taken as shares, so that items count equally.

    Notes
    -----
    As `relabel_accuracy`. The null needs each option to sit in each slot equally often, or in slots that were drawn
    at random; then content alone gives no slot more choices than another. Answers that are missing by position break
    that (`relabel_unanswered`).
    """
    table = whole_numbers("picks", picks)
    table = table[table.sum(axis=1) > 0]
    shares = table / table.sum(axis=1, keepdims=True)
    everywhere = np.ones(shares.shape, dtype=bool)
    return _relabelling(shares, everywhere, int(table.sum()), "picks", n_draws, seed, alpha, enumerate_up_to)


def guarded_picks(picks: Result, unanswered: Result, n_unanswered: int, *, alpha: float) -> Result:
    """Return the test of picks, without its p where answers are missing by position: its null is then wrong.

    Parameters
    ----------
    picks, unanswered
        Results of `relabel_picks` and `relabel_unanswered` of one cell.
    n_unanswered
        Calls without a usable answer.
    alpha
        Level at which they count as missing by position.
    """
    if picks.p is None or unanswered.p is None or unanswered.p >= alpha:
        return picks
    reason = (
        f"{n_unanswered} of {unanswered.n_calls} calls have no usable answer, and more where the correct option stands "
        f"in some slots (p = {unanswered.p:.3g}): mostly right picks of these slots are missing, so that the others "
        "look preferred"
    )
    return replace(picks, p=None, status="not_measurable", reason=reason)


def recentred_bootstrap(correct: npt.ArrayLike, n: npt.ArrayLike, *, n_resamples: int = 9999, seed: Seed) -> Result:
    """Test the same null by resampling items: the sensitivity analysis of `relabel_accuracy`.

    Unlike relabelling it allows slots to differ in variance as long as their means agree. The distribution of the
    statistic is taken around the observed slot deviations, which recentres it to the null.
    """
    counts = slot_counts(correct, n)
    deviations = _within_item(*_shares(counts))
    method = f"{_STATISTIC}: recentred bootstrap over items ({n_resamples} resamples), accuracy"
    if counts.n_items < 2 or counts.n_calls == 0:
        reason = f"{counts.n_items} items; needs at least 2" if counts.n_calls else NO_CALLS
        return Result(method=method, **counts.size, status="undefined", reason=reason)
    if not deviations.any():
        return Result(method=method, estimate=0.0, p=1.0, **counts.size, status="degenerate", reason=_STABLE)
    observed = deviations.sum(axis=0)
    drawn = bootstrap_sums(deviations, n_resamples, seed) - observed
    p = (1 + _as_extreme((drawn**2).sum(axis=1), observed)) / (1 + n_resamples)
    estimate = float((observed**2).sum()) / counts.n_items**2
    return Result(method=method, estimate=estimate, p=p, **counts.size)


_STABLE = "no item's value changes with the slot"


def _shares(counts: SlotCounts) -> tuple[Array, Mask]:
    """Return the share by item and slot, and where there are calls."""
    asked = counts.n > 0
    return np.divide(counts.correct, counts.n, out=np.zeros_like(counts.n), where=asked), asked


def _within_item(values: Array, asked: Mask) -> Array:
    """Return deviations from the item's mean over the slots asked, exactly 0 where an item does not vary."""
    slots = asked.sum(axis=1, keepdims=True)
    mean = np.where(asked, values, 0.0).sum(axis=1, keepdims=True) / np.maximum(slots, 1)
    highest = np.where(asked, values, -np.inf).max(axis=1, keepdims=True)
    lowest = np.where(asked, values, np.inf).min(axis=1, keepdims=True)
    return np.where(asked & (highest > lowest), values - mean, 0.0)


def _as_extreme(statistics: Array, observed: Array) -> int:
    # Sums in another order differ in the last digits; equal relabellings must count as ties.
    target = float((observed**2).sum())
    return int((statistics >= target - _TOLERANCE * max(target, _TOLERANCE)).sum())


def _relabelling(
    values: Array, asked: Mask, n_calls: int, what: str, n_draws: int, seed: Seed, alpha: float, listed: int
) -> Relabelling:
    if n_draws < 1 or not 0 < alpha < 1:
        raise InputError(f"n_draws {n_draws}, alpha {alpha}; expected at least 1 draw and 0 < alpha < 1")
    n_items = len(values)
    size: Size = {"n_items": n_items, "n_calls": n_calls}
    deviations = _within_item(values, asked)
    unstable = deviations.any(axis=1)
    if not unstable.any():
        method = f"{_STATISTIC}: slot relabelling of {what}"
        if n_calls == 0:
            return Relabelling(Result(method=method, **size, status="undefined", reason=NO_CALLS), 0, 1, True, 1.0)
        stable = Result(method=method, estimate=0.0, p=1.0, **size, status="degenerate", reason=_STABLE)
        return Relabelling(stable, 0, 1, True, 1.0)
    observed = deviations.sum(axis=0)
    asked, deviations = asked[unstable], deviations[unstable]
    total = math.prod(_distinct_orders(row[mask]) for row, mask in zip(deviations, asked, strict=True))
    enumerated = total <= listed
    if enumerated:
        statistics = _all_relabellings(asked, deviations)
        p = _as_extreme(statistics, observed) / total
        largest = statistics.max()
        p_floor = float((statistics >= largest * (1 - _TOLERANCE)).sum()) / total
        how = f"all {total} relabellings"
    else:
        statistics = _random_relabellings(asked, deviations, n_draws, generator(seed))
        p = (1 + _as_extreme(statistics, observed)) / (1 + n_draws)
        p_floor = 1 / (1 + n_draws)
        how = f"{n_draws} random relabellings"
    status, reason = _standing(p_floor, alpha, len(deviations), n_items)
    result = Result(
        method=f"{_STATISTIC}: slot relabelling of {what}, {how}",
        estimate=float((observed**2).sum()) / n_items**2,
        p=p,
        **size,
        status=status,
        reason=reason,
    )
    return Relabelling(result, len(deviations), total, enumerated, p_floor)


def _standing(p_floor: float, alpha: float, n_unstable: int, n_items: int) -> tuple[Status, str | None]:
    if p_floor < alpha:
        return "ok", None
    return "not_measurable", (
        f"only {n_unstable} of {n_items} items change with the slot; the smallest p that any relabelling of them "
        f"can have is {p_floor:.3g}, not below {alpha:g}"
    )


def _distinct_orders(values: Array) -> int:
    repeats = Counter(values.tolist()).values()
    return math.factorial(len(values)) // math.prod(map(math.factorial, repeats))


def _all_relabellings(asked: Mask, deviations: Array) -> Array:
    totals = np.zeros((1, deviations.shape[1]))
    for row, mask in zip(deviations, asked, strict=True):
        orders = np.zeros((_distinct_orders(row[mask]), len(mask)))
        orders[:, mask] = _orders(sorted(row[mask].tolist()))
        totals = (totals[:, None, :] + orders).reshape(-1, len(mask))
    return np.asarray((totals**2).sum(axis=1))


def _orders(values: list[float]) -> list[list[float]]:
    if not values:
        return [[]]
    found = []
    for place, value in enumerate(values):
        if place == 0 or value != values[place - 1]:
            found += [[value, *rest] for rest in _orders(values[:place] + values[place + 1 :])]
    return found


def _random_relabellings(asked: Mask, deviations: Array, n_draws: int, rng: np.random.Generator) -> Array:
    totals = np.zeros((n_draws, deviations.shape[1]))
    patterns, which = np.unique(asked, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        # Sorted, so that neither the order of the items nor the names of the slots have a part in the draws.
        rows = np.sort(deviations[which.ravel() == number][:, pattern], axis=1)
        kinds, times = np.unique(rows, axis=0, return_counts=True)
        common = np.array([_distinct_orders(kind) <= count for kind, count in zip(kinds, times, strict=True)])
        for kind, count in zip(kinds[common], times[common], strict=True):
            # Many equal items: how often each order comes up is one multinomial draw.
            orders = np.array(_orders(kind.tolist()))
            totals[:, pattern] += rng.multinomial(count, np.full(len(orders), 1 / len(orders)), size=n_draws) @ orders
        rare = np.repeat(kinds[~common], times[~common], axis=0)
        totals[:, pattern] += _shuffled_sums(rare, n_draws, rng)
    return np.asarray((totals**2).sum(axis=1))


def _shuffled_sums(rows: Array, n_draws: int, rng: np.random.Generator) -> Array:
    """Return column sums after shuffling each row, for each draw, shape (draws, columns)."""
    size = max(1, _BLOCK // max(rows.size, 1))
    blocks = [min(size, n_draws - start) for start in range(0, n_draws, size)]
    return np.concatenate(
        [rng.permuted(np.broadcast_to(rows, (draws, *rows.shape)), axis=-1).sum(axis=1) for draws in blocks]
    )
