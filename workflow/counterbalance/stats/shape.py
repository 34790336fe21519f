"""Which shape over the slots explains a cell: planned contrasts with simultaneous intervals, and a label."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from counterbalance.stats.counts import Array, SlotCounts, slot_counts
from counterbalance.stats.estimate import Result, Status, few_items
from counterbalance.stats.resampling import Seed
from counterbalance.stats.slotmeans import observed_means, resampled_means

ShapeLabel = Literal[
    "inactive",
    "linear_decline",
    "linear_rise",
    "first_boost",
    "first_drop",
    "last_boost",
    "last_drop",
    "undetermined",
    "other_shape",
]

_ROUNDING = 1e-7
"""Standard errors and deviations below this are the rounding error of 0."""

_FEW_VARY = "so few items vary that many resamples have none that does: no critical value"
_PLACES = {"linear": 0, "first": 1, "last": -1}
"""Rows of the family of contrasts that are the planned shapes."""

_SIGNED: dict[str, tuple[ShapeLabel, ShapeLabel]] = {
    "linear": ("linear_rise", "linear_decline"),
    "first": ("first_boost", "first_drop"),
    "last": ("last_boost", "last_drop"),
}

Studentised = tuple[Array, Array, float]
"""Estimates and standard errors of some contrasts, and the critical value of their largest ratio."""


@dataclass(frozen=True)
class Shapes:
    """Planned contrasts of the slot accuracies and the shape that explains them.

    Attributes
    ----------
    linear
        Fitted change of accuracy from the first slot to the last, along a straight line.
    first, last
        Accuracy in the first (last) slot less the mean of the others.
    label
        Result whose `label` is a `ShapeLabel`.
    """

    linear: Result
    first: Result
    last: Result
    label: Result


def planned_contrasts(
    correct: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: Seed,
) -> Shapes:
    """Estimate the competing shapes of a slot effect and say which of them explains the cell.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).

    Notes
    -----
    The family is the linear trend and every slot against the rest (so a dip in the middle is not missed). Intervals
    are simultaneous over it: estimate +- c x standard error, with c the `level` quantile of the largest studentised
    deviation over bootstrap samples of items (max-t). The chance that any of them misses is 1 - `level`.

    Labels:

    ``inactive``
        No interval of the family excludes 0. No shape was seen, which is not proof of none.
    ``linear_decline``, ``linear_rise``, ``first_boost``, ``first_drop``, ``last_boost``, ``last_drop``
        Its interval excludes 0 and it is the only one of the three shapes that the data do not reject. A shape is
        rejected if, after its least-squares fit to the slot profile, what is left in some slot is not 0 (max-t over
        the slots). A true shape is rejected with chance 1 - `level` at most, so that is the chance of a wrong name.
    ``undetermined``
        Some interval excludes 0, but two or three shapes are not rejected (always so with two slots); or too few
        items vary for a test (``not_measurable``).
    ``other_shape``
        All three are rejected: for example a dip in the middle.

    Source of max-t: Westfall and Young (1993), Resampling-based multiple testing, chapter 2.
    """
    counts = slot_counts(correct, n)
    reason = _why_undefined(counts)
    if reason:
        return _without_intervals(counts, reason)
    family = _family(counts.n_slots)
    tests = [family, *(_left_over(family[place]) for place in _PLACES.values())]
    studentised, *left_over = _max_t(counts, tests, level, n_resamples, seed)
    linear, first, last = (
        _interval(name, place, counts, studentised, level, n_resamples) for name, place in _PLACES.items()
    )
    rejected = [bool(_beyond(found).any()) for found in left_over]
    status, label, why = _label(studentised, dict(zip(_PLACES, rejected, strict=True)))
    stated = Result(
        method=f"only shape not rejected, max-t bootstrap over items ({n_resamples} resamples)",
        level=level,
        **counts.size,
        status=status,
        reason=why,
        label=label,
    )
    return Shapes(linear, first, last, stated)


def _why_undefined(counts: SlotCounts) -> str | None:
    if counts.n_items < 2:
        return f"{counts.n_items} items; needs at least 2"
    return counts.empty_slots


def _without_intervals(counts: SlotCounts, reason: str) -> Shapes:
    nothing = Result(
        method="planned contrast of slot accuracies",
        **counts.size,
        status="undefined",
        reason=reason,
    )
    return Shapes(nothing, nothing, nothing, nothing)


def _family(k: int) -> Array:
    """Return the linear trend (as change from first slot to last) and each slot against the rest, (k + 1, k)."""
    slots = np.arange(k) - (k - 1) / 2
    linear = slots * (k - 1) / (slots**2).sum()
    against_rest = (np.eye(k) * k - 1) / (k - 1)
    return np.vstack([linear, against_rest])


def _left_over(shape: Array) -> Array:
    """Return the map from slot accuracies to what a least-squares fit of level and one shape leaves, (k, k)."""
    k = len(shape)
    rest = np.eye(k) - 1 / k - np.outer(shape, shape) / (shape @ shape)
    return np.where(np.abs(rest) > _ROUNDING, rest, 0.0)


def _max_t(counts: SlotCounts, tests: list[Array], level: float, n_resamples: int, seed: Seed) -> list[Studentised]:
    """Return estimates, standard errors and the critical value of each set of contrasts."""
    observed = observed_means(counts)
    found = [tuple(part[0] for part in observed.contrast(test)) for test in tests]
    largest: list[list[Array]] = [[] for _ in tests]
    for block in resampled_means(counts, n_resamples, seed):
        for test, (estimate, error), maxima in zip(tests, found, largest, strict=True):
            values, errors = block.contrast(test)
            maxima.append(_ratio(np.abs(values - estimate), np.where(error > _ROUNDING, errors, np.inf)).max(axis=1))
    # The next larger draw, not a mean of two, of which one may be infinite.
    quantiles = [float(np.quantile(np.concatenate(maxima), level, method="higher")) for maxima in largest]
    return [(*pair, quantile) for pair, quantile in zip(found, quantiles, strict=True)]


def _ratio(value: Array, error: Array) -> Array:
    """Return value / error: 0 where there is no deviation, infinite where there is one without any error."""
    moved = value > _ROUNDING
    safe = np.where(error > _ROUNDING, error, 1.0)
    return np.where(moved & (error <= _ROUNDING), np.inf, np.where(moved, value / safe, 0.0))


def _beyond(found: Studentised) -> npt.NDArray[np.bool_]:
    """Return which contrasts differ from 0 by more than the critical value."""
    estimates, errors, critical = found
    return _ratio(np.abs(estimates), errors) > critical


def _interval(name: str, place: int, counts: SlotCounts, found: Studentised, level: float, n_resamples: int) -> Result:
    estimates, errors, critical = found
    method = f"planned contrast, {name}; simultaneous max-t bootstrap over items ({n_resamples} resamples)"
    estimate, error = float(estimates[place]), float(errors[place])
    if error <= _ROUNDING:
        reason = "every item has the same contrast: an interval would have no width"
        return Result(method=method, estimate=estimate, **counts.size, status="degenerate", reason=reason)
    if not np.isfinite(critical):
        return Result(method=method, estimate=estimate, **counts.size, status="not_measurable", reason=_FEW_VARY)
    half = critical * error
    return Result(
        method=method,
        estimate=estimate,
        low=estimate - half,
        high=estimate + half,
        level=level,
        **counts.size,
        reason=few_items(counts.n_items),
    )


def _label(family: Studentised, rejected: dict[str, bool]) -> tuple[Status, ShapeLabel, str]:
    estimates, errors, critical = family
    if not np.isfinite(critical):
        return "not_measurable", "undetermined", _FEW_VARY
    if max(np.abs(estimates).max(), errors.max()) <= _ROUNDING:
        return "degenerate", "inactive", "all slots are equally accurate in every item"
    beyond = _beyond(family)
    if not beyond.any():
        return "ok", "inactive", "no simultaneous interval excludes 0"
    left = [name for name, out in rejected.items() if not out]
    if not left:
        return "ok", "other_shape", "linear, first and last are all rejected"
    if len(left) > 1:
        return "ok", "undetermined", f"not separable: {', '.join(left)}"
    place = _PLACES[left[0]]
    if not beyond[place]:
        return "ok", "undetermined", f"only {left[0]} is not rejected, and its own interval includes 0"
    return "ok", _SIGNED[left[0]][0 if estimates[place] > 0 else 1], "the other two shapes are rejected"
