"""The purse: one small file by which all processes of a study share its caps and the pace of its accounts.

It holds no truth of its own. What was spent stands in the cells' ledgers; the purse has each cell's sum, so that a
process need not read the others' ledgers before every call. It may be deleted at any time and is then made anew.
"""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from counterbalance.errors import InputError
from counterbalance.spending.pace import Level

_BUSY_S = 60.0
_FORM = 2
_TABLES = (
    "DROP TABLE IF EXISTS cells",
    "DROP TABLE IF EXISTS accounts",
    "CREATE TABLE cells (cell TEXT NOT NULL, account TEXT NOT NULL, held INTEGER NOT NULL, live_since REAL NOT NULL, "
    "live_until REAL NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (cell, account)) WITHOUT ROWID",
    "CREATE TABLE accounts (account TEXT PRIMARY KEY, requests REAL, tokens REAL, filled_at REAL NOT NULL, "
    "paused_at REAL NOT NULL, paused_until REAL NOT NULL) WITHOUT ROWID",
    f"PRAGMA user_version = {_FORM}",
)


@dataclass(frozen=True)
class Others:
    """What the other cells hold (nano-USD).

    Attributes
    ----------
    study, account
        In all, and what counts to the account asked for.
    strangers
        The part of `account` that was paid by accounts which the study no longer names.
    live
        Whether one of these cells may still give some back.
    """

    study: int
    account: int
    strangers: int
    live: bool


class Page:
    """The purse inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def others(self, cell: str, account: str, apart: Set[str], now: float) -> Others:
        """Return what all cells but this one hold.

        Parameters
        ----------
        cell, account
            Whose others, and the account asked for.
        apart
            The study's other accounts. What any further one has paid counts to every account.
        now
            Epoch seconds. A row that was touched later than now is from before the clock was put back, and its
            process is not waited for.
        """
        rows = self._connection.execute(
            "SELECT account, sum(held), max(live_since <= ? AND live_until >= ?) FROM cells WHERE cell != ? "
            "GROUP BY account",
            (now, now, cell),
        ).fetchall()
        lost = sum(held for name, held, _ in rows if name != account and name not in apart)
        own = sum(held for name, held, _ in rows if name == account)
        return Others(sum(held for _, held, _ in rows), own + lost, lost, any(live for *_, live in rows))

    def put(self, cell: str, account: str, held: int, *, now: float, live_s: float) -> None:
        """Set what a cell holds on an account, and for how long from now calls of it may be under way."""
        self._connection.execute(
            "INSERT INTO cells VALUES (?, ?, ?, ?, ?, 1) ON CONFLICT (cell, account) DO UPDATE SET "
            "held = excluded.held, live_since = excluded.live_since, live_until = excluded.live_until, "
            "version = version + 1",
            (cell, account, held, now, now + live_s if live_s else 0.0),
        )

    def level(self, account: str) -> Level | None:
        """Return how full the buckets of an account, or of a key, were when last used; None if they never were."""
        row = self._connection.execute(
            "SELECT requests, tokens, filled_at, paused_at, paused_until FROM accounts WHERE account = ?", (account,)
        ).fetchone()
        return None if row is None else Level(*row)

    def put_level(self, account: str, level: Level) -> None:
        """Set the buckets and the pause of an account, or of a key."""
        self._connection.execute(
            "INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?, ?)",
            (account, level.requests, level.tokens, level.filled_at, level.paused_at, level.paused_until),
        )


class Purse:
    """The purse file, open.

    Parameters
    ----------
    path
        The file; made if there is none.
    cell, account
        The cell whose process this is, and who pays it; their row is left to `Page.put`.
    ledgers
        Reads what every cell of the study holds by its ledger, by cell and account; called when the purse is opened,
        and again when the file was deleted or replaced meanwhile.
    clock
        Epoch seconds.
    """

    def __init__(
        self,
        path: Path,
        cell: str,
        account: str,
        ledgers: Callable[[], Mapping[tuple[str, str], int]],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path, self._own, self._ledgers, self._clock = path, (cell, account), ledgers, clock
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        with self._reporting():
            self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    @contextmanager
    def transaction(self) -> Iterator[Page]:
        """Hold the purse for one short look and change; other processes wait meanwhile.

        Raises
        ------
        InputError
            If the file cannot be used; it says what to do.
        """
        with self._reporting():
            if self._connection is None or self._identity() != self._file:
                self._open()
            with self._hold() as page:
                yield page

    @contextmanager
    def _hold(self) -> Iterator[Page]:
        connection = self._connection
        if connection is None:
            raise InputError(f"{self.path}: the purse is closed")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield Page(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _open(self) -> None:
        self._close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        self._connection = connection
        # No write-ahead log: its files would outlive a deleted purse and be taken for the new one's. No syncing: a
        # process killed at any moment leaves the file whole, and after a power cut it is made anew.
        connection.execute("PRAGMA journal_mode=PERSIST")
        connection.execute("PRAGMA synchronous=OFF")
        with self._hold():
            # One of an earlier release is made anew, like one that was deleted.
            if connection.execute("PRAGMA user_version").fetchone()[0] != _FORM:
                for statement in _TABLES:
                    connection.execute(statement)
        self._file = self._identity()
        self._take_over_from_ledgers()

    def _take_over_from_ledgers(self) -> None:
        """Bring the rows of cells that nobody is asking now into line with their ledgers.

        The ledgers are read outside the transaction, which must stay short; a row that its own process has touched
        meanwhile has another version and is left alone.
        """
        connection = self._connection
        if connection is None:
            return
        now = self._clock()
        query = "SELECT cell, account, version FROM cells WHERE live_until < ? OR live_since > ?"
        rows = connection.execute(query, (now, now))
        versions = {(cell, account): version for cell, account, version in rows}
        found = {key: held for key, held in self._ledgers().items() if key != self._own}
        gone = [(*key, version) for key, version in versions.items() if key not in found and key != self._own]
        known = [(held, *key, versions[key]) for key, held in found.items() if key in versions]
        fresh = [(*key, held) for key, held in found.items()]
        with self._hold():
            connection.executemany("DELETE FROM cells WHERE cell = ? AND account = ? AND version = ?", gone)
            connection.executemany("UPDATE cells SET held = ? WHERE cell = ? AND account = ? AND version = ?", known)
            connection.executemany("INSERT OR IGNORE INTO cells VALUES (?, ?, ?, 0, 0, 0)", fresh)

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            raise InputError(
                f"{self.path}: the purse cannot be used now ({error}); see that the disk has space and that the "
                "folder can be written. If that is so, delete this file and run the same command again: nothing is "
                "lost, it is made anew from the ledgers"
            ) from error
