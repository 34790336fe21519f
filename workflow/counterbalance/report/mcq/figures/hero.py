"""All cells in one picture: accuracy by slot, one panel each, for a title page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from counterbalance.report.canvas import drawing, new_figure, png_bytes, style_axes, svg_bytes
from counterbalance.report.mcq.figures.marks import label_slots, verdict_ink
from counterbalance.report.mcq.figures.profile import plot_profile
from counterbalance.report.mcq.slots import Slot
from counterbalance.report.text import shorten
from counterbalance.report.theme import LIGHT, SENTINEL, Theme

_PANEL, _GAP, _ROW = 1.55, 0.18, 1.32
_LEFT, _TOP, _BOTTOM = 1.55, 0.86, 0.46


@dataclass(frozen=True)
class Panel:
    """One cell of the picture."""

    slots: Sequence[Slot]
    mean: float | None
    verdict: str
    words: str


@dataclass(frozen=True)
class Hero:
    """The picture's content: rows of panels under columns; a panel is None where there is no such cell."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, str]]
    """Model and experiment of each row."""
    panels: Sequence[Sequence[Panel | None]]
    level: str


def draw_hero(hero: Hero, form: Literal["svg", "png"]) -> bytes:
    """Draw the picture: SVG in sentinel colours, or PNG in the light theme."""
    with drawing():
        theme = SENTINEL if form == "svg" else LIGHT
        figure = _draw(hero, theme)
        return svg_bytes(figure) if form == "svg" else png_bytes(figure, dpi=200)


def _draw(hero: Hero, theme: Theme) -> Figure:
    # Few columns would leave no room for the title.
    width = max(_LEFT + len(hero.columns) * (_PANEL + _GAP), 6.4)
    height = _TOP + len(hero.rows) * _ROW + _BOTTOM
    figure = new_figure(width, height, theme)
    figure.text(0.16 / width, 1 - 0.14 / height, shorten(hero.title, int(width * 11)), color=theme.ink, va="top", size=12)
    for column, name in enumerate(hero.columns):
        x = (_LEFT + column * (_PANEL + _GAP)) / width
        figure.text(x, 1 - (_TOP - 0.28) / height, shorten(name, 26), color=theme.ink, va="top", weight="bold")
    for row, (model, experiment) in enumerate(hero.rows):
        top = 1 - (_TOP + row * _ROW) / height
        figure.text(0.16 / width, top - 0.1 / height, shorten(model, 18), color=theme.ink, va="top", weight="bold")
        figure.text(0.16 / width, top - 0.28 / height, shorten(experiment, 20), color=theme.muted, va="top")
        for column, panel in enumerate(hero.panels[row]):
            if panel is not None:
                left = (_LEFT + column * (_PANEL + _GAP)) / width
                box = (left, top - (_ROW - 0.38) / height, _PANEL / width, (_ROW - 0.55) / height)
                _plot_panel(figure.add_axes(box), panel, theme, first=column == 0)
    note = f"Share correct when the right option stands in that slot, with its {hero.level} interval. Flat: no position bias."
    figure.text(0.16 / width, 0.12 / height, note, color=theme.muted, size=7.5)
    return figure


def _plot_panel(axes: Axes, panel: Panel, theme: Theme, *, first: bool) -> None:
    style_axes(axes, theme)
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks([0, 0.5, 1], ["0", "50", "100%"] if first else ["", "", ""])
    axes.tick_params(labelsize=7)
    label_slots(axes, panel.slots, theme)
    plot_profile(axes, panel.slots, panel.mean, panel.verdict, theme, size=4.5)
    axes.set_title(panel.words, color=verdict_ink(panel.verdict, theme), fontsize=7.5, loc="left", pad=3)
