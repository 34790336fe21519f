"""Outcomes of one cell as counts per item and slot: the arrays that every mcq statistic is computed from."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.stats.disagreement import Choices
from counterbalance.stats.steadiness import item_answers

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
class Nats:
    """Calls with a log-probability for every slot.

    Attributes
    ----------
    item
        Shape (calls,): item of each call, from 0.
    unit
        Shape (items,): unit of inference of each item, from 0.
    option
        Shape (calls, k): which of the item's options stood in each slot, from 0.
    logprobs, censored
        Shape (calls, k): nats, and whether the value is only an upper bound.
    """

    item: Ints
    unit: Ints
    option: Ints
    logprobs: Reals
    censored: Flags


@dataclass(frozen=True)
class Counts:
    """One stratum: the items of a cell that have the same number of options.

    Rows are groups: items that share a source count as one unit; an item without a group is a unit of its own. Calls
    that were asked once more for the repeat floor are in `choices` alone, so that all else stays balanced.

    Attributes
    ----------
    k
        Number of options.
    items
        Shape (units,): how many items a unit has.
    correct, scored
        Shape (units, k): right answers, and scored answers, by the slot where the correct option stood.
    picks, wrong_picks
        Shape (units, k): how often each slot was chosen, in all scored answers and in the wrong ones.
    n_calls
        Calls asked, answered or not.
    status
        Shape (units, statuses, k): calls by outcome (order of `STATUSES`) and by the slot of the correct option.
    status_unkeyed
        Shape (units, statuses): calls of items without a key, which have no such slot.
    consistent
        Shape (items answered twice or more,): whether every answer of an item chose the same option; None where options
        are not known.
    nats
        Log-probabilities by slot, where the read gives them.
    choices
        Which option each answered call chose; None where options are not known.
    label_mass, weighed
        Shape (units,): total probability of all labels summed over the calls that have one, and how many have.
    """

    k: int
    items: Ints
    correct: Ints
    scored: Ints
    picks: Ints
    wrong_picks: Ints
    n_calls: int
    status: Ints
    status_unkeyed: Ints
    consistent: Flags | None
    nats: Nats | None
    choices: Choices | None
    label_mass: Reals
    weighed: Ints

    @property
    def n_units(self) -> int:
        return len(self.correct)

    @property
    def n_items(self) -> int:
        return int(self.items.sum())

    @property
    def asked(self) -> Ints:
        """Shape (units, k): calls of items with a key, by the slot where the correct option stood."""
        return np.asarray(self.status.sum(axis=1))

    @property
    def unanswered(self) -> Ints:
        """Shape (units, k): those of them without a usable answer."""
        return self.asked - self.scored

    @property
    def without_answer(self) -> str | None:
        """Say what became of the calls where none has a usable answer; None where one has."""
        if self.picks.any():
            return None
        each = self.status.sum(axis=(0, 2)) + self.status_unkeyed.sum(axis=0)
        found = sorted((-int(n), name) for n, name in zip(each, STATUSES, strict=True) if n)
        return f"no usable answer: of {self.n_calls} calls {', '.join(f'{-n} {name}' for n, name in found)}"


def count_strata(outcomes: pa.Table) -> list[Counts]:
    """Count a cell's outcomes, one stratum per number of options, the one with most items first."""
    sizes = sorted(set(outcomes.column("n_options").to_pylist()))
    strata = [_count(outcomes.filter(pc.equal(outcomes.column("n_options"), size)), size) for size in sizes]
    return sorted(strata, key=lambda counts: (-counts.n_units, counts.k))


def _count(every: pa.Table, k: int) -> Counts:
    table = every.filter(pc.invert(every.column("extra")))
    item, n_items = _codes(table, "group_id")
    gold, slot = _optional_ints(table, "gold_slot"), _optional_ints(table, "slot")
    answered, keyed = slot >= 0, gold >= 0
    both = answered & keyed
    right = both & (slot == gold)
    position = {name: index for index, name in enumerate(STATUSES)}
    outcomes = table.column("outcome").combine_chunks().dictionary_encode()
    code = np.array([position[name] for name in outcomes.dictionary.to_pylist()], dtype=np.int64)[outcomes.indices]
    status = np.zeros((n_items, len(STATUSES), k), dtype=np.int64)
    np.add.at(status, (item[keyed], code[keyed], gold[keyed]), 1)
    status_unkeyed = np.zeros((n_items, len(STATUSES)), dtype=np.int64)
    np.add.at(status_unkeyed, (item[~keyed], code[~keyed]), 1)
    owners = table.group_by(["group_id", "item_id"]).aggregate([])
    of_unit = pc.index_in(owners.column("group_id"), value_set=_named(table, "group_id")).to_numpy()
    choices = _choices(every)
    has_mass = table.column("label_mass").is_valid().to_numpy()
    mass = pc.fill_null(table.column("label_mass"), 0.0).to_numpy()
    return Counts(
        k=k,
        items=np.bincount(of_unit, minlength=n_items).astype(np.int64),
        correct=_tally(item[right], gold[right], n_items, k),
        scored=_tally(item[both], gold[both], n_items, k),
        picks=_tally(item[answered], slot[answered], n_items, k),
        wrong_picks=_tally(item[both & ~right], slot[both & ~right], n_items, k),
        n_calls=table.num_rows,
        status=status,
        status_unkeyed=status_unkeyed,
        consistent=None if choices is None else item_answers(choices).consistent,
        nats=_nats(table, k),
        choices=choices,
        label_mass=np.bincount(item, weights=mass, minlength=n_items).astype(np.float64),
        weighed=np.bincount(item[has_mass], minlength=n_items).astype(np.int64),
    )


def _named(table: pa.Table, name: str) -> pa.Array:
    """Return the names behind `_codes`, in the order of the codes."""
    return table.column(name).combine_chunks().dictionary_encode().dictionary


def _codes(table: pa.Table, name: str) -> tuple[Ints, int]:
    codes = table.column(name).combine_chunks().dictionary_encode()
    return codes.indices.to_numpy().astype(np.int64), len(codes.dictionary)


def _tally(item: Ints, slot: Ints, n_items: int, k: int) -> Ints:
    return np.bincount(item * k + slot, minlength=n_items * k).reshape(n_items, k).astype(np.int64)


def _optional_ints(table: pa.Table, name: str) -> Ints:
    filled: Ints = pc.fill_null(table.column(name), -1).to_numpy().astype(np.int64)
    return filled


def _choices(table: pa.Table) -> Choices | None:
    table = table.filter(table.column("option_id").is_valid())
    if not table.num_rows:
        return None
    return Choices(
        unit=_codes(table, "group_id")[0],
        item=_codes(table, "item_id")[0],
        order=table.column("arrangement_index").to_numpy(),
        option=_codes(table, "option_id")[0],
        extra=table.column("extra").to_numpy(),
    )


def _nats(table: pa.Table, k: int) -> Nats | None:
    known = pc.and_(table.column("slot_logprobs").is_valid(), table.column("arrangement").is_valid())
    table = table.filter(known)
    if not table.num_rows:
        return None
    item, n_items = _codes(table, "item_id")
    unit = np.zeros(n_items, dtype=np.int64)
    unit[item] = _codes(table, "group_id")[0]
    censored = table.column("slot_censored").combine_chunks().flatten()
    options = table.column("arrangement").combine_chunks().flatten().dictionary_encode()
    # All orders of an item hold the same options, so the rank within a row names the same option in each.
    code = options.indices.to_numpy().reshape(-1, k)
    return Nats(
        item=item,
        unit=unit,
        option=code.argsort(axis=1).argsort(axis=1),
        logprobs=table.column("slot_logprobs").combine_chunks().flatten().to_numpy().reshape(-1, k),
        censored=censored.to_numpy(zero_copy_only=False).astype(bool).reshape(-1, k),
    )
