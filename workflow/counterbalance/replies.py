"""The table of replies: derived from a ledger, for free, as often as one likes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, TableWriter, table_from_rows
from counterbalance.artifacts.tables import Written
from counterbalance.canonical import Json
from counterbalance.errors import PendingError
from counterbalance.ledger import AnsweredCall, Session, Spent, read_answered, read_sessions, read_spent

_REPLIES = SCHEMAS["replies"]
_OF_THE_REPLY = [
    name
    for name in _REPLIES.arrow.names
    if name not in ("trial_id", "call_sha256", "attempts", "call_order", "session", "started_at")
]
_SLICE = 2_000


@dataclass
class Bought:
    """The calls behind a table of replies, over all sessions.

    Attributes
    ----------
    calls
        Different calls.
    attempts, transport_errors
        How often they were sent, and how often no reply came back.
    possibly_sent_twice
        Attempts that were under way when a process ended: the vendor may have answered, and charged, them too.
        `attempts` is `calls` + `transport_errors` + `possibly_sent_twice`.
    statuses
        Trials by the status of their reply.
    frozen, models_returned, by_session
        Calls by the frozen record under which they were sent, by the model that the vendor said had answered (calls
        where it did not say are left out), and by session.
    sessions, spent
        All sessions of the ledger and all money in it, also for calls that no trial asks for any more.
    """

    calls: int = 0
    attempts: int = 0
    transport_errors: int = 0
    possibly_sent_twice: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    frozen: Counter[str] = field(default_factory=Counter)
    models_returned: Counter[str] = field(default_factory=Counter)
    by_session: Counter[int] = field(default_factory=Counter)
    sessions: Sequence[Session] = ()
    spent: Spent = field(default_factory=Spent)

    def facts(self) -> dict[str, Json]:
        """Return the counts as JSON values, for the record."""
        return {
            "calls": self.calls,
            "attempts": self.attempts,
            "transport_errors": self.transport_errors,
            "possibly_sent_twice": self.possibly_sent_twice,
            "maybe_billed": self.spent.maybe_billed,
            "statuses": dict(self.statuses),
            "frozen": dict(self.frozen),
            "models_returned": dict(self.models_returned),
            "sessions": [
                {"session": s.session, "ended_because": s.ended_because, "calls": self.by_session[s.session]}
                for s in self.sessions
            ],
            "spent_nano_usd": self.spent.nano_usd,
            "charged_at_worst": self.spent.at_worst,
        }

    def count(self, call: AnsweredCall) -> None:
        """Take in one call."""
        self.calls += 1
        self.attempts += call.attempts
        self.transport_errors += call.transport_errors
        self.possibly_sent_twice += call.unknown
        self.frozen[call.frozen_sha256] += 1
        self.by_session[call.session] += 1
        if call.reply["model_returned"] is not None:
            self.models_returned[call.reply["model_returned"]] += 1


def derive_replies(ledger: Path, trial_ids: Sequence[str], keys: Sequence[str], path: Path) -> tuple[Written, Bought]:
    """Write the replies of a cell's trials, in key order.

    Parameters
    ----------
    ledger
        The cell's ledger.
    trial_ids, keys
        Trials, and the hash of each one's call.
    path
        Where the table goes.

    Raises
    ------
    PendingError
        If a call has no reply; no table is written then.
    VerificationError
        If the ledger was changed after it was written.
    """
    bought = Bought(sessions=read_sessions(ledger), spent=read_spent(ledger))
    counted: set[str] = set()
    order = sorted(range(len(trial_ids)), key=trial_ids.__getitem__)
    with TableWriter(path, _REPLIES) as writer:
        for start in range(0, len(order), _SLICE):
            rows = order[start : start + _SLICE]
            found = read_answered(ledger, sorted({keys[row] for row in rows}))
            table = [_row(trial_ids[row], keys[row], found) for row in rows]
            writer.write(table_from_rows(table, _REPLIES))
            bought.statuses.update(entry["status"] for entry in table)
            for key in found.keys() - counted:
                bought.count(found[key])
            counted |= found.keys()
    return writer.result(), bought


def replies_of(ledger: Path, trial_ids: Sequence[str], keys: Sequence[str]) -> pa.Table:
    """Return the replies of a few trials in key order, without writing them.

    Raises
    ------
    PendingError, VerificationError
        As `derive_replies`.
    """
    found = read_answered(ledger, sorted(set(keys)))
    return table_from_rows([_row(*pair, found) for pair in zip(trial_ids, keys, strict=True)], _REPLIES)


def _row(trial_id: str, key: str, found: Mapping[str, AnsweredCall]) -> dict[str, Any]:
    call = found.get(key)
    if call is None:
        raise PendingError(f"trial {trial_id}: call {key} has no reply in the ledger; run query again")
    return {
        "trial_id": trial_id,
        "call_sha256": key,
        "attempts": call.attempts,
        "call_order": call.call_order,
        "session": call.session,
        "started_at": call.started_at,
        **{name: call.reply[name] for name in _OF_THE_REPLY},
    }
