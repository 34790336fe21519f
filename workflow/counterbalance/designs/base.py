"""The doors that every design has; what differs between designs lives behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from counterbalance.config import Analysis, Dataset, Experiment, Study


@dataclass(frozen=True)
class Estimate:
    """One number of a cell, with its interval, its n and what is to be thought of it.

    Attributes
    ----------
    quantity
        Name that predictions and the report use, for example ``V.corrected`` or ``accuracy.slot_1``.
    estimate, low, high, level
        None where undefined; never NaN. `level` is the interval's, for example 0.95.
    method
        How it was computed, in words a reader of the field knows.
    p
        Raw p-value where the quantity is a test.
    n_items, n_calls
        What it rests on.
    status, reason
        ``ok``, ``degenerate``, ``not_measurable``, ``undefined`` or ``descriptive``; the reason where not ``ok``.
    label
        For quantities whose value is a word, for example a mechanism.
    """

    quantity: str
    method: str
    n_items: int
    n_calls: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    p: float | None = None
    status: str = "ok"
    reason: str | None = None
    label: str | None = None


class Design(Protocol):
    """A design: items to trials, replies to outcomes, outcomes to estimates."""

    name: str
    confirmatory: Sequence[str]
    """Quantities whose p-values are corrected over the family of cells."""

    def expand(self, study: Study, experiment: Experiment, dataset: Dataset, items: pa.Table) -> Iterator[pa.Table]:
        """Yield trials, in key order, in tables of the declared schema."""

    def score(self, experiment: Experiment, trials: pa.Table, replies: pa.Table) -> pa.Table:
        """Return one outcome per trial, in key order."""

    def estimate(self, analysis: Analysis, outcomes: pa.Table) -> list[Estimate]:
        """Return every number of a cell, each quantity once; a pure function of its arguments."""

    def describe(self, quantity: str) -> str:
        """Return what a quantity means, in one plain sentence."""
