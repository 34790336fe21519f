"""An experiment of the crossing design as the report shows it."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.canonical import parse_json
from counterbalance.config import Analysis, Cell, Experiment
from counterbalance.designs.crossing.conditions import CONDITIONS, Condition
from counterbalance.designs.crossing.estimate import known_conditions
from counterbalance.designs.crossing.measure import Measured, measure
from counterbalance.designs.crossing.published import address_of
from counterbalance.report.crossing.cells import CellView, asked_conditions, dials, view_cell
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
from counterbalance.report.examples import ExampleView, ReplyView, view_example
from counterbalance.report.numbers import CellNumbers
from counterbalance.report.pictures import Cover, Picture
from counterbalance.report.planned import amount
from counterbalance.report.published import is_published
from counterbalance.report.sources import Example, Sources
from counterbalance.report.text import MISSING, listing, percent, plural

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
    published: bool
    conditions: Sequence[tuple[str, str]]
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
    analysis = sources.study.config.analysis
    published = all(map(is_published, cells))
    views = [view_cell(cell, found, analysis) for cell, found in zip(cells, numbers, strict=True)]
    limit = axis_limit([end for found in numbers for end in ends_of(_forest(found))])
    asked = {condition.name for found in numbers for condition in asked_conditions(found)}
    conditions = [condition for name, condition in CONDITIONS.items() if name in asked]
    return Section(
        id=experiment.id,
        template="crossing.html.j2",
        headline=headline([view.verdict for view in views]),
        how=_how_published(conditions) if published else _how(experiment, conditions),
        published=published,
        conditions=[(condition.name, _in_words(condition, analysis, published)) for condition in conditions],
        cells=[
            CellBlock(view, _pictures(sources, cell, found, view, limit))
            for cell, found, view in zip(cells, numbers, views, strict=True)
        ],
        example=_published_number(sources.examples[experiment.id])
        if published
        else view_example(sources.examples[experiment.id]),
        panels=[
            Panel(_panel_title(view, experiment), view.subset, view.words, _forest(found))
            for found, view in zip(numbers, views, strict=True)
        ],
    )


def draw_crossing_cover(name: str, sources: Sources, sections: Sequence[Section]) -> Cover:
    """Draw serial by condition in every cell, or in the first ones where there are very many."""
    panels = [panel for section in sections for panel in section.panels]
    limit = axis_limit([end for panel in panels for end in ends_of(panel.rows)])
    title = sources.study.config.title
    words = "; ".join(f"{panel.title}, {panel.below}: {panel.words}" for panel in panels)
    found = [section.published for section in sections]
    remark = "Published cells, not measured by this study." if all(found) else "“Published”: not measured here."
    remark = remark if any(found) else ""
    picture = Picture(
        name,
        f"Serial effect in every cell: {title}",
        f"{words}. {remark}".removesuffix(". "),
        draw_cover(title, panels, limit, "svg", remark),
    )
    return Cover(picture, draw_cover(title, panels, limit, "png", remark))


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
    known = known_conditions(analysis, published=view.published)
    loaded = {name for name, condition in known.items() if condition.body == "loaded"}
    places = _places(numbers, loaded)
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


def _places(numbers: CellNumbers, loaded: Set[str]) -> list[Place]:
    return [
        Place(condition.name, role, serial, condition.name in loaded)
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


def _how_published(conditions: Sequence[Condition]) -> str:
    return (
        "Published cells: no model was asked by this study. e1 to e4 of every item, log P(B) - log P(A) in nats with "
        "either block first and either answer in either role, are taken as they stand in a file, in "
        f"{plural(len(conditions), 'condition')}. How they were measured is not in the file: prompts, words of the "
        "answers and settings are not known here."
    )


def _panel_title(view: CellView, experiment: Experiment) -> str:
    return f"{view.model}, published" if view.published else f"{view.model}, {experiment.id}"


def _in_words(condition: Condition, analysis: Analysis, published: bool) -> str:
    if published:
        known = known_conditions(analysis, published=True).get(condition.name)
        said = "as the file of contrasts says, " if known else ""
        return f"{said}{dials(known)}"
    both = "; both assignments of the wordings, averaged" if len(condition.assignments) == 2 else ""
    return f"{condition.words}{both}"


def _published_number(example: Example) -> ExampleView:
    trial = example.trial
    address = address_of(parse_json(trial["prompt"], source=f"trial {trial['trial_id']}")) or {}
    where = ", ".join(f"{name} {address[name]}" for name in ("line", "condition", "item", "cell") if name in address)
    replies = [
        ReplyView(model, str(reply["text"]), True, f"{outcome['candidates'][0]} nats towards B")
        for model, reply, outcome in example.replies
    ]
    return ExampleView(trial["trial_id"], [("", where)], MISSING, replies)
