"""The V that a design finds with a given power, from simulated cells and the pipeline's own test."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from counterbalance.simulation.respondent import Array, Ints, Tallies, choose, tally, utilities
from counterbalance.simulation.sizes import EffectCurve
from counterbalance.stats.detectable import detectable_v
from counterbalance.stats.relabel import relabel_accuracy, relabel_picks

_DRAWS = 399
"""Relabellings per test: the level is exact with any number such that alpha (draws + 1) is whole."""

_FIRST_ROUND = (0.4, 0.7, 1.0, 1.3, 1.7)
_SECOND_ROUND = (0.7, 0.9, 1.05, 1.3)
_GUESSES = 3
_NUMBERS_AT_ONCE = 4_000_000
_STEEPEST = 1e4

Spent = Callable[[int], None]

Tried = tuple[float, bool, bool, float, int]
"""A simulated cell: its V, whether accuracy and picks were found to differ, unstable items, and which orders it had."""


@dataclass(frozen=True)
class Found:
    """What one test of a design needs.

    Attributes
    ----------
    v
        Population V found with the power asked for; None if no slot bonus gives it, and the reason.
    error
        Its standard error from simulation.
    """

    v: float | None
    error: float | None
    reason: str | None = None


@dataclass(frozen=True)
class DesignPower:
    """Detectable V of a design by each co-primary test, and what simulated cells of that V look like.

    Attributes
    ----------
    unstable
        Mean share of items whose accuracy changes with the slot, over all simulated cells.
    cells
        Simulated cells that this rests on.
    """

    accuracy: Found
    picks: Found
    unstable: float
    cells: int


def detectable(
    curve: EffectCurve,
    orders: Sequence[Ints],
    *,
    alpha: float,
    power: float,
    cells: int,
    rng: np.random.Generator,
    spent: Spent = lambda count: None,
) -> DesignPower:
    """Find the V that each co-primary test finds with a given power.

    Parameters
    ----------
    curve
        The respondent, and which bonus gives which V.
    orders
        What is asked of each item, repeats included, shape (items, orders, slots); option 0 is the correct one. Several
        where the orders are drawn: cells are spread over them, for the power of the scheme and not of one draw.
    cells
        Cells to simulate, in two rounds: around a guess, then around what the first round says.
    spent
        Told of cells as they are done.

    Notes
    -----
    Both rounds together are fitted by P(reject) = Phi(a + b V), by maximum likelihood, and V at the power asked for is
    read off, with its standard error by the delta method; where orders are drawn several times with that over the
    draws (sandwich), if it is larger, since cells of one draw are alike. The guess takes the null distribution as a
    chi-squared; the cells themselves are judged by the relabelling test of the pipeline, on accuracy and on picks.
    """
    guess = min(_guess(curve, orders[0], alpha, power, rng), 0.6 * curve.largest)
    tried: list[Tried] = []
    for factors in (_FIRST_ROUND, _SECOND_ROUND):
        values = np.minimum(guess * np.array(factors), curve.largest)
        each = max(1, cells // 2 // len(factors))
        for v in values:
            tried += _try(curve, float(v), orders, alpha, each, rng)
            spent(each)
        found = _fit(*_columns(tried, 1), power, curve.largest)
        guess = found.v if found.v is not None else 0.6 * curve.largest
    return DesignPower(
        accuracy=_fit(*_columns(tried, 1), power, curve.largest),
        picks=_fit(*_columns(tried, 2), power, curve.largest),
        unstable=float(np.mean([row[3] for row in tried])),
        cells=len(tried),
    )


def cells_of(curve: EffectCurve, v: float, orders: Ints, cells: int, rng: np.random.Generator) -> Iterator[Tallies]:
    """Yield simulated cells with a population V, some at a time."""
    respondent = curve.with_v(v)
    at_once = max(1, _NUMBERS_AT_ONCE // orders.size)
    for start in range(0, cells, at_once):
        effects = respondent.effects(min(at_once, cells - start), len(orders), rng)
        yield tally(choose(utilities(effects, orders), respondent.call_noise, rng), orders)


def rejects(correct: Array, n: Array, picks: Array, alpha: float, seed: int) -> tuple[bool, bool]:
    """Return whether the relabelling tests of accuracy and of picks reject at alpha."""
    draws = _draws(alpha)
    tests = (
        relabel_accuracy(correct, n, n_draws=draws, seed=seed, alpha=alpha, enumerate_up_to=draws),
        relabel_picks(picks, n_draws=draws, seed=seed, alpha=alpha, enumerate_up_to=draws),
    )
    accuracy, by_pick = (test.result.p is not None and test.result.p <= alpha + 1e-12 for test in tests)
    return accuracy, by_pick


def _draws(alpha: float) -> int:
    """Return how many relabellings give exactly the level alpha, at least about `_DRAWS`."""
    for draws in range(_DRAWS, 4 * _DRAWS):
        if abs(alpha * (draws + 1) - round(alpha * (draws + 1))) < 1e-9:
            return draws
    return max(_DRAWS, round(20 / alpha) - 1)


def _try(
    curve: EffectCurve, v: float, orders: Sequence[Ints], alpha: float, cells: int, rng: np.random.Generator
) -> Iterator[Tried]:
    shares = [cells // len(orders) + (place < cells % len(orders)) for place in range(len(orders))]
    for place, (drawn, n) in enumerate(zip(orders, shares, strict=True)):
        for tallies in cells_of(curve, v, drawn, n, rng):
            asked = tallies.n > 0
            share = tallies.correct / np.maximum(tallies.n, 1)
            varies = np.where(asked, share, -1.0).max(axis=2) > np.where(asked, share, 2.0).min(axis=2)
            for correct, picks, unstable in zip(tallies.correct, tallies.picks, varies.mean(axis=1), strict=True):
                found = rejects(correct, tallies.n, picks, alpha, int(rng.integers(2**32)))
                yield v, *found, float(unstable), place


def _guess(curve: EffectCurve, orders: Ints, alpha: float, power: float, rng: np.random.Generator) -> float:
    values = []
    for tallies in cells_of(curve, 0.0, orders, _GUESSES, rng):
        for correct in tallies.correct:
            found = detectable_v(
                correct, tallies.n, power=power, alpha=alpha, measurable_v=0.99, n_simulations=200, seed=rng
            ).result.estimate
            values.append(curve.largest if found is None else found)
    return float(np.median(values))


def _columns(tried: list[Tried], column: int) -> tuple[Array, Array, Ints]:
    return (
        np.array([row[0] for row in tried]),
        np.array([float(row[column]) for row in tried]),
        np.array([row[4] for row in tried]),
    )


def _fit(v: Array, rejected: Array, draw: Ints, power: float, largest: float) -> Found:
    """Fit P(reject) = Phi(a + b V) and return V at the power, unless the simulated cells never come near it."""
    if rejected.mean() == 0:
        return Found(None, None, "no simulated cell was found at any V")
    if rejected.all():
        return Found(None, None, "every simulated cell was found: the smallest V tried was already too large")
    scale = float(v.max())

    def loss(parameters: Array) -> float:
        z = parameters[0] + parameters[1] * v / scale
        return -float((rejected * special.log_ndtr(z) + (1 - rejected) * special.log_ndtr(-z)).sum())

    found = optimize.minimize(loss, np.array([-1.5, 3.0]), bounds=((-20, 5), (1e-3, _STEEPEST)), method="L-BFGS-B")
    a, b = (float(value) for value in found.x)
    target = float(special.ndtri(power))
    at = (target - a) / b * scale
    if not 0 < at <= largest:
        return Found(None, None, f"no slot bonus gives a V above {largest:.2f}, and that is not found often enough")
    gradient = np.array([-1.0, -(target - a) / b]) / b * scale
    # Where larger V were all found and smaller ones never, the fit knows no error but the gap between them.
    gap = float(v[rejected == 1].min() - v[rejected == 0].max())
    return Found(at, max(_error(a, b, v / scale, rejected, draw, gradient), gap))


def _error(a: float, b: float, x: Array, rejected: Array, draw: Ints, gradient: Array) -> float:
    """Return the standard error of a number with this gradient over a and b: the larger of within and over draws."""
    z = a + b * x
    spread = np.maximum(special.ndtr(z) * special.ndtr(-z), 1e-12)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    columns = np.stack([np.ones_like(x), x])
    covariance = np.linalg.pinv((density**2 / spread * columns) @ columns.T)
    alone = float(gradient @ covariance @ gradient)
    n_draws = len(np.unique(draw))
    if n_draws == 1:
        return math.sqrt(alone)
    scores = (rejected - special.ndtr(z)) * density / spread * columns
    sums = np.stack([np.bincount(draw, weights=row) for row in scores])
    reach = gradient @ covariance @ sums
    return math.sqrt(max(alone, n_draws / (n_draws - 1) * float(reach @ reach)))
