"""The published effect sizes, bootstraps and classifier, so that results can be set beside older ones."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from counterbalance.stats.contingency import bergsma_v, contingency_test, pearson_chi2
from counterbalance.stats.counts import Array, SlotCounts, slot_counts
from counterbalance.stats.estimate import Result
from counterbalance.stats.resampling import Seed, bootstrap_sums, generator, percentile_limits

Mechanism = Literal["inactive", "processing_load", "content_ambiguity"]

_RUN_CAVEAT = "calls of one item are resampled as independent"
_QUESTION_CAVEAT = "items are resampled"
_BIASED = "V is biased upwards in the resamples as in the data"
_FOR_CALLS = "corrected as if the calls of one item were independent"
_ONE_ITEM = "1 item; resampling items needs at least 2"


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


@dataclass(frozen=True)
class PublishedEffects:
    """The published effect sizes of a cell with intervals of one bootstrap, all ``descriptive`` at best.

    Attributes
    ----------
    v, bergsma
        Cramer's V as published, and with Bergsma's correction.
    rho
        Spearman's rho of slot and accuracy. Resamples in which it is not defined are left out of its interval and
        counted in the reason.
    """

    v: Result
    bergsma: Result
    rho: Result


def run_level_effects(
    correct: npt.ArrayLike, n: npt.ArrayLike, *, level: float = 0.95, n_resamples: int = 1000, seed: Seed
) -> PublishedEffects:
    """Return V and rho with percentile intervals of a bootstrap over single calls, as published.

    Drawing N calls with replacement is one multinomial draw over the 2k cells of the table, which is done here.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).
    """
    counts = slot_counts(correct, n)

    def draw() -> Array:
        hits, calls = counts.correct.sum(axis=0), counts.n.sum(axis=0)
        cells = np.concatenate([hits, calls - hits])
        drawn = generator(seed).multinomial(counts.n_calls, cells / cells.sum(), size=n_resamples).astype(np.float64)
        drawn[:, counts.n_slots :] += drawn[:, : counts.n_slots]
        return drawn

    return _effects(counts, f"run-level percentile bootstrap ({n_resamples} resamples)", _RUN_CAVEAT, draw, level)


def question_level_effects(
    correct: npt.ArrayLike, n: npt.ArrayLike, *, level: float = 0.95, n_resamples: int = 9999, seed: Seed
) -> PublishedEffects:
    """Return the published V and rho with percentile intervals of a bootstrap over items, all calls of an item kept.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).

    Notes
    -----
    The calls of an item stay together, but V is as biased upwards in the resamples as in the data, so its interval
    hardly ever reaches 0 and that of Bergsma's V, which corrects for independent calls, is too high where items have
    order effects of their own. The interval that holds is that of `vcc.cluster_corrected_v`.
    """
    counts = slot_counts(correct, n)
    how = f"question-level percentile bootstrap ({n_resamples} resamples)"
    if counts.n_items == 1:
        return _effects(counts, how, _ONE_ITEM, None, level)
    columns = np.hstack([counts.correct, counts.n])
    return _effects(counts, how, _QUESTION_CAVEAT, lambda: bootstrap_sums(columns, n_resamples, seed), level)


def run_level_bootstrap(
    correct: npt.ArrayLike, n: npt.ArrayLike, *, level: float = 0.95, n_resamples: int = 1000, seed: Seed
) -> tuple[Result, Result]:
    """Return V as published and rho of `run_level_effects`."""
    found = run_level_effects(correct, n, level=level, n_resamples=n_resamples, seed=seed)
    return found.v, found.rho


def _effects(
    counts: SlotCounts, how: str, caveat: str, draw: Callable[[], Array] | None, level: float
) -> PublishedEffects:
    """Return the three effects; `draw` gives resampled hits and calls by slot side by side, None if nothing can."""
    table = contingency_test(counts.correct, counts.n)
    v = replace(table.v, method=f"Cramer's V as published, {how}")
    bergsma = replace(table.v_bergsma, method=f"Cramer's V, Bergsma's correction, {how}")
    rho = _rho(counts, f"Spearman's rho of slot and accuracy, {how}")
    if counts.n_calls == 0:
        return PublishedEffects(v, bergsma, rho)
    if table.v.status == "degenerate":
        reason = "all calls are alike, or in one slot: V is 0 by convention and has no interval"
        return PublishedEffects(replace(v, reason=reason), replace(bergsma, reason=reason), rho)
    if draw is None:
        v, bergsma = (replace(result, status="degenerate", reason=caveat) for result in (v, bergsma))
        return PublishedEffects(v, bergsma, rho)
    drawn = draw()
    hits, calls = drawn[:, : counts.n_slots], drawn[:, counts.n_slots :]
    chi2, total = pearson_chi2(hits, calls), calls.sum(axis=1)
    notes = "; ".join(text for text in (counts.empty_slots, caveat) if text)
    return PublishedEffects(
        _between(v, np.sqrt(chi2 / total), level, f"{notes}; {_BIASED}"),
        _between(bergsma, bergsma_v(chi2, total, (calls > 0).sum(axis=1)), level, f"{notes}; {_FOR_CALLS}"),
        _with_limits(rho, hits, calls, level, caveat),
    )


def _between(result: Result, draws: Array, level: float, caveat: str) -> Result:
    low, high = percentile_limits(draws, level)
    if low == high:
        reason = "nearly every resample gives the same V: the bootstrap gives no interval"
        return replace(result, status="degenerate", reason=reason)
    # Said only of an interval that is so.
    above = ", so that its interval lies above 0 without any effect" if caveat.endswith(_BIASED) and low > 0 else ""
    reason = f"{caveat}{above}{_beside(result, low, high)}"
    return replace(result, low=low, high=high, level=level, status="descriptive", reason=reason)


def _with_limits(rho: Result, hits: Array, calls: Array, level: float, caveat: str) -> Result:
    if rho.estimate is None:
        return rho
    shares = np.divide(hits, calls, out=np.zeros_like(hits), where=calls > 0)
    values, defined = slot_rank_correlation(shares)
    defined &= (calls > 0).all(axis=1)
    reason = f"{rho.reason}; {caveat}"
    if not defined.all():
        reason += f"; {int((~defined).sum())} of {len(values)} resamples have no rho and were left out"
    if not defined.any():
        return replace(rho, reason=reason)
    low, high = percentile_limits(values[defined], level)
    if low == high:
        reason = "nearly every resample gives the same rho: the bootstrap gives no interval"
        return replace(rho, status="degenerate", reason=reason)
    return replace(rho, low=low, high=high, level=level, reason=reason + _beside(rho, low, high))


def _beside(result: Result, low: float, high: float) -> str:
    outside = result.estimate is not None and not low <= result.estimate <= high
    return "; the estimate lies outside, so biased are the resamples" if outside else ""
