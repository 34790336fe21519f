"""What a session that leaves batches with the vendor says of them."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from counterbalance.ledger.batches import OpenBatch

_WINDOW = timedelta(hours=24)
# Batches that a message names.
_NAMED = 3


def come_back(batches: Sequence[OpenBatch], last_error: str | None) -> str:
    """Say what is where, and when to come back."""
    oldest = min(batch.submitted_at or batch.intended_at for batch in batches)
    names = ", ".join(batch.batch_id or "one not confirmed yet" for batch in batches[:_NAMED])
    more = f" and {len(batches) - _NAMED} more" if len(batches) > _NAMED else ""
    trouble = f" (the last trouble: {last_error})" if last_error else ""
    return (
        f"{in_all(batches)} calls are at the vendor in {count(batches)} ({names}{more}); the first was handed in at "
        f"{oldest:%Y-%m-%d %H:%M} UTC, and vendors answer within 24 hours: come back any time to collect what is "
        f"ready, and for the rest after {oldest + _WINDOW:%Y-%m-%d %H:%M} UTC{trouble}"
    )


def still_out(message: str, batches: Sequence[OpenBatch]) -> str:
    """Add to a message that batches are still out."""
    return (
        f"{message.rstrip('.')}. {in_all(batches)} calls are still at the vendor in {count(batches)}: running the same "
        "command again collects them"
    )


def in_all(batches: Iterable[OpenBatch]) -> int:
    """Return how many calls some batches have."""
    return sum(batch.calls for batch in batches)


def count(batches: Sequence[OpenBatch]) -> str:
    """Write how many batches there are."""
    return "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
