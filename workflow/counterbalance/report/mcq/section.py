"""An experiment as the report shows it: matrix, cells, both methods side by side, exclusions, example."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from counterbalance.config import Cell, Experiment
from counterbalance.report.examples import ExampleView, view_example
from counterbalance.report.mcq.cells import (
    CALIBRATED_HEADS,
    PUBLISHED_HEADS,
    CellView,
    StatusRow,
    counts_replies,
    status_rows,
    view_cell,
)
from counterbalance.report.mcq.figures.hero import Panel
from counterbalance.report.mcq.gallery import (
    Figured,
    cell_pictures,
    hero_panel,
    shared_bonus_limit,
)
from counterbalance.report.mcq.notes import Context, headline
from counterbalance.report.mcq.parts import PART_HEADS
from counterbalance.report.mcq.pooled import verdict_in_count
from counterbalance.report.pictures import Picture
from counterbalance.report.sources import Sources
from counterbalance.report.text import percent, plural

_READS = {
    "generate": "The answer is read from the text that the model writes",
    "logprob": "The answer is the option label with the highest log-probability as the next token",
    "decide": (
        "The answer is the option to which the vendor's decision endpoint gives the highest probability: the vendor's "
        "own calibrated choice probability, which is not the log-probability of a token"
    ),
    "option_text": "The answer is the option whose own words have the highest log-probability",
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
    alone: bool
    """Whether no other experiment has this design; what is said of all cells is then said of its own."""
    subsets: Sequence[str]
    figured: Sequence[Figured]
    cells: Sequence[CellBlock]
    all_answered: str
    not_counted: Sequence[CellView]
    not_asked: Sequence[CellView]
    """Cells that their scouts left out; there is nothing to compare in them."""
    statuses: Sequence[StatusRow]
    largest_failure: float
    slot_labels: Sequence[str]
    example: ExampleView
    panels: Sequence[tuple[str, Sequence[Panel]]]
    published_heads: Sequence[str] = PUBLISHED_HEADS
    calibrated_heads: Sequence[str] = CALIBRATED_HEADS
    part_heads: Sequence[str] = PART_HEADS

    @property
    def pictures(self) -> list[Picture]:
        """All figures, in the page's order."""
        return [picture for block in self.cells for _, picture in block.pictures]


def build_section(sources: Sources, experiment: Experiment) -> Section:
    """Make an experiment's view from its estimates."""
    cells = [_figured(sources, cell) for cell in sources.study.cells() if cell.experiment.id == experiment.id]
    rows = [(model, [entry for entry in cells if entry.cell.model.id == model]) for model in experiment.models]
    limit = shared_bonus_limit(cells)
    statuses = [row for entry in cells for row in status_rows(entry.view, entry.numbers)]
    failing = {row.cell.anchor for row in statuses}
    asked = [entry for entry in cells if entry.view.verdict != "not_asked"]
    not_counted = [entry.view for entry in asked if not counts_replies(entry.numbers)]
    return Section(
        id=experiment.id,
        template="mcq.html.j2",
        headline=headline([verdict_in_count(entry) for entry in cells], sources.study.config.analysis),
        how=_how(experiment),
        alone=sum(entry.design == experiment.design for entry in sources.study.config.experiments) == 1,
        subsets=experiment.datasets,
        figured=cells,
        cells=[CellBlock(entry.view, cell_pictures(entry, limit)) for entry in cells],
        all_answered=f"{len(asked) - len(failing) - len(not_counted)} of {plural(len(asked), 'cell')}",
        not_asked=[entry.view for entry in cells if entry not in asked],
        not_counted=not_counted,
        statuses=statuses,
        largest_failure=max((share for row in statuses for _, share in row.by_slot), default=0.0),
        slot_labels=[slot.label for slot in max((entry.view.slots for entry in cells), key=len)],
        example=view_example(sources.examples[experiment.id]),
        panels=[(model, [hero_panel(entry) for entry in row]) for model, row in rows],
    )


def _figured(sources: Sources, cell: Cell) -> Figured:
    numbers = sources.cells[cell.experiment.id, cell.model.id, cell.dataset.id]
    sizes = sources.option_counts[cell.dataset.id]
    even = 1 / sizes[0] if len(sizes) == 1 else None
    labels = cell.experiment.prompt.labels or list(ascii_uppercase)
    view = view_cell(cell, numbers, labels, Context(sources.study.config.analysis, even))
    return Figured(cell, numbers, view, even)


def _how(experiment: Experiment) -> str:
    arrangement = experiment.arrangement
    orders = {
        "exhaustive": "every order of its options",
        "cyclic": "the rotations of its options",
        "williams": "the orders of a Williams design",
        "sampled": plural(arrangement.n or 0, "sampled order"),
        "identity_reverse": "its own order and the reverse",
    }[arrangement.scheme]
    repeats = "" if experiment.repeats == 1 else f", {experiment.repeats} times each"
    if experiment.repeat_share:
        repeats += f", and {percent(experiment.repeat_share)} of the prompts, drawn by the seed, once more"
    return f"Each item is asked in {orders}{repeats}. {_READS[experiment.read.kind]}."
