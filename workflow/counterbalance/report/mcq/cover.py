"""All cells of the multiple-choice experiments in one picture."""

from collections.abc import Sequence

from counterbalance.report.mcq.figures.hero import MOST_COLUMNS, MOST_ROWS, Hero, draw_hero
from counterbalance.report.mcq.section import Section
from counterbalance.report.pictures import Cover, Picture
from counterbalance.report.sources import Sources
from counterbalance.report.text import percent


def draw_cover(name: str, sources: Sources, sections: Sequence[Section]) -> Cover:
    """Draw accuracy by slot in every cell, or in the first ones where there are very many."""
    hero = _hero(sources, sections)
    title = f"Accuracy by slot in every cell: {hero.title}"
    return Cover(Picture(name, title, _in_words(sections), draw_hero(hero, "svg")), draw_hero(hero, "png"))


def _hero(sources: Sources, sections: Sequence[Section]) -> Hero:
    study = sources.study
    columns = [dataset.id for dataset in study.used_datasets()]
    simulated = {model.id for model in study.config.models if model.vendor == "simulated"}
    rows, panels = [], []
    for section in sections:
        for model, row in section.panels:
            by_subset = dict(zip(section.subsets, row, strict=True))
            rows.append((model, f"{section.id}, simulated" if model in simulated else section.id))
            panels.append([by_subset.get(name) for name in columns[:MOST_COLUMNS]])
    level = percent(study.config.analysis.level)
    note = f"Share correct when the right option stands in that slot, with {level} interval; flat: no position bias."
    if len(columns) > MOST_COLUMNS or len(rows) > MOST_ROWS:
        note += " First cells only."
    return Hero(study.config.title, columns[:MOST_COLUMNS], rows[:MOST_ROWS], panels[:MOST_ROWS], note)


def _in_words(sections: Sequence[Section]) -> str:
    rows = [(section, model, row) for section in sections for model, row in section.panels]
    return "; ".join(
        f"{model}, {section.id}: "
        + ", ".join(f"{name} {panel.words}" for name, panel in zip(section.subsets, row, strict=True))
        for section, model, row in rows
    )
