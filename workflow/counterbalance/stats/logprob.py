"""Label log-probabilities of items: their mean by slot, and the slot bonus in nats with the content taken out."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array

Indices = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

_SINGULAR = 1e-9


@dataclass(frozen=True)
class ItemNats:
    """Log-probabilities of the option labels of each item.

    Attributes
    ----------
    mean
        Mean log-probability of the label in each slot, in nats, shape (items, slots).
    bonus
        Slot terms of each item in nats, relative to the mean of its slots; same shape.
    prior
        Prior probability of each label with the content taken out; same shape, rows add up to 1.
    separable
        Whether an item's arrangements tell slot from option, shape (items,); elsewhere bonus and prior have no meaning.
    calls
        Calls of each item.
    unit
        Index of the group that each item belongs to.
    n_censored, n_censored_items
        Values that are bounds, and items with at least one.
    """

    mean: Array
    bonus: Array
    prior: Array
    separable: Flags
    calls: Array
    unit: Indices
    n_censored: int
    n_censored_items: int


def item_nats(
    items: npt.ArrayLike,
    options: npt.ArrayLike,
    logprobs: npt.ArrayLike,
    censored: npt.ArrayLike,
    *,
    units: npt.ArrayLike | None = None,
) -> ItemNats:
    """Return mean label log-probability, slot bonus and label prior by slot, item by item.

    Parameters
    ----------
    items
        Index of each call's item from 0, shape (calls,). Every item needs a call.
    options
        Which option of the item sat in each slot, as 0 to k - 1, shape (calls, slots).
    logprobs
        Log-probability of each slot's label in nats, at most 0, same shape. Calls without them are left out by
        the caller.
    censored
        True where the value is only a bound, because the label was not among those listed.
    units
        Index of the group that each item belongs to, shape (items,). None: each item is its own.

    Raises
    ------
    InputError
        For values that are missing, infinite or positive, and for arrangements that are not permutations.

    Notes
    -----
    Model within an item: log p = call + option + slot. The slot terms are fitted by least squares. Where every option
    sat in every slot equally often, the option terms cancel and the bonus is the slot's mean log-probability less the
    mean over slots; where calls are missing, the fit takes the content out that this would leave in.

    The prior of an item is the softmax of its slot terms; with all rotations it is the softmax over slots of the mean
    log-probability. Source: Zheng et al. (2024), "Large language models are not robust multiple choice selectors",
    ICLR.

    Censoring: a label that was not listed is given its upper bound, the smallest value listed. So the mean
    log-probability of a slot is too high, never too low, and so is the bonus of slots in which labels often go
    missing, relative to the others: the spread of the bonuses is understated.
    """
    item, option, values, bound = _checked(items, options, logprobs, censored)
    n_items = int(item.max(initial=-1)) + 1
    calls = np.bincount(item, minlength=n_items).astype(np.float64)
    bonus, separable = _slot_terms(item, option, values, calls)
    owner = np.arange(n_items) if units is None else np.asarray(units, dtype=np.intp)
    if owner.shape != (n_items,):
        raise InputError(f"units has shape {owner.shape} for {n_items} items; expected one group for each item")
    odds = np.exp(bonus - bonus.max(axis=1, initial=0.0, keepdims=True))
    return ItemNats(
        mean=_sum_by(item, values, n_items) / calls[:, None],
        bonus=bonus,
        prior=odds / odds.sum(axis=1, keepdims=True),
        separable=separable,
        calls=calls,
        unit=owner,
        n_censored=int(bound.sum()),
        n_censored_items=len(np.unique(item[bound.any(axis=1)])),
    )


def _checked(
    items: npt.ArrayLike, options: npt.ArrayLike, logprobs: npt.ArrayLike, censored: npt.ArrayLike
) -> tuple[Indices, Indices, Array, npt.NDArray[np.bool_]]:
    item, option = np.asarray(items, dtype=np.intp), np.asarray(options, dtype=np.intp)
    try:
        values, bound = np.asarray(logprobs, dtype=np.float64), np.asarray(censored, dtype=bool)
    except (ValueError, TypeError) as error:
        raise InputError("logprobs: rows differ in length; analyse numbers of options in separate strata") from error
    if values.ndim != 2 or values.shape[1] < 2 or not item.shape == values.shape[:1]:
        raise InputError(f"logprobs has shape {values.shape} for {item.shape} items; expected (calls, slots >= 2)")
    if option.shape != values.shape or bound.shape != values.shape:
        raise InputError(
            f"options {option.shape}, censored {bound.shape}; expected the shape of logprobs {values.shape}"
        )
    bad = ~np.isfinite(values) | (values > 0)
    if bad.any():
        call, slot = np.argwhere(bad)[0]
        raise InputError(
            f"logprobs, call {call}, slot {slot + 1}: found {values[call, slot]}; expected a finite number of at most "
            "0; give a label that was not listed its bound and mark it censored"
        )
    if (np.sort(option, axis=1) != np.arange(values.shape[1])).any():
        raise InputError("options: a row is not a permutation of 0 to slots - 1; give each call's option by slot")
    if len(item) and (item.min() < 0 or len(np.unique(item)) != item.max() + 1):
        raise InputError("items: expected indices from 0 without gaps, one for each call")
    return item, option, values, bound


def _sum_by(item: Indices, values: Array, n_items: int) -> Array:
    sums = np.zeros((n_items, *values.shape[1:]))
    np.add.at(sums, item, values)
    return sums


def _slot_terms(item: Indices, option: Indices, values: Array, calls: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the least-squares slot terms of each item, and whether its arrangements determine them.

    Every call shows each option and each slot once, so the call's own term cancels from what follows. With R calls and
    the table M of how often option o sat in slot s, the option terms drop out of the normal equations, which leaves
    (R I - M'M / R) b = (slot sums) - M'(option sums) / R.
    """
    n_items, k = len(calls), values.shape[1]
    sat = np.zeros((n_items, k, k))
    np.add.at(sat, (item[:, None], option, np.arange(k)), 1.0)
    by_slot = _sum_by(item, values, n_items)
    by_option = np.zeros((n_items, k))
    np.add.at(by_option, (item[:, None], option), values)
    rounds = calls[:, None, None]
    normal = rounds * np.eye(k) - np.swapaxes(sat, 1, 2) @ sat / rounds
    right = by_slot - np.einsum("qos,qo->qs", sat, by_option) / calls[:, None]
    # The equal vector is always in the null space; one more such vector and the slots are not determined.
    separable = np.linalg.eigvalsh(normal)[:, 1] > _SINGULAR * calls
    terms = np.einsum("qst,qt->qs", np.linalg.pinv(normal, rcond=_SINGULAR, hermitian=True), right)
    return terms, separable
