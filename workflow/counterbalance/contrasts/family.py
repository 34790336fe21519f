"""Estimates of a whole plan: one resampling call, Holm within the declared families, warnings where it can mislead."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.contrasts.caution import cue_warnings, pool_warning, ratio_warning
from counterbalance.contrasts.estimate import Estimate, Resampling, estimate_means, without_estimate
from counterbalance.contrasts.evaluate import Evaluated, evaluate
from counterbalance.contrasts.plan import ContrastPlan, PlannedContrast
from counterbalance.contrasts.table import EffectTable
from counterbalance.stats.counts import Array
from counterbalance.stats.multiplicity import holm


@dataclass(frozen=True)
class ContrastEstimate:
    """One contrast of a plan, estimated.

    Attributes
    ----------
    planned
        The contrast.
    estimate
        Of its value per item; for a ratio that is the mean of the items' ratios.
    p_adjusted
        Holm's within the family, None outside families.
    ratio_of_means
        For a ratio: mean of the numerator over mean of the denominator.
    n_items
        Items in the common set, also where the contrast cannot be evaluated on them.
    warnings
        What a reader should know before quoting it.
    """

    planned: PlannedContrast
    estimate: Estimate
    p_adjusted: float | None = None
    ratio_of_means: float | None = None
    n_items: int = 0
    warnings: tuple[str, ...] = ()


def estimate_contrasts(plan: ContrastPlan, table: EffectTable, resampling: Resampling) -> list[ContrastEstimate]:
    """Estimate every contrast of a plan, in the file's order.

    Contrasts on the same number of items share their resamples. Holm's correction runs over the sign-flip p-values of
    each declared family; a planned test that could not be made still counts.
    """
    evaluated = evaluate(plan, table)
    series: list[tuple[Array, Array | None]] = []
    bounds: list[float | None] = []
    for found in evaluated:
        rows = [*([] if found.values is None else [found.values]), *(pool.difference for pool in found.pools)]
        if found.common is not None:
            series += [table.by_unit(row, found.common) for row in rows]
        bounds += [] if found.values is None else [None if found.planned.is_ratio else found.planned.bound]
        bounds += [found.planned.bound] * len(found.pools)
    waiting = iter(estimate_means([row for row, _ in series], bounds, resampling, [size for _, size in series]))
    results = []
    for found in evaluated:
        reason = found.reason or "no values"
        own = next(waiting) if found.values is not None else without_estimate(resampling, reason)
        results.append((found, own, [next(waiting) for _ in found.pools]))
    adjusted = _adjusted([(found.planned, own) for found, own, _ in results])
    return [_finished(plan, found, own, pools, p) for (found, own, pools), p in zip(results, adjusted, strict=True)]


def _finished(
    plan: ContrastPlan, found: Evaluated, own: Estimate, pools: Sequence[Estimate], p_adjusted: float | None
) -> ContrastEstimate:
    ratio = _ratio_of_means(found)
    warnings = [pool_warning(pool.arms, estimate) for pool, estimate in zip(found.pools, pools, strict=True)]
    warnings += cue_warnings(found.planned, plan.file.conditions or {})
    if found.planned.is_ratio and (own.estimate is not None or ratio is not None):
        warnings.append(ratio_warning(own.estimate, ratio))
    n_items = own.n if found.sides is None else len(found.sides[0])
    told = tuple(dict.fromkeys(text for text in warnings if text))
    return ContrastEstimate(found.planned, own, p_adjusted, ratio, n_items, told)


def _ratio_of_means(found: Evaluated) -> float | None:
    if found.sides is None or len(found.sides[0]) == 0:
        return None
    above, below = (float(side.mean()) for side in found.sides)
    ratio = above / below if below else math.inf
    return ratio if math.isfinite(ratio) else None


def _adjusted(results: Sequence[tuple[PlannedContrast, Estimate]]) -> list[float | None]:
    adjusted: list[float | None] = [None] * len(results)
    families = dict.fromkeys(planned.contrast.family for planned, _ in results)
    for family in families:
        if family is None:
            continue
        places = [place for place, (planned, _) in enumerate(results) if planned.contrast.family == family]
        for place, p in zip(places, holm([results[place][1].p for place in places]), strict=True):
            adjusted[place] = p
    return adjusted
