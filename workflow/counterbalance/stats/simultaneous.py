"""Intervals and tests for several means of the same items that hold together, also where hardly any item differs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import checked_level
from counterbalance.stats.resampling import Seed, generator

_ROUNDING = 1e-9
_BLOCK = 4_000_000
"""Numbers held at once by a resampling."""


@dataclass(frozen=True)
class Simultaneous:
    """Limits of several means.

    Attributes
    ----------
    low, high
        Shape (means,).
    differing
        Items whose values are not the most frequent ones.
    exact
        Whether the limits are those of the binomial bound.
    """

    low: Array
    high: Array
    differing: int
    exact: bool


def simultaneous_means(values: Array, spans: Array, *, level: float, n_draws: int, seed: Seed) -> Simultaneous:
    """Return limits for the means of several values of each item; the chance that any of them misses is 1 - `level`.

    Parameters
    ----------
    values
        Shape (items, means), at least two items.
    spans
        Largest absolute value that each could have taken, shape (means,).
    n_draws
        Draws for the critical value.

    Notes
    -----
    Two sets of limits; the narrower is given.

    Multivariate t: mean +- c x standard error, c being the `level` quantile of the largest of several t variables that
    correlate as the values do, with one degree of freedom less than there are differing items; cut at `spans`. Source:
    Hothorn, Bretz and Westfall (2008), Biometrical Journal 50, 346-363. The degrees of freedom keep few differing items
    from passing for many.

    Exact bound: with d of Q items differing, the share of differing items is at most the binomial bound u (Clopper and
    Pearson 1934, Biometrika 26, 404-413), and the mean lies between (1 - u) x the usual value + u x the least and the
    largest that an item can have. One bound serves all means, so that these limits hold together as well; they have a
    width where all items are alike.
    """
    checked_level(level)
    n_items = len(values)
    rounded = np.round(values / _ROUNDING)
    _, first, times = np.unique(rounded, axis=0, return_index=True, return_counts=True)
    usual, differing = values[first[times.argmax()]], n_items - int(times.max())
    mean = values.mean(axis=0)
    share = 1.0 if differing == n_items else float(special.betaincinv(differing + 1, n_items - differing, level))
    # With unequal numbers of calls the estimate weighs items, and may lie a little beyond what single items can have.
    low = np.minimum(usual + share * (-spans - usual), mean)
    high = np.maximum(usual + share * (spans - usual), mean)
    error = values.std(axis=0, ddof=1) / np.sqrt(n_items)
    if differing > 1 and error.min() > _ROUNDING:
        half = _critical(values, differing - 1, level, n_draws, seed) * error
        if 2 * half.sum() < (high - low).sum():
            low, high = np.maximum(mean - half, -spans), np.minimum(mean + half, spans)
            return Simultaneous(low, high, differing, exact=False)
    return Simultaneous(low, high, differing, exact=True)


def _critical(values: Array, freedom: int, level: float, n_draws: int, seed: Seed) -> float:
    rng = generator(seed)
    weights, vectors = np.linalg.eigh(np.atleast_2d(np.corrcoef(values, rowvar=False)))
    normal = rng.standard_normal((values.shape[1], n_draws))
    drawn = vectors @ (np.sqrt(np.maximum(weights, 0.0))[:, None] * normal)
    scale = np.sqrt(rng.chisquare(freedom, size=n_draws) / freedom)
    return float(np.quantile(np.abs(drawn).max(axis=0) / scale, level, method="higher"))


def largest_by_sign_flips(groups: Sequence[Array], *, n_draws: int, seed: Seed) -> list[float]:
    """Test for each group of series whether all its means over items are 0; return the mid-p values.

    Parameters
    ----------
    groups
        Each of shape (items, series); all share the items and the sign patterns.
    n_draws
        Random patterns.

    Notes
    -----
    Under the null an item's values are as likely as their negatives. The statistic is the largest of the group's
    |sum| / root of the sum of squares, whose lower part no flip of signs changes; where no value differs from 0, p is
    1. Half of the ties count, since counts of few calls tie often. Sources: Fisher (1935), The Design of Experiments,
    section 21; Lancaster (1961), JASA 56, 223-234, for mid-p.
    """
    table = np.hstack(groups)
    size = np.sqrt((table**2).sum(axis=0))
    scaled = np.divide(table, size, out=np.zeros_like(table), where=size > _ROUNDING)
    scaled = scaled[scaled.any(axis=1)]
    if not len(scaled):
        return [1.0] * len(groups)
    ends = np.cumsum([group.shape[1] for group in groups])[:-1]
    observed = [part.max() for part in np.split(np.abs(scaled.sum(axis=0)), ends)]
    reached = np.full(len(groups), 0.5)
    rng, at_once = generator(seed), max(1, _BLOCK // len(scaled))
    for start in range(0, n_draws, at_once):
        signs = rng.integers(0, 2, (min(at_once, n_draws - start), len(scaled)), dtype=np.int8) * 2.0 - 1.0
        for place, part in enumerate(np.split(np.abs(signs @ scaled), ends, axis=1)):
            beyond = part.max(axis=1) - observed[place]
            reached[place] += (beyond > _ROUNDING).sum() + (np.abs(beyond) <= _ROUNDING).sum() / 2
    moved = [part.any() for part in np.split(size > _ROUNDING, ends)]
    return [float(p) if some else 1.0 for p, some in zip(reached / (1 + n_draws), moved, strict=True)]
