"""How small a slot effect a cell could have shown: power by simulation from the cell's own nuisance."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from counterbalance.stats.counts import Array, SlotCounts, slot_counts
from counterbalance.stats.estimate import Result, checked_level
from counterbalance.stats.resampling import Seed, generator
from counterbalance.stats.slotmeans import observed_means

MIN_UNSTABLE = 4
"""With m items that each fail in one same slot of four, p = 4^-(m - 1): fewer than 4 never reach p < .05."""

_GRID = np.array([0.0, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.5])
_SIMULATED = 3_000_000


@dataclass(frozen=True)
class Nuisance:
    """What varies in a cell besides a common slot effect.

    Each call is right where a standard normal latent lies below a threshold. The latent adds up three independent
    parts with the shares of variance below; what is left is new with every call.

    Attributes
    ----------
    accuracy
        Share of correct calls.
    between_items
        Share of latent variance of the item: how unequal the items' difficulties are.
    item_slots
        Share of latent variance of the item's own slot effects.
    """

    accuracy: float
    between_items: float
    item_slots: float


@dataclass(frozen=True)
class Detectable:
    """Smallest detectable V of a cell.

    Attributes
    ----------
    result
        The V as the estimate. ``not_measurable`` where it is above what was asked for or does not exist.
    nuisance
        Fitted to the cell; None where nothing can be fitted.
    """

    result: Result
    nuisance: Nuisance | None


def detectable_v(
    correct: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    measurable_v: float = 0.1,
    n_simulations: int = 2000,
    seed: Seed,
) -> Detectable:
    """Find the population V that the slot-relabelling test of accuracy would have found with the given power.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).
    measurable_v
        A cell that needs a larger V than this to be seen is ``not_measurable``.

    Notes
    -----
    The nuisance is fitted by moments (`fit_nuisance`). A slot effect that declines in equal steps on the latent
    (probit) scale is added, cells with the same counts of calls are simulated, and V at `power` is interpolated
    between effect sizes. The probit scale is used, not the logit, since it gives the population accuracy of each
    slot, and so V, in closed form; both have the same shape within a few per cent.

    For speed the relabelling test is replaced by its asymptotic equivalent, the generalised Cochran Q on the items'
    centred slot accuracies, which at 50 items has the same power within simulation error, with the added rule that
    fewer than 4 unstable items never reject.
    """
    counts = slot_counts(correct, n)
    method = (
        f"V found with power {checked_level(power):g} at alpha {checked_level(alpha):g}: {n_simulations} simulated "
        "cells per effect, monotone slot effect, generalised Cochran Q"
    )
    size = {"n_items": counts.n_items, "n_calls": counts.n_calls}
    reason = _why_not(counts)
    if reason:
        return Detectable(Result(method=method, **size, status="not_measurable", reason=reason), None)
    nuisance = fit_nuisance(counts.correct, counts.n)
    values, powers = _power_curve(counts, nuisance, alpha, power, n_simulations, generator(seed))
    found = _crossing(values, powers, power)
    if found is None:
        reason = f"no slot effect up to V = {values[-1]:.3f} is found with power {power:g}"
        return Detectable(Result(method=method, **size, status="not_measurable", reason=reason), nuisance)
    if found > measurable_v:
        reason = f"a V of {measurable_v:g} would not be found with power {power:g}; the smallest that would is this"
        return Detectable(
            Result(method=method, estimate=found, **size, status="not_measurable", reason=reason), nuisance
        )
    return Detectable(Result(method=method, estimate=found, **size), nuisance)


def _why_not(counts: SlotCounts) -> str | None:
    if counts.n_items < MIN_UNSTABLE:
        return f"{counts.n_items} items; fewer than {MIN_UNSTABLE} can never change with the slot in the same way"
    if counts.empty_slots:
        return counts.empty_slots
    if counts.correct.sum() in {0, counts.n_calls}:
        return "all calls have the same outcome: nothing tells how near to changing the items are"
    return None


def fit_nuisance(correct: npt.ArrayLike, n: npt.ArrayLike) -> Nuisance:
    """Fit the nuisance by moments.

    Three shares of correct pairs fix the model: all calls; pairs of calls of one item in different slots; pairs in the
    same slot. If two latents have correlation r, both lie below the threshold h with chance
    Phi(h) - 2 T(h, sqrt((1 - r) / (1 + r))), T being Owen's function; this is inverted for r. What a common slot effect
    adds to the pairs is taken off first, so that an effect is not mistaken for nuisance.

    A moment outside the model's range gets the nearest share, 0 or 1. Where no slot of an item was asked twice, item
    slots cannot be told from call noise, and need not: the test sees the same; the share is then 0.
    """
    counts = slot_counts(correct, n)
    accuracy = float(counts.correct.sum() / counts.n_calls)
    common = _common_effect(counts)
    k = counts.n_slots
    across = _pair_share(counts, same_slot=False)
    within = _pair_share(counts, same_slot=True)
    between = 0.0 if across is None else _latent_correlation(accuracy, across + common / (k * (k - 1)))
    inside = between if within is None else max(between, _latent_correlation(accuracy, within - common / k))
    return Nuisance(accuracy, between, inside - between)


def _common_effect(counts: SlotCounts) -> float:
    """Return the sum over slots of squared deviations of accuracy, less what items' scatter adds to it."""
    if counts.n_items < 2:
        return 0.0
    value, error = observed_means(counts).contrast(np.eye(counts.n_slots) - 1 / counts.n_slots)
    return max(0.0, float((value**2 - error**2).sum()))


def _pair_share(counts: SlotCounts, *, same_slot: bool) -> float | None:
    """Return the share of pairs of calls of one item that are both correct; None without such pairs."""
    hits, calls = counts.correct, counts.n
    inside_hits, inside = (hits * (hits - 1)).sum(axis=1), (calls * (calls - 1)).sum(axis=1)
    if same_slot:
        good, pairs = inside_hits, inside
    else:
        good = hits.sum(axis=1) * (hits.sum(axis=1) - 1) - inside_hits
        pairs = calls.sum(axis=1) * (calls.sum(axis=1) - 1) - inside
        good, pairs = _without_same_slot(hits, good), _without_same_slot(calls, pairs)
    return float(good.sum() / pairs.sum()) if pairs.sum() > 0 else None
