"""One writer per ledger, and no ledger on a disk whose locks cannot be trusted."""

import fcntl
import os
from pathlib import Path

from counterbalance.errors import InputError, LedgerBusyError

_MOUNTS = Path("/proc/mounts")
# One name a line would hide the rest of the page.
# fmt: off
_NETWORK = frozenset([
    "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4",
    "orangefs", "panfs", "smb3", "smbfs",
])
# fmt: on


class WriterLock:
    """A lock that the operating system frees when its holder ends, also by kill -9.

    The file stays after release: removing it would let two processes lock two files of one name.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock, or say at once who holds it.

        Raises
        ------
        LedgerBusyError
            If another process holds it.
        """
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise LedgerBusyError(
                f"{self._path}: process {holder} is writing to this ledger; wait for it to end, or stop it, and run "
                "the same command again"
            ) from None
        os.ftruncate(handle, 0)
        os.write(handle, f"{os.getpid()}\n".encode())
        self._handle = handle

    def release(self) -> None:
        """Give the lock back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def refuse_network_disk(folder: Path, mounts: Path = _MOUNTS) -> None:
    """Stop if a folder lies on a network file system.

    Parameters
    ----------
    folder
        Where the ledger is to be.
    mounts
        The kernel's list of mounts; where there is none, nothing is refused.

    Raises
    ------
    InputError
        With the file system's type and what to do.
    """
    kind = _file_system(folder.resolve(), mounts)
    if kind in _NETWORK:
        raise InputError(
            f"{folder}: lies on a network file system ({kind}), where neither locks nor SQLite's shared memory can be "
            "trusted, and bought replies could be lost; make the project's 'ledger' a symbolic link to a folder on a "
            "local disk"
        )


def _file_system(folder: Path, mounts: Path) -> str | None:
    if not mounts.is_file():
        return None
    best, kind = Path(), None
    for line in mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(_unescape(fields[1]))
        # A later mount on the same point hides the one before.
        if folder.is_relative_to(point) and len(point.parts) >= len(best.parts):
            best, kind = point, fields[2]
    return kind


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
