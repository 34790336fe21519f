"""The report as bytes: the page, and every figure as a file that stands alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.report.mcq.figures.hero import Hero, draw_hero
from counterbalance.report.mcq.section import Section
from counterbalance.report.pictures import Picture
from counterbalance.report.render import render_html
from counterbalance.report.sources import Sources
from counterbalance.report.text import percent
from counterbalance.report.view import view_report


@dataclass(frozen=True)
class Report:
    """The page and, by file name, the figures."""

    html: bytes
    figures: Mapping[str, bytes]


def build_report(sources: Sources) -> Report:
    """Make the report; a pure function of the artifacts."""
    view = view_report(sources)
    pictures = [picture for section in view.sections for picture in section.pictures]
    hero = _hero(sources, view.sections)
    words = "; ".join(
        f"{model}, {section.id}: {', '.join(f'{name} {panel.words}' for name, panel in zip(section.subsets, row, strict=True))}"
        for section in view.sections
        for model, row in section.panels
    )
    cover = Picture("hero", f"Accuracy by slot in every cell: {view.title}", words, draw_hero(hero, "svg"))
    figures = {f"{picture.name}.svg": picture.file for picture in [cover, *pictures]}
    return Report(render_html(view), figures | {"hero.png": draw_hero(hero, "png")})


def _hero(sources: Sources, sections: Sequence[Section]) -> Hero:
    columns = [dataset.id for dataset in sources.study.used_datasets()]
    rows, panels = [], []
    for section in sections:
        for model, row in section.panels:
            by_subset = dict(zip(section.subsets, row, strict=True))
            rows.append((model, section.id))
            panels.append([by_subset.get(name) for name in columns])
    config = sources.study.config
    return Hero(config.question, columns, rows, panels, percent(config.analysis.level))
