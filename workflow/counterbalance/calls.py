"""From trials to calls: what each trial would send, which calls are still unanswered, and in which order they go."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from counterbalance.canonical import canonical_json, sha256_bytes
from counterbalance.config import Cell
from counterbalance.engine import Call
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


@dataclass(frozen=True)
class CallPlan:
    """The calls of a cell.

    Attributes
    ----------
    keys
        Call hash of each trial, in the table's order; trials that would send the same request share one.
    pending
        Rows, one for each call without a reply, in the order of asking.
    calls
        Number of different calls.
    """

    keys: Sequence[str]
    pending: Sequence[int]
    calls: int

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
        Draws the order of asking, where the vendor gains nothing from the trials' own order.
    """
    keys = [_identify(vendor, trial)[0] for trial in iter_trials(trials, range(trials.num_rows), cell)]
    seen: set[str] = set()
    pending = []
    for row, key in enumerate(keys):
        if key not in seen and key not in answered:
            pending.append(row)
        seen.add(key)
    if not vendor.shares_prefixes:
        ids = trials.column("trial_id").to_pylist()
        pending.sort(key=lambda row: order_key(seed, ids[row]))
    return CallPlan(keys, pending, len(seen))


def unanswered_calls(vendor: Vendor, cell: Cell, trials: pa.Table, plan: CallPlan) -> Iterator[Call]:
    """Yield the unanswered calls one by one, in the order of asking."""
    for trial in iter_trials(trials, plan.pending, cell):
        key, text = _identify(vendor, trial)
        yield Call(key, text, vendor.request(trial), trial)


def order_key(seed: int, trial_id: str) -> bytes:
    """Return what calls are sorted by: items and arrangements come mixed, the same way each time."""
    return hashlib.sha256(json.dumps([seed, trial_id]).encode()).digest()


def iter_trials(trials: pa.Table, rows: Sequence[int], cell: Cell) -> Iterator[Trial]:
    """Yield rows of a trials table as trials, a few at a time, so that a large table is never all objects at once."""
    table = trials.select(list(TRIAL_COLUMNS))
    for start in range(0, len(rows), _BATCH):
        for row in table.take(list(rows[start : start + _BATCH])).to_pylist():
            yield _trial(row, cell)


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


def _identify(vendor: Vendor, trial: Trial) -> tuple[str, str]:
    text = canonical_json(vendor.request(trial).body())
    return sha256_bytes(text), text.decode()
