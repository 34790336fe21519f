"""The ledger file: its tables, how it comes into being, and how a damaged one is told."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from counterbalance.errors import InputError, NoSpaceError
from counterbalance.files import replacing
from counterbalance.ledger.batches import BATCH_TABLES

LEDGER_SCHEMA = "counterbalance/ledger/3"

# A quota that is used up is told as a failed write.
_NO_SPACE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}
_MAGIC = b"SQLite format 3\x00"
# Rows are keyed by the order of sending, so that what is written together lies together; money is in whole nano-USD.
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    session INTEGER PRIMARY KEY,
    account TEXT,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    ended_because TEXT
);
CREATE TABLE calls (
    call_order INTEGER PRIMARY KEY,
    call_sha256 TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,
    first_intended_at TEXT NOT NULL,
    frozen_sha256 TEXT NOT NULL,
    reply TEXT,
    reply_sha256 TEXT,
    answered_at TEXT,
    state TEXT GENERATED ALWAYS AS (CASE WHEN reply IS NULL THEN 'intended' ELSE 'answered' END) VIRTUAL
);
CREATE TABLE attempts (
    call_order INTEGER NOT NULL REFERENCES calls,
    attempt INTEGER NOT NULL,
    session INTEGER NOT NULL REFERENCES sessions,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    outcome TEXT NOT NULL CHECK (outcome IN ('answered', 'transport_error', 'unknown')),
    detail TEXT,
    worst_nano_usd INTEGER,
    charged_nano_usd INTEGER,
    maybe_billed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (call_order, attempt)
) WITHOUT ROWID;
"""
_ADVICE = (
    "bought replies may be in it, so it is not made anew by itself: restore it from a backup, or move it aside to buy "
    "this cell's replies again"
)


def create_ledger(path: Path, *, study: str, cell: str) -> None:
    """Make an empty ledger that appears at its path whole or not at all."""
    if wal_path(path).exists():
        raise InputError(f"{path}: the ledger is gone while {wal_path(path).name} is still beside it; {_ADVICE}")
    with replacing(path) as part, closing(sqlite3.connect(part, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size=8192")
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            raise InputError(
                f"{path}: this file system does not support SQLite's write-ahead log (got {mode!r}); make the "
                "project's 'ledger' a symbolic link to a folder on a local disk"
            )
        connection.executescript(_TABLES + BATCH_TABLES)
        meta = {"schema": LEDGER_SCHEMA, "study": study, "cell": cell}
        connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())


def file_identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of the same name; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def save_deleted(connection: sqlite3.Connection, path: Path) -> str:
    """Write a ledger that was deleted or replaced, but is still open here, back to the disk; say what was done."""
    free = not path.exists() and not wal_path(path).exists()
    target = path if free else path.with_name(f"{path.stem}.rescued-{time.time_ns()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    connection.execute("VACUUM INTO ?", (str(target),))
    with closing(sqlite3.connect(target, isolation_level=None)) as saved:
        saved.execute("PRAGMA journal_mode=WAL")
    what = "is back in its place" if free else f"was saved to {target}: put that in its place, without any -wal file"
    return (
        f"{path}: the ledger was deleted or replaced while it was being written; all it held {what}. Find out what "
        "removed it, then run the same command again"
    )


def wal_path(path: Path) -> Path:
    """Return where SQLite keeps what is committed but not yet in the main file."""
    return path.with_name(path.name + "-wal")


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Turn complaints of SQLite and of the disk into errors that name the file and say what to do."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        kind = NoSpaceError if getattr(error, "sqlite_errorcode", None) in _NO_SPACE else InputError
        raise kind(
            f"{path}: the ledger cannot be used now ({error}); see that the disk has space, that the folder can be "
            "written and that no other program has the file open, then run the same command again"
        ) from error
    except sqlite3.DatabaseError as error:
        raise InputError(f"{path}: the ledger is damaged ({error}); {_ADVICE}") from error


def check_header(path: Path) -> None:
    """Stop if the file cannot be a ledger; SQLite takes an empty one for a new database.

    Raises
    ------
    InputError
        If the file is empty or is not SQLite.
    """
    with path.open("rb") as handle:
        if handle.read(len(_MAGIC)) != _MAGIC:
            raise InputError(f"{path}: the ledger is damaged (empty, or not an SQLite file); {_ADVICE}")


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Stop if SQLite finds a broken page or row."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise InputError(f"{path}: the ledger is damaged ({found}); {_ADVICE}")


def read_meta(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Return the ledger's own description.

    Raises
    ------
    InputError
        If it is of another schema.
    """
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    if meta.get("schema") != LEDGER_SCHEMA:
        raise InputError(
            f"{path}: ledger schema {meta.get('schema')!r}, expected {LEDGER_SCHEMA!r}; use the release that wrote it"
        )
    return meta


def open_reader(path: Path) -> sqlite3.Connection:
    """Open an existing ledger for reading beside a possible writer."""
    check_header(path)
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True, isolation_level=None)
