"""An experiment as the report shows it: matrix, cells, both methods side by side, exclusions, example."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from counterbalance.config import Cell, Experiment, Study
from counterbalance.report.examples import ExampleView, view_example
from counterbalance.report.mcq.cells import CellView, StatusRow, read_share, status_rows, view_cell
from counterbalance.report.mcq.figures.bonus import bonus_limit, draw_bonus
from counterbalance.report.mcq.figures.capability import Point, draw_capability
from counterbalance.report.mcq.figures.hero import Hero, Panel
from counterbalance.report.mcq.figures.picks import draw_picks
from counterbalance.report.mcq.figures.profile import draw_profile
from counterbalance.report.mcq.notes import Context, headline
from counterbalance.report.mcq.slots import has_series, in_words
from counterbalance.report.numbers import CellNumbers, show
from counterbalance.report.pictures import Picture
from counterbalance.report.sources import Sources
from counterbalance.report.text import percent

READS = {
    "generate": "the answer is read from the text that the model writes",
    "logprob": "the answer is the option label with the highest log-probability as the next token",
    "option_text": "the answer is the option whose own words have the highest log-probability",
}


@dataclass(frozen=True)
class CellBlock:
    """A cell with its figures."""

    view: CellView
    pictures: Sequence[tuple[str, Picture]]
    """Caption and figure."""


@dataclass(frozen=True)
class Section:
    """An experiment of the page."""

    id: str
    template: str
    headline: str
    how: str
    models: Sequence[str]
    subsets: Sequence[str]
    matrix: Sequence[tuple[str, Sequence[CellView | None]]]
    cells: Sequence[CellBlock]
    capability: Sequence[tuple[str, Picture]]
    capability_missing: Sequence[str]
    read_shares: Sequence[tuple[str, str]]
    statuses: Sequence[StatusRow]
    slot_labels: Sequence[str]
    example: ExampleView
    hero: Sequence[tuple[str, Sequence[Panel | None]]]

    @property
    def pictures(self) -> list[Picture]:
        """All figures, in the page's order."""
        return [
            *(picture for _, picture in self.capability),
            *(picture for block in self.cells for _, picture in block.pictures),
        ]


def build_section(sources: Sources, experiment: Experiment) -> Section:
    """Make an experiment's view from its estimates."""
    study = sources.study
    labels = experiment.prompt.labels or list(ascii_uppercase)
    cells = [cell for cell in study.cells() if cell.experiment.id == experiment.id]
    numbers = {cell.name: sources.cells[experiment.id, cell.model.id, cell.dataset.id] for cell in cells}
    views = {
        cell.name: view_cell(cell, numbers[cell.name], labels, Context(study.config.analysis, _even(sources, cell)))
        for cell in cells
    }
    limit = bonus_limit(
        [bonus for view in views.values() for slot in view.slots if (bonus := slot.slot_bonus) is not None]
    )
    by_place = {(cell.model.id, cell.dataset.id): views[cell.name] for cell in cells}
    return Section(
        id=experiment.id,
        template="mcq.html.j2",
        headline=headline([view.verdict for view in views.values()], study.config.analysis),
        how=_how(experiment),
        models=experiment.models,
        subsets=experiment.datasets,
        matrix=[(model, [by_place.get((model, name)) for name in experiment.datasets]) for model in experiment.models],
        cells=[
            CellBlock(views[cell.name], _cell_pictures(cell, views[cell.name], numbers[cell.name], sources, limit))
            for cell in cells
        ],
        capability=_capability(study, experiment, views, numbers),
        capability_missing=[
            f"{cell.model.id} · {cell.dataset.id}" for cell in cells if _point(views[cell.name], numbers[cell.name]) is None
        ],
        read_shares=[(f"{c.model.id} · {c.dataset.id}", read_share(numbers[c.name])) for c in cells],
        statuses=[
            row
            for cell in cells
            for row in status_rows(f"{cell.model.id} · {cell.dataset.id}", numbers[cell.name], views[cell.name].slots)
        ],
        slot_labels=[slot.label for slot in max((view.slots for view in views.values()), key=len)],
        example=view_example(sources.examples[experiment.id], labels),
        hero=[
            (
                model,
                [_panel(by_place.get((model, name)), numbers.get(f"{experiment.id}/{model}/{name}", {})) for name in experiment.datasets],
            )
            for model in experiment.models
        ],
    )
