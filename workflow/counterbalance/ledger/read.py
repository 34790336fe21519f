"""Reading bought replies back: each is checked against its hashes before anybody relies on it."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from counterbalance.canonical import Json, sha256_bytes
from counterbalance.errors import VerificationError
from counterbalance.ledger.schema import open_reader, read_meta, reporting

# SQLite's default limit of bound values is 999 in old builds.
_CHUNK = 900

_ANSWERED = """
SELECT c.call_sha256, c.request, c.reply, c.reply_sha256, c.call_order, c.frozen_sha256, count(*),
    sum(a.outcome = 'transport_error'), sum(a.outcome = 'unknown'),
    max(CASE WHEN a.outcome = 'answered' THEN a.started_at END),
    max(CASE WHEN a.outcome = 'answered' THEN a.session END)
FROM calls c JOIN attempts a USING (call_order)
WHERE c.reply IS NOT NULL AND c.call_sha256 IN ({marks})
GROUP BY c.call_order
"""


@dataclass(frozen=True)
class AnsweredCall:
    """A bought reply and how it was come by.

    Attributes
    ----------
    reply
        The fields of `Reply`.
    attempts
        Times it was sent: 1 + `transport_errors` + `unknown`.
    unknown
        Attempts whose outcome nobody saw, because the process ended; the vendor may have answered them too.
    call_order
        Place in the order in which the cell's calls were first sent, from 0.
    frozen_sha256
        The frozen record under which the answered attempt was sent.
    started_at, session
        When that attempt was sent (UTC), and in which session, from 1.
    """

    call_sha256: str
    reply: Json
    attempts: int
    transport_errors: int
    unknown: int
    call_order: int
    frozen_sha256: str
    started_at: str
    session: int


def read_answered(path: Path, keys: Sequence[str]) -> dict[str, AnsweredCall]:
    """Return the answered calls among `keys`.

    Raises
    ------
    VerificationError
        If a stored request or reply no longer has the hash it was stored under.
    InputError
        If the ledger is damaged.
    """
    found: dict[str, AnsweredCall] = {}
    with reporting(path), closing(open_reader(path)) as connection:
        read_meta(connection, path)
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            query = _ANSWERED.format(marks=",".join("?" * len(chunk)))
            for call in _checked(connection.execute(query, chunk), path):
                found[call.call_sha256] = call
    return found


def answered_keys(path: Path) -> set[str]:
    """Return the answered calls of a ledger; none where there is no ledger yet."""
    if not path.exists():
        return set()
    with reporting(path), closing(open_reader(path)) as connection:
        read_meta(connection, path)
        return {key for (key,) in connection.execute("SELECT call_sha256 FROM calls WHERE reply IS NOT NULL")}


def _checked(rows: sqlite3.Cursor, path: Path) -> Iterator[AnsweredCall]:
    for key, request, reply, reply_sha256, order, frozen, attempts, errors, unknown, started_at, session in rows:
        for what, text, expected in (("request", request, key), ("reply", reply, reply_sha256)):
            found = sha256_bytes(text.encode())
            if found != expected:
                raise VerificationError(
                    f"{path} call {key}: its {what} hashes to {found}, expected {expected}; the ledger was changed "
                    "after it was written: restore it from a backup"
                )
        yield AnsweredCall(key, json.loads(reply), attempts, errors, unknown, order, frozen, started_at, session)
