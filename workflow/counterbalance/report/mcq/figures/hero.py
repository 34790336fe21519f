"""All cells in one picture: accuracy by slot, one panel each, for a title page."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from counterbalance.report.canvas import drawing, new_figure, png_bytes, style_axes, svg_bytes
from counterbalance.report.mcq.figures.marks import label_slots, verdict_ink
from counterbalance.report.mcq.figures.profile import plot_profile
from counterbalance.report.mcq.slots import Slot
from counterbalance.report.text import shorten
from counterbalance.report.theme import LIGHT, SENTINEL, Theme

MOST_COLUMNS, MOST_ROWS = 8, 12
# Inches.
_MARGIN, _LEFT, _PANEL, _GAP, _ROW, _LINE = 0.16, 1.62, 1.6, 0.2, 1.3, 0.22
_NARROWEST = 6.2


@dataclass(frozen=True)
class Panel:
    """One cell of the picture."""

    slots: Sequence[Slot]
    mean: float | None
    verdict: str
    words: str


@dataclass(frozen=True)
class Hero:
    """The picture's content.

    Attributes
    ----------
    columns
        Subsets.
    rows
        Model and a line below it, for each row.
    panels
        Row by row; None where there is no such cell.
    note
        The line at the foot.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, str]]
    panels: Sequence[Sequence[Panel | None]]
    note: str


def draw_hero(hero: Hero, form: Literal["svg", "png"]) -> bytes:
    """Draw the picture: SVG in sentinel colours, or PNG in the light theme."""
    with drawing():
        if form == "svg":
            return svg_bytes(_draw(hero, SENTINEL))
        return png_bytes(_draw(hero, LIGHT), dpi=200)


def _draw(hero: Hero, theme: Theme) -> Figure:
    width = max(_LEFT + len(hero.columns) * (_PANEL + _GAP), _NARROWEST)
    title = textwrap.wrap(shorten(hero.title, 200), int(width * 10.5))[:3] or [""]
    top = 0.14 + len(title) * _LINE + 0.5
    height = top + len(hero.rows) * _ROW + 0.3
    figure = new_figure(width, height, theme)

    def write(x: float, y: float, text: str, **style: Any) -> None:
        figure.text(x / width, 1 - y / height, text, va="top", **{"color": theme.ink, **style})

    for line, text in enumerate(title):
        write(_MARGIN, 0.14 + line * _LINE, text, size=12)
    for column, name in enumerate(hero.columns):
        write(_LEFT + column * (_PANEL + _GAP), top - 0.3, shorten(name, 24), weight="bold")
    for row, (model, below) in enumerate(hero.rows):
        y = top + row * _ROW
        write(_MARGIN, y + 0.2, shorten(model, 17), weight="bold")
        write(_MARGIN, y + 0.38, shorten(below, 22), color=theme.muted, size=7.5)
        for column, panel in enumerate(hero.panels[row]):
            if panel is not None:
                left = _LEFT + column * (_PANEL + _GAP)
                box = (left / width, 1 - (y + _ROW - 0.3) / height, _PANEL / width, (_ROW - 0.5) / height)
                _plot_panel(figure.add_axes(box), panel, theme, first=column == 0)
    write(_MARGIN, height - 0.24, hero.note, color=theme.muted, size=7.5)
    return figure


def _plot_panel(axes: Axes, panel: Panel, theme: Theme, *, first: bool) -> None:
    style_axes(axes, theme)
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks([0, 0.5, 1], ["0", "50", "100%"] if first else ["", "", ""])
    axes.tick_params(labelsize=7)
    label_slots(axes, panel.slots, theme)
    plot_profile(axes, panel.slots, panel.mean, panel.verdict, theme, size=4)
    axes.set_title(panel.words, color=verdict_ink(panel.verdict, theme), fontsize=7.5, loc="left", pad=3)
