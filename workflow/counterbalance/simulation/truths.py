"""What a whole population would show beside its accuracy and picks: steadiness, and label log-probabilities."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from counterbalance.simulation.respondent import Array, Ints, Respondent, average_alike, chances, utilities
from counterbalance.vendors.simulated import LABEL_MASS

_SEED = 20_260_719
_ITEMS_AT_ONCE = 5_000


@dataclass(frozen=True)
class SteadyTruth:
    """Means over the items of a population.

    Attributes
    ----------
    consistency
        Share of items of which all calls choose one option.
    usual_share
        How often an item's most frequent option is chosen.
    same_order, other_order
        Probability that two calls of an item choose different options, in the same order and in two different ones.
    """

    consistency: float
    usual_share: float
    same_order: float
    other_order: float


def steady_truth(respondent: Respondent, orders: Ints, *, repeats: int = 1, n_items: int = 20_000) -> SteadyTruth:
    """Compute how steady the answers of very many items are.

    Parameters
    ----------
    orders
        Shape (items, calls, slots), option 0 being the correct one; items beyond these start again from the first.
    repeats
        So many calls in a row are in the same order.
    """
    rng, totals = np.random.default_rng(_SEED), np.zeros(4)
    asked = orders[np.arange(n_items) % len(orders)]
    calls = asked.shape[1]
    for start in range(0, n_items, _ITEMS_AT_ONCE):
        part = asked[start : start + _ITEMS_AT_ONCE]
        chance = chances(utilities(respondent.effects(1, len(part), rng, even=True), part)[0], respondent)
        by_option = np.take_along_axis(chance, np.argsort(part, axis=-1), axis=-1)
        drawn = rng.random((*by_option.shape[:2], 1))
        chosen = (by_option[..., :-1].cumsum(axis=-1) < drawn).sum(axis=-1)
        often = (chosen[..., None] == np.arange(respondent.k)).sum(axis=1).max(axis=1)
        once = by_option[:, ::repeats]
        n, alike = once.shape[1], (once**2).sum(axis=(1, 2))
        agree = ((once.sum(axis=1) ** 2).sum(axis=1) - alike) / max(1, n * (n - 1))
        rows = (by_option.prod(axis=1).sum(axis=1), often / calls, 1 - alike / n, 1 - agree)
        totals += [row.sum() for row in rows]
    return SteadyTruth(*(totals / n_items).tolist())


@dataclass(frozen=True)
class NatsTruth:
    """Means over the items of a population, by slot: log-probability of the label, slot bonus and prior."""

    mean: Array
    bonus: Array
    prior: Array


def nats_truth(respondent: Respondent, orders: Ints, *, n_items: int = 100_000) -> NatsTruth:
    """Compute the label log-probabilities of very many items, each in as many calls as it is asked.

    Parameters
    ----------
    orders
        Shape (items, calls, slots); in each item every option is as often in each slot, so that content cancels.
    """
    rng, k = np.random.default_rng(_SEED), respondent.k
    mean, prior = np.zeros(k), np.zeros(k)
    for start in range(0, n_items, _ITEMS_AT_ONCE):
        part = orders[np.arange(start, min(start + _ITEMS_AT_ONCE, n_items)) % len(orders)]
        by_slot = utilities(respondent.effects(1, len(part), rng, even=True), part)[0]
        by_slot += respondent.call_noise * rng.gumbel(size=by_slot.shape)
        nats = special.log_softmax(by_slot, axis=-1).mean(axis=1)
        mean += nats.sum(axis=0)
        prior += special.softmax(nats, axis=-1).sum(axis=0)
    bonus = np.asarray(respondent.slot_bonus)
    return NatsTruth(
        mean=average_alike(mean / n_items, respondent) + np.log(LABEL_MASS),
        bonus=bonus - bonus.mean(),
        prior=average_alike(prior / n_items, respondent),
    )
