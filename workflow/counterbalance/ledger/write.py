"""The writing side: intent on disk before a call is sent, replies on disk before the next call is sent."""

import sqlite3
from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from counterbalance.canonical import sha256_bytes
from counterbalance.errors import InputError
from counterbalance.ledger.lock import WriterLock, refuse_network_disk
from counterbalance.ledger.schema import check_header, check_pages, create_ledger, read_meta, reporting

Outcome = Literal["answered", "transport_error", "unknown"]


@dataclass(frozen=True)
class Attempt:
    """One sending of one call that has ended: with a reply, without one, or nobody knows how."""

    call_sha256: str
    outcome: Outcome
    reply: str | None = None
    detail: str | None = None


class Ledger:
    """A cell's ledger, open for writing by this process alone.

    An attempt is on disk as ``unknown`` before it is sent and gets its outcome afterwards, so that what was under way
    when a process was killed can be told from what was not. Replies are never changed or removed.

    Parameters
    ----------
    path
        The ledger file; made if there is none.
    study, cell
        Whose replies it holds.
    """

    def __init__(self, path: Path, *, study: str, cell: str) -> None:
        self._path = path
        self._meta = {"study": study, "cell": cell}
        self._lock = WriterLock(path.with_name(path.name + ".lock"))

    def __enter__(self) -> Self:
        folder = self._path.parent
        with reporting(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            refuse_network_disk(folder)
            self._lock.acquire()
        try:
            with reporting(self._path):
                self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        self._lock.release()

    @property
    def answered(self) -> Set[str]:
        """Hashes of the calls that have their reply."""
        return self._answered

    def attempts(self, call_sha256: str) -> int:
        """Return how often a call that is not answered yet was sent, over all sessions."""
        return self._attempts.get(call_sha256, 0)

    def first_statuses(self, n: int) -> list[str]:
        """Return the status of the first `n` answered calls, in the order of sending."""
        query = "SELECT json_extract(reply, '$.status') FROM calls WHERE reply IS NOT NULL ORDER BY call_order LIMIT ?"
        with reporting(self._path):
            return [status for (status,) in self._connection.execute(query, (n,))]

    def save(self, ended: Sequence[Attempt], starting: Sequence[tuple[str, str]], *, frozen_sha256: str) -> None:
        """Commit what has ended and what is about to be sent, in one synced transaction.

        Parameters
        ----------
        ended
            Attempts that were saved as starting before.
        starting
            Pairs of call hash and canonical request text.
        frozen_sha256
            The frozen record under which they are sent.

        Raises
        ------
        InputError
            If the disk is full or the file cannot be written; nothing of this transaction is kept then.
        """
        if not ended and not starting:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with reporting(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._end(ended, now)
                self._start(starting, now, frozen_sha256)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        for key, _ in starting:
            self._attempts[key] = self.attempts(key) + 1
        for attempt in ended:
            if attempt.reply is not None:
                self._answered.add(attempt.call_sha256)
                del self._attempts[attempt.call_sha256]

    def _open(self) -> None:
        if not self._path.exists():
            create_ledger(self._path, **self._meta)
        check_header(self._path)
        connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous=FULL")
            check_pages(connection, self._path)
            meta = read_meta(connection, self._path)
            for name, expected in self._meta.items():
                if meta.get(name) != expected:
                    raise InputError(
                        f"{self._path}: this ledger belongs to {name} {meta.get(name)!r}, expected {expected!r}; "
                        "move it back to its own place"
                    )
            self._load(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _load(self, connection: sqlite3.Connection) -> None:
        self._answered: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._next_order = 0
        for key, attempts, answered, order in connection.execute(
            "SELECT call_sha256, attempts, reply IS NOT NULL, call_order FROM calls"
        ):
            self._next_order = max(self._next_order, order + 1)
            if answered:
                self._answered.add(key)
            else:
                self._attempts[key] = attempts

    def _start(self, starting: Sequence[tuple[str, str]], now: str, frozen_sha256: str) -> None:
        self._connection.executemany(
            "INSERT INTO calls (call_sha256, request, call_order, attempts, first_intended_at, frozen_sha256) "
            "VALUES (?, ?, ?, 1, ?, ?) ON CONFLICT (call_sha256) DO UPDATE SET attempts = attempts + 1, "
            "frozen_sha256 = excluded.frozen_sha256",
            [(key, request, self._order(key), now, frozen_sha256) for key, request in starting],
        )
        self._connection.executemany(
            "INSERT INTO attempts (call_sha256, attempt, started_at, outcome) VALUES (?, ?, ?, 'unknown')",
            [(key, self.attempts(key) + 1, now) for key, _ in starting],
        )

    def _order(self, key: str) -> int:
        order = self._next_order
        self._next_order += key not in self._attempts
        return order

    def _end(self, ended: Sequence[Attempt], now: str) -> None:
        self._connection.executemany(
            "UPDATE attempts SET ended_at = ?, outcome = ?, detail = ? WHERE call_sha256 = ? AND attempt = ?",
            [(now, e.outcome, e.detail, e.call_sha256, self.attempts(e.call_sha256)) for e in ended],
        )
        self._connection.executemany(
            "UPDATE calls SET reply = ?, reply_sha256 = ?, answered_at = ? WHERE call_sha256 = ? AND reply IS NULL",
            [(e.reply, sha256_bytes(e.reply.encode()), now, e.call_sha256) for e in ended if e.reply is not None],
        )
