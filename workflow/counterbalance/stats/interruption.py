"""Whether calls before and after an interruption differ: accuracy and slot picks of two parts of one cell."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array, Size
from counterbalance.stats.estimate import Result, checked_level, few_items
from counterbalance.stats.proportions import clopper_pearson
from counterbalance.stats.resampling import Seed, bootstrap_sums, generator, percentile_limits

_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Half:
    """One part of a cell's answered calls, counted by unit (item or group of items).

    Attributes
    ----------
    correct, scored
        Shape (units,).
    picks
        Shape (units, slots).
    """

    correct: Array
    scored: Array
    picks: Array


@dataclass(frozen=True)
class Interruption:
    """After less before: accuracy, each slot's share of picks, and the test of all slots together."""

    accuracy: Result
    picks: tuple[Result, ...]
    picks_test: Result


def compare_halves(
    before: Half, after: Half, *, level: float = 0.95, n_resamples: int = 9999, seed: Seed
) -> Interruption:
    """Compare two parts into which a cell's calls fell at random, because they were asked in random order.

    Parameters
    ----------
    before, after
        The same units in the same order; a unit may have no call in one of them.

    Raises
    ------
    InputError
        If the two do not have the same units and slots.

    Notes
    -----
    Differences of pooled shares with a percentile bootstrap over units. The p-values rest on the random order alone:
    given what the calls gave in all, the right answers among those that came first are hypergeometric (Fisher's exact
    test, two-sided), and the picks multivariate hypergeometric: statistic sum (O - E)^2 / E, p = (b + 1) / (m + 1) over
    m draws. They need no independence between calls of one item.
    """
    checked_level(level)
    if before.picks.shape != after.picks.shape or before.scored.shape != after.scored.shape:
        raise InputError("before and after have different units or slots; count both over the same items")
    shares = [
        _Shares(before.correct, before.scored, after.correct, after.scored),
        *(
            _Shares(before.picks[:, slot], before.picks.sum(axis=1), after.picks[:, slot], after.picks.sum(axis=1))
            for slot in range(before.picks.shape[1])
        ),
    ]
    values = np.column_stack([column for share in shares for column in share.columns])
    draws = bootstrap_sums(values, n_resamples, seed) if len(values) else np.zeros((0, values.shape[1]))
    accuracy, *picks = (
        _difference(share, draws[:, 4 * place : 4 * place + 4], level) for place, share in enumerate(shares)
    )
    test = _picks_test(before.picks.sum(axis=0), after.picks.sum(axis=0), n_resamples, seed)
    test = replace(test, n_items=picks[0].n_items, n_calls=picks[0].n_calls)
    return Interruption(accuracy, tuple(replace(pick, p=None) for pick in picks), test)


@dataclass(frozen=True)
class _Shares:
    hits_before: Array
    n_before: Array
    hits_after: Array
    n_after: Array

    @property
    def columns(self) -> tuple[Array, Array, Array, Array]:
        return self.hits_before, self.n_before, self.hits_after, self.n_after


def _difference(share: _Shares, draws: Array, level: float) -> Result:
    method = "share after less share before"
    hits_before, n_before, hits_after, n_after = (int(column.sum()) for column in share.columns)
    n_units = int((share.n_before + share.n_after > 0).sum())
    size = Size(n_items=n_units, n_calls=n_before + n_after)
    if min(n_before, n_after) == 0:
        return Result(method=method, status="undefined", reason="no answered call in one of the two parts", **size)
    found = Result(
        method=f"{method}; percentile bootstrap over items ({len(draws)} resamples), Fisher's exact test",
        estimate=hits_after / n_after - hits_before / n_before,
        level=level,
        p=_fisher(hits_before, n_before, hits_after, n_after),
        reason=few_items(n_units),
        **size,
    )
    if hits_before + hits_after in (0, n_before + n_after):
        first, second = (
            clopper_pearson(0 if hits_before == 0 else units, units, level=level)
            for units in (int((share.n_before > 0).sum()), int((share.n_after > 0).sum()))
        )
        return replace(
            found,
            method=f"{method}; exact bounds over items",
            low=(second.low or 0.0) - (first.high or 0.0),
            high=(second.high or 0.0) - (first.low or 0.0),
            status="degenerate",
            reason="every call gave the same: a bootstrap would be too sure",
        )
    drawn = draws[(draws[:, 1] > 0) & (draws[:, 3] > 0)]
    low, high = percentile_limits(drawn[:, 2] / drawn[:, 3] - drawn[:, 0] / drawn[:, 1], level)
    return replace(found, low=low, high=high)


def _fisher(hits_before: int, n_before: int, hits_after: int, n_after: int) -> float:
    # It takes a second to load, and most reports have no interruption.
    from scipy import stats

    table = np.array([[hits_before, n_before - hits_before], [hits_after, n_after - hits_after]])
    # Sums of tiny terms may end at 0 or a hair above 1, which no p-value is.
    return float(np.clip(stats.fisher_exact(table).pvalue, np.finfo(np.float64).tiny, 1.0))


def _picks_test(before: Array, after: Array, n_draws: int, seed: Seed) -> Result:
    method = f"slot picks before and after, permutation of the calls ({n_draws} draws)"
    n_before, n_after = int(before.sum()), int(after.sum())
    if min(n_before, n_after) == 0:
        return Result(method=method, status="undefined", reason="no answered call in one of the two parts")
    totals = (before + after).astype(np.int64)
    chosen = totals[totals > 0]
    if len(chosen) == 1:
        return Result(method=method, p=1.0, status="degenerate", reason="every answer chose the same slot")
    expected = chosen * (n_before / (n_before + n_after))

    def spread(counts: npt.NDArray[np.float64 | np.int64]) -> Array:
        return np.asarray(((counts - expected) ** 2 / expected).sum(axis=-1), dtype=np.float64)

    observed = float(spread(before[totals > 0]))
    draws = spread(generator(seed).multivariate_hypergeometric(chosen, n_before, size=n_draws))
    beyond = int((draws >= observed - _TOLERANCE).sum())
    return Result(method=method, estimate=observed, p=(beyond + 1) / (n_draws + 1))
