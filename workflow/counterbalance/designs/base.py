"""The doors that every design has; what differs between designs lives behind them.

A design is a package below this one with a module for each door: `expand.py` (items to trials), `score.py` (replies to
outcomes), `estimate.py` (outcomes to estimates), `verdict.py` (estimates to the word for a cell) and `quantities.py`
(what the estimates are called and mean); a design whose quantities name `partners` also has `compare.py` (outcomes of
two cells to estimates). A door is loaded when a stage goes through it, so that a stage's code digest covers its own
doors and no others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from counterbalance.config import Analysis, Cell, Dataset, Experiment, Study

if TYPE_CHECKING:
    from counterbalance.stats.estimate import Result

Expand = Callable[[Study, Experiment, Dataset, pa.Table], Iterator[pa.Table]]
Score = Callable[[Experiment, pa.Table, pa.Table], pa.Table]
Verdict = Callable[[Analysis, Mapping[str, Mapping[str, Any]]], "Result"]
Estimate = Callable[[Analysis, pa.Table], Mapping[str, "Result"]]
Compare = Callable[[Analysis, str, pa.Table, pa.Table], Mapping[str, "Result"]]


@dataclass(frozen=True)
class Design:
    """A design, by the name that studies use."""

    name: str

    @property
    def expand(self) -> Expand:
        """Study, experiment, data set and items to trials in key order, table by table."""
        door: Expand = self._door("expand").expand
        return door

    @property
    def score(self) -> Score:
        """Experiment, trials and replies to one outcome per trial, in the trials' order."""
        door: Score = self._door("score").score
        return door

    @property
    def estimate(self) -> Estimate:
        """Analysis plan and a cell's outcomes to results by quantity; a pure function."""
        door: Estimate = self._door("estimate").estimate
        return door

    @property
    def verdict(self) -> Verdict:
        """Analysis plan and a cell's corrected estimates by quantity to the one word for the cell."""
        door: Verdict = self._door("verdict").verdict
        return door

    @property
    def compare(self) -> Compare:
        """Analysis plan, the other experiment's id, a cell's outcomes and a partner's to results by quantity."""
        door: Compare = self._door("compare").compare
        return door

    @property
    def confirmatory(self) -> Sequence[str]:
        """Quantities whose p-values are corrected over the family of cells."""
        names: Sequence[str] = self._door("quantities").CONFIRMATORY
        return names

    @property
    def answer(self) -> Sequence[tuple[str, str, str]]:
        """What says most about a cell: title, quantity, and which part of it (`estimate`, `interval`, ...)."""
        columns: Sequence[tuple[str, str, str]] = self._door("quantities").ANSWER
        return columns

    def describe(self, quantity: str) -> str:
        """Return what a quantity means, in one plain sentence."""
        text: str = self._door("quantities").describe(quantity)
        return text

    def unplanned(self, study: Study, experiment: Experiment, quantity: str) -> str | None:
        """Say why an experiment will have no such quantity although its design knows it; None if it will."""
        check = getattr(self._door("quantities"), "unplanned", None)
        reason: str | None = check(study, experiment, quantity) if check else None
        return reason

    def uncompared(self, other: str, why: str) -> Mapping[str, "Result"]:
        """Return what `compare` would, where there are no outcomes to compare."""
        results: Mapping[str, Result] = self._door("compare").uncompared(other, why)
        return results

    def partners(self, study: Study, cell: Cell) -> Sequence[Cell]:
        """Return the cells of the same model and data set that `compare` sets a cell against; for most designs none."""
        find = getattr(self._door("quantities"), "partners", None)
        cells: Sequence[Cell] = find(study, cell) if find else ()
        return cells

    def _door(self, name: str) -> Any:
        return import_module(f"{__package__}.{self.name}.{name}")
