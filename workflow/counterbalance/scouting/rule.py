"""The preregistered rule: which cells are worth the sweep, by what the scout saw."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.config import Analysis
from counterbalance.config.models import Scout
from counterbalance.stats.estimate import Result


@dataclass(frozen=True)
class Ruling:
    """What the rule says of a cell, and what is done.

    Attributes
    ----------
    keeps
        Whether the rule keeps the cell; None where there is no rule or it cannot be told.
    settled
        Whether it would say the same at every accuracy of the interval; None where `keeps` is.
    skip
        Whether the cell is left out. What cannot be told is never skipped.
    reason
        In words.
    """

    keeps: bool | None
    settled: bool | None
    skip: bool
    reason: str


def band_of(analysis: Analysis, accuracy: float) -> str:
    """Return the capability band of an accuracy."""
    low, high = analysis.capability_band
    return "low" if accuracy < low else "high" if accuracy >= high else "middle"


def rule_on(scout: Scout, analysis: Analysis, accuracy: Result) -> Ruling:
    """Apply a scout's rule to the accuracy that it measured."""
    if scout.keep is None and scout.keep_bands is None:
        return Ruling(None, None, False, "the plan has no rule: every cell is asked")
    if accuracy.estimate is None:
        return Ruling(None, None, False, f"the rule cannot be applied, so the cell is asked: {accuracy.reason}")
    keeps = _keeps(scout, analysis, accuracy.estimate)
    ends = _within(scout, analysis, accuracy)
    settled = all(_keeps(scout, analysis, value) == keeps for value in ends)
    reason = _reason(scout, analysis, accuracy.estimate)
    if not settled:
        reason += f"; the interval, {accuracy.low:.3f} to {accuracy.high:.3f}, reaches over the edge"
    if not keeps and scout.action == "report":
        reason += "; asked all the same, as the plan only reports"
    return Ruling(keeps, settled, not keeps and scout.action == "skip", reason)


def _keeps(scout: Scout, analysis: Analysis, accuracy: float) -> bool:
    if scout.keep is not None:
        return scout.keep.min_accuracy <= accuracy <= scout.keep.max_accuracy
    return band_of(analysis, accuracy) in (scout.keep_bands or ())


def _within(scout: Scout, analysis: Analysis, accuracy: Result) -> Sequence[float]:
    """Return the accuracies of the interval at which the rule could change."""
    if accuracy.low is None or accuracy.high is None:
        return []
    edges = [*analysis.capability_band] if scout.keep is None else [scout.keep.min_accuracy, scout.keep.max_accuracy]
    return [accuracy.low, accuracy.high, *(edge for edge in edges if accuracy.low <= edge <= accuracy.high)]


def _reason(scout: Scout, analysis: Analysis, accuracy: float) -> str:
    if scout.keep is None:
        band, kept = band_of(analysis, accuracy), scout.keep_bands or ()
        verb = "is" if band in kept else "is not"
        return f"scout accuracy {accuracy:.3f}, band {band}, which {verb} among keep_bands ({', '.join(kept)})"
    low, high = scout.keep.min_accuracy, scout.keep.max_accuracy
    if accuracy < low:
        return f"scout accuracy {accuracy:.3f} is below min_accuracy {low:g}"
    if accuracy > high:
        return f"scout accuracy {accuracy:.3f} is above max_accuracy {high:g}"
    return f"scout accuracy {accuracy:.3f} is between min_accuracy {low:g} and max_accuracy {high:g}"
