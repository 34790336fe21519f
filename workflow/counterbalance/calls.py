"""From trials to calls: what each trial would send, which calls are still unanswered, and in which order they go."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from counterbalance.canonical import Json, canonical_json, sha256_bytes
from counterbalance.config import Cell
from counterbalance.exchange import Call
from counterbalance.vendors.base import Trial, Vendor

TRIAL_COLUMNS = (
    "trial_id",
    "item_id",
    "arrangement",
    "labels",
    "option_texts",
    "gold_slot",
    "repeat",
    "prompt",
    "prompt_sha256",
)
_BATCH = 512
# Texts of requests are kept from planning to sending up to this many bytes in all; the others are built twice.
_KEPT_BYTES = 4_000_000
# Parameters that say which trial is asked, not how; a parameter of more values than this is one of them too.
_OF_THE_TRIAL = frozenset({"arrangement", "choices", "gold_slot", "item", "labels"})
_FEW = 8


@dataclass(frozen=True)
class CallPlan:
    """The calls of a cell.

    Attributes
    ----------
    keys
        Call hash of each trial, in the table's order; trials that would send the same request share one.
    order
        Rows, one for each different call, in the order of asking.
    pending
        Those of them without a reply.
    call_order
        How the order came about: `interleaved` or `prefix`.
    parameters
        The different sets of parameters that are sent, without those that only say which trial is asked.
    texts
        Canonical texts of requests by row, as far as they are kept; they go when they are used.
    """

    keys: Sequence[str]
    order: Sequence[int]
    pending: Sequence[int]
    call_order: str
    parameters: Sequence[Mapping[str, Json]]
    texts: dict[int, bytes]

    @property
    def calls(self) -> int:
        return len(self.order)

    @property
    def answered(self) -> int:
        return self.calls - len(self.pending)


def plan_calls(vendor: Vendor, cell: Cell, trials: pa.Table, answered: Set[str], *, seed: int) -> CallPlan:
    """Work out a cell's calls; asks nothing and does not open the vendor.

    Parameters
    ----------
    vendor, cell
        Who is asked, and for which cell.
    trials
        At least `TRIAL_COLUMNS`.
    answered
        Hashes of the calls that have their reply.
    seed
        Draws the order of asking, unless prompts that share a beginning are to follow each other.
    """
    parameters = _Parameters()
    keys: list[str] = []
    first: dict[str, int] = {}
    texts: dict[int, bytes] = {}
    room = _KEPT_BYTES
    for row, trial in enumerate(iter_trials(trials, range(trials.num_rows), cell)):
        request = vendor.request(trial)
        parameters.add(request.parameters)
        text = canonical_json(request.body())
        key = sha256_bytes(text)
        keys.append(key)
        if key not in first:
            first[key] = row
            if key not in answered and room >= len(text):
                texts[row] = text
                room -= len(text)
    order = list(first.values())
    call_order = cell.experiment.call_order
    if call_order == "auto":
        call_order = "prefix" if vendor.shares_prefixes else "interleaved"
    if call_order == "interleaved":
        ids = trials.column("trial_id").to_pylist()
        order.sort(key=lambda row: order_key(seed, ids[row]))
    pending = [row for row in order if keys[row] not in answered]
    return CallPlan(keys, order, pending, call_order, parameters.sets(), texts)


def unanswered_calls(vendor: Vendor, cell: Cell, trials: pa.Table, plan: CallPlan) -> Iterator[Call]:
    """Yield the unanswered calls one by one, in the order of asking."""
    for row, trial in zip(plan.pending, iter_trials(trials, plan.pending, cell), strict=True):
        request = vendor.request(trial)
        text = plan.texts.pop(row, None) or canonical_json(request.body())
        yield Call(plan.keys[row], text.decode(), request, trial)


def order_key(seed: int, trial_id: str) -> bytes:
    """Return what calls are sorted by: items and arrangements come mixed, the same way each time."""
    return hashlib.sha256(json.dumps([seed, trial_id]).encode()).digest()


def iter_trials(trials: pa.Table, rows: Sequence[int], cell: Cell) -> Iterator[Trial]:
    """Yield rows of a trials table as trials, a few at a time, so that a large table is never all objects at once."""
    pieces = trials.select(list(TRIAL_COLUMNS)).to_batches()
    ends = np.cumsum([piece.num_rows for piece in pieces])
    for start in range(0, len(rows), _BATCH):
        wanted = np.asarray(rows[start : start + _BATCH])
        owners = np.searchsorted(ends, wanted, side="right")
        found: dict[int, Mapping[str, Any]] = {}
        # Piece by piece, as Arrow would join the whole table for rows of several.
        for owner in np.unique(owners):
            piece, mine = pieces[owner], wanted[owners == owner]
            listed = piece.take(pa.array(mine - (ends[owner] - piece.num_rows))).to_pylist()
            found.update(zip(mine.tolist(), listed, strict=True))
        for row in wanted.tolist():
            yield _trial(found[row], cell)


def _trial(row: Mapping[str, Any], cell: Cell) -> Trial:
    return Trial(
        trial_id=row["trial_id"],
        experiment=cell.experiment.id,
        subset=cell.dataset.id,
        item_id=row["item_id"],
        arrangement=row["arrangement"],
        labels=row["labels"],
        option_texts=row["option_texts"],
        gold_slot=row["gold_slot"],
        repeat=row["repeat"],
        prompt=json.loads(row["prompt"]),
        prompt_sha256=row["prompt_sha256"],
    )


class _Parameters:
    """Gathers the different sets of parameters of many requests, in little space however many there are."""

    def __init__(self) -> None:
        self._last: Mapping[str, Json] | None = None
        self._values: dict[str, set[bytes]] = {}
        self._left_out = set(_OF_THE_TRIAL)
        self._sets: dict[bytes, Mapping[str, Json]] = {}

    def add(self, parameters: Mapping[str, Json]) -> None:
        if parameters == self._last:
            return
        self._last = parameters
        kept = {name: value for name, value in parameters.items() if name not in self._left_out}
        for name, value in kept.items():
            values = self._values.setdefault(name, set())
            values.add(canonical_json(value))
            if len(values) > _FEW:
                self._left_out.add(name)
                before, self._sets = self._sets, {}
                for entry in before.values():
                    self._keep(entry)
        self._keep(kept)

    def sets(self) -> list[Mapping[str, Json]]:
        return [self._sets[text] for text in sorted(self._sets)]

    def _keep(self, parameters: Mapping[str, Json]) -> None:
        kept = {name: value for name, value in parameters.items() if name not in self._left_out}
        self._sets[canonical_json(kept)] = kept
