"""The counts that the statistics of a cell start from, checked once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError

Array = npt.NDArray[np.float64]

NO_CALLS = "no scored calls"
"""Reason of every statistic that has nothing to be computed from."""


class Size(TypedDict):
    """What a result rests on, as keywords of `Result`."""

    n_items: int
    n_calls: int


@dataclass(frozen=True)
class SlotCounts:
    """Correct answers and scored calls of each item, by the slot in which the correct option sat.

    Attributes
    ----------
    correct, n
        Whole numbers as floats, shape (items, slots), ``0 <= correct <= n``. Items without a scored call are left
        out, since they say nothing about slots; that they exist is the business of the outcome counts.
    """

    correct: Array
    n: Array

    @property
    def n_items(self) -> int:
        return len(self.n)

    @property
    def n_slots(self) -> int:
        return int(self.n.shape[1])

    @property
    def n_calls(self) -> int:
        return int(self.n.sum())

    @property
    def size(self) -> Size:
        return {"n_items": self.n_items, "n_calls": self.n_calls}

    @property
    def empty_slots(self) -> str | None:
        """Say which slots (counted from 1) never held the correct option in a scored call, or None."""
        empty = [str(slot + 1) for slot in np.flatnonzero(self.n.sum(axis=0) == 0)]
        return f"no scored call had the correct option in slot {', '.join(empty)}" if empty else None


def slot_counts(correct: npt.ArrayLike, n: npt.ArrayLike) -> SlotCounts:
    """Check counts and drop items without a scored call.

    Parameters
    ----------
    correct
        Correct answers, shape (items, slots); bool where each slot was asked once.
    n
        Scored calls with the correct option in that slot, same shape.

    Raises
    ------
    InputError
        For arrays that are ragged, differ in shape, have fewer than two slots, or hold anything but whole numbers
        with ``0 <= correct <= n``.
    """
    hits, calls = whole_numbers("correct", correct), whole_numbers("n", n)
    if hits.shape != calls.shape:
        raise InputError(f"correct has shape {hits.shape} and n has {calls.shape}; expected the same (items, slots)")
    if (hits > calls).any():
        item, slot = np.argwhere(hits > calls)[0]
        raise InputError(
            f"item row {item}, slot {slot + 1}: {hits[item, slot]:g} correct of {calls[item, slot]:g} calls; "
            "count only scored calls, each once"
        )
    asked = calls.sum(axis=1) > 0
    return SlotCounts(hits[asked], calls[asked])


def whole_numbers(name: str, values: npt.ArrayLike) -> Array:
    """Return counts as floats of shape (items, slots), refusing what is not a table of counts.

    Raises
    ------
    InputError
        For ragged rows, gaps (NaN), negative or fractional numbers, and fewer than two slots.
    """
    advice = "analyse items with different numbers of options in separate strata"
    try:
        table = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not a table of numbers, or its rows differ in length; {advice}") from error
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(f"{name} has shape {table.shape}; expected (items, slots) with at least 2 slots; {advice}")
    bad = ~np.isfinite(table) | (table < 0) | (table != np.round(table))
    if bad.any():
        item, slot = np.argwhere(bad)[0]
        raise InputError(
            f"{name}, item row {item}, slot {slot + 1}: found {table[item, slot]}; expected a count (0 where nothing "
            f"was scored, never a gap); {advice}"
        )
    return table


def sum_by_group(counts: npt.ArrayLike, groups: Sequence[str]) -> Array:
    """Add up the counts of items that share a source, so that the group is the unit of every statistic.

    Parameters
    ----------
    counts
        Shape (items, slots).
    groups
        Group of each item. Rows of the answer are in order of first appearance.

    Raises
    ------
    InputError
        If the lengths differ.
    """
    table = whole_numbers("counts", counts)
    if len(groups) != len(table):
        raise InputError(f"{len(groups)} groups for {len(table)} items; expected one group for each item")
    order: dict[str, int] = {}
    index = np.array([order.setdefault(group, len(order)) for group in groups], dtype=np.intp)
    sums = np.zeros((len(order), table.shape[1]))
    np.add.at(sums, index, table)
    return sums
