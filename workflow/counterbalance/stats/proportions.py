"""Shares: exact and Wilson bounds for independent trials, Wilson's with an effective n where items are asked often."""

import numpy as np
import numpy.typing as npt
from scipy import special

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result, checked_level, few_items

_DIGITS = 12
"""Shares that agree to this many digits are the same share."""
_EVEN = 2 / 3
"""Below this, calls are so unequally spread over items that intervals are too narrow; see `_uneven`."""
_ENOUGH = 10
"""So many items that differ from the others tell how far items differ."""


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
    tail = (1 - level) / 2
    if how == "wilson":
        low, high = _wilson_limits(hits / n, n, -float(special.ndtri(tail)))
    else:
        low = float(special.betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
        high = float(special.betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return Result(method=method, estimate=hits / n, low=low, high=high, level=level, n_items=n, n_calls=n)


def clustered_shares(
    hits: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> list[Result]:
    """Return the share of hits in each column, with a Wilson interval whose n is that of independent items.

    One call serves accuracy (one column), accuracy by slot, picks by slot, and shares of any outcome.

    Parameters
    ----------
    hits, n
        Amounts, shape (items, columns), ``0 <= hits <= n``. An item with ``n`` = 0 has no part in that column.

    Returns
    -------
    list of Result
        ``degenerate`` where every item has the same share, so that nothing tells how much items differ: then an exact
        bound for that many items if the share is 0 or 1, otherwise a Wilson interval (conservative there).

    Raises
    ------
    InputError
        For amounts out of range or of differing shapes.

    Notes
    -----
    With r = hits / n over all items, the variance of r over items is v = Q / (Q - 1) sum (hits - n r)^2 / (sum n)^2
    (Cochran 1977, Sampling Techniques, section 6.4), so the calls are worth r (1 - r) / v independent ones (Kish 1965,
    Survey Sampling, section 8.2). Wilson's interval takes that for its n and the t quantile for its z.

    A sample of items in which few differ from the most frequent share knows little of how far items can differ, and v
    is then too small. Two remedies hold, each alone: t has as many degrees of freedom as there are differing items,
    less one; or v moves towards its largest possible value, that of items which are all right or all wrong, the nearer
    the fewer of 10 items differ. The first is narrow where the differing items are alike (picks by slot), the second
    where they are not (accuracy near the ceiling); the narrower interval is given.
    """
    table, calls = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if table.ndim != 2 or table.shape != calls.shape:
        raise InputError(f"hits has shape {table.shape} and n {calls.shape}; expected the same (items, columns)")
    if not ((table >= 0) & (table <= calls) & np.isfinite(calls)).all():
        raise InputError("hits or n is negative, missing, or hits exceed n; expected 0 <= hits <= n everywhere")
    checked_level(level)
    return [_share(table[:, j], calls[:, j], level) for j in range(table.shape[1])]


def _share(hits: Array, n: Array, level: float) -> Result:
    asked = n > 0
    hits, n = hits[asked], n[asked]
    n_items, n_calls = len(n), int(n.sum())
    method = "share of calls, Wilson interval with the effective n of clustered calls"
    if n_items == 0:
        return Result(method=method, n_items=0, n_calls=0, status="undefined", reason="no calls")
    estimate = float(hits.sum() / n.sum())
    _, times = np.unique(np.round(hits / n, _DIGITS), return_counts=True)
    differing = n_items - int(times.max())
    if differing == 0:
        return _constant_share(estimate, n_items, n_calls, level)
    low, high = _clustered_limits(hits, n, estimate, differing, level)
    return Result(
        method=method,
        estimate=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        level=level,
        n_items=n_items,
        n_calls=n_calls,
        reason="; ".join(text for text in (few_items(n_items), _uneven(n)) if text) or None,
    )


def _uneven(n: Array) -> str | None:
    """Return the caveat for items of very different numbers of calls, or None.

    So many equal items are worth the same: (sum n)^2 / sum n^2 (Kish 1965, Survey Sampling, section 11.7). In 600
    simulated cells for each of 105 settings (10 to 100 items of up to 240 calls, three spreads of ability) the 95%
    interval held the truth in 92 to 96% where that was at least two thirds of the items, and in 68 to 95% below.
    """
    worth = float(n.sum() ** 2 / (n**2).sum())
    if worth >= _EVEN * len(n):
        return None
    return (
        f"the calls are so unequally spread that the {len(n)} items are worth {worth:.1f} of equal size: the interval "
        "tends to be too narrow"
    )


def _clustered_limits(hits: Array, n: Array, share: float, differing: int, level: float) -> tuple[float, float]:
    n_items, total, spread = len(n), n.sum(), share * (1 - share)
    variance = n_items / (n_items - 1) * float(((hits - n * share) ** 2).sum()) / total**2
    largest = max(variance, spread * float((n**2).sum()) / total**2)
    known = min(1.0, differing / _ENOUGH)
    tail = (1 - level) / 2
    t = -float(special.stdtrit(n_items - 1, tail))
    candidates = [_wilson_limits(share, spread / (known * variance + (1 - known) * largest), t)]
    if differing > 1 and variance > 0:
        candidates.append(_wilson_limits(share, spread / variance, -float(special.stdtrit(differing - 1, tail))))
    return min(candidates, key=lambda limits: limits[1] - limits[0])


def _constant_share(share: float, n_items: int, n_calls: int, level: float) -> Result:
    reason = f"all {n_items} items have the share {share:g}, so that nothing tells how much items differ"
    if share in {0.0, 1.0}:
        exact = clopper_pearson(int(share) * n_items, n_items, level=level)
        low, high, method = exact.low, exact.high, "share of calls, exact (Clopper-Pearson) bound over items"
    else:
        low, high = _wilson_limits(share, n_items, -float(special.ndtri((1 - level) / 2)))
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


def _wilson_limits(share: float, n: float, z: float) -> tuple[float, float]:
    # The closed form, since a share that is not a whole number of items has no binomial count.
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    # Both lie in [0, 1]; rounding may carry them a hair beyond.
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))
