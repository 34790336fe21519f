"""Writing files so that a kill at any moment leaves the old file or the new one, never half of one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from counterbalance.canonical import Json, canonical_json


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the target's folder; move it into place, synced, when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file's content atomically."""
    with replacing(path) as part:
        part.write_bytes(data)


def write_json(path: Path, value: Json) -> None:
    """Replace a file with a value's canonical JSON and a final newline."""
    write_bytes(path, canonical_json(value) + b"\n")


def create_bytes(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet.

    Raises
    ------
    FileExistsError
        If the path exists, even when another process created it a moment ago.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        # A hard link, unlike a rename, fails when the name is taken.
        os.link(part, path)
        path.chmod(0o444)
        _sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
