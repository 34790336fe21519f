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
from counterbalance.config.contrasts import Contrast, ContrastFile

if TYPE_CHECKING:
    from counterbalance.stats.estimate import Result

Column = tuple[str, str, str]
"""Title, quantity, and which part of it is shown: `estimate`, `interval`, `p`, `p_adjusted` or `label`."""

Expand = Callable[[Study, Experiment, Dataset, pa.Table], Iterator[pa.Table]]
Score = Callable[[Experiment, pa.Table, pa.Table], pa.Table]
Verdict = Callable[[Analysis, Mapping[str, Mapping[str, Any]]], "Result"]
Estimate = Callable[..., Mapping[str, "Result"]]
Compare = Callable[[Analysis, str, pa.Table, pa.Table], Mapping[str, "Result"]]


@dataclass(frozen=True)
class Breakdown:
    """What is said of each part of a cell.

    Attributes
    ----------
    title, part
        What it is, and what one part is called.
    names
        Of all parts that a cell may have.
    columns
        Their quantities have a gap for the name of the part.
    """

    title: str
    part: str
    names: Sequence[str]
    columns: Sequence[Column]


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
        """Analysis plan and a cell's outcomes to results by quantity; a pure function.

        A design whose tests are `by_options` also takes `tests`, the size of the family; without it, of a cell alone.
        """
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
    def by_options(self) -> bool:
        """Whether items with another number of options are estimated apart and have tests of their own."""
        return hasattr(self._door("quantities"), "tests")

    def tests(self, sizes: Sequence[int]) -> Sequence[str]:
        """Return the confirmatory quantities of a cell on items with these numbers of options, most frequent first."""
        names: Sequence[str] = self._door("quantities").tests(sizes) if self.by_options else self.confirmatory
        return names

    def is_test(self, quantity: str) -> bool:
        """Return whether a quantity is confirmatory, those of items with another number of options included."""
        name, mark, size = quantity.partition("@k=")
        return name in self.confirmatory and (not mark or (self.by_options and size.isdigit()))

    @property
    def answer(self) -> Sequence[Column]:
        """What says most about a cell, on one line."""
        columns: Sequence[Column] = self._door("quantities").ANSWER
        return columns

    @property
    def breakdown(self) -> Breakdown | None:
        """What is said of each part of a cell; None for a design without parts."""
        found: Breakdown | None = getattr(self._door("quantities"), "BREAKDOWN", None)
        return found

    def contrasts(self, analysis: Analysis) -> Sequence[Contrast]:
        """Return the design's planned contrasts."""
        file: ContrastFile | None = getattr(analysis, self._door("quantities").CONTRASTS)
        return file.contrasts if file else ()

    def unit(self, experiment: Experiment) -> str:
        """Return the unit of what is broken down and contrasted, in words that follow a noun."""
        text: str = self._door("quantities").unit(experiment)
        return text

    def describe(self, quantity: str) -> str:
        """Return what a quantity means, in one plain sentence."""
        text: str = self._door("quantities").describe(quantity)
        return text

    def unplanned(self, study: Study, experiment: Experiment, quantity: str) -> str | None:
        """Say why an experiment will have no such quantity although its design knows it; None if it will."""
        check = getattr(self._door("quantities"), "unplanned", None)
        reason: str | None = check(study, experiment, quantity) if check else None
        return reason

    def unasked(self, study: Study, experiment: Experiment, items: pa.Table) -> Iterator[str]:
        """Say which planned contrasts no cell of an experiment will have; not an error, for another one may."""
        find = getattr(self._door("expand"), "unasked", None)
        return find(study, experiment, items) if find else iter(())

    def absent(self, study: Study, sizes: Mapping[str, Sequence[int]]) -> Iterator[str]:
        """Say what planned contrasts ask for and no item of the study has.

        Parameters
        ----------
        sizes
            By data set, the numbers of options that its items have.
        """
        find = getattr(self._door("quantities"), "absent", None)
        return find(study, sizes) if find else iter(())

    def beyond(self, quantity: str, sizes: Sequence[int]) -> str | None:
        """Say why no cell on items with these numbers of options has a quantity; None if one may."""
        check = getattr(self._door("quantities"), "beyond", None)
        reason: str | None = check(quantity, sizes) if check else None
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
