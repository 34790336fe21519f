"""What is said of the cells of a crossing: effects by condition, null controls and contrasts, on both item sets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from counterbalance.contrasts import (
    Condition,
    ContrastEstimate,
    ContrastPlan,
    EffectTable,
    Estimate,
    Resampling,
    estimate_contrasts,
    estimate_means,
)
from counterbalance.designs.crossing.cells import Cells
from counterbalance.designs.crossing.effects import BOUND_NATS, EFFECTS, null_controls
from counterbalance.stats.signflip import FEWEST_ITEMS

NullVerdict = Literal["pass", "fail", "not_applicable", "not_evaluable"]

KEPT_SET, ALL_SET = "kept", "all"

_ROUNDING = 1e-9
"""Nats that are zero but for the rounding of their computation."""


@dataclass(frozen=True)
class SetAnalysis:
    """The estimates on one set of items.

    Attributes
    ----------
    name
        ``kept`` or ``all``.
    n_items
        Items in the set.
    effects
        By condition and effect, in nats.
    nulls
        By condition, the verdict on its null controls.
    contrasts
        In the plan's order; none without a plan.
    """

    name: str
    n_items: int
    effects: Mapping[str, Mapping[str, Estimate]]
    nulls: Mapping[str, Mapping[str, NullVerdict]]
    contrasts: tuple[ContrastEstimate, ...]


@dataclass(frozen=True)
class CrossingAnalysis:
    """The analysis of one file of cells on both sets.

    Attributes
    ----------
    differing
        What excludes zero on one set only, and the name of that set, by ``(condition, effect)`` or
        ``(contrast id, None)``.
    """

    kept: SetAnalysis
    all_items: SetAnalysis
    differing: Mapping[tuple[str, str | None], str]


def analyse_cells(cells: Cells, plan: ContrastPlan | None, resampling: Resampling) -> CrossingAnalysis:
    """Analyse cells on the kept items and on all of them.

    Parameters
    ----------
    plan
        Contrasts; its conditions say where role is no null control, and its bound is that of the equivalence tests.
    """
    known = (plan.file.conditions if plan is not None else None) or {}
    bound = BOUND_NATS if plan is None else plan.file.bound
    return analyse_tables(cells.table.subset(cells.kept), cells.table, plan, known, bound, resampling)


def analyse_tables(
    kept_items: EffectTable,
    all_items: EffectTable,
    plan: ContrastPlan | None,
    known: Mapping[str, Condition],
    bound: float,
    resampling: Resampling,
) -> CrossingAnalysis:
    """Analyse two tables of half-effects, of the kept items and of all of them.

    Parameters
    ----------
    known
        What is known of the conditions: where a body is loaded, role is no null control.
    bound
        Bound of the equivalence tests of the effects, in their unit.
    """
    kept = _on_set(KEPT_SET, kept_items, plan, known, bound, resampling)
    whole = _on_set(ALL_SET, all_items, plan, known, bound, resampling)
    verdicts = _verdicts(whole)
    differing = {
        key: KEPT_SET if verdict else ALL_SET
        for key, verdict in _verdicts(kept).items()
        if {verdict, verdicts[key]} == {True, False}
    }
    return CrossingAnalysis(kept, whole, differing)


def null_verdict(estimate: Estimate) -> NullVerdict:
    """Return whether a null control holds: its interval of the first level has to cover zero.

    One value in all of enough items has no interval, and fails where it is not zero.
    """
    if estimate.excludes_zero is None:
        constant = estimate.evaluation == "degenerate" and estimate.n >= FEWEST_ITEMS
        return "fail" if constant and abs(estimate.estimate or 0.0) > _ROUNDING else "not_evaluable"
    return "fail" if estimate.excludes_zero else "pass"


def rows(analysis: CrossingAnalysis) -> Iterator[dict[str, Any]]:
    """Yield the analysis as flat rows at full precision, one for each set, quantity and level."""
    for found in (analysis.kept, analysis.all_items):
        for condition, by_effect in found.effects.items():
            for effect, estimate in by_effect.items():
                facts = {
                    "null_verdict": found.nulls[condition].get(effect),
                    "differs_between_sets": (condition, effect) in analysis.differing,
                }
                names = {"set": found.name, "condition": condition, "quantity": effect}
                yield from (names | level | facts for level in _levels(estimate))
        for result in found.contrasts:
            yield from _contrast_rows(found.name, result, (result.planned.id, None) in analysis.differing)


def _on_set(
    name: str,
    table: EffectTable,
    plan: ContrastPlan | None,
    known: Mapping[str, Condition],
    bound: float,
    resampling: Resampling,
) -> SetAnalysis:
    # Sorted, so that not even the last digit depends on the order in which a file has its conditions.
    names = [(condition, effect) for condition in sorted(table.effects) for effect in EFFECTS]
    present = table.present
    series = [table.by_unit(table.effects[name][effect][present[name]], present[name]) for name, effect in names]
    rows, sizes = [row for row, _ in series], [size for _, size in series]
    estimates = dict(zip(names, estimate_means(rows, [bound] * len(rows), resampling, sizes), strict=True))
    effects = {condition: {effect: estimates[condition, effect] for effect in EFFECTS} for condition in table.effects}
    nulls = {condition: _nulls(by_effect, known.get(condition)) for condition, by_effect in effects.items()}
    contrasts = () if plan is None else tuple(estimate_contrasts(plan, table, resampling))
    return SetAnalysis(name, len(table.items), effects, nulls, contrasts)


def _nulls(by_effect: Mapping[str, Estimate], known: Condition | None) -> dict[str, NullVerdict]:
    controls = null_controls(known.body if known else None)
    return {
        effect: null_verdict(by_effect[effect]) if effect in controls else "not_applicable"
        for effect in ("role", "order")
    }


def _verdicts(found: SetAnalysis) -> dict[tuple[str, str | None], bool | None]:
    verdicts: dict[tuple[str, str | None], bool | None] = {
        (condition, effect): estimate.excludes_zero
        for condition, by_effect in found.effects.items()
        for effect, estimate in by_effect.items()
    }
    return verdicts | {(result.planned.id, None): result.estimate.excludes_zero for result in found.contrasts}


def _contrast_rows(name: str, result: ContrastEstimate, differs: bool) -> Iterator[dict[str, Any]]:
    contrast = result.planned.contrast
    names = {"set": name, "contrast": contrast.id}
    facts = {
        "expression": contrast.expression,
        "status": contrast.status,
        "family": contrast.family,
        "p_adjusted": result.p_adjusted,
        "warnings": list(result.warnings),
        "differs_between_sets": differs,
    }
    quantity = "mean_of_ratios" if result.planned.is_ratio else "contrast"
    yield from (names | {"quantity": quantity} | level | facts for level in _levels(result.estimate))
    if result.planned.is_ratio:
        yield names | {"quantity": "ratio_of_means"} | _ratio_of_means(result) | facts


def _levels(estimate: Estimate) -> Iterator[dict[str, Any]]:
    for interval in estimate.intervals:
        yield {
            "estimate": estimate.estimate,
            "low": interval.low,
            "high": interval.high,
            "level": interval.level,
            "sd": estimate.sd,
            "n": estimate.n,
            "p_tost": estimate.p_tost,
            "n_negative": estimate.n_negative,
            "n_positive": estimate.n_positive,
            "sign_consistency": estimate.sign_consistency,
            "bound": estimate.bound,
            "p": estimate.p,
            "excludes_zero": estimate.beyond(interval, 0.0),
            "beyond_bound": None if estimate.bound is None else estimate.beyond(interval, estimate.bound),
            "evaluation": estimate.evaluation,
            "reason": estimate.reason,
        }


def _ratio_of_means(result: ContrastEstimate) -> dict[str, Any]:
    blank: dict[str, Any] = dict.fromkeys(next(_levels(result.estimate)))
    facts: dict[str, Any] = {"evaluation": "ok", "reason": "a point value without an interval"}
    if result.ratio_of_means is None:
        facts = {"evaluation": "undefined", "reason": "the denominator's mean is 0, or there are no items"}
    if not result.n_items:
        facts = {"evaluation": result.estimate.evaluation, "reason": result.estimate.reason}
    return blank | {"estimate": result.ratio_of_means, "n": result.n_items} | facts
