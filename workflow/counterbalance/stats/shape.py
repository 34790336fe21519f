"""Which shape over the slots explains a cell: planned contrasts with simultaneous intervals, and a label."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from counterbalance.stats.counts import Array, SlotCounts, slot_counts
from counterbalance.stats.estimate import Result, few_items
from counterbalance.stats.relabel import relabel_accuracy
from counterbalance.stats.resampling import Seed, bootstrap_sums
from counterbalance.stats.simultaneous import Simultaneous, largest_by_sign_flips, simultaneous_means
from counterbalance.stats.slotmeans import item_parts

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
"""Deviations below this are the rounding error of 0."""

_LACK_OF_FIT = 0.2
"""Share of alpha at which the best shape itself is given up: `other_shape` for a true shape is a wrong name too."""

_NAMES = ("linear", "first", "last", "middle")

_SIGNED: dict[str, tuple[ShapeLabel, ShapeLabel]] = {
    "linear": ("linear_rise", "linear_decline"),
    "first": ("first_boost", "first_drop"),
    "last": ("last_boost", "last_drop"),
    "middle": ("middle_boost", "middle_drop"),
}


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
    alpha: float = 0.05,
    n_resamples: int = 9999,
    seed: Seed,
    relabelling: Result | None = None,
) -> Shapes:
    """Estimate the competing shapes of a slot effect and say which of them explains the cell.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).
    level
        Of the simultaneous intervals.
    alpha
        Of the tests behind the label.
    n_resamples
        Draws of each resampling.
    relabelling
        `relabel_accuracy` of the same counts, where it is at hand; None: it is computed here.

    Notes
    -----
    Intervals: `simultaneous_means` over the four planned contrasts.

    Candidate shapes are the trend, the first slot alone, the last alone, and in the middle each slot alone and all
    together. The label is found in three steps.

    1. Is there an effect of slot that items share? The slot relabelling of accuracy says so, the same p as everywhere.
    2. The best candidate leaves the least sum of squares of the profile. Every rival of another name has to be
       rejected in its favour: under the rival, what it leaves of the best candidate has mean 0 over items (two-sided
       sign-flip test at `alpha`). One contrast for each rival, so that no power is spent on other departures.
    3. The best candidate must fit: what it leaves in the slots must not be too large (sign-flip test of the largest
       studentised one, at a fifth of `alpha`).

    ``inactive``
        Step 1 does not reject. No shape was seen, which is not proof of none (``not_measurable`` where too few items
        vary for the test).
    ``linear_decline``, ``linear_rise``, ``first_boost``, ``first_drop``, ``last_boost``, ``last_drop``,
    ``middle_boost``, ``middle_drop``
        All rivals are rejected, and the best candidate is not.
    ``undetermined``
        A rival is not rejected; always so with two slots.
    ``other_shape``
        All are rejected: for example two slots, but not neighbours, that differ from the rest.

    Support says how stable the best fit is where a name could or could not be given: of each resample of items, which
    candidate leaves the least sum of squares. It is a description, as resamples scatter more than the data do.
    """
    counts = slot_counts(correct, n)
    reason = _why_undefined(counts)
    if reason:
        nothing = _undefined(counts, reason)
        return Shapes(nothing, nothing, nothing, nothing, nothing, nothing)
    family = _family(counts.n_slots)
    parts = item_parts(counts)
    gate = relabelling or relabel_accuracy(correct, n, n_draws=n_resamples, seed=seed, alpha=alpha).result
    return Shapes(
        **_contrasts(counts, family, parts, level, n_resamples, seed),
        label=_label(counts, family, parts, gate, alpha, n_resamples, seed),
        support=_support(counts, family, n_resamples, seed),
    )


def _why_undefined(counts: SlotCounts) -> str | None:
    if counts.n_items < 2:
        return f"{counts.n_items} items; needs at least 2"
    return counts.empty_slots


def _undefined(counts: SlotCounts, reason: str) -> Result:
    return Result(method="planned contrast of slot accuracies", **counts.size, status="undefined", reason=reason)


@dataclass(frozen=True)
class _Family:
    """Contrasts of k slot accuracies.

    Attributes
    ----------
    planned
        By name, the contrast that is reported, shape (slots,).
    shapes
        Candidates, of length 1, shape (candidates, slots).
    names
        Of each candidate.
    """

    planned: dict[str, Array]
    shapes: Array
    names: tuple[str, ...]


def _family(k: int) -> _Family:
    """Return the trend (change from first slot to last), first and last against the rest, middle against ends."""
    slots, alone = np.arange(k) - (k - 1) / 2, (np.eye(k) * k - 1) / (k - 1)
    planned = {"linear": slots * (k - 1) / (slots**2).sum(), "first": alone[0], "last": alone[-1]}
    candidates = list(planned.items())
    if k > 2:
        planned["middle"] = np.array([-0.5, *np.full(k - 2, 1 / (k - 2)), -0.5])
        candidates.append(("middle", planned["middle"]))
    if k > 3:
        candidates += [("middle", alone[slot]) for slot in range(1, k - 1)]
    shapes = np.array([contrast for _, contrast in candidates])
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    return _Family(planned, shapes, tuple(name for name, _ in candidates))


def _contrasts(
    counts: SlotCounts, family: _Family, parts: Array, level: float, n_draws: int, seed: Seed
) -> dict[str, Result]:
    table = np.array(list(family.planned.values()))
    values, spans = parts @ table.T, np.maximum(table, 0.0).sum(axis=1)
    limits = simultaneous_means(values, spans, level=level, n_draws=n_draws, seed=seed)
    found = {name: _undefined(counts, "two slots have no middle") for name in _NAMES}
    for place, name in enumerate(family.planned):
        found[name] = _contrast(name, float(values[:, place].mean()), place, limits, counts, level)
    return found


def _contrast(name: str, estimate: float, place: int, limits: Simultaneous, counts: SlotCounts, level: float) -> Result:
    how = "exact bound over items" if limits.exact else f"multivariate t, {limits.differing} differing items"
    alike = limits.differing == 0
    return Result(
        method=f"planned contrast, {name}; simultaneous over the planned contrasts, {how}",
        estimate=estimate,
        low=float(limits.low[place]),
        high=float(limits.high[place]),
        level=level,
        **counts.size,
        status="degenerate" if alike else "ok",
        reason="every item has the same contrasts: the limits are exact bounds" if alike else few_items(counts.n_items),
    )


def _label(
    counts: SlotCounts, family: _Family, parts: Array, gate: Result, alpha: float, n_draws: int, seed: Seed
) -> Result:
    method = f"slot relabelling of accuracy, then sign-flip tests between shapes ({n_draws} draws)"
    if gate.p is None or gate.p >= alpha:
        p = "-" if gate.p is None else f"{gate.p:.3g}"
        why = gate.reason if gate.status != "ok" else f"slot relabelling of accuracy: p = {p}, not below {alpha:g}"
        return Result(method=method, **counts.size, status=gate.status, reason=why, label="inactive")
    label, why = _named(family, parts - parts.mean(axis=1, keepdims=True), alpha, n_draws, seed)
    return Result(method=method, **counts.size, reason=why, label=label)


def _named(family: _Family, profiles: Array, alpha: float, n_draws: int, seed: Seed) -> tuple[ShapeLabel, str]:
    """Return the label of a cell with a slot effect, from the items' profiles around their own mean, and why."""
    fitted = family.shapes @ profiles.mean(axis=0)
    best = int((fitted**2).argmax())
    name, shape = family.names[best], family.shapes[best]
    rivals = [place for place, other in enumerate(family.names) if other != name]
    against = np.array([_left(family.shapes[place]) @ shape for place in rivals])
    groups = [*((profiles @ row)[:, None] for row in against), profiles @ _left(shape)]
    *p_rivals, p_fit = largest_by_sign_flips(groups, n_draws=n_draws, seed=seed)
    kept = {family.names[place] for place, p in zip(rivals, p_rivals, strict=True) if p >= alpha}
    if kept:
        left = ", ".join(each for each in _NAMES if each in kept | {name})
        return "undetermined", f"not separable: {left}"
    if p_fit < alpha * _LACK_OF_FIT:
        return "other_shape", f"{', '.join(dict.fromkeys(family.names))} are all rejected"
    return _SIGNED[name][0 if fitted[best] > 0 else 1], "the other shapes are rejected"


def _left(shape: Array) -> Array:
    """Return the map from slot accuracies to what a least-squares fit of level and one shape leaves, (k, k)."""
    k = len(shape)
    rest = np.eye(k) - 1 / k - np.outer(shape, shape)
    return np.where(np.abs(rest) > _ROUNDING, rest, 0.0)


def _support(counts: SlotCounts, family: _Family, n_resamples: int, seed: Seed) -> Result:
    method = "shape that fits best, and in what share of resamples of items it does"
    profile = counts.correct.sum(axis=0) / counts.n.sum(axis=0)
    if np.ptp(profile) <= _ROUNDING:
        reason = "all slots are equally accurate, which is no shape"
        return Result(method=method, **counts.size, status="undefined", reason=reason)
    drawn = bootstrap_sums(np.hstack([counts.correct, counts.n]), n_resamples, seed)
    hits, calls = np.hsplit(drawn, 2)
    # A slot that holds no call in a resample has the overall accuracy there.
    overall = hits.sum(axis=1, keepdims=True) / calls.sum(axis=1, keepdims=True)
    best = _fit(np.where(calls > 0, hits / np.maximum(calls, 1), overall), family) / n_resamples
    own = int(_fit(profile[None, :], family).argmax())
    name = family.names[own]
    total = {each: float(best[[each == other for other in family.names]].sum()) for each in dict.fromkeys(family.names)}
    others = ", ".join(f"{each} {share:.0%}" for each, share in total.items() if each != name)
    return Result(
        method=method,
        estimate=min(total[name], 1.0),
        **counts.size,
        status="descriptive",
        reason=f"not a probability that the shape is right; others: {others}",
        label=_SIGNED[name][0 if family.shapes[own] @ profile > 0 else 1],
    )


def _fit(means: Array, family: _Family) -> Array:
    """Return of how many profiles each candidate takes the largest part; ties are shared."""
    part = ((means - means.mean(axis=1, keepdims=True)) @ family.shapes.T) ** 2
    top = part >= part.max(axis=1, keepdims=True) - _ROUNDING**2
    return np.asarray((top / top.sum(axis=1, keepdims=True)).sum(axis=0))
