"""Nats by slot through the engine: mean label log-probability, slot bonus and label prior of a cell."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from counterbalance.contrasts.estimate import Estimate, Resampling, estimate_means
from counterbalance.contrasts.results import STATUS
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result
from counterbalance.stats.logprob import ItemNats, item_nats
from counterbalance.stats.resampling import Stream

_NAMES = {
    "mean": "mean label log-probability in nats",
    "bonus": "slot bonus in nats",
    "prior": "label prior, mean of the items' own",
}


@dataclass(frozen=True)
class LabelLogprobs:
    """Log-probabilities of the option labels of a cell.

    Attributes
    ----------
    mean
        Mean log-probability of the label in each slot, in nats.
    bonus
        Slot bonus of each slot in nats, relative to the mean of the slots; the bonuses add up to 0.
    prior
        Prior probability of each label, content taken out; the priors add up to 1.
    n_censored_items
        Items in which at least one value is a bound.
    """

    mean: tuple[Result, ...]
    bonus: tuple[Result, ...]
    prior: tuple[Result, ...]
    n_censored_items: int


def label_logprobs(
    items: npt.ArrayLike,
    options: npt.ArrayLike,
    logprobs: npt.ArrayLike,
    censored: npt.ArrayLike,
    *,
    units: npt.ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int,
    stream: Stream = "modern",
) -> LabelLogprobs:
    """Estimate mean label log-probability, slot bonus and label prior by slot, with BCa intervals over items.

    Parameters
    ----------
    items, options, logprobs, censored, units
        See `item_nats`. Groups are resampled, means stay those over items.

    Raises
    ------
    InputError
        As `item_nats`.
    """
    resampling = Resampling(levels=(level,), n_resamples=n_resamples, seed=seed, stream=stream)
    return estimate_nats(item_nats(items, options, logprobs, censored, units=units), resampling)


def estimate_nats(nats: ItemNats, resampling: Resampling) -> LabelLogprobs:
    """Estimate what is known of each item, all slots of all three quantities from one set of resamples.

    Items whose arrangements do not separate slot from option are left out of bonus and prior, and counted in the
    reason; these two then have resamples of their own.
    """
    everywhere = np.ones(len(nats.separable), dtype=bool)
    series: list[tuple[Array, Array]] = []
    for values, of in ((nats.mean, everywhere), (nats.bonus, nats.separable), (nats.prior, nats.separable)):
        series += _by_unit(values[of], nats.unit[of])
    found = estimate_means([row for row, _ in series], [None] * len(series), resampling, [size for _, size in series])
    k, places = nats.mean.shape[1], {"mean": 0, "bonus": 1, "prior": 2}
    calls = {"mean": nats.calls.sum(), **dict.fromkeys(("bonus", "prior"), nats.calls[nats.separable].sum())}
    results = {
        name: tuple(
            _result(name, number, resampling, int(calls[name]), _notes(name, nats))
            for number in found[k * place : k * (place + 1)]
        )
        for name, place in places.items()
    }
    return LabelLogprobs(results["mean"], results["bonus"], results["prior"], nats.n_censored_items)


def _by_unit(values: Array, unit: npt.NDArray[np.intp]) -> list[tuple[Array, Array]]:
    """Return for each column the means of the units, and how many items each holds."""
    groups, place = np.unique(unit, return_inverse=True)
    size = np.bincount(place, minlength=len(groups)).astype(np.float64)
    sums = np.zeros((len(groups), values.shape[1]))
    np.add.at(sums, place, values)
    means = sums / np.maximum(size, 1)[:, None]
    return [(column, size) for column in means.T]


def _result(name: str, found: Estimate, resampling: Resampling, n_calls: int, notes: list[str]) -> Result:
    (interval,) = found.intervals
    draws = f"({resampling.n_resamples} resamples, {resampling.stream} stream)"
    return Result(
        method=f"{_NAMES[name]}: mean over items, BCa bootstrap {draws}",
        estimate=found.estimate,
        low=interval.low,
        high=interval.high,
        level=None if interval.low is None else interval.level,
        n_items=found.n,
        n_calls=n_calls,
        status=STATUS[found.evaluation],
        reason="; ".join([*([found.reason] if found.reason else []), *notes]) or None,
    )


def _notes(name: str, nats: ItemNats) -> list[str]:
    of_items = len(nats.separable)
    notes = []
    if nats.n_censored_items:
        notes.append(
            f"{nats.n_censored} values in {nats.n_censored_items} of {of_items} items are upper bounds (label not "
            "listed): too high where labels are missing, so differences between slots are understated"
        )
    left_out = int((~nats.separable).sum())
    if left_out and name != "mean":
        notes.append(f"{left_out} items left out: their orders do not separate slot from option")
    return notes
