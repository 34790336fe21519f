"""What is said of one value per item: mean, SD, intervals, tests, signs, and whether it may be said."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result
from counterbalance.stats.resampling import Stream, bca_means_at_levels
from counterbalance.stats.signflip import FEWEST_ITEMS, sign_flip_means
from counterbalance.stats.tost import tost_mean

Evaluation = Literal["ok", "too_few", "degenerate", "undefined", "not_evaluable"]


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """How intervals are drawn.

    Attributes
    ----------
    levels
        Levels of the intervals; the first one decides whether a result excludes zero.
    stream
        ``modern``, or ``legacy`` to replicate papers that passed ``random_state=SEED`` to scipy.
    """

    levels: tuple[float, ...] = (0.95, 0.90)
    n_resamples: int = 9999
    seed: int = 42
    stream: Stream = "modern"


@dataclass(frozen=True)
class Interval:
    """One interval; `low` and `high` are None where there is none."""

    level: float
    low: float | None
    high: float | None

    def beyond(self, bound: float) -> bool | None:
        """Return whether the whole interval lies further from zero than a bound, None without an interval."""
        return None if self.low is None or self.high is None else self.low > bound or self.high < -bound


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The mean of one value per item.

    Attributes
    ----------
    estimate, sd
        Mean, and standard deviation with n - 1; None where undefined.
    n
        Items, or the units that items were joined to because they share a source.
    intervals
        One for each level.
    p
        Sign-flip test of a mean of zero.
    p_tost, bound
        Equivalence test against the bound.
    n_negative, n_positive
        Items below and above zero.
    evaluation
        ``ok``; ``too_few``: numbers, but no verdict, since so few items allow none; ``degenerate``: the items do not
        vary, or there is one; ``undefined``: no items; ``not_evaluable``: the data do not hold what it needs.
    reason
        Why, where `evaluation` is not ``ok``; a caveat where it is.
    """

    estimate: float | None = None
    sd: float | None = None
    n: int = 0
    intervals: tuple[Interval, ...]
    p: float | None = None
    p_tost: float | None = None
    bound: float | None = None
    n_negative: int | None = None
    n_positive: int | None = None
    evaluation: Evaluation = "ok"
    reason: str | None = None

    @property
    def excludes_zero(self) -> bool | None:
        """The verdict: whether the interval of the first level excludes zero, None where no verdict is possible."""
        return self.beyond(self.intervals[0], 0.0)

    def beyond(self, interval: Interval, bound: float) -> bool | None:
        """Return whether one of the intervals lies wholly beyond a bound, None where no verdict is possible."""
        return interval.beyond(bound) if self.evaluation == "ok" else None

    @property
    def sign_consistency(self) -> float | None:
        """Share of items on the mean's side of zero, None where the mean is zero or undefined."""
        if not self.estimate or self.n_negative is None or self.n_positive is None:
            return None
        return (self.n_negative if self.estimate < 0 else self.n_positive) / self.n


def estimate_means(
    series: Sequence[Array],
    bounds: Sequence[float | None],
    resampling: Resampling,
    sizes: Sequence[Array | None] | None = None,
) -> list[Estimate]:
    """Estimate the mean of each series, all series of one length and sizes from one set of resamples.

    Parameters
    ----------
    series
        One value for each item, in the order that the seed reproduces. Series may differ in length.
    bounds
        For each series the bound of its equivalence test; None where a test against zero makes no sense (ratios), and
        then there is no sign-flip test either.
    sizes
        For each series None, or how many items each of its values is the mean of: values are then units of items that
        share a source. Units are resampled and flipped, and the mean is that over items.

    Raises
    ------
    InputError
        If there is not one bound, and one entry of `sizes`, for each series, and for values that are not finite.

    Notes
    -----
    With sizes m over M items in G units, the equivalence test uses the standard error of a ratio,
    G / (G - 1) * sum (m (value - mean))^2 / M^2 under the root. Source: Cochran (1977), Sampling Techniques, section
    6.4. With one item each it is the plain one.
    """
    joined = [None] * len(series) if sizes is None else list(sizes)
    if not len(series) == len(bounds) == len(joined):
        raise InputError(
            f"{len(series)} series and {len(bounds)} bounds, {len(joined)} sizes; expected one of each for each series"
        )
    found: dict[int, Estimate] = {}
    keys = [(len(row), None if size is None else size.tobytes()) for row, size in zip(series, joined, strict=True)]
    for key in dict.fromkeys(keys):
        places = [place for place, other in enumerate(keys) if other == key]
        size = joined[places[0]]
        table = np.array([series[place] for place in places], dtype=np.float64).reshape(len(places), key[0])
        intervals = bca_means_at_levels(
            table,
            levels=resampling.levels,
            n_resamples=resampling.n_resamples,
            seed=resampling.seed,
            stream=resampling.stream,
            items=size,
        )
        tested = [row for row, place in enumerate(places) if bounds[place] is not None]
        sums = table[tested] if size is None else table[tested] * size
        flips = sign_flip_means(sums, n_draws=resampling.n_resamples, seed=resampling.seed) if tested else []
        p_of = {row: flip.p for row, flip in zip(tested, flips, strict=True)}
        for row, place in enumerate(places):
            values, bound = table[row], bounds[place]
            p_tost = None if bound is None else tost_mean(_of_items(values, size), bound).p
            found[place] = _estimate(values, intervals[row], p_of.get(row), p_tost, bound, resampling.levels)
    return [found[place] for place in range(len(series))]


def without_estimate(resampling: Resampling, reason: str) -> Estimate:
    """Return what stands for a contrast that cannot be evaluated."""
    return Estimate(
        intervals=tuple(Interval(level, None, None) for level in resampling.levels),
        evaluation="not_evaluable",
        reason=reason,
    )


def _of_items(values: Array, sizes: Array | None) -> Array:
    """Return numbers whose mean and plain standard error are those of the mean over items."""
    if sizes is None or not len(values):
        return values
    mean = float(values @ sizes / sizes.sum())
    return np.asarray(mean + len(values) / sizes.sum() * sizes * (values - mean))


def _estimate(
    row: Array,
    results: Sequence[Result],
    p: float | None,
    p_tost: float | None,
    bound: float | None,
    levels: Sequence[float],
) -> Estimate:
    n, first = len(row), results[0]
    evaluation, reason = _judged(n, first)
    return Estimate(
        estimate=first.estimate,
        sd=float(row.std(ddof=1)) if n > 1 else None,
        n=n,
        intervals=tuple(Interval(level, found.low, found.high) for level, found in zip(levels, results, strict=True)),
        p=p,
        p_tost=p_tost,
        bound=bound,
        n_negative=int((row < 0).sum()),
        n_positive=int((row > 0).sum()),
        evaluation=evaluation,
        reason=reason,
    )


def _judged(n: int, first: Result) -> tuple[Evaluation, str | None]:
    if first.status == "undefined":
        return "undefined", first.reason
    if n == 1:
        return "degenerate", "only 1 item: nothing to draw an interval from"
    if first.status == "degenerate":
        return "degenerate", first.reason
    if n < FEWEST_ITEMS:
        return "too_few", (
            f"only {n} items, and with fewer than {FEWEST_ITEMS} no data at all could reach p < .05 in the sign-flip "
            "test: no verdict"
        )
    return "ok", first.reason
