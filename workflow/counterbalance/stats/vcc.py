"""Cramer's V with the question as the unit: corrected for chance between items, with an interval over items."""

import numpy as np
import numpy.typing as npt

from counterbalance.stats.counts import Array, SlotCounts, slot_counts
from counterbalance.stats.estimate import Result, few_items
from counterbalance.stats.resampling import Seed, percentile_limits
from counterbalance.stats.slotmeans import SlotMeans, observed_means, resampled_means

_ROUNDING = 1e-12
"""A V^2, or a width of an interval, below this is the rounding error of 0."""


def corrected_v(means: SlotMeans) -> Array:
    """Return the cluster-corrected V of each resample, shape (resamples,); 0 where all or no calls are correct.

    V^2 of a k x 2 table is sum_s w_s (m_s - m)^2 / (m (1 - m)), with w_s the slot's share of calls: with equal counts
    that is a factor 1 / k, so the published factor 4 is the number of slots. Each squared deviation is too large by
    the deviation's variance over items, which is taken off; a negative rest is 0 by definition of the estimator.
    With equal counts: V^2 = max(0, sum_s (m_s - m)^2 - ss / Q) / (k m (1 - m)).
    """
    overall, weight, covariance = means.overall, means.weight, means.covariance
    with_pool = np.einsum("bst,bt->bs", covariance, weight)
    pooled = np.einsum("bs,bs->b", with_pool, weight)
    variance = np.einsum("bss->bs", covariance) - 2 * with_pool + pooled[:, None]
    excess = (weight * ((means.mean - overall[:, None]) ** 2 - variance)).sum(axis=1)
    spread = overall * (1 - overall)
    ratio = np.divide(excess, spread, out=np.zeros_like(excess), where=spread > 0)
    return np.sqrt(np.where(ratio > _ROUNDING, ratio, 0.0))


def cluster_corrected_v(
    correct: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed,
) -> Result:
    """Return the cluster-corrected Cramer's V with a percentile interval over resampled items.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).

    Returns
    -------
    Result
        ``degenerate`` with V = 0 and no interval where no item's accuracy changes with the slot; ``undefined`` for
        fewer than two items and for slots that never held the correct option.
    """
    counts = slot_counts(correct, n)
    method = f"cluster-corrected Cramer's V, percentile bootstrap over items ({n_resamples} resamples)"
    if counts.n_items < 2:
        return Result(
            method=method, **counts.size, status="undefined", reason=f"{counts.n_items} items; needs at least 2"
        )
    if counts.empty_slots:
        return Result(method=method, **counts.size, status="undefined", reason=counts.empty_slots)
    observed = observed_means(counts)
    estimate = float(corrected_v(observed)[0])
    draws = np.concatenate([corrected_v(block) for block in resampled_means(counts, n_resamples, seed)])
    low, high = percentile_limits(draws, level)
    if high - low <= _ROUNDING:
        return Result(
            method=method, estimate=estimate, **counts.size, status="degenerate", reason=_constant_reason(counts, level)
        )
    return Result(
        method=method,
        estimate=estimate,
        low=low,
        high=high,
        level=level,
        **counts.size,
        reason=few_items(counts.n_items),
    )


def _constant_reason(counts: SlotCounts, level: float) -> str:
    share = np.divide(counts.correct, counts.n, out=np.zeros_like(counts.n), where=counts.n > 0)
    highest = np.where(counts.n > 0, share, -1.0).max(axis=1)
    lowest = np.where(counts.n > 0, share, 2.0).min(axis=1)
    if (highest > lowest).any():
        return "resampled items hardly ever give another V: the bootstrap gives no interval"
    bound = 1 - (1 - level) ** (1 / counts.n_items)
    return (
        f"no item's accuracy changes with the slot; with {counts.n_items} items, up to {bound:.1%} of such items "
        f"could (one-sided exact bound, {level:.0%})"
    )
