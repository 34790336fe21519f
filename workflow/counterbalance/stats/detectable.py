"""How small a slot effect a cell could have shown: power by simulation from the cell's own nuisance."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from counterbalance.errors import InputError
from counterbalance.stats.counts import NO_CALLS, Array, SlotCounts, slot_counts
from counterbalance.stats.estimate import Result, checked_level
from counterbalance.stats.resampling import Seed, generator
from counterbalance.stats.slotmeans import observed_means

_GRID = np.array([0.25, 0.4, 0.55, 0.75, 1.0, 1.3, 2.0, 4.5])
_FINE = np.array([0.8, 0.92, 1.04, 1.2])
"""Effects that are simulated, as multiples of the guess, and then of what the first round says."""
_SIMULATED = 400_000
_LARGE = 4_000
_NULL_CELLS = 20
_LARGEST = 5.0
_TRIED = 41
_NO_NOISE = 1e-9
_BEST_WRONG = 0.7


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


def min_unstable(n_slots: int, alpha: float) -> int:
    """Return how many items must change with the slot before p < alpha is possible.

    Counted where it is hardest: m items that each fail in one same slot of k have p = k^-(m - 1). Four, for four slots
    and alpha .05.
    """
    return int(np.floor(1 - np.log(alpha) / np.log(n_slots) + 1e-9)) + 1


def detectable_v(
    correct: npt.ArrayLike,
    n: npt.ArrayLike,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    tests: int = 1,
    measurable_v: float = 0.1,
    level: float = 0.95,
    n_simulations: int = 1000,
    seed: Seed,
) -> Detectable:
    """Find the population V that the slot-relabelling test of accuracy would have found with the given power.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).
    tests
        Size of the family of which the test is one: it is then made at `alpha` / `tests`, Holm's first step, at which
        a test rejects whatever the others do.
    measurable_v
        A cell that needs a larger V than this to be seen is ``not_measurable``.
    level
        Level of the interval.

    Notes
    -----
    The nuisance is fitted by moments (`fit_nuisance`). A slot effect that declines in equal steps on the latent
    (probit) scale is added, cells with the same counts of calls are simulated, and V at `power` is interpolated
    between effect sizes: eight around a guess, then four near the answer. The probit scale is used, not the logit,
    since it gives the population accuracy of each slot, and so V, in closed form; both have the same shape within a
    few per cent.

    The interval holds two errors, on a log scale. That of the simulation is the binomial one of the power, over the
    slope of power there. That of the nuisance is taken over items, as if V were the square root of its asymptotic
    value S / (p (1 - p)), where S is the mean over items of the squared deviations of an item's slot accuracies and p
    the accuracy (delta method). The second is much the larger one in small cells.

    For speed the null distribution of the relabelling test is not drawn but taken as a chi-squared with its exact mean
    and variance (with many items, the generalised Cochran Q), with the added rule that fewer than `min_unstable` items
    that change never reject. Cells of more than 4,000 items x slots get the asymptotic value, which is within a few
    per cent of the simulated one there; below that, large cells are simulated less often.
    """
    counts = slot_counts(correct, n)
    n_simulations = min(n_simulations, max(200, _SIMULATED // max(counts.n.size, 1)))
    asymptotic = counts.n.size > _LARGE
    how = "noncentral chi-squared" if asymptotic else f"{n_simulations} simulated cells per effect, moment-matched null"
    method = (
        f"V found with power {checked_level(power):g} at alpha {checked_level(alpha):g}{_in_family(tests)}: monotone "
        f"slot effect, slot relabelling of accuracy, {how}; interval from simulation error and the scatter of items"
    )
    alpha = alpha / tests
    reason = _why_not(counts, alpha)
    if reason:
        return Detectable(Result(method=method, **counts.size, status="not_measurable", reason=reason), None)
    nuisance = fit_nuisance(counts.correct, counts.n)
    values, powers = _powers(counts, nuisance, alpha, power, n_simulations, generator(seed))
    found = _crossing(values, powers, power)
    if found is None:
        reason = f"no slot effect up to V = {values[-1]:.3f} is found with power {power:g}"
        return Detectable(Result(method=method, **counts.size, status="not_measurable", reason=reason), nuisance)
    simulation = 0.0 if asymptotic else _simulation_error(values, powers, power, n_simulations)
    error = float(np.hypot(_item_error(counts), simulation))
    factor = float(np.exp(-special.ndtri((1 - checked_level(level)) / 2) * error))
    # No V is larger than 1.
    high = min(1.0, found * factor)
    result = Result(method=method, estimate=found, low=found / factor, high=high, level=level, **counts.size)
    if found > measurable_v:
        reason = f"a V of {measurable_v:g} would not be found with power {power:g}; the smallest that would is this"
        result = replace(result, status="not_measurable", reason=reason)
    return Detectable(result, nuisance)


def _in_family(tests: int) -> str:
    if tests < 1:
        raise InputError(f"tests is {tests}; expected the size of a family, at least 1")
    return "" if tests == 1 else f" / {tests} (Holm's first step in a family of {tests} tests)"


def _item_error(counts: SlotCounts) -> float:
    """Return the standard error over items of the log of V's asymptotic value, a delta-method linearisation."""
    asked = counts.n > 0
    share = np.divide(counts.correct, counts.n, out=np.zeros_like(counts.n), where=asked)
    mean = share.sum(axis=1, keepdims=True) / asked.sum(axis=1, keepdims=True)
    squares = (np.where(asked, share - mean, 0.0) ** 2).sum(axis=1)
    p = counts.correct.sum() / counts.n_calls
    if squares.sum() == 0 or counts.n_items < 2:
        return 0.0
    scatter = squares / squares.mean() - 1
    right = (counts.correct.sum(axis=1) - p * counts.n.sum(axis=1)) * counts.n_items / counts.n_calls
    influence = (scatter - (1 - 2 * p) / (p * (1 - p)) * right) / 2
    return float(np.sqrt((influence**2).sum() / (counts.n_items * (counts.n_items - 1))))


def _simulation_error(values: Array, powers: Array, power: float, n_simulations: int) -> float:
    """Return the standard error of the log of the crossing: that of a simulated power over the slope of power."""
    above = max(1, int(np.argmax(powers >= power)))
    rise = powers[above] - powers[above - 1]
    if values[above - 1] <= 0 or rise <= 0:
        return 0.0
    slope = rise / np.log(values[above] / values[above - 1])
    return float(np.sqrt(power * (1 - power) / n_simulations) / slope)


def predict_v(
    nuisance: Nuisance,
    n: npt.ArrayLike,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    n_simulations: int = 300,
    seed: Seed,
) -> float | None:
    """Find the V that calls still to be made would show with the given power, as `detectable_v` finds it afterwards.

    Parameters
    ----------
    nuisance
        As other calls of the cell gave it.
    n
        Calls that are planned, shape (items, slots).

    Returns
    -------
    float or None
        None where no slot effect would be found with that power.
    """
    counts = slot_counts(n, n)
    if int(((counts.n > 0).sum(axis=1) >= 2).sum()) < min_unstable(counts.n_slots, alpha) or counts.empty_slots:
        return None
    return _crossing(*_powers(counts, nuisance, alpha, power, n_simulations, generator(seed)), power)


def _powers(
    counts: SlotCounts, nuisance: Nuisance, alpha: float, power: float, n_simulations: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return population V and power of a few effects, both ascending; for large cells the asymptotic value alone."""
    if counts.n.size > _LARGE:
        null = _deviations(counts, nuisance, 0.0, _NULL_CELLS, rng)
        guess = _asymptotic_v(counts, nuisance, null, alpha, power)
        return np.array([0.0, guess]), np.array([alpha, power])
    return _power_curve(counts, nuisance, alpha, power, n_simulations, rng)


def _why_not(counts: SlotCounts, alpha: float) -> str | None:
    if counts.n_calls == 0:
        return NO_CALLS
    able, needed = int(((counts.n > 0).sum(axis=1) >= 2).sum()), min_unstable(counts.n_slots, alpha)
    if able < needed:
        return f"{able} items were asked in two slots or more; {needed} must change with the slot for p < {alpha:g}"
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
    good, pairs = (
        (table * (table - 1)).sum() if same_slot else (table.sum(axis=1) ** 2).sum() - (table**2).sum()
        for table in (counts.correct, counts.n)
    )
    return float(good / pairs) if pairs > 0 else None


def _latent_correlation(accuracy: float, both: float) -> float:
    """Return the correlation in [0, 1] with which two latents both lie below the threshold with chance `both`."""
    threshold = float(special.ndtri(accuracy))

    def excess(r: float) -> float:
        return accuracy - 2 * float(special.owens_t(threshold, np.sqrt((1 - r) / (1 + r)))) - both

    if excess(0.0) >= 0:
        return 0.0
    return 1.0 if excess(1.0) <= 0 else float(optimize.brentq(excess, 0.0, 1.0))


def _power_curve(
    counts: SlotCounts, nuisance: Nuisance, alpha: float, power: float, n_simulations: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return population V and power of a few effects, first around the asymptotic guess, then around the crossing."""
    weight = counts.n.sum(axis=0) / counts.n_calls

    def simulate(values: Array, n: int) -> tuple[Array, Array]:
        bonuses = [_bonus_of(value, nuisance.accuracy, weight) for value in values]
        rates = [_rejection_rate(_deviations(counts, nuisance, bonus, n, rng), counts, alpha) for bonus in bonuses]
        return np.array([_population_v(bonus, nuisance.accuracy, weight) for bonus in bonuses]), np.array(rates)

    null = _deviations(counts, nuisance, 0.0, n_simulations, rng)
    guess = _asymptotic_v(counts, nuisance, null, alpha, power)
    coarse = simulate(guess * _GRID, max(1, n_simulations // 2))
    # Power rises with the effect; where simulation error says otherwise the larger value is kept.
    values, powers = np.append(0.0, coarse[0]), np.append(_rejection_rate(null, counts, alpha), coarse[1])
    powers = np.maximum.accumulate(powers)
    near = _crossing(values, powers, power)
    if not near:
        return values, powers
    fine = simulate(near * _FINE, n_simulations)
    if fine[1][0] >= power or fine[1][-1] < power:
        # The crossing lies outside of what was looked at closely: all points together then.
        values, powers = np.append(values, fine[0]), np.append(powers, fine[1])
        order = np.argsort(values, kind="stable")
        return values[order], np.maximum.accumulate(powers[order])
    return fine[0], np.maximum.accumulate(fine[1])


def _deviations(
    counts: SlotCounts, nuisance: Nuisance, bonus: float, n_simulations: int, rng: np.random.Generator
) -> Array:
    """Simulate cells and return each item's slot accuracies less their mean, (simulations, items, slots)."""
    shape = (n_simulations, *counts.n.shape)
    call = max(1 - nuisance.between_items - nuisance.item_slots, _NO_NOISE)
    item = np.sqrt(nuisance.between_items) * rng.standard_normal((*shape[:2], 1))
    item_slot = np.sqrt(nuisance.item_slots) * rng.standard_normal(shape)
    threshold = _thresholds(bonus, nuisance.accuracy, shape[2])
    chance = special.ndtr((threshold - item - item_slot) / np.sqrt(call))
    asked = counts.n > 0
    share = rng.binomial(counts.n.astype(np.int64), chance) / np.maximum(counts.n, 1)
    deviation = share - (share.sum(axis=2) / asked.sum(axis=1))[:, :, None]
    return np.where(asked & (np.abs(deviation) > _NO_NOISE), deviation, 0.0)


def _rejection_rate(deviations: Array, counts: SlotCounts, alpha: float) -> float:
    """Return the share of simulated cells that the relabelling test rejects, its null taken as a scaled chi-squared.

    Given the deviations, relabelling gives the sum of squared slot totals the mean A = sum_q |d_q|^2 and, with
    complete calls, the variance 2 (A^2 - sum_q |d_q|^4) / (slots - 1): matching both gives the scale and
    df = (slots - 1) / (1 - sum_q |d_q|^4 / A^2). Many items make it the generalised Cochran Q. With incomplete calls
    slots - 1 is replaced by Satterthwaite's df of the pattern of slots asked.
    """
    asked = (counts.n > 0).astype(np.float64)
    pattern = np.diag(asked.sum(axis=0)) - (asked / asked.sum(axis=1, keepdims=True)).T @ asked
    slots_df = np.trace(pattern) ** 2 / np.trace(pattern @ pattern)
    squares = (deviations**2).sum(axis=2)
    total = squares.sum(axis=1)
    enough = (squares > 0).sum(axis=1) >= min_unstable(counts.n_slots, alpha)
    total, squares = total[enough], squares[enough]
    df = slots_df / (1 - (squares**2).sum(axis=1) / total**2)
    statistic = (deviations[enough].sum(axis=1) ** 2).sum(axis=1)
    return float((statistic / total >= special.chdtri(df, alpha) / df).sum() / len(deviations))


def _asymptotic_v(counts: SlotCounts, nuisance: Nuisance, null: Array, alpha: float, power: float) -> float:
    """Return the V at which a noncentral chi-squared has the power, given deviations simulated without effect."""
    noise = float((null**2).sum(axis=(1, 2)).mean())
    k, q = counts.n_slots, counts.n_items
    critical = special.chdtri(k - 1, alpha)
    needed = float(optimize.brentq(lambda x: special.chndtr(critical, k - 1, x) - (1 - power), 0.0, 1e4))
    squares = needed * noise / q / max((k - 1) * q - needed, 1.0)
    # Without noise a handful of items have to change; this many give about that power.
    squares = max(squares, (6 / q) ** 2 * k / 12)
    return float(min(0.9, np.sqrt(squares / (k * nuisance.accuracy * (1 - nuisance.accuracy)))))


def _thresholds(bonus: float, accuracy: float, k: int) -> Array:
    """Return the latent threshold of each slot under a bonus that declines in equal steps.

    The bonus serves wrong options as well, and the best of them gains by it, the more the larger the bonus's variance
    and the more wrong options there are: by the largest of k - 1 normal deviates (Blom's approximation) times a factor
    that holds within a fifth for simulated respondents of 2 to 6 options at accuracies of .40 to .95.
    """
    steps = np.linspace(0.5, -0.5, k) * bonus
    largest = special.ndtri((k - 1.375) / (k - 0.75))
    return np.asarray(special.ndtri(accuracy) + steps - _BEST_WRONG * largest * steps.var())


def _population_v(bonus: float, accuracy: float, weight: Array) -> float:
    slots = special.ndtr(_thresholds(bonus, accuracy, len(weight)))
    mean = float(weight @ slots)
    return float(np.sqrt(weight @ (slots - mean) ** 2 / (mean * (1 - mean))))


def _bonus_of(v: float, accuracy: float, weight: Array) -> float:
    """Return the least bonus between first and last slot that gives a population V, or the one with the largest V."""
    tried = np.linspace(0.0, _LARGEST, _TRIED)
    values = np.array([_population_v(bonus, accuracy, weight) for bonus in tried])
    # Beyond some bonus the correct option loses in nearly all slots, and V falls again.
    if values.max() <= v:
        return float(tried[values.argmax()])
    above = int(np.argmax(values > v))
    return float(
        optimize.brentq(lambda bonus: _population_v(bonus, accuracy, weight) - v, tried[above - 1], tried[above])
    )


def _crossing(values: Array, powers: Array, power: float) -> float | None:
    if powers[-1] < power:
        return None
    above = int(np.argmax(powers >= power))
    if above == 0:
        return float(values[0])
    step = (power - powers[above - 1]) / (powers[above] - powers[above - 1])
    return float(values[above - 1] + step * (values[above] - values[above - 1]))
