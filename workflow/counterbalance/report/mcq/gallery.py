"""An experiment's figures, from its cells."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.config import Cell
from counterbalance.report.mcq.cells import CellView
from counterbalance.report.mcq.figures.bonus import bonus_limit, draw_bonus
from counterbalance.report.mcq.figures.hero import Panel
from counterbalance.report.mcq.figures.picks import draw_picks
from counterbalance.report.mcq.figures.profile import draw_profile
from counterbalance.report.mcq.slots import has_series, in_words
from counterbalance.report.numbers import CellNumbers
from counterbalance.report.pictures import Picture
from counterbalance.report.text import MISSING


@dataclass(frozen=True)
class Figured:
    """A cell with its numbers, its view and the share of an even split over its slots."""

    cell: Cell
    numbers: CellNumbers
    view: CellView
    even: float | None

    @property
    def stem(self) -> str:
        """Start of the cell's file names; ids hold no dots."""
        return self.cell.name.replace("/", ".")

    @property
    def title(self) -> str:
        """The cell's name for a text alternative."""
        return f"{self.cell.experiment.id}, {self.cell.model.id}, {self.cell.dataset.id}"


def shared_bonus_limit(cells: Sequence[Figured]) -> float:
    """Return the limit of the axis of slot bonuses, the same for all cells."""
    bonuses = [slot.slot_bonus for cell in cells for slot in cell.view.slots]
    return bonus_limit([number for number in bonuses if number is not None])


def cell_pictures(entry: Figured, limit: float) -> list[tuple[str, Picture]]:
    """Draw a cell's figures, each with its caption; those whose numbers are missing are left out."""
    slots, verdict = entry.view.slots, entry.view.verdict
    pictures = []
    if has_series(slots, "accuracy"):
        overall = entry.numbers.get("accuracy")
        drawn = draw_profile(slots, overall.estimate if overall else None, verdict)
        caption = "Accuracy by slot of the correct option. Broken line: overall accuracy."
        pictures.append((caption, _picture(entry, "accuracy", "Accuracy by slot", drawn)))
    if has_series(slots, "picks"):
        drawn = draw_picks(slots, entry.even, verdict)
        caption = "Picks by slot."
        if entry.even is not None:
            caption += " Broken line: even split."
        if has_series(slots, "picks_when_wrong"):
            caption += " Diamonds: among wrong answers."
        pictures.append((caption, _picture(entry, "picks", "Picks by slot", drawn)))
    if has_series(slots, "slot_bonus"):
        drawn = draw_bonus(slots, verdict, limit)
        what = "log-probability"
        if entry.cell.experiment.read.kind == "decide":
            what = "choice probability as the vendor gives it, on the scale of logarithms"
        caption = f"Slot bonus in nats: what the slot itself adds to an option's {what}."
        pictures.append((caption, _picture(entry, "slot_bonus", "Slot bonus in nats", drawn)))
    return pictures


def _picture(entry: Figured, series: str, what: str, drawn: bytes) -> Picture:
    words = in_words(entry.view.slots, series)
    return Picture(f"{entry.stem}.{series}", f"{what}: {entry.title}", f"{what}. {words}", drawn)


def hero_panel(entry: Figured) -> Panel:
    """Return a cell's panel of the picture of all cells."""
    overall = entry.numbers.get("accuracy")
    v = entry.view.v
    words = f"{entry.view.words}, V {v.text}" if v.text != MISSING else entry.view.words
    return Panel(entry.view.slots, overall.estimate if overall else None, entry.view.verdict, words)
