"""The response model of the vendor `simulated`, many cells at a time, and what a whole population would answer.

The same model as in `vendors.simulated`, with a random number generator in place of hashes: a call picks the slot of
the largest utility, which is content + slot bonus + the item's own slot effect + Gumbel noise of the call.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import special

from counterbalance.config.models import SimulatedModel
from counterbalance.errors import ConfigError
from counterbalance.stats.published import slot_rank_correlation

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SEED = 20_260_719
_ITEMS_AT_ONCE = 5_000
_LARGEST_MEAN = 60.0


@dataclass(frozen=True)
class Respondent:
    """Who answers.

    Attributes
    ----------
    ability_mean, ability_sd, distractor_sd
        Utility of the correct option over items; spread of the wrong options' utilities.
    slot_bonus
        Utility added by slot, first slot first; as many as there are options.
    item_slot_sd
        Spread of each item's own slot effects, one number for each slot.
    option_slot_sd
        Spread of effects that belong to an item's option in a slot.
    call_noise
        Scale of the Gumbel noise of each call.
    """

    slot_bonus: tuple[float, ...]
    ability_mean: float = 1.5
    ability_sd: float = 2.0
    distractor_sd: float = 1.0
    item_slot_sd: tuple[float, ...] = (0.0,)
    option_slot_sd: float = 0.0
    call_noise: float = 0.0

    @property
    def k(self) -> int:
        return len(self.slot_bonus)

    @property
    def has_vendor(self) -> bool:
        """Whether the vendor `simulated` has such a respondent."""
        return self.option_slot_sd == 0 and len(set(self.item_slot_sd)) == 1

    def as_model(self, seed: int, *, refusal_rate: float = 0.0) -> SimulatedModel:
        """Return the vendor's settings of this respondent.

        Raises
        ------
        ConfigError
            If the vendor has no such respondent.
        """
        if not self.has_vendor:
            raise ConfigError("the vendor `simulated` has no option-by-slot effects and one item_slot_sd for all slots")
        return SimulatedModel(
            id="planted",
            vendor="simulated",
            seed=seed,
            ability_mean=self.ability_mean,
            ability_sd=self.ability_sd,
            distractor_sd=self.distractor_sd,
            slot_bonus=list(self.slot_bonus),
            item_slot_sd=self.item_slot_sd[0],
            call_noise=self.call_noise,
            refusal_rate=refusal_rate,
        )

    def effects(self, cells: int, items: int, rng: np.random.Generator, *, even: bool = False) -> Array:
        """Draw utilities before call noise, shape (cells, items, options, slots); option 0 is the correct one.

        `even` spaces the items' abilities evenly over their distribution in place of drawing them.
        """
        k = self.k
        content = rng.standard_normal((cells, items, k))
        if even:
            content[..., 0] = special.ndtri((np.arange(items) + 0.5) / items)
        content *= np.array([self.ability_sd] + [self.distractor_sd] * (k - 1))
        content[..., 0] += self.ability_mean
        slots = np.asarray(self.item_slot_sd) * rng.standard_normal((cells, items, k))
        drawn: Array = content[..., None] + (slots + np.asarray(self.slot_bonus))[..., None, :]
        if self.option_slot_sd > 0:
            drawn += self.option_slot_sd * rng.standard_normal(drawn.shape)
        return drawn


@dataclass(frozen=True)
class Tallies:
    """Counts of many cells.

    Attributes
    ----------
    correct, picks, wrong_picks
        Right answers by the slot of the correct option; choices, and wrong choices, by slot; (cells, items, slots).
    option
        Which option was chosen, shape (cells, items, orders).
    consistent
        Whether all calls of an item chose one option, shape (cells, items).
    n
        Calls by the slot of the correct option, shape (items, slots).
    """

    correct: Array
    picks: Array
    wrong_picks: Array
    option: Ints
    consistent: npt.NDArray[np.bool_]
    n: Array


def utilities(effects: Array, orders: Ints) -> Array:
    """Return utilities by slot of each order.

    Parameters
    ----------
    effects
        Shape (cells, items, options, slots).
    orders
        Option in each slot, shape (items, orders, slots); 0 is the correct option.

    Returns
    -------
    Array
        Shape (cells, items, orders, slots).
    """
    cells, items, k, _ = effects.shape
    places = (orders * k + np.arange(k)).reshape(1, items, -1)
    return np.take_along_axis(effects.reshape(cells, items, k * k), places, axis=2).reshape(cells, *orders.shape)


def choose(by_slot: Array, noise: float, rng: np.random.Generator) -> Ints:
    """Return the slot chosen in each call, the last axis of `by_slot` being the slots."""
    noisy = by_slot + noise * rng.gumbel(size=by_slot.shape) if noise > 0 else by_slot
    return np.asarray(noisy.argmax(axis=-1), dtype=np.int64)


def tally(chosen: Ints, orders: Ints) -> Tallies:
    """Count choices of shape (cells, items, orders) by the slot of the correct option, and by slot."""
    k = orders.shape[-1]
    gold = np.argmax(orders == 0, axis=-1)
    right = chosen == gold
    option = np.take_along_axis(np.broadcast_to(orders, (*chosen.shape, k)), chosen[..., None], axis=-1)[..., 0]

    def by_slot(*wanted: npt.NDArray[np.bool_]) -> Array:
        return np.stack([part.sum(axis=-1) for part in wanted], axis=-1).astype(np.float64)

    return Tallies(
        correct=by_slot(*(right & (gold == slot) for slot in range(k))),
        picks=by_slot(*(chosen == slot for slot in range(k))),
        wrong_picks=by_slot(*(~right & (chosen == slot) for slot in range(k))),
        option=option,
        consistent=(option == option[..., :1]).all(axis=-1),
        n=by_slot(*(gold == slot for slot in range(k))),
    )


@dataclass(frozen=True)
class Population:
    """What items without number would give, each in balanced orders.

    Attributes
    ----------
    correct
        Accuracy by the slot of the correct option.
    picks, wrong_picks
        Share of calls, and of wrong calls, that choose each slot.
    """

    correct: Array
    picks: Array
    wrong_picks: Array

    @property
    def accuracy(self) -> float:
        return float(self.correct.mean())

    @property
    def v(self) -> float:
        """Cramer's V of slot of the correct option by right or wrong."""
        p = self.accuracy
        return float(np.sqrt(((self.correct - p) ** 2).mean() / (p * (1 - p)))) if 0 < p < 1 else 0.0

    @property
    def rho(self) -> float:
        """Spearman's rho of slot and accuracy; 0 where all slots are alike and there is no order."""
        return float(slot_rank_correlation(self.correct)[0])

    @property
    def contrasts(self) -> dict[str, float]:
        """Fitted change from first slot to last; first and last slot against the mean of the others; middle, ends."""
        k = len(self.correct)
        slots = np.arange(k) - (k - 1) / 2
        linear = float((slots * self.correct).sum() / (slots**2).sum()) * (k - 1)
        first, last = (float(self.correct[s] - np.delete(self.correct, s).mean()) for s in (0, -1))
        found = {"linear": linear, "first": first, "last": last}
        return found | ({"middle": float(self.correct[1:-1].mean() - self.correct[[0, -1]].mean())} if k > 2 else {})


@cache
def population(respondent: Respondent, n_items: int = 80_000) -> Population:
    """Compute what the respondent would give over very many items.

    Given an item, the chances of a call are exact: Gumbel noise makes them a softmax. Wrong options are alike in
    distribution, so the rotations of one order have the mean of all orders. Each item's own slot effects are used in
    all rotations over the slots, if the slots are alike in them, so that they cancel exactly in a null respondent.
    Slots with the same settings are averaged, so that what is equal is equal here too.
    """
    rng, k = np.random.default_rng(_SEED), respondent.k
    orders = _rotated_orders(k)
    gold = np.argmax(orders == 0, axis=-1)
    correct, picks = np.zeros(k), np.zeros(k)
    sizes = [min(_ITEMS_AT_ONCE, n_items - start) for start in range(0, n_items, _ITEMS_AT_ONCE)]
    for items in sizes:
        rotated = _rotations(respondent.effects(1, items, rng, even=True)[0], respondent)
        for part in rotated:
            chance = chances(utilities(part[None], np.broadcast_to(orders, (items, k, k)))[0], respondent)
            hits = np.take_along_axis(chance, gold[None, :, None], axis=2)[..., 0].sum(axis=0)
            correct += np.bincount(gold, weights=hits / (n_items * len(rotated)), minlength=k)
            picks += chance.sum(axis=(0, 1)) / (n_items * k * len(rotated))
    correct, picks = average_alike(correct, respondent), average_alike(picks, respondent)
    wrong = picks - correct / k
    return Population(correct, picks, wrong / max(float(wrong.sum()), np.finfo(float).tiny))


def ability_for(accuracy: float, respondent: Respondent) -> float:
    """Return the mean ability with which the respondent, freed of its slot bonus, has an accuracy.

    Raises
    ------
    ConfigError
        If no ability gives it, as with very noisy calls.
    """
    return _ability(accuracy, replace(respondent, slot_bonus=(0.0,) * respondent.k, ability_mean=0.0))


@cache
def _ability(accuracy: float, free: Respondent) -> float:
    rng, k = np.random.default_rng(17), free.k
    effects = free.effects(1, 40_000, rng, even=True)[0]
    orders = _rotated_orders(k)
    base = utilities(effects[None], np.broadcast_to(orders, (len(effects), k, k)))[0]
    correct = orders == 0

    def reached(mean: float) -> float:
        return float((chances(base + mean * correct, free) * correct).sum() / base[..., 0].size)

    low, high = -_LARGEST_MEAN, _LARGEST_MEAN
    if not reached(low) < accuracy < reached(high):
        raise ConfigError(f"no ability gives an accuracy of {accuracy:g} with a call noise of {free.call_noise:g}")
    for _ in range(22):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) < accuracy else (low, middle)
    return (low + high) / 2


def _rotated_orders(k: int) -> Ints:
    return np.array([np.roll(np.arange(k), step) for step in range(k)], dtype=np.int64)


def chances(by_slot: Array, respondent: Respondent) -> Array:
    """Return the probability that a call picks each slot (last axis), from the utilities before its noise."""
    if respondent.call_noise > 0:
        return np.asarray(special.softmax(by_slot / respondent.call_noise, axis=-1))
    return np.asarray(by_slot == by_slot.max(axis=-1, keepdims=True), dtype=np.float64)


def _rotations(effects: Array, respondent: Respondent) -> list[Array]:
    """Return the effects with the item's own part moved around the slots, the planted bonus staying where it is."""
    if len(set(respondent.item_slot_sd)) > 1:
        return [effects]
    bonus = np.asarray(respondent.slot_bonus)
    return [np.roll(effects - bonus, step, axis=-1) + bonus for step in range(respondent.k)]


def average_alike(values: Array, respondent: Respondent) -> Array:
    """Average values by slot over the slots that have the same bonus and spread, so that what is equal is equal."""
    spread = np.broadcast_to(respondent.item_slot_sd, (respondent.k,)).tolist()
    kinds = list(zip(respondent.slot_bonus, spread, strict=True))
    groups = [[place for place, other in enumerate(kinds) if other == kind] for kind in kinds]
    return np.array([values[group].mean() for group in groups])
