"""The published classifier and run-level bootstrap, as printed, so that results can be set beside older ones."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from counterbalance.stats.contingency import pearson_chi2
from counterbalance.stats.counts import Array, SlotCounts, slot_counts
from counterbalance.stats.estimate import Result
from counterbalance.stats.resampling import Seed, generator, percentile_limits

Mechanism = Literal["inactive", "processing_load", "content_ambiguity"]

_CAVEAT = "calls of one item are resampled as independent; the interval of V cannot reach 0"


def slot_rank_correlation(accuracies: npt.ArrayLike) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return Spearman's rho of slot number and slot accuracy, ties at their average rank.

    Parameters
    ----------
    accuracies
        Shape (..., slots), first slot first.

    Returns
    -------
    rho, defined
        Shape (...). Where all slots are equally accurate rho is not defined: `defined` is False and rho is 0.
    """
    values = np.asarray(accuracies, dtype=np.float64)
    k = values.shape[-1]
    below = (values[..., None, :] < values[..., :, None]).sum(axis=-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    # Twice the centred ranks are whole numbers, so that symmetric profiles give exactly 0 and ties are exact.
    ranks = 2 * below + equal - k
    slots = 2 * np.arange(k) - (k - 1)
    scale = np.sqrt((ranks**2).sum(axis=-1) * (slots**2).sum())
    return np.divide((ranks * slots).sum(axis=-1), scale, out=np.zeros(scale.shape), where=scale > 0), scale > 0


def _rho(counts: SlotCounts, method: str) -> Result:
    if counts.empty_slots:
        return Result(method=method, **counts.size, status="undefined", reason=counts.empty_slots)
    rho, defined = slot_rank_correlation(counts.correct.sum(axis=0) / counts.n.sum(axis=0))
    if not defined:
        return Result(method=method, **counts.size, status="undefined", reason="all slots are equally accurate")
    reason = f"takes few values at {counts.n_slots} slots, and a dip at one end slot looks like a trend"
    return Result(method=method, estimate=float(rho), **counts.size, status="descriptive", reason=reason)


def classify_v0_1(
    v: float, rho: float | None, *, v_floor: float = 0.05, rho_threshold: float = -0.5
) -> Mechanism | None:
    """Return the published mechanism, version 0.1; None where V is active but rho is undefined.

    Source: arXiv 2607.20864: V below the floor is inactive, rho at or below the threshold is processing load.
    """
    if v < v_floor:
        return "inactive"
    if rho is None:
        return None
    return "processing_load" if rho <= rho_threshold else "content_ambiguity"


def classify_v0_2(
    v: float,
    p: float,
    rho: float | None,
    *,
    alpha: float = 0.05,
    v_floor: float = 0.05,
    rho_threshold: float = -0.5,
) -> Mechanism | None:
    """Return the published mechanism, version 0.2: as 0.1, but inactive where Pearson's p is not below `alpha`."""
    if p >= alpha:
        return "inactive"
    return classify_v0_1(v, rho, v_floor=v_floor, rho_threshold=rho_threshold)


def run_level_bootstrap(
    correct: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: Seed,
) -> tuple[Result, Result]:
    """Return V and rho with percentile intervals of a bootstrap over single calls, as published.

    Drawing N calls with replacement is one multinomial draw over the 2k cells of the table, which is done here.

    Returns
    -------
    v, rho
        ``descriptive`` at best: the calls of one item are not independent. Resamples in which rho is not defined are
        left out of its interval and counted in the reason.
    """
    counts = slot_counts(correct, n)
    hits, calls = counts.correct.sum(axis=0), counts.n.sum(axis=0)
    draws = f"run-level percentile bootstrap ({n_resamples} resamples)"
    rho = _rho(counts, f"Spearman's rho of slot and accuracy, {draws}")
    method = f"Cramer's V as published, {draws}"
    if counts.n_calls == 0:
        return Result(method=method, **counts.size, status="undefined", reason="no scored calls"), rho
    if hits.sum() in {0, counts.n_calls} or (calls > 0).sum() < 2:
        reason = "all calls are alike, or in one slot: V is 0 by convention and has no interval"
        return Result(method=method, estimate=0.0, **counts.size, status="degenerate", reason=reason), rho
    cells = np.concatenate([hits, calls - hits])
    drawn = generator(seed).multinomial(counts.n_calls, cells / cells.sum(), size=n_resamples).astype(np.float64)
    drawn_hits = drawn[:, : counts.n_slots]
    drawn_calls = drawn_hits + drawn[:, counts.n_slots :]
    low, high = percentile_limits(np.sqrt(pearson_chi2(drawn_hits, drawn_calls) / counts.n_calls), level)
    estimate = float(np.sqrt(pearson_chi2(hits, calls) / counts.n_calls))
    if low == high:
        reason = "every resample gives the same V: the bootstrap gives no interval"
        v = Result(method=method, estimate=estimate, **counts.size, status="degenerate", reason=reason)
        return v, _with_limits(rho, drawn_hits, drawn_calls, level)
    v = Result(
        method=method,
        estimate=estimate,
        low=low,
        high=high,
        level=level,
        **counts.size,
        status="descriptive",
        reason="; ".join(text for text in (counts.empty_slots, _CAVEAT) if text),
    )
    return v, _with_limits(rho, drawn_hits, drawn_calls, level)


def _with_limits(rho: Result, hits: Array, calls: Array, level: float) -> Result:
    if rho.estimate is None:
        return rho
    shares = np.divide(hits, calls, out=np.zeros_like(hits), where=calls > 0)
    values, defined = slot_rank_correlation(shares)
    defined &= (calls > 0).all(axis=1)
    reason = f"{rho.reason}; {_CAVEAT.split(';')[0]}"
    if not defined.all():
        reason += f"; {int((~defined).sum())} of {len(values)} resamples have no rho and were left out"
    limits = percentile_limits(values[defined], level) if defined.any() else (None, None)
    return Result(
        method=rho.method,
        estimate=rho.estimate,
        low=limits[0],
        high=limits[1],
        level=level if defined.any() else None,
        n_items=rho.n_items,
        n_calls=rho.n_calls,
        status="descriptive",
        reason=reason,
    )
