"""Batches in the ledger: written down before they are handed in, so that a killed process buys nothing twice."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from counterbalance.canonical import utf8_text
from counterbalance.errors import InputError

if TYPE_CHECKING:
    from counterbalance.ledger.write import Attempt, Ledger, Sending

BATCH_TABLES = """
CREATE TABLE batches (
    run_id TEXT PRIMARY KEY,
    batch_id TEXT,
    state TEXT NOT NULL CHECK (
        state IN ('intended', 'submitted', 'collected', 'absent', 'failed', 'disputed', 'gone')
    ),
    place TEXT NOT NULL,
    calls INTEGER NOT NULL,
    worst_nano_usd INTEGER,
    intended_at TEXT NOT NULL,
    submitted_at TEXT,
    closed_at TEXT,
    detail TEXT
) WITHOUT ROWID;
CREATE TABLE batch_calls (
    run_id TEXT NOT NULL REFERENCES batches,
    call_sha256 TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    PRIMARY KEY (run_id, call_sha256)
) WITHOUT ROWID;
"""
"""Part of every ledger, after the tables of calls and attempts."""

Closed = Literal["collected", "absent", "failed", "disputed", "gone"]


@dataclass(frozen=True)
class OpenBatch:
    """A batch that is not closed: intended, or handed in and not collected.

    Attributes
    ----------
    run_id
        Our name for it, stored with the batch at the vendor.
    batch_id
        The vendor's name for it; None while nobody knows whether the vendor has it.
    place
        Where it was handed in, and with which key: nobody finds it elsewhere.
    calls
        How many calls it has.
    intended_at, submitted_at
        When it was written down, and when the vendor's name for it was known (UTC).
    """

    run_id: str
    batch_id: str | None
    place: str
    calls: int
    intended_at: datetime
    submitted_at: datetime | None


class Batches:
    """The batches of one ledger.

    The states: `intended` (on disk, perhaps handed in), `submitted` (the vendor's id is known), and closed as
    `collected` (all results are in the ledger), `absent` (the vendor never had it), `failed` (the vendor took none of
    it), `disputed` (collected, but ids were unknown or came twice) or `gone` (the vendor no longer has it).

    Parameters
    ----------
    ledger
        Open for writing. Each change of a batch is one transaction with the attempts that it concerns.
    frozen_sha256
        The frozen record under which calls are handed in.
    """

    def __init__(self, ledger: "Ledger", *, frozen_sha256: str) -> None:
        self._ledger, self._frozen = ledger, frozen_sha256

    def open(self) -> list[OpenBatch]:
        """Return the batches that are not closed, oldest first."""
        rows: list[Any] = self._ledger.select(
            "SELECT run_id, batch_id, place, calls, intended_at, submitted_at FROM batches "
            "WHERE state IN ('intended', 'submitted') ORDER BY intended_at, run_id"
        )
        return [
            OpenBatch(run_id, batch_id, place, calls, _time(intended), submitted and _time(submitted))
            for run_id, batch_id, place, calls, intended, submitted in rows
        ]

    def calls(self, run_id: str) -> dict[str, int]:
        """Return the calls of a batch, each with the number of its attempt."""
        rows: list[Any] = self._ledger.select(
            "SELECT call_sha256, attempt FROM batch_calls WHERE run_id = ?", (run_id,)
        )
        return dict(rows)

    def request_text(self, key: str) -> str:
        """Return the canonical text of the request of a call that was sent before.

        Raises
        ------
        InputError
            If the ledger has no such call.
        """
        rows = self._ledger.select("SELECT request FROM calls WHERE call_sha256 = ?", (key,))
        if not rows:
            raise InputError(f"call {key} of a batch is not among the ledger's calls; restore the ledger from a backup")
        return str(rows[0][0])

    def intend(self, run_id: str, sendings: Sequence["Sending"], *, place: str) -> OpenBatch:
        """Write a batch and the attempts of its calls down before it is handed in."""
        now = datetime.now(UTC)
        calls = [(run_id, entry.call_sha256, self._ledger.attempts(entry.call_sha256) + 1) for entry in sendings]
        costs = [entry.worst_nano_usd for entry in sendings if entry.worst_nano_usd is not None]

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "INSERT INTO batches (run_id, state, place, calls, worst_nano_usd, intended_at) "
                "VALUES (?, 'intended', ?, ?, ?, ?)",
                (run_id, place, len(calls), sum(costs) if costs else None, _text(now)),
            )
            connection.executemany("INSERT INTO batch_calls VALUES (?, ?, ?)", calls)

        self._ledger.save([], sendings, frozen_sha256=self._frozen, also=write)
        return OpenBatch(run_id, None, place, len(calls), now, None)

    def submitted(self, batch: OpenBatch, batch_id: str) -> OpenBatch:
        """Write down the vendor's name of a batch."""
        now = datetime.now(UTC)

        def write(connection: sqlite3.Connection) -> None:
            statement = (
                "UPDATE batches SET state = 'submitted', batch_id = ?, submitted_at = ? "
                "WHERE run_id = ? AND state = 'intended'"
            )
            _expect_one(connection.execute(statement, (batch_id, _text(now), batch.run_id)), batch)

        self._ledger.save([], [], frozen_sha256=self._frozen, also=write)
        return replace(batch, batch_id=batch_id, submitted_at=now)

    def close(self, batch: OpenBatch, state: Closed, ended: Sequence["Attempt"], detail: str | None = None) -> None:
        """Write down how a batch and the attempts of its calls ended."""

        def write(connection: sqlite3.Connection) -> None:
            statement = (
                "UPDATE batches SET state = ?, closed_at = ?, detail = ? "
                "WHERE run_id = ? AND state IN ('intended', 'submitted')"
            )
            values = (state, _text(datetime.now(UTC)), detail and utf8_text(detail), batch.run_id)
            _expect_one(connection.execute(statement, values), batch)

        self._ledger.save(ended, [], frozen_sha256=self._frozen, also=write)


def _expect_one(cursor: sqlite3.Cursor, batch: OpenBatch) -> None:
    if cursor.rowcount != 1:
        raise InputError(
            f"batch {batch.run_id} is no longer open in the ledger: another program changed it; restore a backup"
        )


def _text(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
