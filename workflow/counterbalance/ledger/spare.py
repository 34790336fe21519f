"""Disk space kept back while a ledger is written, so that what was bought can be saved although the disk is full."""

import os
from pathlib import Path

# Replies of all calls under way, written twice (log and file): 500 of 16 kB each.
_SIZE = 16 * 2**20


class Spare:
    """A file beside the ledger that holds nothing but space.

    Parameters
    ----------
    path
        The ledger.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".spare")
        self._taken = False

    def take(self) -> None:
        """Set the space aside, once.

        Raises
        ------
        OSError
            If the disk has not that much; nothing is left behind then.
        """
        if self._taken:
            return
        try:
            with self._path.open("wb") as handle:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(handle.fileno(), 0, _SIZE)
                else:
                    # A file with a hole, or one that a disk can compress, would hold no space.
                    for _ in range(_SIZE // 2**20):
                        handle.write(os.urandom(2**20))
                os.fsync(handle.fileno())
        except BaseException:
            self.give()
            raise
        self._taken = True

    def give(self) -> bool:
        """Free the space; return whether there was any."""
        try:
            self._path.unlink()
        except FileNotFoundError:
            return False
        return True
