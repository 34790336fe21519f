"""An experiment's figures, from its cells."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.config import Analysis, Cell
from counterbalance.report.mcq.cells import CellView
from counterbalance.report.mcq.figures.bonus import bonus_limit, draw_bonus
from counterbalance.report.mcq.figures.capability import Point, draw_capability, v_limit
from counterbalance.report.mcq.figures.hero import Panel
from counterbalance.report.mcq.figures.picks import draw_picks
from counterbalance.report.mcq.figures.profile import draw_profile
from counterbalance.report.mcq.slots import has_series, in_words
from counterbalance.report.numbers import CellNumbers, show
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


def capability_pictures(cells: Sequence[Figured], analysis: Analysis) -> list[tuple[str, Picture]]:
    """Draw V against accuracy for the cells that have both: one figure per model, or per subset if those are fewer."""
    drawn = [entry for entry in cells if _place(entry) is not None]
    models = {entry.cell.model.id for entry in drawn}
    by_model = len(models) <= len({entry.cell.dataset.id for entry in drawn})
    facets: dict[str, list[Point]] = {}
    for entry in drawn:
        model, subset = entry.cell.model.id, entry.cell.dataset.id
        facet, name = (model, subset) if by_model else (subset, model)
        if (point := _point(entry, name)) is not None:
            facets.setdefault(facet, []).append(point)
    top = v_limit([point for points in facets.values() for point in points])
    pictures = []
    for facet, points in facets.items():
        experiment = drawn[0].cell.experiment.id
        picture = Picture(
            f"{experiment}.{facet}.capability",
            f"V against accuracy: {experiment}, {facet}",
            "; ".join(point.words for point in points),
            draw_capability(points, analysis.capability_band, top),
        )
        pictures.append((facet, picture))
    return pictures


def without_point(cells: Sequence[Figured]) -> list[Figured]:
    """Return the cells that cannot be drawn because accuracy or V is missing."""
    return [entry for entry in cells if _place(entry) is None]


def _place(entry: Figured) -> tuple[float, float] | None:
    accuracy, v = entry.numbers.get("accuracy"), entry.numbers.get("V.corrected")
    if accuracy is None or accuracy.estimate is None or v is None or v.estimate is None:
        return None
    return accuracy.estimate, v.estimate


def _point(entry: Figured, name: str) -> Point | None:
    place = _place(entry)
    if place is None:
        return None
    accuracy, v = entry.numbers["accuracy"], entry.numbers["V.corrected"]
    detectable = entry.numbers.get("detectable_V")
    words = (
        f"{name}: accuracy {show(accuracy).text}, V {show(v).text} {show(v).interval}, smallest V it would have shown "
        f"{show(detectable).text}, {entry.view.words.lower()}"
    )
    return Point(
        name=name,
        words=words,
        verdict=entry.view.verdict,
        accuracy=place[0],
        v=place[1],
        low=v.low,
        high=v.high,
        detectable=detectable.estimate if detectable else None,
    )


def hero_panel(entry: Figured) -> Panel:
    """Return a cell's panel of the picture of all cells."""
    overall = entry.numbers.get("accuracy")
    v = entry.view.v
    words = f"{entry.view.words}, V {v.text}" if v.text != MISSING else entry.view.words
    return Panel(entry.view.slots, overall.estimate if overall else None, entry.view.verdict, words)
