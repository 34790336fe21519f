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
    "middle_boost",
    "middle_drop",
    "undetermined",
    "other_shape",
]

_ROUNDING = 1e-7
"""Standard errors and deviations below this are the rounding error of 0."""

_FEW_VARY = "so few items vary that many resamples have none that does: no critical value"
_NAMES = ("linear", "first", "last", "middle")

_SIGNED: dict[str, tuple[ShapeLabel, ShapeLabel]] = {
    "linear": ("linear_rise", "linear_decline"),
    "first": ("first_boost", "first_drop"),
    "last": ("last_boost", "last_drop"),
    "middle": ("middle_boost", "middle_drop"),
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
    middle
        Mean accuracy of the slots in between less that of the first and the last; ``undefined`` with two slots.
    label
        Result whose `label` is a `ShapeLabel`.
    support
        The shape that fits the profile best, as `label`, and the share of resamples in which it does, as the estimate.
    """

    linear: Result
    first: Result
    last: Result
    middle: Result
    label: Result
    support: Result


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
    The family is the linear trend, the middle slots against the ends, and every slot against the rest. Intervals are
    simultaneous over it: estimate +- c x standard error, with c the `level` quantile of the largest studentised
    deviation over bootstrap samples of items (max-t). The chance that any of them misses is 1 - `level`.

    Candidate shapes are the trend, the first slot alone, the last alone, and in the middle each slot alone and all
    together. A candidate is rejected if, after its least-squares fit to the slot profile, what is left in some slot is
    not 0 (max-t over the slots). A true shape is rejected with chance 1 - `level` at most, so that is the chance of a
    wrong name. Labels:

    ``inactive``
        No interval of the family excludes 0. No shape was seen, which is not proof of none.
    ``linear_decline``, ``linear_rise``, ``first_boost``, ``first_drop``, ``last_boost``, ``last_drop``,
    ``middle_boost``, ``middle_drop``
        The interval of a candidate of this name excludes 0, and no candidate of another name is left.
    ``undetermined``
        Some interval excludes 0, but candidates of two names or more are not rejected (always so with two slots); or
        too few items vary for a test (``not_measurable``).
    ``other_shape``
        All are rejected: for example two slots, but not neighbours, that differ from the rest.

    Support says how stable the best fit is where a name could or could not be given: of each resample of items, which
    candidate leaves the least sum of squares. It is a description, as resamples scatter more than the data do.

    Source of max-t: Westfall and Young (1993), Resampling-based multiple testing, chapter 2.
    """
    counts = slot_counts(correct, n)
    reason = _why_undefined(counts)
    if reason:
        return _without_intervals(counts, reason)
    family = _family(counts.n_slots)
    tests, best = _resample(counts, family, level, n_resamples, seed)
    studentised, left_over = tests[0], tests[1:]
    found = {
        name: _interval(name, family.rows[name][0], counts, studentised, level, n_resamples)
        if name in family.rows
        else _undefined(counts, "two slots have no middle")
        for name in _NAMES
    }
    kept = [candidate for candidate, test in zip(family.candidates, left_over, strict=True) if not _beyond(test).any()]
    status, label, why = _label(studentised, family, kept)
    stated = Result(
        method=f"only shape not rejected, max-t bootstrap over items ({n_resamples} resamples)",
        level=level,
        **counts.size,
        status=status,
        reason=why,
        label=label,
    )
    return Shapes(**found, label=stated, support=_support(counts, family, studentised, best))


def _why_undefined(counts: SlotCounts) -> str | None:
    if counts.n_items < 2:
        return f"{counts.n_items} items; needs at least 2"
    return counts.empty_slots


def _undefined(counts: SlotCounts, reason: str) -> Result:
    return Result(method="planned contrast of slot accuracies", **counts.size, status="undefined", reason=reason)


def _without_intervals(counts: SlotCounts, reason: str) -> Shapes:
    nothing = _undefined(counts, reason)
    return Shapes(nothing, nothing, nothing, nothing, nothing, nothing)


@dataclass(frozen=True)
class _Family:
    """Contrasts of k slot accuracies.

    Attributes
    ----------
    contrasts
        Shape (contrasts, slots).
    rows
        Of each name, the contrasts that are candidates for it; the first one is the planned contrast.
    """

    contrasts: Array
    rows: dict[str, list[int]]

    @property
    def candidates(self) -> list[tuple[str, int]]:
        return [(name, row) for name, rows in self.rows.items() for row in rows]


def _family(k: int) -> _Family:
    """Return the linear trend (as change from first slot to last), each slot against the rest, middle against ends."""
    slots = np.arange(k) - (k - 1) / 2
    linear = slots * (k - 1) / (slots**2).sum()
    contrasts = [linear, *((np.eye(k) * k - 1) / (k - 1))]
    rows = {"linear": [0], "first": [1], "last": [k]}
    if k == 3:
        rows["middle"] = [2]
    if k > 3:
        contrasts.append(np.array([-0.5, *np.full(k - 2, 1 / (k - 2)), -0.5]))
        rows["middle"] = [k + 1, *range(2, k)]
    return _Family(np.array(contrasts), rows)


def _left_over(shape: Array) -> Array:
    """Return the map from slot accuracies to what a least-squares fit of level and one shape leaves, (k, k)."""
    k = len(shape)
    rest = np.eye(k) - 1 / k - np.outer(shape, shape) / (shape @ shape)
    return np.where(np.abs(rest) > _ROUNDING, rest, 0.0)


def _resample(
    counts: SlotCounts, family: _Family, level: float, n_resamples: int, seed: Seed
) -> tuple[list[Studentised], Array]:
    """Return estimates, errors and critical value of the family and of what each candidate leaves, and who fits best.

    Who fits best is the share of resamples in which each candidate does.
    """
    tests = [family.contrasts, *(_left_over(family.contrasts[row]) for _, row in family.candidates)]
    observed = observed_means(counts)
    found = [(values[0], errors[0]) for values, errors in map(observed.contrast, tests)]
    largest: list[list[Array]] = [[] for _ in tests]
    best = np.zeros(len(family.candidates))
    for block in resampled_means(counts, n_resamples, seed):
        for test, (estimate, error), maxima in zip(tests, found, largest, strict=True):
            values, errors = block.contrast(test)
            maxima.append(_ratio(np.abs(values - estimate), np.where(error > _ROUNDING, errors, np.inf)).max(axis=1))
        best += _fit(block.mean, family)
    # The next larger draw, not a mean of two, of which one may be infinite.
    quantiles = [float(np.quantile(np.concatenate(maxima), level, method="higher")) for maxima in largest]
    return [(*pair, quantile) for pair, quantile in zip(found, quantiles, strict=True)], best / n_resamples


def _fit(means: Array, family: _Family) -> Array:
    """Return of how many profiles each candidate takes the largest part; ties are shared."""
    shapes = np.array([family.contrasts[row] for _, row in family.candidates])
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    part = ((means - means.mean(axis=1, keepdims=True)) @ shapes.T) ** 2
    top = part >= part.max(axis=1, keepdims=True) - _ROUNDING**2
    return np.asarray((top / top.sum(axis=1, keepdims=True)).sum(axis=0))


def _support(counts: SlotCounts, family: _Family, found: Studentised, best: Array) -> Result:
    method = "shape that fits best, and in what share of resamples of items it does"
    estimates = found[0]
    if np.abs(estimates).max() <= _ROUNDING:
        reason = "all slots are equally accurate, which is no shape"
        return Result(method=method, **counts.size, status="undefined", reason=reason)
    profile = counts.correct.sum(axis=0) / counts.n.sum(axis=0)
    names = [name for name, _ in family.candidates]
    own = int(_fit(profile[None, :], family).argmax())
    name, row = family.candidates[own]
    total = {each: float(best[[each == other for other in names]].sum()) for each in family.rows}
    others = ", ".join(f"{each} {share:.0%}" for each, share in total.items() if each != name)
    return Result(
        method=method,
        estimate=min(total[name], 1.0),
        **counts.size,
        status="descriptive",
        reason=f"not a probability that the shape is right; others: {others}",
        label=_SIGNED[name][0 if estimates[row] > 0 else 1],
    )


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


def _label(found: Studentised, family: _Family, kept: list[tuple[str, int]]) -> tuple[Status, ShapeLabel, str]:
    estimates, errors, critical = found
    if not np.isfinite(critical):
        return "not_measurable", "undetermined", _FEW_VARY
    if max(np.abs(estimates).max(), errors.max()) <= _ROUNDING:
        return "degenerate", "inactive", "all slots are equally accurate in every item"
    beyond = _beyond(found)
    if not beyond.any():
        return "ok", "inactive", "no simultaneous interval excludes 0"
    left = list(dict.fromkeys(name for name, _ in kept))
    if not left:
        return "ok", "other_shape", f"{', '.join(family.rows)} are all rejected"
    if len(left) > 1:
        return "ok", "undetermined", f"not separable: {', '.join(left)}"
    signs = {bool(estimates[row] > 0) for _, row in kept if beyond[row]}
    if len(signs) != 1:
        return "ok", "undetermined", f"only {left[0]} is not rejected, and no interval of it excludes 0"
    return "ok", _SIGNED[left[0]][0 if signs.pop() else 1], "the other shapes are rejected"
