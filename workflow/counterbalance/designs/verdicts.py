"""What the verdicts of all designs share: which rows reject, and on how much they rest."""

from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]
"""A row of the estimates table, by column."""


def below(p: float | None, alpha: float) -> bool:
    """Return whether a p-value rejects; a test that could not be made does not."""
    return p is not None and p < alpha


def extent(rows: Iterable[Row]) -> dict[str, int]:
    """Return the items and calls that a verdict on several rows rests on."""
    found = list(rows)
    return {name: max(row[name] for row in found) for name in ("n_items", "n_calls")}
