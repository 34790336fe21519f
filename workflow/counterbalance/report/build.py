"""The report as bytes: the page, and every figure as a file that stands alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.report.mcq.figures.hero import MOST_COLUMNS, MOST_ROWS, Hero, draw_hero
from counterbalance.report.mcq.section import Section
from counterbalance.report.pictures import Picture
from counterbalance.report.render import render_html
from counterbalance.report.sources import Sources
from counterbalance.report.text import percent
from counterbalance.report.view import ReportView, view_report


@dataclass(frozen=True)
class Report:
    """The page and, by file name, the figures."""

    html: bytes
    figures: Mapping[str, bytes]


def build_report(sources: Sources) -> Report:
    """Make the report; a pure function of the artifacts."""
    view = view_report(sources)
    hero = _hero(sources, view)
    title = f"Accuracy by slot in every cell: {view.title}"
    cover = Picture("hero", title, _in_words(view.sections), draw_hero(hero, "svg"))
    pictures = [cover, *(picture for section in view.sections for picture in section.pictures)]
    figures = {f"{picture.name}.svg": picture.file for picture in pictures}
    return Report(render_html(view), figures | {"hero.png": draw_hero(hero, "png")})


def _hero(sources: Sources, view: ReportView) -> Hero:
    """Return the content of the picture of all cells, or of the first ones where there are very many."""
    columns = [dataset.id for dataset in sources.study.used_datasets()]
    rows, panels = [], []
    for section in view.sections:
        for model, row in section.panels:
            by_subset = dict(zip(section.subsets, row, strict=True))
            rows.append((model, f"{section.id}, simulated" if model in view.simulated else section.id))
            panels.append([by_subset.get(name) for name in columns[:MOST_COLUMNS]])
    level = percent(sources.study.config.analysis.level)
    note = f"Share correct when the right option stands in that slot, with {level} interval; flat: no position bias."
    if len(columns) > MOST_COLUMNS or len(rows) > MOST_ROWS:
        note += " First cells only."
    return Hero(view.title, columns[:MOST_COLUMNS], rows[:MOST_ROWS], panels[:MOST_ROWS], note)


def _in_words(sections: Sequence[Section]) -> str:
    rows = [(section, model, row) for section in sections for model, row in section.panels]
    return "; ".join(
        f"{model}, {section.id}: "
        + ", ".join(f"{name} {panel.words}" for name, panel in zip(section.subsets, row, strict=True))
        for section, model, row in rows
    )
