"""An experiment of the crossing design as the report shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.config import Cell, Experiment
from counterbalance.designs.crossing.conditions import CONDITIONS, Condition
from counterbalance.designs.crossing.measure import Measured, measure
from counterbalance.report.crossing.cells import CellView, amount, asked_conditions, view_cell
from counterbalance.report.crossing.figures import (
    ForestRow,
    Panel,
    Place,
    axis_limit,
    draw_cover,
    draw_forest,
    draw_items,
    draw_places,
    ends_of,
)
from counterbalance.report.crossing.words import headline
from counterbalance.report.examples import ExampleView, view_example
from counterbalance.report.numbers import CellNumbers
from counterbalance.report.pictures import Cover, Picture
from counterbalance.report.sources import Sources
from counterbalance.report.text import listing, percent, plural

_READS = {
    "option_text": "the log-probability of either answer as the next token is read, exactly",
    "logprob": "the log-probability of either answer is read from the list of likeliest next tokens",
    "generate": (
        "the answer is read from the text that the model writes, and its share takes the place of nats: all effects "
        "are on the scale of probability"
    ),
}


@dataclass(frozen=True)
class CellBlock:
    """A cell with its figures, each with its caption."""

    view: CellView
    pictures: Sequence[tuple[str, Picture]]


@dataclass(frozen=True)
class Section:
    """An experiment of the page."""

    id: str
    template: str
    headline: str
    how: str
    conditions: Sequence[Condition]
    cells: Sequence[CellBlock]
    example: ExampleView
    panels: Sequence[Panel]

    @property
    def pictures(self) -> list[Picture]:
        """All figures, in the page's order."""
        return [picture for block in self.cells for _, picture in block.pictures]


def build_section(sources: Sources, experiment: Experiment) -> Section:
    """Make an experiment's view from its estimates, and the figure of items from its outcomes."""
    cells = [cell for cell in sources.study.cells() if cell.experiment.id == experiment.id]
    numbers = [sources.cells[cell.experiment.id, cell.model.id, cell.dataset.id] for cell in cells]
    plan = sources.study.config.analysis.contrasts
    names = [entry.id for entry in plan.contrasts] if plan else []
    views = [view_cell(cell, found, names) for cell, found in zip(cells, numbers, strict=True)]
    limit = axis_limit([end for found in numbers for end in ends_of(_forest(found))])
    asked = {condition.name for found in numbers for condition in asked_conditions(found)}
    conditions = [condition for name, condition in CONDITIONS.items() if name in asked]
    return Section(
        id=experiment.id,
        template="crossing.html.j2",
        headline=headline([view.verdict for view in views]),
        how=_how(experiment, conditions),
        conditions=conditions,
        cells=[
            CellBlock(view, _pictures(sources, cell, found, view, limit))
            for cell, found, view in zip(cells, numbers, views, strict=True)
        ],
        example=view_example(sources.examples[experiment.id]),
        panels=[
            Panel(f"{view.model}, {experiment.id}", view.subset, view.words, _forest(found))
            for found, view in zip(numbers, views, strict=True)
        ],
    )


def draw_crossing_cover(name: str, sources: Sources, sections: Sequence[Section]) -> Cover:
    """Draw serial by condition in every cell, or in the first ones where there are very many."""
    panels = [panel for section in sections for panel in section.panels]
    limit = axis_limit([end for panel in panels for end in ends_of(panel.rows)])
    title = sources.study.config.title
    words = "; ".join(f"{panel.title}, {panel.below}: {panel.words}" for panel in panels)
    picture = Picture(name, f"Serial effect in every cell: {title}", words, draw_cover(title, panels, limit, "svg"))
    return Cover(picture, draw_cover(title, panels, limit, "png"))


def _pictures(
    sources: Sources, cell: Cell, numbers: CellNumbers, view: CellView, limit: float
) -> list[tuple[str, Picture]]:
    stem, title = cell.name.replace("/", "."), f"{cell.experiment.id}, {cell.model.id}, {cell.dataset.id}"
    rows = _forest(numbers)
    analysis = sources.study.config.analysis
    wide, narrow = percent(analysis.level), percent(1 - 2 * analysis.alpha)
    words = "; ".join(f"{row.name} {amount(row.kept).text} {amount(row.kept).interval}".strip() for row in rows)
    found = [
        (
            f"Serial by condition. Dots: kept items, with their {wide} (thin) and {narrow} (thick) interval. Rings: "
            "all items.",
            Picture(f"{stem}.forest", f"Serial by condition: {title}", words, draw_forest(rows, view.unit, limit)),
        )
    ]
    places = _places(numbers)
    if places:
        said = "; ".join(f"{p.name} role {amount(p.role).text}, serial {amount(p.serial).text}" for p in places)
        drawn = draw_places(places, view.unit)
        caption = "Framing against position. Diamonds: loaded bodies. On the dotted lines both weigh the same."
        found.append((caption, Picture(f"{stem}.framing", f"Role against serial: {title}", said, drawn)))
    lines = _lines(sources, cell)
    if lines is not None:
        caption = "Serial of every item. Bold: mean of the kept items. Broken lines: items that are not kept."
        found.append((caption, Picture(f"{stem}.items", f"Serial by item: {title}", *_draw_lines(lines, view.unit))))
    return found


def _forest(numbers: CellNumbers) -> list[ForestRow]:
    return [
        ForestRow(
            name,
            numbers.get(f"serial.{name}"),
            numbers.get(f"tost.serial.{name}"),
            numbers.get(f"serial.{name}@all"),
        )
        for name in (condition.name for condition in asked_conditions(numbers))
    ]


def _places(numbers: CellNumbers) -> list[Place]:
    return [
        Place(condition.name, role, serial, condition.body == "loaded")
        for condition in asked_conditions(numbers)
        if (role := numbers.get(f"role.{condition.name}")) and role.estimate is not None
        if (serial := numbers.get(f"serial.{condition.name}")) and serial.estimate is not None
    ]


def _lines(sources: Sources, cell: Cell) -> Measured | None:
    path = sources.study.layout.outcomes(cell.experiment.id, cell.model.id, cell.dataset.id)
    measured = measure(read_table(path, SCHEMAS["outcomes"]))
    return measured if any(measured.cells.values()) else None


def _draw_lines(measured: Measured, unit: str) -> tuple[str, bytes]:
    serial: Mapping[str, Mapping[str, float]] = {
        condition: measured.effects(condition)["serial"] for condition in measured.conditions
    }
    values = {item: [serial[condition].get(item) for condition in measured.conditions] for item in measured.items}
    out = [item for item in measured.items if item not in measured.kept]
    words = f"{plural(len(values), 'item')} in {plural(len(measured.conditions), 'condition')}"
    if out:
        words += f"; not kept: {listing(out)}"
    return words, draw_items(values, measured.conditions, out, unit)


def _how(experiment: Experiment, conditions: Sequence[Condition]) -> str:
    repeats = "" if experiment.repeats == 1 else f", {experiment.repeats} times each"
    return (
        "Two sources name different answers. Each item is asked with either block first and with either answer in "
        f"either role, in {plural(len(conditions), 'condition')}{repeats}; {_READS[experiment.read.kind]}."
    )
