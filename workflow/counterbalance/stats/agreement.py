"""Agreement of two ways of reading one model's choice from the same prompts: how often, and beyond chance."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array
from counterbalance.stats.estimate import Result
from counterbalance.stats.proportions import clustered_shares

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Agreement:
    """Agreement of two reads.

    Attributes
    ----------
    share
        Share of prompts for which both reads chose the same slot.
    every_order
        Share of items for which they did so in every order.
    kappa
        Cohen's kappa over slots.
    """

    share: Result
    every_order: Result
    kappa: Result


def agreement(
    item: npt.ArrayLike,
    unit: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    level: float = 0.95,
) -> Agreement:
    """Compare two reads prompt by prompt, with intervals over units.

    Parameters
    ----------
    item
        Shape (prompts,): the item that each prompt asks, from 0.
    unit
        Shape (items,): the unit of inference of each item, from 0.
    first, second
        Shape (prompts, k): how often each slot was chosen in the prompt's calls, at least once in each row. Where a
        prompt was asked several times, it counts with the share of its pairs of calls that agree.

    Returns
    -------
    Agreement
        `n_calls` counts those of `first`.

    Raises
    ------
    InputError
        For shapes that do not fit, or a prompt that one of the reads never answered.

    Notes
    -----
    kappa = (o - e) / (1 - e), where o is the share of prompts that agree and e = sum_s m_s n_s, of the shares m and n
    with which the reads choose slot s, is what two independent reads would reach. Its limits are those of o at the
    observed e: in simulation they hold where nearly all prompts agree, which a bootstrap of kappa does not, and they
    are too wide where nearly all answers name one slot.

    Source: Cohen (1960), Educational and Psychological Measurement 20, 37-46.
    """
    items, units = np.asarray(item, dtype=np.int64), np.asarray(unit, dtype=np.int64)
    ours, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if ours.ndim != 2 or ours.shape != theirs.shape or items.shape != ours.shape[:1] or not len(items):
        raise InputError(
            f"choices have shapes {ours.shape} and {theirs.shape}, items {items.shape}; expected (prompts, k) twice "
            "and (prompts,), with at least one prompt"
        )
    calls, others = ours.sum(axis=1), theirs.sum(axis=1)
    if not ((calls > 0) & (others > 0)).all():
        raise InputError("a prompt was not answered in one of the reads; leave it out before they are compared")
    ours, theirs = ours / calls[:, None], theirs / others[:, None]
    same = (ours * theirs).sum(axis=1)
    n_calls, per_prompt = int(calls.sum()), units[items]
    share = _share(per_prompt, same, level, "share of prompts for which both reads choose the same slot")
    lowest = np.ones(len(units))
    np.minimum.at(lowest, items, same)
    asked = np.unique(items)
    every = _share(
        units[asked],
        (lowest[asked] > 1 - _ROUNDING).astype(np.float64),
        level,
        "share of items for which both reads choose the same slot in every order",
    )
    chance = float(ours.mean(axis=0) @ theirs.mean(axis=0))
    return Agreement(
        replace(share, n_calls=n_calls),
        replace(every, n_calls=n_calls),
        replace(_kappa(share, chance), n_calls=n_calls),
    )


def _share(unit: npt.NDArray[np.int64], hits: Array, level: float, what: str) -> Result:
    _, place = np.unique(unit, return_inverse=True)
    columns = [np.bincount(place, weights=weights)[:, None] for weights in (hits, np.ones(len(hits)))]
    # A sum of shares may exceed their number by a rounding.
    found = clustered_shares(np.minimum(*columns), columns[1], level=level)[0]
    return replace(found, method=f"{what}; {found.method.removeprefix('share of calls, ')}")


def _kappa(share: Result, chance: float) -> Result:
    method = "Cohen's kappa over slots; limits are those of the share that agrees, at the observed chance agreement"
    if share.estimate is None or chance > 1 - _ROUNDING:
        reason = "both reads always choose the same one slot, so that chance alone would make them agree"
        return Result(method=method, n_items=share.n_items, status="undefined", reason=reason)
    estimate, low, high = (
        None if value is None else (value - chance) / (1 - chance) for value in (share.estimate, share.low, share.high)
    )
    return replace(share, method=method, estimate=estimate, low=low, high=high)
