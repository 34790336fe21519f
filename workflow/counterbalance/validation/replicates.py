"""A scenario answered, scored and estimated again and again; what was rejected and covered is counted."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import numpy as np

from counterbalance.arrangements import Scheme
from counterbalance.canonical import Json
from counterbalance.config import Analysis
from counterbalance.designs.mcq.counts import count_strata
from counterbalance.simulation.cells import PlantedCell, planted_cell
from counterbalance.simulation.respondent import Array, choose, tally, utilities
from counterbalance.simulation.scenarios import ReadKind, Scenario, read_settings
from counterbalance.stats.disagreement import Choices
from counterbalance.stats.estimate import Result
from counterbalance.validation.measure import REJECTIONS, Tallied, measure, truths

_CELLS_AT_ONCE = 50
_DRAWS_AT_ONCE = 5
_TIE = 1e-9
"""An interval that ends within rounding of the truth covers it."""


@dataclass
class Coverage:
    """How an interval did.

    Attributes
    ----------
    n, covered, below, above
        Intervals seen; those that hold the truth; those that lie wholly below or above it.
    absent
        Replicates without an interval.
    width, estimate
        Sums over the intervals seen and over the estimates.
    estimates
        Replicates with an estimate.
    """

    truth: float
    n: int = 0
    covered: int = 0
    below: int = 0
    above: int = 0
    absent: int = 0
    width: float = 0.0
    estimate: float = 0.0
    estimates: int = 0

    def add(self, result: Result) -> bool | None:
        """Count one replicate; return whether its interval covers, None without one."""
        if result.estimate is not None:
            self.estimate += result.estimate
            self.estimates += 1
        if result.low is None or result.high is None:
            self.absent += 1
            return None
        self.n += 1
        self.width += result.high - result.low
        self.below += result.high < self.truth - _TIE
        self.above += result.low > self.truth + _TIE
        covers = result.low - _TIE <= self.truth <= result.high + _TIE
        self.covered += covers
        return covers


@dataclass
class ScenarioCounts:
    """Everything counted over a scenario's replicates."""

    replicates: int
    through_doors: int
    rejected: Counter[str] = field(default_factory=Counter)
    coverage: dict[str, Coverage] = field(default_factory=dict)
    jointly: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    accuracy: float = 0.0
    unstable: float = 0.0

    def as_json(self) -> dict[str, Json]:
        """Return the counts as JSON values, names in order."""
        return {
            "replicates": self.replicates,
            "through_doors": self.through_doors,
            "rejected": {name: self.rejected[name] for name in REJECTIONS},
            "coverage": {name: dict(vars(found)) for name, found in sorted(self.coverage.items())},
            "jointly": {name: self.jointly[name] for name in ("n", "covered")},
            "labels": dict(sorted(self.labels.items())),
            "accuracy": self.accuracy / self.replicates,
            "unstable": self.unstable / self.replicates,
        }


@dataclass(frozen=True)
class DrawnCell:
    """Counts of a cell drawn by the respondents' model, as `measure` takes them."""

    k: int
    correct: Array
    scored: Array
    picks: Array
    wrong_picks: Array
    choices: Choices
    nats: None = None
    status: None = None


def run_scenario(
    scenario: Scenario, replicates: int, *, through_doors: int, resamples: int, first_seed: int = 1
) -> ScenarioCounts:
    """Answer a scenario's cells, estimate them, and count.

    Parameters
    ----------
    replicates
        Independent cells; the seed of each, of its respondent and of its resampling, is `first_seed` + its number.
    through_doors
        How many of them go reply by reply through vendor, reader, score and count. The others are drawn by the same
        response model and counted at once, which is several times faster. All of them go through the doors where a
        reply is more than a choice: log-probabilities, refusals.
    resamples
        Draws of every resampling in each cell.
    """
    slow = scenario.read == "logprob" or scenario.refusal_rate > 0
    first = replicates if slow else min(through_doors, replicates)
    counted = ScenarioCounts(replicates, first)
    counted.coverage = {name: Coverage(truth) for name, truth in truths(scenario, _cell(scenario, 1).orders).items()}
    cells = chain(
        (_asked(scenario, seed) for seed in range(first_seed, first_seed + first)),
        _drawn(scenario, replicates - first, first_seed),
    )
    for seed, counts in enumerate(cells, start=first_seed):
        analysis = Analysis(seed=seed, resamples=resamples, run_resamples=resamples)
        _count(counted, measure(analysis, counts), analysis)
        asked = counts.scored > 0
        share = counts.correct / np.maximum(counts.scored, 1)
        varies = np.where(asked, share, -1.0).max(axis=1) > np.where(asked, share, 2.0).min(axis=1)
        counted.unstable += float(varies.mean())
        counted.accuracy += float(counts.correct.sum() / counts.scored.sum())
    return counted


@cache
def _fixed_cell(scheme: Scheme, n_items: int, read: ReadKind, repeats: int) -> PlantedCell:
    return planted_cell(scheme, n_items=n_items, read=read_settings(read), repeats=repeats)


def _cell(scenario: Scenario, seed: int) -> PlantedCell:
    """Return the trials; drawn orders are drawn anew, since a test is right over draws and not for one of them."""
    if scenario.scheme != "sampled":
        return _fixed_cell(scenario.scheme, scenario.n_items, scenario.read, scenario.repeats)
    return planted_cell(
        scenario.scheme, scenario.n_orders, n_items=scenario.n_items, read=read_settings(scenario.read), seed=seed
    )


def _asked(scenario: Scenario, seed: int) -> Tallied:
    outcomes = _cell(scenario, seed).outcomes(
        scenario.respondent, seed, refusal_rate=scenario.refusal_rate, refused_slot=scenario.refused_slot
    )
    (counts,) = count_strata(outcomes)
    return counts


def _drawn(scenario: Scenario, replicates: int, seed: int) -> Iterator[Tallied]:
    rng, able = np.random.default_rng(seed), scenario.respondent
    at_once = _DRAWS_AT_ONCE if scenario.scheme == "sampled" else _CELLS_AT_ONCE
    for start in range(0, replicates, at_once):
        orders = _cell(scenario, seed + start).orders
        effects = able.effects(min(at_once, replicates - start), len(orders), rng)
        found = tally(choose(utilities(effects, orders), able.call_noise, rng), orders)
        items, calls, _ = orders.shape
        item, order = np.divmod(np.arange(items * calls), calls)
        once = np.zeros(items * calls, dtype=bool)
        for number in range(len(effects)):
            yield DrawnCell(
                k=able.k,
                correct=found.correct[number],
                scored=found.n,
                picks=found.picks[number],
                wrong_picks=found.wrong_picks[number],
                choices=Choices(item, item, order // scenario.repeats, found.option[number].ravel(), once),
            )


def _count(counted: ScenarioCounts, found: Mapping[str, Result], analysis: Analysis) -> None:
    for name, rejects in REJECTIONS.items():
        counted.rejected[name] += rejects(analysis, found)
    covers = {name: coverage.add(found[name]) for name, coverage in counted.coverage.items()}
    shapes = [covered for name, covered in covers.items() if name.startswith("shape.")]
    if None not in shapes:
        counted.jointly["n"] += 1
        counted.jointly["covered"] += all(shapes)
    counted.labels[found["shape.label"].label or "none"] += 1
