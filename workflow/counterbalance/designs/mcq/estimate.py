"""Outcomes of a cell to its estimates: the calibrated view and the published one, side by side."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from counterbalance.config import Analysis
from counterbalance.designs.mcq.contrasts import slot_results
from counterbalance.designs.mcq.counts import STATUSES, Counts, Reals, count_strata
from counterbalance.designs.mcq.quantities import CONFIRMATORY
from counterbalance.stats.contingency import contingency_test
from counterbalance.stats.detectable import detectable_v, min_unstable
from counterbalance.stats.disagreement import disagreement
from counterbalance.stats.estimate import Result
from counterbalance.stats.multiplicity import draws_needed
from counterbalance.stats.proportions import clustered_shares
from counterbalance.stats.published import (
    PublishedEffects,
    classify_v0_1,
    classify_v0_2,
    question_level_effects,
    run_level_effects,
)
from counterbalance.stats.relabel import (
    guarded_picks,
    recentred_bootstrap,
    relabel_accuracy,
    relabel_picks,
    relabel_unanswered,
)
from counterbalance.stats.shape import planned_contrasts
from counterbalance.stats.steadiness import in_groups, steadiness
from counterbalance.stats.vcc import cluster_corrected_v

_OPTIONS_UNKNOWN = "the replies do not say which option was chosen"


def estimate(analysis: Analysis, outcomes: pa.Table, tests: int | None = None) -> dict[str, Result]:
    """Return every number of a cell by the name of its quantity.

    Parameters
    ----------
    analysis
        The frozen analysis plan: levels, draws, seed, thresholds.
    outcomes
        Table of the declared schema; at least one row.
    tests
        Size of the family over which the tests are corrected; by default that of this cell alone.

    Returns
    -------
    dict
        Quantities of `quantities.py`. Where items differ in their number of options, the plain names hold the
        stratum with most items, and the others follow under ``NAME@k=K``.
    """
    results: dict[str, Result] = {}
    strata = count_strata(outcomes)
    family = tests or len(CONFIRMATORY) * len(strata)
    for index, counts in enumerate(strata):
        suffix = "" if index == 0 else f"@k={counts.k}"
        note = None
        if index == 0 and len(strata) > 1:
            others = ", ".join(f"{other.n_items} with {other.k}" for other in strata[1:])
            note = f"items with {counts.k} options; {others} are estimated apart"
        for name, result in (*_stratum(analysis, counts, family), *slot_results(analysis, outcomes, counts)):
            said = _items_said(counts, result)
            reason = "; ".join(text for text in (said.reason, note) if text) or None
            results[name + suffix] = replace(said, reason=reason)
    return results


def _stratum(analysis: Analysis, counts: Counts, family: int) -> Iterator[tuple[str, Result]]:
    nothing = counts.without_answer
    for name, result in (
        *_shares(analysis, counts),
        *_published(analysis, counts),
        *_calibrated(analysis, counts),
        *_tests(analysis, counts, family),
        *_steadiness(analysis, counts),
        *_disagreement(analysis, counts),
        *_label_mass(analysis, counts),
        *_groups(counts),
    ):
        yield (
            name,
            replace(
                result,
                n_calls=counts.n_calls if result.n_calls is None else result.n_calls,
                # Each statistic names what it lacks first; where no call was answered there is one reason for all.
                reason=nothing if nothing and result.status in ("undefined", "not_measurable") else result.reason,
            ),
        )


def _groups(counts: Counts) -> Iterator[tuple[str, Result]]:
    if counts.n_units < counts.n_items:
        reason = "a count: items that share a source are one unit of inference"
        yield "groups", Result(method="groups of items", estimate=counts.n_units, status="descriptive", reason=reason)


def _items_said(counts: Counts, result: Result) -> Result:
    """Give a result the number of its items, which the statistics count by units, and say that they form groups."""
    n = counts.n_units if result.n_items is None else result.n_items
    if counts.n_units == counts.n_items or n == 0 or "which are the units" in (result.reason or ""):
        return replace(result, n_items=n)
    note = f"{counts.n_items} items in {counts.n_units} groups, which are the units"
    whole = n == counts.n_units
    note = note if whole else f"{n} of the groups: {note}"
    reason = "; ".join(text for text in (result.reason, note) if text)
    return replace(result, n_items=counts.n_items if whole else n, reason=reason)


def _shares(analysis: Analysis, counts: Counts) -> Iterator[tuple[str, Result]]:
    columns: list[tuple[str, Reals, Reals]] = []

    def add(name: str, hits: Reals, n: Reals) -> None:
        columns.append((name, hits, n))

    correct, scored = counts.correct.astype(float), counts.scored.astype(float)
    add("accuracy", correct.sum(axis=1), scored.sum(axis=1))
    for slot in range(counts.k):
        add(f"accuracy.slot_{slot + 1}", correct[:, slot], scored[:, slot])
    for name, picks in (("picks", counts.picks), ("picks_when_wrong", counts.wrong_picks)):
        for slot in range(counts.k):
            add(f"{name}.slot_{slot + 1}", picks[:, slot].astype(float), picks.sum(axis=1).astype(float))
    asked = counts.status.sum(axis=1).astype(float)
    unkeyed = counts.status_unkeyed
    for code, status in enumerate(STATUSES):
        here = counts.status[:, code].astype(float)
        if status != "ok" and not here.sum() + unkeyed[:, code].sum():
            continue
        everywhere = asked.sum(axis=1) + unkeyed.sum(axis=1)
        add(f"status.{status}", here.sum(axis=1) + unkeyed[:, code], everywhere)
        for slot in range(counts.k):
            add(f"status.{status}.slot_{slot + 1}", here[:, slot], asked[:, slot])
    names = [name for name, _, _ in columns]
    hits = np.column_stack([column for _, column, _ in columns])
    n = np.column_stack([column for _, _, column in columns])
    results = clustered_shares(hits, n, level=analysis.level)
    if counts.n_units < counts.n_items:
        items = [int(counts.items[column > 0].sum()) for column in n.T]
        results = [in_groups(found, number) if number else found for found, number in zip(results, items, strict=True)]
    yield from zip(names, results, strict=True)
    yield "band", _band(analysis, results[0])


def _band(analysis: Analysis, accuracy: Result) -> Result:
    low, high = analysis.capability_band
    method = f"accuracy below {low:g}, between, or at least {high:g}"
    if accuracy.estimate is None:
        return Result(method=method, status="undefined", reason=accuracy.reason or "no scored call")
    label = "low" if accuracy.estimate < low else "high" if accuracy.estimate >= high else "middle"
    return Result(
        method=method,
        label=label,
        status="descriptive",
        reason="a description of the cell, not a gate",
        n_items=accuracy.n_items,
        n_calls=accuracy.n_calls,
    )


def _steadiness(analysis: Analysis, counts: Counts) -> Iterator[tuple[str, Result]]:
    names = ("consistency", "flip_rate", "usual_share")
    if counts.choices is None:
        nothing = Result(method="answers of one item in several orders", status="undefined", reason=_OPTIONS_UNKNOWN)
        yield from ((name, nothing) for name in names)
        return
    found = steadiness(counts.choices, level=analysis.level)
    yield from ((name, getattr(found, name)) for name in names)


def _published(analysis: Analysis, counts: Counts) -> Iterator[tuple[str, Result]]:
    chi2 = contingency_test(counts.correct, counts.scored).chi2
    correct, scored, level, seed = counts.correct, counts.scored, analysis.level, analysis.seed
    runs = run_level_effects(correct, scored, level=level, n_resamples=analysis.run_resamples, seed=seed)
    items = question_level_effects(correct, scored, level=level, n_resamples=analysis.resamples, seed=seed)
    yield "chi2.published", chi2
    yield from _effects(runs, "")
    yield from _effects(items, ".question")
    for version in ("v0_1", "v0_2"):
        yield f"mechanism.{version}", _mechanism(analysis, version, runs.v, runs.rho, chi2)


def _effects(effects: PublishedEffects, level: str) -> Iterator[tuple[str, Result]]:
    yield f"V.published{level}", effects.v
    yield f"V.bergsma{level}", effects.bergsma
    yield f"rho.published{level}", effects.rho


def _mechanism(analysis: Analysis, version: str, v: Result, rho: Result, chi2: Result) -> Result:
    method = f"published classifier {version.replace('_', '.')}"
    if v.estimate is None or chi2.p is None:
        return Result(method=method, status="undefined", reason=v.reason or "V is not defined")
    floor, threshold = analysis.v_floor, analysis.rho_threshold
    if version == "v0_1":
        label = classify_v0_1(v.estimate, rho.estimate, v_floor=floor, rho_threshold=threshold)
    else:
        label = classify_v0_2(
            v.estimate, chi2.p, rho.estimate, alpha=analysis.alpha, v_floor=floor, rho_threshold=threshold
        )
    if label is None:
        return Result(method=method, status="undefined", reason="rho is not defined: all slots are equally accurate")
    return Result(method=method, label=label, status="descriptive", reason="kept for comparison with published labels")


def _calibrated(analysis: Analysis, counts: Counts) -> Iterator[tuple[str, Result]]:
    correct, scored, seed = counts.correct, counts.scored, analysis.seed
    draws = analysis.resamples
    accuracy = relabel_accuracy(correct, scored, n_draws=draws, seed=seed, alpha=analysis.alpha)
    yield "V.corrected", cluster_corrected_v(correct, scored, level=analysis.level, n_resamples=draws, seed=seed)
    yield "relabelling.accuracy", accuracy.result
    yield "recentred.accuracy", recentred_bootstrap(correct, scored, n_resamples=draws, seed=seed)
    yield (
        "unstable_items",
        Result(
            method="items whose accuracy differs between slots",
            estimate=accuracy.n_unstable,
            status="descriptive",
            reason=f"a count; with fewer than {min_unstable(counts.k, analysis.alpha)} such items p < "
            f"{analysis.alpha:g} may be out of reach",
        ),
    )
    shapes = planned_contrasts(
        correct,
        scored,
        level=analysis.level,
        alpha=analysis.alpha,
        n_resamples=draws,
        seed=seed,
        relabelling=accuracy.result,
    )
    yield "shape.linear", shapes.linear
    yield "shape.first", shapes.first
    yield "shape.last", shapes.last
    yield "shape.middle", shapes.middle
    yield "shape.label", shapes.label
    yield "shape.support", shapes.support


def _tests(analysis: Analysis, counts: Counts, family: int) -> Iterator[tuple[str, Result]]:
    """Yield the test of picks, with the test that guards it, and what the test of accuracy could have shown."""
    draws, seed, alpha = analysis.resamples, analysis.seed, analysis.alpha
    picks = relabel_picks(counts.picks, n_draws=draws, seed=seed, alpha=alpha).result
    missing = relabel_unanswered(counts.unanswered, counts.asked, n_draws=draws, seed=seed, alpha=alpha).result
    yield "relabelling.picks", guarded_picks(picks, missing, int(counts.unanswered.sum()), alpha=alpha)
    yield "relabelling.unanswered", missing
    for name, tests in (("detectable_V", 1), ("detectable_V.family", family)):
        yield name, _detectable(analysis, counts, tests)


def _detectable(analysis: Analysis, counts: Counts, tests: int) -> Result:
    found = detectable_v(
        counts.correct,
        counts.scored,
        power=analysis.detectable_power,
        alpha=analysis.alpha,
        tests=tests,
        measurable_v=analysis.measurable_v,
        level=analysis.level,
        seed=analysis.seed,
    ).result
    needed = draws_needed(analysis.alpha, tests)
    if analysis.resamples >= needed:
        return found
    reason = (
        f"{analysis.resamples} random relabellings cannot give a p below {analysis.alpha:g} / {tests}, however strong "
        f"the bias; {needed} could"
    )
    return replace(found, estimate=None, low=None, high=None, level=None, status="not_measurable", reason=reason)


def _disagreement(analysis: Analysis, counts: Counts) -> Iterator[tuple[str, Result]]:
    names = ("same_order", "other_order", "excess")
    if counts.choices is None:
        method = "pairs of calls of one item"
        nothing = Result(method=method, n_items=0, n_calls=0, status="undefined", reason=_OPTIONS_UNKNOWN)
        yield from ((f"disagreement.{name}", nothing) for name in names)
        return
    found = disagreement(counts.choices, level=analysis.level, n_resamples=analysis.resamples, seed=analysis.seed)
    yield from ((f"disagreement.{name}", getattr(found, name)) for name in names)


def _label_mass(analysis: Analysis, counts: Counts) -> Iterator[tuple[str, Result]]:
    if counts.weighed.any():
        mass = clustered_shares(counts.label_mass[:, None], counts.weighed[:, None], level=analysis.level)[0]
        yield "label_mass", replace(mass, method=f"mean total probability of the labels; {mass.method}")
