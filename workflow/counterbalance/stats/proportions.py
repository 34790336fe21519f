"""Shares: exact and Wilson bounds for independent trials, cluster bootstrap where items are asked many times."""

import numpy as np
import numpy.typing as npt
from scipy import stats

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result, checked_level, few_items
from counterbalance.stats.resampling import Seed, bootstrap_sums, percentile_limits


def wilson(hits: int, n: int, *, level: float = 0.95) -> Result:
    """Return a share of independent trials with Wilson's score interval.

    Source: Wilson (1927), JASA 22, 209-212.
    """
    return _binomial(hits, n, level, "Wilson score interval", "wilson")


def clopper_pearson(hits: int, n: int, *, level: float = 0.95) -> Result:
    """Return a share of independent trials with the exact interval.

    Source: Clopper and Pearson (1934), Biometrika 26, 404-413.
    """
    return _binomial(hits, n, level, "exact (Clopper-Pearson) interval", "exact")


def _binomial(hits: int, n: int, level: float, method: str, how: str) -> Result:
    checked_level(level)
    if not 0 <= hits <= n:
        raise InputError(f"{hits} hits of {n} trials; expected 0 <= hits <= trials")
    if n == 0:
        return Result(method=method, n_items=0, n_calls=0, status="undefined", reason="no trials")
    found = stats.binomtest(hits, n)
    interval = found.proportion_ci(level, "wilson") if how == "wilson" else found.proportion_ci(level, "exact")
    return Result(
        method=method, estimate=hits / n, low=interval.low, high=interval.high, level=level, n_items=n, n_calls=n
    )


def clustered_shares(
    hits: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed,
) -> list[Result]:
    """Return the share of hits in each column, with a percentile interval of a bootstrap over items.

    One call serves accuracy (one column), accuracy by slot, picks by slot, and shares of any outcome.

    Parameters
    ----------
    hits, n
        Counts, shape (items, columns), ``0 <= hits <= n``. An item with ``n`` = 0 has no part in that column.

    Returns
    -------
    list of Result
        ``degenerate`` where every item has the same share, since a bootstrap would claim certainty: then an exact
        bound for that many items if the share is 0 or 1, otherwise a Wilson interval (conservative there).

    Raises
    ------
    InputError
        For counts out of range or of differing shapes.
    """
    table, calls = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if table.ndim != 2 or table.shape != calls.shape:
        raise InputError(f"hits has shape {table.shape} and n {calls.shape}; expected the same (items, columns)")
    if not ((table >= 0) & (table <= calls) & np.isfinite(calls)).all():
        raise InputError("hits or n is negative, missing, or hits exceed n; expected 0 <= hits <= n everywhere")
    checked_level(level)
    draws = np.zeros((0, 2 * table.shape[1]))
    if len(table):
        draws = bootstrap_sums(np.hstack([table, calls]), n_resamples, seed)
    columns = table.shape[1]
    return [
        _share(table[:, j], calls[:, j], draws[:, j], draws[:, columns + j], level=level, n_resamples=n_resamples)
        for j in range(columns)
    ]


def _share(hits: Array, n: Array, sums: Array, totals: Array, *, level: float, n_resamples: int) -> Result:
    asked = n > 0
    n_items, n_calls = int(asked.sum()), int(n.sum())
    method = f"share of calls, percentile bootstrap over items ({n_resamples} resamples)"
    if n_items == 0:
        return Result(method=method, n_items=0, n_calls=0, status="undefined", reason="no calls")
    estimate = hits.sum() / n.sum()
    if np.ptp(hits[asked] / n[asked]) == 0:
        return _constant_share(float(estimate), n_items, n_calls, level)
    drawn = totals > 0
    low, high = percentile_limits(sums[drawn] / totals[drawn], level)
    caveats = [few_items(n_items)]
    if not drawn.all():
        caveats.append(f"{int((~drawn).sum())} resamples held no call and were left out")
    return Result(
        method=method,
        estimate=estimate,
        low=low,
        high=high,
        level=level,
        n_items=n_items,
        n_calls=n_calls,
        reason="; ".join(text for text in caveats if text) or None,
    )


def _constant_share(share: float, n_items: int, n_calls: int, level: float) -> Result:
    reason = f"all {n_items} items have the share {share:g}: a bootstrap would give an interval of no width"
    if share in {0.0, 1.0}:
        exact = clopper_pearson(int(share) * n_items, n_items, level=level)
        low, high, method = exact.low, exact.high, "share of calls, exact (Clopper-Pearson) bound over items"
    else:
        low, high = _wilson_limits(share, n_items, level)
        method = "share of calls, Wilson interval over items"
    return Result(
        method=method,
        estimate=share,
        low=low,
        high=high,
        level=level,
        n_items=n_items,
        n_calls=n_calls,
        status="degenerate",
        reason=reason,
    )


def _wilson_limits(share: float, n: int, level: float) -> tuple[float, float]:
    # The closed form, since a share that is not a whole number of items has no binomial count.
    z = float(stats.norm.isf((1 - level) / 2))
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return float(centre - half), float(centre + half)
