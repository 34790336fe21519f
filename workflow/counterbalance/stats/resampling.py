"""The bootstraps: clusters drawn as weights, and BCa intervals in one vectorised call."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import stats

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result, checked_level, few_items

Seed = int | np.random.Generator
Stream = Literal["modern", "legacy"]

_ROUNDING = 1e-12
_BLOCK = 4_000_000
"""Numbers held at once by a resampling; bounds the memory, never the result."""


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


def weight_blocks(n_items: int, n_resamples: int, rng: np.random.Generator, width: int = 1) -> Iterator[Array]:
    """Yield the multinomial weights of a cluster bootstrap, block by block.

    Parameters
    ----------
    n_items, n_resamples
        Clusters, and how often they are drawn with replacement.
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
    for start in range(0, n_resamples, size):
        rows = min(size, n_resamples - start)
        # Counting drawn items makes the same multinomial weights as drawing the counts, several times faster.
        drawn = rng.integers(0, n_items, (rows, n_items)) + n_items * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n_items).reshape(rows, n_items).astype(np.float64)


def bootstrap_sums(values: Array, n_resamples: int, seed: Seed) -> Array:
    """Return column sums over resampled items, shape (resamples, columns), from values of shape (items, columns)."""
    blocks = weight_blocks(len(values), n_resamples, generator(seed), values.shape[1])
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
    Source: Efron (1987), JASA 82, 171-185, as implemented in ``scipy.stats.bootstrap``.
    """
    found = bca_means_at_levels(
        series, levels=(level,), n_resamples=n_resamples, seed=seed, stream=stream, n_calls=n_calls
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
) -> list[tuple[Result, ...]]:
    """Estimate as `bca_means` does, at several levels from one set of resamples.

    Parameters
    ----------
    series, n_resamples, seed, stream, n_calls
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
    n_items = table.shape[1]
    method = f"mean over items, BCa bootstrap ({n_resamples} resamples, {stream} stream)"
    if n_items == 0:
        empty = Result(method=method, n_items=0, n_calls=n_calls, status="undefined", reason="no items")
        return [(empty,) * len(levels)] * len(table)
    changing = np.array([varies(row) for row in table], dtype=bool)
    limits = np.full((len(levels), 2, len(table)), np.nan)
    if changing.any():
        limits[:, :, changing] = _bca_limits(table[changing], levels, n_resamples, seed, stream)
    return [
        tuple(
            _mean_result(row, *limits[place, :, index], level=level, method=method, n_calls=n_calls)
            for place, level in enumerate(levels)
        )
        for index, row in enumerate(table)
    ]


def _bca_limits(table: Array, levels: Sequence[float], n_resamples: int, seed: Seed, stream: Stream) -> Array:
    # Blocks keep the order of the random numbers, so they bound memory without changing a digit that is printed.
    batch = max(1, min(n_resamples, _BLOCK // table.size))
    source: dict[str, Any]
    if stream == "legacy":
        if isinstance(seed, np.random.Generator):
            raise InputError("stream 'legacy' needs a whole number as seed, not a Generator")
        source = {"random_state": seed}
    else:
        source = {"rng": generator(seed)}
    limits, drawn = [], None
    for level in levels:
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = stats.bootstrap(
                (table,),
                np.mean,
                axis=-1,
                vectorized=True,
                method="BCa",
                confidence_level=level,
                # Further levels read the resamples of the first.
                n_resamples=n_resamples if drawn is None else 0,
                bootstrap_result=drawn,
                batch=batch,
                **source,
            )
        limits.append([drawn.confidence_interval.low, drawn.confidence_interval.high])
    return np.asarray(limits)


def varies(row: Array) -> bool:
    """Return whether numbers differ by more than the rounding of their computation."""
    return bool(np.ptp(row) > _ROUNDING * max(1.0, float(np.abs(row).max())))


def _mean_result(row: Array, low: float, high: float, *, level: float, method: str, n_calls: int | None) -> Result:
    n_items, mean = len(row), float(row.mean())
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
