"""Which design is shown by which room of the report; a further design adds one line here.

A room is a package `report/DESIGN` and a template. The shell knows of it what the protocols below say. The template
has the macros `answer(section)` and `body(section, view)` for an experiment, and `legend(view)` and `nulls(view)` for
what the design's verdicts mean and what its finding nothing means; and `overview(overview)` if the room has one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from counterbalance.config import Experiment
from counterbalance.errors import ConfigError
from counterbalance.report.crossing.section import build_section as build_crossing_section
from counterbalance.report.crossing.section import draw_crossing_cover
from counterbalance.report.crossing.words import CHIPS as CROSSING_VERDICTS
from counterbalance.report.crossing.words import GLOSSARY as CROSSING_GLOSSARY
from counterbalance.report.mcq.cover import draw_cover as draw_mcq_cover
from counterbalance.report.mcq.glossary import GLOSSARY as MCQ_GLOSSARY
from counterbalance.report.mcq.notes import VERDICTS as MCQ_VERDICTS
from counterbalance.report.mcq.overview import build_overview as build_mcq_overview
from counterbalance.report.mcq.section import build_section as build_mcq_section
from counterbalance.report.pictures import Cover, Figure
from counterbalance.report.sources import Sources


class Section(Protocol):
    """What the shell needs of an experiment's view; the rest is between a room and its template."""

    @property
    def id(self) -> str:
        """The experiment."""

    @property
    def template(self) -> str:
        """Name of the room's template."""

    @property
    def headline(self) -> str:
        """The answer in one sentence."""

    @property
    def how(self) -> str:
        """How it was asked, in one or two sentences."""

    @property
    def pictures(self) -> Sequence[Figure]:
        """All figures, in the page's order."""


class Overview(Protocol):
    """What the shell needs of the view of all cells of a design."""

    @property
    def template(self) -> str:
        """Name of the room's template."""

    @property
    def pictures(self) -> Sequence[Figure]:
        """All figures, in the page's order."""


@dataclass(frozen=True)
class Room:
    """How the experiments of one design are shown.

    Attributes
    ----------
    template
        The template that all its sections name.
    build
        Makes an experiment's section.
    cover
        Draws all cells of its sections in one picture, for a title page: name, sources, sections.
    verdicts
        The verdicts' labels, which are also classes of the style sheet, and their words.
    glossary
        Term, quantity names and meaning.
    overview
        Makes the view of all its cells from its sections, shown before any section; None where there is none.
    """

    template: str
    build: Callable[[Sources, Experiment], Section]
    cover: Callable[[str, Sources, Sequence[Any]], Cover]
    verdicts: Mapping[str, str]
    glossary: Sequence[tuple[str, str, str]]
    overview: Callable[[Sources, Sequence[Any]], Overview] | None = None


_ROOMS: dict[str, Room] = {
    "mcq": Room("mcq.html.j2", build_mcq_section, draw_mcq_cover, MCQ_VERDICTS, MCQ_GLOSSARY, build_mcq_overview),
    "crossing": Room(
        "crossing.html.j2", build_crossing_section, draw_crossing_cover, CROSSING_VERDICTS, CROSSING_GLOSSARY
    ),
}


def room_of(experiment: Experiment) -> Room:
    """Return the room of an experiment's design.

    Raises
    ------
    ConfigError
        If the report knows no such design.
    """
    if experiment.design not in _ROOMS:
        raise ConfigError(f"experiment {experiment.id!r}: the report cannot show design {experiment.design!r}")
    return _ROOMS[experiment.design]


def rooms_of(experiments: Iterable[Experiment]) -> dict[str, Room]:
    """Return the rooms of a study by design, in the order of its experiments."""
    return {experiment.design: room_of(experiment) for experiment in experiments}


def overviews_of(sources: Sources, sections: Sequence[Section]) -> dict[str, Overview]:
    """Make the views of all cells, by design, of those designs whose rooms have one."""
    return {
        design: room.overview(sources, mine)
        for design, room, mine in _by_design(sources, sections)
        if room.overview is not None
    }


def covers_of(sources: Sources, sections: Sequence[Section]) -> list[Cover]:
    """Draw one cover per design, the first one named `hero`, the others with their design behind it."""
    return [
        room.cover("hero" if place == 0 else f"hero-{design}", sources, mine)
        for place, (design, room, mine) in enumerate(_by_design(sources, sections))
    ]


def _by_design(sources: Sources, sections: Sequence[Section]) -> Iterator[tuple[str, Room, list[Section]]]:
    experiments = sources.study.config.experiments
    for design, room in rooms_of(experiments).items():
        mine = {experiment.id for experiment in experiments if experiment.design == design}
        yield design, room, [section for section in sections if section.id in mine]
