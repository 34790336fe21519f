"""The bootstraps: clusters drawn as weights, and BCa intervals in one vectorised call."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result, checked_level, few_items

Seed = int | np.random.Generator
Stream = Literal["modern", "legacy"]
Counted = npt.NDArray[Any]
"""How often items were drawn, in whatever type of whole number holds it."""

_ROUNDING = 1e-12
_BLOCK = 4_000_000
"""Numbers held at once by a resampling; bounds the memory, never the result."""
_KEPT = 200_000_000
"""Weights that are kept for the next statistic at most; two bytes each for up to 65,535 items."""


def generator(seed: Seed) -> np.random.Generator:
    """Return a generator as given, or the one that an integer seed names.

    Raises
    ------
    InputError
        For None or anything else that would give other numbers on the next run.
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed is {seed!r}; expected a whole number from 0 or a numpy Generator")
    return np.random.default_rng(int(seed))


def weight_blocks(n_items: int, n_resamples: int, seed: Seed, width: int = 1) -> Iterator[Array]:
    """Yield the multinomial weights of a cluster bootstrap, block by block.

    Parameters
    ----------
    n_items, n_resamples
        Clusters, and how often they are drawn with replacement.
    seed
        Equal whole numbers give equal weights, which are then drawn once and kept until others are asked for, since
        the statistics of a cell all resample the same items.
    width
        Numbers that the caller makes from each weight, for the size of a block.

    Yields
    ------
    Array
        How often each item was drawn, shape (some resamples, items); every row adds up to `n_items`.
    """
    if n_resamples < 1:
        raise InputError(f"{n_resamples} resamples; expected at least 1")
    size = max(1, _BLOCK // max(n_items, width))
    rng = generator(seed)
    if not isinstance(seed, np.random.Generator) and n_items * n_resamples <= _KEPT:
        whole = _kept_counts(n_items, n_resamples, int(seed))
        blocks: Iterator[Counted] = (whole[start : start + size] for start in range(0, n_resamples, size))
    else:
        blocks = _drawn_counts(n_items, n_resamples, rng.integers, size)
    yield from (block.astype(np.float64) for block in blocks)


@lru_cache(maxsize=1)
def _kept_counts(n_items: int, n_resamples: int, seed: int) -> Counted:
    # The smallest type that can hold any count, so that no draw can overflow it.
    kept = np.empty((n_resamples, n_items), dtype=np.min_scalar_type(n_items))
    start = 0
    for block in _drawn_counts(n_items, n_resamples, np.random.default_rng(seed).integers, max(1, _BLOCK // n_items)):
        kept[start : start + len(block)] = block
        start += len(block)
    kept.flags.writeable = False
    return kept


def _drawn_counts(n_items: int, n_resamples: int, integers: Callable[..., Any], size: int) -> Iterator[Counted]:
    for start in range(0, n_resamples, size):
        rows = min(size, n_resamples - start)
        # Counting drawn items makes the same multinomial weights as drawing the counts, several times faster.
        drawn = integers(0, n_items, (rows, n_items)) + n_items * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n_items).reshape(rows, n_items)


def bootstrap_sums(values: Array, n_resamples: int, seed: Seed) -> Array:
    """Return column sums over resampled items, shape (resamples, columns), from values of shape (items, columns)."""
    blocks = weight_blocks(len(values), n_resamples, seed, values.shape[1])
    return np.concatenate([weights @ values for weights in blocks])


def percentile_limits(draws: Array, level: float) -> Array:
    """Return lower and upper percentile limits over the first axis, shape (2, ...)."""
    tail = (1 - checked_level(level)) / 2
    return np.asarray(np.quantile(draws, [tail, 1 - tail], axis=0))


def bca_means(
    series: npt.ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed,
    stream: Stream = "modern",
    n_calls: int | None = None,
    items: npt.ArrayLike | None = None,
) -> list[Result]:
    """Estimate the mean of each series with a BCa bootstrap interval over items.

    Parameters
    ----------
    series
        Finite numbers, shape (series, items). All series share the same resamples, and the order of the items is
        part of what a seed reproduces.
    stream
        ``modern``: NumPy's Generator. ``legacy``: the RandomState that ``random_state=SEED`` gives in scipy, for
        replicating older papers; needs an integer seed.
    n_calls
        Calls behind the series, for the record.
    items
        Where the columns are clusters of items and hold the mean of their items: how many items each holds, shape
        (clusters,). Clusters are resampled, and the mean is that over items. None: one item each.

    Returns
    -------
    list of Result
        Constant series, and single items, have an estimate and no interval (``degenerate``).

    Raises
    ------
    InputError
        For gaps, infinities or another shape.

    Notes
    -----
    Source: Efron (1987), JASA 82, 171-185: percentiles moved by the bias z0 (share of resampled means below the
    estimate, ties half) and the acceleration a (skewness of the means with one cluster left out). With one item each
    the draws and limits are those of ``scipy.stats.bootstrap``, whose jackknife takes items^2 numbers where the mean's
    is a formula. Resampled means that equal the estimate but for the order of their sum count as ties; in the legacy
    stream with one item each they do not, as in scipy, where the last digit decides.
    """
    found = bca_means_at_levels(
        series, levels=(level,), n_resamples=n_resamples, seed=seed, stream=stream, n_calls=n_calls, items=items
    )
    return [result for (result,) in found]


def bca_means_at_levels(
    series: npt.ArrayLike,
    *,
    levels: Sequence[float],
    n_resamples: int = 9999,
    seed: Seed,
    stream: Stream = "modern",
    n_calls: int | None = None,
    items: npt.ArrayLike | None = None,
) -> list[tuple[Result, ...]]:
    """Estimate as `bca_means` does, at several levels from one set of resamples.

    Parameters
    ----------
    series, n_resamples, seed, stream, n_calls, items
        See `bca_means`.
    levels
        Levels of the intervals, at least one.

    Returns
    -------
    list of tuple of Result
        For each series one result per level, in the order of `levels`.

    Raises
    ------
    InputError
        For gaps, infinities, another shape, or no level.
    """
    table = np.asarray(series, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise InputError(f"series has shape {table.shape}; expected (series, items) of finite numbers, without gaps")
    if not levels:
        raise InputError("no levels; expected at least one, such as 0.95")
    for level in levels:
        checked_level(level)
    n_clusters = table.shape[1]
    size = np.ones(n_clusters) if items is None else np.asarray(items, dtype=np.float64)
    if size.shape != (n_clusters,) or (size <= 0).any():
        raise InputError(
            f"items has shape {size.shape} for {n_clusters} clusters; expected one positive number for each"
        )
    method = f"mean over items, BCa bootstrap ({n_resamples} resamples, {stream} stream)"
    if n_clusters == 0:
        empty = Result(method=method, n_items=0, n_calls=n_calls, status="undefined", reason="no items")
        return [(empty,) * len(levels)] * len(table)
    changing = np.array([varies(row) for row in table], dtype=bool)
    limits = np.full((len(levels), 2, len(table)), np.nan)
    if changing.any():
        limits[:, :, changing] = _bca_limits(table[changing], size, levels, n_resamples, seed, stream)
    return [
        tuple(
            _mean_result(row, size, *limits[place, :, index], level=level, method=method, n_calls=n_calls)
            for place, level in enumerate(levels)
        )
        for index, row in enumerate(table)
    ]


def _bca_limits(
    table: Array, size: Array, levels: Sequence[float], n_resamples: int, seed: Seed, stream: Stream
) -> Array:
    total, sums = size.sum(), table * size
    mean = sums.sum(axis=1) / total
    near: Array | float = 0.0
    if stream == "legacy" and (size == 1).all():
        drawn = _legacy_means(table, n_resamples, seed)
    else:
        weighted = (
            weights @ sums.T / (weights @ size)[:, None] for weights in _bca_weights(table, n_resamples, seed, stream)
        )
        drawn = np.concatenate(list(weighted))
        # Sums in another order differ in the last digits; a resample that is the sample itself is a tie.
        near = _ROUNDING * np.maximum(1.0, np.abs(table).max(axis=1))
    below = ((drawn < mean - near).sum(axis=0) + (drawn <= mean + near).sum(axis=0)) / (2 * n_resamples)
    left_out = (sums.sum(axis=1, keepdims=True) - sums) / (total - size)
    deviation = left_out.mean(axis=1, keepdims=True) - left_out
    acceleration = (deviation**3).sum(axis=1) / (6 * (deviation**2).sum(axis=1) ** 1.5)
    limits = np.full((len(levels), 2, len(table)), np.nan)
    bias = special.ndtri(below)
    for place, level in enumerate(levels):
        for end, tail in enumerate(((1 - level) / 2, (1 + level) / 2)):
            shifted = bias + special.ndtri(tail)
            with np.errstate(invalid="ignore"):
                share = special.ndtr(bias + shifted / (1 - acceleration * shifted))
            for row in np.flatnonzero(np.isfinite(share)):
                limits[place, end, row] = np.quantile(drawn[:, row], share[row])
    return limits


def _bca_weights(table: Array, n_resamples: int, seed: Seed, stream: Stream) -> Iterator[Array]:
    n_series, n_clusters = table.shape
    if stream == "modern":
        yield from weight_blocks(n_clusters, n_resamples, seed, n_series)
        return
    size = max(1, _BLOCK // max(n_clusters, n_series))
    for block in _drawn_counts(n_clusters, n_resamples, _legacy_generator(seed).randint, size):
        yield block.astype(np.float64)


def _legacy_means(table: Array, n_resamples: int, seed: Seed) -> Array:
    """Return means of resampled items, shape (resamples, series), summed in the order in which scipy sums them."""
    n_series, n_items = table.shape
    drawn, rng = np.empty((n_resamples, n_series)), _legacy_generator(seed)
    size = max(1, _BLOCK // n_items)
    for start in range(0, n_resamples, size):
        places = rng.randint(0, n_items, (min(size, n_resamples - start), n_items))
        for column, row in enumerate(table):
            drawn[start : start + len(places), column] = row[places].mean(axis=-1)
    return drawn


def _legacy_generator(seed: Seed) -> np.random.RandomState:
    if isinstance(seed, np.random.Generator):
        raise InputError("stream 'legacy' needs a whole number as seed, not a Generator")
    return np.random.RandomState(seed)


def varies(row: Array) -> bool:
    """Return whether numbers differ by more than the rounding of their computation."""
    return bool(np.ptp(row) > _ROUNDING * max(1.0, float(np.abs(row).max())))


def _mean_result(
    row: Array, size: Array, low: float, high: float, *, level: float, method: str, n_calls: int | None
) -> Result:
    n_items, mean = len(row), float(row @ size / size.sum())
    if not (np.isfinite(low) and np.isfinite(high)) or low == high:
        reason = "the items hardly differ" if varies(row) else f"all {n_items} items have the same value"
        return Result(
            method=method,
            estimate=mean,
            n_items=n_items,
            n_calls=n_calls,
            status="degenerate",
            reason=f"{reason}: the bootstrap gives no interval",
        )
    return Result(
        method=method,
        estimate=mean,
        low=low,
        high=high,
        level=level,
        n_items=n_items,
        n_calls=n_calls,
        reason=few_items(n_items),
    )
