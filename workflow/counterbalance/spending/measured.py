"""What the replies bought so far say of those still to buy."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from counterbalance.ledger.schema import open_reader, read_meta, reporting

# Enough for a mean; a plan should not read a large ledger through.
_MOST_REPLIES = 1000
_MEASURED = f"""
SELECT count(latency), coalesce(sum(latency), 0), count(output), coalesce(sum(output), 0) FROM (
    SELECT json_extract(reply, '$.latency_ms') AS latency, json_extract(reply, '$.output_tokens') AS output
    FROM calls WHERE reply IS NOT NULL ORDER BY call_order LIMIT {_MOST_REPLIES}
)
"""


@dataclass(frozen=True)
class Measured:
    """Means over bought replies, each with the number of replies behind it; None where that is 0.

    Attributes
    ----------
    latency_ms, timed
        Mean time from sending a call to its reply, in milliseconds.
    output_tokens, counted
        Mean output tokens, reasoning included.
    """

    latency_ms: float | None
    timed: int
    output_tokens: float | None
    counted: int


def measure(paths: Iterable[Path]) -> Measured:
    """Average over the first replies of some ledgers; those that are not there are passed over.

    Raises
    ------
    InputError
        If a ledger is damaged.
    """
    totals = [0.0, 0.0, 0.0, 0.0]
    for path in paths:
        if path.exists():
            with reporting(path), closing(open_reader(path)) as connection:
                read_meta(connection, path)
                row = connection.execute(_MEASURED).fetchone()
            totals = [total + value for total, value in zip(totals, row, strict=True)]
    timed, latency, counted, output = totals
    return Measured(latency / timed if timed else None, int(timed), output / counted if counted else None, int(counted))
