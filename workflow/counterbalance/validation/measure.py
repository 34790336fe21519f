"""The numbers of a cell that make a claim about chance, computed as the estimates are, without what claims nothing."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from counterbalance.config import Analysis
from counterbalance.contrasts.nats import label_logprobs
from counterbalance.designs.mcq.counts import STATUSES, Nats
from counterbalance.simulation.respondent import Ints
from counterbalance.simulation.scenarios import Scenario
from counterbalance.simulation.truths import nats_truth, steady_truth
from counterbalance.stats.contingency import contingency_test
from counterbalance.stats.counts import Array
from counterbalance.stats.disagreement import Choices, disagreement
from counterbalance.stats.estimate import Result
from counterbalance.stats.multiplicity import holm
from counterbalance.stats.proportions import clustered_shares
from counterbalance.stats.published import (
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
from counterbalance.stats.steadiness import steadiness
from counterbalance.stats.vcc import cluster_corrected_v

Results = Mapping[str, Result]


class Tallied(Protocol):
    """What is asked of a cell's counts; `designs.mcq.counts.Counts` has it, shapes as there."""

    @property
    def k(self) -> int: ...
    @property
    def correct(self) -> npt.NDArray[Any]: ...
    @property
    def scored(self) -> npt.NDArray[Any]: ...
    @property
    def picks(self) -> npt.NDArray[Any]: ...
    @property
    def wrong_picks(self) -> npt.NDArray[Any]: ...
    @property
    def choices(self) -> Choices | None: ...
    @property
    def nats(self) -> Nats | None: ...
    @property
    def status(self) -> npt.NDArray[Any] | None: ...


def measure(analysis: Analysis, counts: Tallied) -> dict[str, Result]:
    """Return results by the name of their quantity, equal to those of the estimates.

    The estimates also hold the smallest detectable V, which takes most of their time and is checked apart, and counts.
    """
    parts = (_shares, _published, _tests, _steadiness, _nats)
    return dict(found for part in parts for found in part(analysis, counts))


def _shares(analysis: Analysis, counts: Tallied) -> Iterator[tuple[str, Result]]:
    correct, scored = counts.correct.astype(float), counts.scored.astype(float)
    columns = [("accuracy", correct.sum(axis=1), scored.sum(axis=1))]
    columns += [(f"accuracy.slot_{s + 1}", correct[:, s], scored[:, s]) for s in range(counts.k)]
    for name, picks in (("picks", counts.picks), ("picks_when_wrong", counts.wrong_picks)):
        total = picks.sum(axis=1).astype(float)
        columns += [(f"{name}.slot_{s + 1}", picks[:, s].astype(float), total) for s in range(counts.k)]
    if counts.status is not None:
        columns += _status_columns(counts.status)
    found = clustered_shares(
        np.column_stack([hits for _, hits, _ in columns]),
        np.column_stack([n for _, _, n in columns]),
        level=analysis.level,
    )
    yield from zip((name for name, _, _ in columns), found, strict=True)


def _status_columns(status: npt.NDArray[Any]) -> Iterator[tuple[str, Array, Array]]:
    """Yield name, hits and calls of each outcome that some call had; `status` has shape (units, statuses, slots)."""
    asked = status.sum(axis=1).astype(float)
    for code, name in enumerate(STATUSES):
        hits = status[:, code].astype(float)
        if hits.any():
            yield f"status.{name}", hits.sum(axis=1), asked.sum(axis=1)
            for s in range(hits.shape[1]):
                yield f"status.{name}.slot_{s + 1}", hits[:, s], asked[:, s]


def _steadiness(analysis: Analysis, counts: Tallied) -> Iterator[tuple[str, Result]]:
    if counts.choices is not None:
        yield from vars(steadiness(counts.choices, level=analysis.level)).items()
        found = disagreement(counts.choices, level=analysis.level, n_resamples=analysis.resamples, seed=analysis.seed)
        yield from ((f"disagreement.{name}", result) for name, result in vars(found).items())


def _published(analysis: Analysis, counts: Tallied) -> Iterator[tuple[str, Result]]:
    correct, scored, level, seed = counts.correct, counts.scored, analysis.level, analysis.seed
    runs = run_level_effects(correct, scored, level=level, n_resamples=analysis.run_resamples, seed=seed)
    items = question_level_effects(correct, scored, level=level, n_resamples=analysis.resamples, seed=seed)
    yield "chi2.published", contingency_test(correct, scored).chi2
    for of, suffix in ((runs, ""), (items, ".question")):
        yield f"V.published{suffix}", of.v
        yield f"V.bergsma{suffix}", of.bergsma
        yield f"rho.published{suffix}", of.rho


def _tests(analysis: Analysis, counts: Tallied) -> Iterator[tuple[str, Result]]:
    correct, scored, seed = counts.correct, counts.scored, analysis.seed
    level, draws, alpha = analysis.level, analysis.resamples, analysis.alpha
    accuracy = relabel_accuracy(correct, scored, n_draws=draws, seed=seed, alpha=alpha).result
    yield "V.corrected", cluster_corrected_v(correct, scored, level=level, n_resamples=draws, seed=seed)
    yield "relabelling.accuracy", accuracy
    picks = relabel_picks(counts.picks, n_draws=draws, seed=seed, alpha=alpha).result
    if counts.status is not None:
        asked = counts.status.sum(axis=1)
        without = asked - scored
        missing = relabel_unanswered(without, asked, n_draws=draws, seed=seed, alpha=alpha).result
        yield "relabelling.unanswered", missing
        picks = guarded_picks(picks, missing, int(without.sum()), alpha=alpha)
    yield "relabelling.picks", picks
    yield "recentred.accuracy", recentred_bootstrap(correct, scored, n_resamples=draws, seed=seed)
    shapes = planned_contrasts(
        correct, scored, level=level, alpha=alpha, n_resamples=draws, seed=seed, relabelling=accuracy
    )
    yield from ((f"shape.{name}", result) for name, result in vars(shapes).items())


def _nats(analysis: Analysis, counts: Tallied) -> Iterator[tuple[str, Result]]:
    if counts.nats is None:
        return
    found = label_logprobs(
        counts.nats.item,
        counts.nats.option,
        counts.nats.logprobs,
        counts.nats.censored,
        units=counts.nats.unit,
        level=analysis.level,
        n_resamples=analysis.resamples,
        seed=analysis.seed,
    )
    for slot, (mean, bonus, prior) in enumerate(zip(found.mean, found.bonus, found.prior, strict=True), start=1):
        yield f"label_logprob.slot_{slot}", mean
        yield f"slot_bonus.slot_{slot}", bonus
        yield f"label_prior.slot_{slot}", prior


def _p_below(name: str) -> Callable[[Analysis, Results], bool]:
    def rejects(analysis: Analysis, found: Results) -> bool:
        p = found[name].p
        return p is not None and p < analysis.alpha

    return rejects


def _bias(analysis: Analysis, found: Results) -> bool:
    adjusted = holm([found["relabelling.accuracy"].p, found["relabelling.picks"].p])
    return any(p is not None and p < analysis.alpha for p in adjusted)


def _v_above_0(analysis: Analysis, found: Results) -> bool:
    low = found["V.corrected"].low
    return low is not None and low > 0


def _some_shape(analysis: Analysis, found: Results) -> bool:
    return found["shape.label"].label not in ("inactive", None) and found["shape.label"].status == "ok"


def _classified(version: str) -> Callable[[Analysis, Results], bool]:
    def active(analysis: Analysis, found: Results) -> bool:
        v, p, rho = found["V.published"].estimate, found["chi2.published"].p, found["rho.published"].estimate
        if v is None or p is None:
            return False
        floor, threshold = analysis.v_floor, analysis.rho_threshold
        if version == "v0_1":
            return classify_v0_1(v, rho, v_floor=floor, rho_threshold=threshold) != "inactive"
        label = classify_v0_2(v, p, rho, alpha=analysis.alpha, v_floor=floor, rho_threshold=threshold)
        return label != "inactive"

    return active


REJECTIONS: Mapping[str, Callable[[Analysis, Results], bool]] = {
    "relabelling.accuracy": _p_below("relabelling.accuracy"),
    "relabelling.picks": _p_below("relabelling.picks"),
    "bias": _bias,
    "recentred.accuracy": _p_below("recentred.accuracy"),
    "shape": _some_shape,
    "V.corrected > 0": _v_above_0,
    "chi2.published": _p_below("chi2.published"),
    "mechanism.v0_2": _classified("v0_2"),
    "mechanism.v0_1": _classified("v0_1"),
}
"""Everything by which a cell can be said to show an effect."""


def truths(scenario: Scenario, orders: Ints) -> dict[str, float]:
    """Return the population's value of each quantity that has one to be compared with; `orders` are those asked."""
    truth, slots = scenario.population, range(scenario.nuisance.k)
    values = {"accuracy": truth.accuracy, "V.corrected": truth.v}
    for s in slots:
        values[f"accuracy.slot_{s + 1}"] = float(truth.correct[s])
        if scenario.refused_slot is not None:
            continue
        values[f"picks.slot_{s + 1}"] = float(truth.picks[s])
        values[f"picks_when_wrong.slot_{s + 1}"] = float(truth.wrong_picks[s])
    values |= {f"shape.{name}": value for name, value in truth.contrasts.items()}
    for level in ("", ".question"):
        values[f"V.published{level}"] = values[f"V.bergsma{level}"] = truth.v
        if scenario.balanced_slot is None:
            values[f"rho.published{level}"] = truth.rho
    if scenario.refused_slot is None:
        values |= _steady(scenario, orders)
    if scenario.refusal_rate > 0:
        refused = [scenario.refusal_rate if scenario.refused_slot in (None, s) else 0.0 for s in slots]
        values |= {"status.ok": 1 - sum(refused) / len(refused), "status.refused": sum(refused) / len(refused)}
        values |= {f"status.ok.slot_{s + 1}": 1 - share for s, share in enumerate(refused)}
        values |= {f"status.refused.slot_{s + 1}": share for s, share in enumerate(refused)}
    if scenario.read == "logprob":
        nats = nats_truth(scenario.respondent, orders)
        for name, by_slot in (("label_logprob", nats.mean), ("slot_bonus", nats.bonus), ("label_prior", nats.prior)):
            values |= {f"{name}.slot_{s + 1}": float(by_slot[s]) for s in slots}
    return values


def _steady(scenario: Scenario, orders: Ints) -> dict[str, float]:
    found = steady_truth(scenario.respondent, orders, repeats=scenario.repeats)
    values = {"disagreement.other_order": found.other_order}
    # What all of an item's calls do depends on how many were answered.
    if scenario.refusal_rate == 0:
        values |= {"consistency": found.consistency, "flip_rate": 1 - found.consistency}
        values["usual_share"] = found.usual_share
    if scenario.repeats > 1:
        values["disagreement.same_order"] = found.same_order
        values["disagreement.excess"] = found.other_order - found.same_order
    return values
