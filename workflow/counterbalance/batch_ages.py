"""How old batches are, by clocks of which one may be put back at any time."""

import sqlite3
import time
from dataclasses import replace
from datetime import UTC, datetime

from counterbalance.ledger import Ledger
from counterbalance.ledger.batches import OpenBatch


class Ages:
    """The ages of batches as one session sees them."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}

    def of(self, batch: OpenBatch) -> float:
        """Return how old a batch is at least (seconds): by the time on disk, or since it was first asked about here."""
        here = time.monotonic()
        return max(here - self._known.setdefault(batch.run_id, here), -_ahead_s(batch))


def date_anew(batch: OpenBatch, ledger: Ledger, *, frozen_sha256: str) -> OpenBatch:
    """Let a batch from the future begin now: the clock was put back, and nobody is to wait until it comes by again."""
    if _ahead_s(batch) <= 0.0:
        return batch
    now = datetime.now(UTC)
    said = f"was written down at {batch.intended_at:%Y-%m-%d %H:%M} UTC by a clock that was put back since"

    def write(connection: sqlite3.Connection) -> None:
        values = (now.isoformat(timespec="milliseconds").replace("+00:00", "Z"), said, batch.run_id)
        connection.execute("UPDATE batches SET intended_at = ?, detail = ? WHERE run_id = ?", values)

    ledger.save([], [], frozen_sha256=frozen_sha256, also=write)
    return replace(batch, intended_at=now)


def _ahead_s(batch: OpenBatch) -> float:
    return (batch.intended_at - datetime.now(UTC)).total_seconds()
