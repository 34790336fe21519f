"""The sign-flip test: is the mean over items zero."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result
from counterbalance.stats.resampling import Seed, generator

EXACT_ITEMS = 14
"""Up to this many items all sign patterns are listed: no more of them than a Monte Carlo test would draw."""

FEWEST_ITEMS = 6
"""With fewer items no data at all reach p < .05: the smallest p is 2 / 2^n."""

_ROUNDING = 1e-9
_BLOCK = 4_000_000
"""Signs held at once."""


def sign_flip_means(series: npt.ArrayLike, *, n_draws: int = 9999, seed: Seed) -> list[Result]:
    """Test for each series whether its mean over items is zero, two-sided.

    Parameters
    ----------
    series
        Finite numbers, shape (series, items). All series share the sign patterns.
    n_draws
        Random patterns where there are too many items to list all; then p = (b + 1) / (m + 1).

    Returns
    -------
    list of Result
        `estimate` is the mean. Without items the test is ``undefined``.

    Raises
    ------
    InputError
        For gaps, infinities or another shape.

    Notes
    -----
    Under the null an item's value is as likely as its negative (symmetry about 0).
    Source: Fisher (1935), The Design of Experiments, section 21; Ernst (2004), Statistical Science 19, 676-685.
    """
    table = np.asarray(series, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise InputError(f"series has shape {table.shape}; expected (series, items) of finite numbers, without gaps")
    n = table.shape[1]
    exact = n <= EXACT_ITEMS
    method = "sign-flip test, " + ("all patterns" if exact else f"{n_draws} random patterns")
    if n == 0:
        return [Result(method=method, n_items=0, status="undefined", reason="no items")] * len(table)
    observed = np.abs(table.sum(axis=1))
    slack = _ROUNDING * np.abs(table).sum(axis=1)
    reached, n_signs = np.zeros(len(table), dtype=np.int64), 0
    for signs in [_all_signs(n)] if exact else _random_signs(n, n_draws, seed):
        reached += (np.abs(signs @ table.T) >= observed - slack).sum(axis=0)
        n_signs += len(signs)
    p = reached / n_signs if exact else (reached + 1) / (n_signs + 1)
    return [
        Result(method=method, estimate=mean, p=value, n_items=n)
        for mean, value in zip(table.mean(axis=1), p, strict=True)
    ]


def _random_signs(n: int, n_draws: int, seed: Seed) -> Iterator[Array]:
    """Yield random patterns, shape (some draws, n), so few at a time that thousands of items fit into memory."""
    rng, size = generator(seed), max(1, _BLOCK // n)
    for start in range(0, n_draws, size):
        yield rng.choice([-1.0, 1.0], (min(size, n_draws - start), n))


def _all_signs(n: int) -> Array:
    """Return half of all patterns, shape (2^(n - 1), n): the other half are their mirror images."""
    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    return np.where(bits == 1, -1.0, 1.0)
