"""The writing side: intent on disk before a call is sent, the reply on disk before it counts as bought."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

from counterbalance.canonical import Json, sha256_bytes, utf8_text
from counterbalance.errors import InputError, NoSpaceError
from counterbalance.ledger.lock import WriterLock, refuse_network_disk
from counterbalance.ledger.money import HELD
from counterbalance.ledger.schema import (
    check_header,
    check_pages,
    create_ledger,
    file_identity,
    read_meta,
    reporting,
    save_deleted,
)
from counterbalance.ledger.spare import Spare

Outcome = Literal["answered", "transport_error", "unknown", "not_sent"]


class Sending(NamedTuple):
    """One call that is about to be sent: its hash, its canonical request, the most it can cost (nano-USD)."""

    call_sha256: str
    request: str
    worst_nano_usd: int | None = None


class Attempt(NamedTuple):
    """One sending of one call that has ended: with a reply, without one, or nobody knows how.

    Attributes
    ----------
    outcome
        ``not_sent``: it was written down but stayed here, and is taken out of the ledger again.
    charged_nano_usd
        What it cost; None while that is not known, which counts as the worst case.
    maybe_billed
        Whether the vendor may have answered, and charged, although no reply came back.
    """

    call_sha256: str
    outcome: Outcome
    reply: str | None = None
    detail: str | None = None
    charged_nano_usd: int | None = None
    maybe_billed: bool = False


@dataclass(slots=True)
class _Open:
    """A call without a reply: its place, how often it was sent, and what its last sending has reserved."""

    order: int
    attempts: int
    worst: int


class Ledger:
    """A cell's ledger, open for writing by this process alone, by one thread at a time.

    An attempt is on disk as ``unknown`` before it is sent and gets its outcome afterwards, so that what was under way
    when a process was killed can be told from what was not. Replies are never changed or removed.

    Parameters
    ----------
    path
        The ledger file; made if there is none.
    study, cell
        Whose replies it holds.
    account
        Who pays this session; None where calls cost nothing.
    """

    def __init__(self, path: Path, *, study: str, cell: str, account: str | None = None) -> None:
        self._path, self._account = path, account
        self._meta = {"study": study, "cell": cell}
        self._lock = WriterLock(path.with_name(path.name + ".lock"))
        self._spare = Spare(path)
        self._proven: list[dict[str, Json]] = []
        self._began = False

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
        self._spare.give()
        self._lock.release()

    @property
    def answered(self) -> Set[str]:
        """Hashes of the calls that have their reply."""
        return self._answered

    @property
    def session(self) -> int:
        """Number of this session, from 1; it enters the ledger with the first thing that is saved."""
        return self._session

    @property
    def held(self) -> int:
        """What was charged so far plus the worst case of all that is not known yet, over all sessions, as on disk."""
        return self._held

    def attempts(self, call_sha256: str) -> int:
        """Return how often a call that is not answered yet was sent, over all sessions."""
        found = self._waiting.get(call_sha256)
        return 0 if found is None else found.attempts

    def first_statuses(self, n: int, among: Set[str]) -> list[str]:
        """Return the status of the first `n` answered calls among some, in the order of sending."""
        query = (
            "SELECT call_sha256, json_extract(reply, '$.status') FROM calls WHERE reply IS NOT NULL ORDER BY call_order"
        )
        with reporting(self._path):
            found = (str(status) for key, status in self._connection.execute(query) if key in among)
            return list(islice(found, n))

    def has_answered(self, parameters: Mapping[str, Json]) -> bool:
        """Tell whether a call with these parameters has brought a reply that the model made; choices may differ."""
        wanted = _without_choices(parameters)
        if wanted not in self._proven:
            query = (
                "SELECT DISTINCT json_remove(json_extract(request, '$.parameters'), '$.choices') FROM calls "
                "WHERE reply IS NOT NULL AND json_extract(reply, '$.status') <> 'unavailable'"
            )
            self._proven = [_without_choices(json.loads(str(row[0]))) for row in self.select(query)]
        return wanted in self._proven

    def select(self, query: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        with reporting(self._path):
            return self._connection.execute(query, values).fetchall()

    def save(
        self,
        ended: Sequence[Attempt],
        starting: Sequence[Sending],
        *,
        frozen_sha256: str,
        also: Callable[[sqlite3.Connection], object] | None = None,
    ) -> None:
        """Commit what has ended and what is about to be sent, in one synced transaction.

        Parameters
        ----------
        ended
            Attempts that were saved as starting before.
        starting
            What is about to be sent; may hold calls of which an attempt has just ended.
        frozen_sha256
            The frozen record under which they are sent.
        also
            Writes more within the same transaction.

        Raises
        ------
        NoSpaceError
            If the disk is full. What has ended was saved in the space kept back for that, what was to start was not.
        InputError
            If the file cannot be written; nothing of this transaction is kept then. Or if the file was deleted or
            replaced meanwhile; all that it held, this transaction included, is saved then.
        """
        if starting:
            with reporting(self._path):
                self._spare.take()
        try:
            self._save(ended, starting, frozen_sha256, also)
        except NoSpaceError as error:
            if not self._spare.give():
                lost = f"; {len(ended)} attempts that had ended could not be saved" if ended else ""
                raise InputError(f"{error}{lost}") from error
            self._save(ended, [], frozen_sha256, None if starting else also)
            raise NoSpaceError(f"{error}; all that has come back is saved") from error

    def _save(
        self,
        ended: Sequence[Attempt],
        starting: Sequence[Sending],
        frozen_sha256: str,
        also: Callable[[sqlite3.Connection], object] | None,
    ) -> None:
        if not ended and not starting and also is None:
            return
        now = _now()
        sent = self._place(starting)
        with self._transaction() as connection:
            if not self._began:
                connection.execute(
                    "INSERT INTO sessions (session, account, started_at) VALUES (?, ?, ?)",
                    (self._session, self._account, now),
                )
            self._end(ended, now)
            self._start(starting, sent, now, frozen_sha256)
            if also is not None:
                also(connection)
        self._began = True
        self._remember(ended, starting, sent)
        with reporting(self._path):
            if file_identity(self._path) != self._file:
                raise InputError(save_deleted(self._connection, self._path))

    def end_session(self, because: str) -> None:
        """Write down why this session ends; a session that saved nothing leaves no trace."""
        if self._began:
            with reporting(self._path):
                self._connection.execute(
                    "UPDATE sessions SET ended_at = ?, ended_because = ? WHERE session = ?",
                    (_now(), because, self._session),
                )

    def _open(self) -> None:
        if not self._path.exists():
            create_ledger(self._path, **self._meta)
        check_header(self._path)
        # Commits run beside the event loop; the engine never has two at once.
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
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
        self._connection, self._file = connection, file_identity(self._path)

    def _load(self, connection: sqlite3.Connection) -> None:
        self._answered = {key for (key,) in connection.execute("SELECT call_sha256 FROM calls WHERE reply IS NOT NULL")}
        self._waiting = {
            key: _Open(order, attempts, worst or 0)
            for key, order, attempts, worst in connection.execute(
                "SELECT call_sha256, call_order, attempt, worst_nano_usd FROM calls JOIN attempts USING (call_order) "
                "WHERE reply IS NULL ORDER BY call_order, attempt"
            )
        }
        self._next_order = _one(connection, "SELECT coalesce(max(call_order) + 1, 0) FROM calls")
        self._session = _one(connection, "SELECT coalesce(max(session), 0) + 1 FROM sessions")
        self._held = _one(connection, f"SELECT coalesce(sum({HELD}), 0) FROM attempts")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with reporting(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _place(self, starting: Sequence[Sending]) -> list[_Open]:
        """Return each call as it will be once it is sent."""
        placed = []
        order = self._next_order
        for entry in starting:
            known = self._waiting.get(entry.call_sha256)
            placed.append(
                _Open(order, 1, entry.worst_nano_usd or 0)
                if known is None
                else _Open(known.order, known.attempts + 1, entry.worst_nano_usd or 0)
            )
            order += known is None
        return placed

    def _end(self, ended: Sequence[Attempt], now: str) -> None:
        pairs = [(entry, self._waiting[entry.call_sha256]) for entry in ended]
        self._connection.executemany(
            "UPDATE attempts SET ended_at = ?, outcome = ?, detail = ?, charged_nano_usd = ?, maybe_billed = ? "
            "WHERE call_order = ? AND attempt = ?",
            [
                (
                    now,
                    e.outcome,
                    e.detail and utf8_text(e.detail),
                    e.charged_nano_usd,
                    e.maybe_billed,
                    place.order,
                    place.attempts,
                )
                for e, place in pairs
                if e.outcome != "not_sent"
            ],
        )
        self._connection.executemany(
            "UPDATE calls SET reply = ?, reply_sha256 = ?, answered_at = ? WHERE call_order = ? AND reply IS NULL",
            [(e.reply, sha256_bytes(e.reply.encode()), now, place.order) for e, place in pairs if e.reply is not None],
        )
        stayed = [place for e, place in pairs if e.outcome == "not_sent"]
        self._connection.executemany(
            "DELETE FROM attempts WHERE call_order = ? AND attempt = ?", [(p.order, p.attempts) for p in stayed]
        )
        self._connection.executemany(
            "DELETE FROM calls WHERE call_order = ?", [(place.order,) for place in stayed if place.attempts == 1]
        )

    def _start(self, starting: Sequence[Sending], sent: Iterable[_Open], now: str, frozen_sha256: str) -> None:
        pairs = list(zip(starting, sent, strict=True))
        self._connection.executemany(
            "INSERT INTO calls (call_order, call_sha256, request, first_intended_at, frozen_sha256) "
            "VALUES (?, ?, ?, ?, ?)",
            [(p.order, e.call_sha256, e.request, now, frozen_sha256) for e, p in pairs if p.attempts == 1],
        )
        self._connection.executemany(
            "UPDATE calls SET frozen_sha256 = ? WHERE call_order = ?",
            [(frozen_sha256, place.order) for _, place in pairs if place.attempts > 1],
        )
        self._connection.executemany(
            "INSERT INTO attempts (call_order, attempt, session, started_at, outcome, worst_nano_usd) "
            "VALUES (?, ?, ?, ?, 'unknown', ?)",
            [(place.order, place.attempts, self._session, now, e.worst_nano_usd) for e, place in pairs],
        )

    def _remember(self, ended: Sequence[Attempt], starting: Sequence[Sending], sent: Sequence[_Open]) -> None:
        for entry in ended:
            place = self._waiting[entry.call_sha256]
            if entry.outcome == "not_sent":
                self._take_back(entry.call_sha256, place)
            elif entry.charged_nano_usd is not None:
                self._held += entry.charged_nano_usd - place.worst
            if entry.reply is not None:
                self._answered.add(entry.call_sha256)
                del self._waiting[entry.call_sha256]
        for call, place in zip(starting, sent, strict=True):
            self._waiting[call.call_sha256] = place
            self._held += place.worst
            self._next_order = max(self._next_order, place.order + 1)

    def _take_back(self, key: str, place: _Open) -> None:
        self._held -= place.worst
        if place.attempts == 1:
            del self._waiting[key]
        else:
            self._waiting[key] = _Open(place.order, place.attempts - 1, 0)


def _without_choices(parameters: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in parameters.items() if name != "choices"}


def _one(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
