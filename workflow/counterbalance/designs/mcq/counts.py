"""Outcomes of one cell as counts per item and slot: the arrays that every mcq statistic is computed from."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

STATUSES = (
    "ok",
    "refused",
    "blocked",
    "empty",
    "truncated",
    "incomplete",
    "multiple",
    "ambiguous",
    "unparsed",
    "unusable",
    "unavailable",
    "unknown",
)


@dataclass(frozen=True)
class Counts:
    """One stratum: the items of a cell that have the same number of options.

    Rows are groups: items that share a source count as one unit; an item without a group is a unit of its own.

    Attributes
    ----------
    k
        Number of options.
    correct, scored
        Shape (units, k): right answers, and scored answers, by the slot where the correct option stood.
    picks, wrong_picks
        Shape (units, k): how often each slot was chosen, in all scored answers and in the wrong ones.
    n_calls
        Calls asked, answered or not.
    status
        Shape (statuses, k): calls by outcome (order of `STATUSES`) and by the slot of the correct option.
    status_unkeyed
        Shape (statuses,): calls of items without a key, which have no such slot.
    consistent
        Shape (items,): whether every answer of an item chose the same option; None where options are not known.
    logprobs, censored
        Shape (calls, k): log-probability in nats by slot, and whether it is only a bound; None without such a read.
    call_item
        Shape (calls,): unit index of each row of `logprobs`.
    """

    k: int
    correct: Ints
    scored: Ints
    picks: Ints
    wrong_picks: Ints
    n_calls: int
    status: Ints
    status_unkeyed: Ints
    consistent: Flags | None
    logprobs: Reals | None
    censored: Flags | None
    call_item: Ints

    @property
    def n_items(self) -> int:
        return len(self.correct)


def count_strata(outcomes: pa.Table) -> list[Counts]:
    """Count a cell's outcomes, one stratum per number of options, the one with most items first."""
    sizes = sorted(set(outcomes.column("n_options").to_pylist()))
    strata = [_count(outcomes.filter(pc.equal(outcomes.column("n_options"), size)), size) for size in sizes]
    return sorted(strata, key=lambda counts: (-counts.n_items, counts.k))


def _count(table: pa.Table, k: int) -> Counts:
    item, n_items = _codes(table, "group_id")
    gold, slot = _optional_ints(table, "gold_slot"), _optional_ints(table, "slot")
    answered, keyed = slot >= 0, gold >= 0
    both = answered & keyed
    right = both & (slot == gold)
    status = np.zeros((len(STATUSES), k), dtype=np.int64)
    code = np.array([STATUSES.index(name) for name in table.column("outcome").to_pylist()], dtype=np.int64)
    np.add.at(status, (code[keyed], gold[keyed]), 1)
    logprobs, censored, rows = _logprobs(table, k)
    return Counts(
        k=k,
        correct=_tally(item[right], gold[right], n_items, k),
        scored=_tally(item[both], gold[both], n_items, k),
        picks=_tally(item[answered], slot[answered], n_items, k),
        wrong_picks=_tally(item[both & ~right], slot[both & ~right], n_items, k),
        n_calls=table.num_rows,
        status=status,
        status_unkeyed=np.bincount(code[~keyed], minlength=len(STATUSES)).astype(np.int64),
        consistent=_consistent(table),
        logprobs=logprobs,
        censored=censored,
        call_item=item[rows],
    )


def _codes(table: pa.Table, name: str) -> tuple[Ints, int]:
    codes = table.column(name).combine_chunks().dictionary_encode()
    return codes.indices.to_numpy().astype(np.int64), len(codes.dictionary)


def _tally(item: Ints, slot: Ints, n_items: int, k: int) -> Ints:
    return np.bincount(item * k + slot, minlength=n_items * k).reshape(n_items, k).astype(np.int64)


def _optional_ints(table: pa.Table, name: str) -> Ints:
    filled: Ints = pc.fill_null(table.column(name), -1).to_numpy().astype(np.int64)
    return filled


def _consistent(table: pa.Table) -> Flags | None:
    item, n_items = _codes(table, "item_id")
    column = table.column("option_id").combine_chunks()
    known = column.is_valid().to_numpy(zero_copy_only=False)
    if not known.any():
        return None
    code = column.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)
    low = np.full(n_items, np.iinfo(np.int64).max)
    high = np.full(n_items, -1)
    np.minimum.at(low, item[known], code[known])
    np.maximum.at(high, item[known], code[known])
    same: Flags = (low == high) & (high >= 0)
    return same


def _logprobs(table: pa.Table, k: int) -> tuple[Reals | None, Flags | None, Ints]:
    column = table.column("slot_logprobs").combine_chunks()
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    if not len(rows):
        return None, None, rows
    censored = table.column("slot_censored").combine_chunks()
    values = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, k)
    bounds = censored.flatten().to_numpy(zero_copy_only=False).astype(bool).reshape(-1, k)
    return values, bounds, rows
