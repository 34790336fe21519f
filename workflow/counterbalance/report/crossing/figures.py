"""The figures of a crossing: serial by condition, framing against position, and a line per item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes

from counterbalance.report.canvas import drawing, new_figure, png_bytes, style_axes, svg_bytes
from counterbalance.report.numbers import Number
from counterbalance.report.text import shorten, signed
from counterbalance.report.theme import LIGHT, SENTINEL, Theme

_ROW, _HEAD, _FOOT = 0.27, 0.12, 0.42
MOST_PANELS = 12
_COLUMNS = 3


@dataclass(frozen=True)
class ForestRow:
    """Serial in one condition: on the kept items with both intervals, and on all items."""

    name: str
    kept: Number | None
    narrow: Number | None
    whole: Number | None


@dataclass(frozen=True)
class Place:
    """One condition's role and serial effects; `loaded` where the wording says which source is recent."""

    name: str
    role: Number
    serial: Number
    loaded: bool


@dataclass(frozen=True)
class Panel:
    """One cell of the cover."""

    title: str
    below: str
    words: str
    rows: Sequence[ForestRow]


def draw_forest(rows: Sequence[ForestRow], unit: str, limit: float) -> bytes:
    """Draw serial by condition: dots and both intervals of the kept items, rings for all items."""
    with drawing():
        height = _HEAD + len(rows) * _ROW + _FOOT
        figure = new_figure(4.6, height, SENTINEL)
        axes = figure.add_axes((0.13, _FOOT / height, 0.84, 1 - (_FOOT + _HEAD) / height))
        style_axes(axes, SENTINEL, grid="x")
        _plot_forest(axes, rows, limit, SENTINEL)
        axes.set_xlabel(f"first block ←  serial, {unit}  → last block", color=SENTINEL.muted, fontsize=8)
        return svg_bytes(figure)


def draw_places(places: Sequence[Place], unit: str) -> bytes:
    """Draw role against serial with their intervals; on the diagonals both weigh the same."""
    ends = [end for p in places for n in (p.role, p.serial) for end in (n.estimate, n.low, n.high) if end is not None]
    limit = axis_limit(ends)
    with drawing():
        figure = new_figure(3.9, 3.6, SENTINEL)
        axes = figure.add_axes((0.15, 0.14, 0.83, 0.83))
        style_axes(axes, SENTINEL, grid=None)
        axes.set_xlim(-limit, limit)
        axes.set_ylim(-limit, limit)
        axes.axhline(0, color=SENTINEL.line, linewidth=0.9, zorder=1)
        axes.axvline(0, color=SENTINEL.line, linewidth=0.9, zorder=1)
        for sign in (1, -1):
            axes.plot([-limit, limit], [-sign * limit, sign * limit], color=SENTINEL.line, linewidth=0.7, linestyle=":")
        for place in places:
            _plot_place(axes, place)
        _name_places(axes, places, limit)
        axes.set_xlabel(f"stale source ←  role, {unit}  → recent source", color=SENTINEL.muted, fontsize=8)
        axes.set_ylabel(f"first block ←  serial, {unit}  → last", color=SENTINEL.muted, fontsize=8)
        return svg_bytes(figure)


def draw_items(
    values: Mapping[str, Sequence[float | None]], names: Sequence[str], out: Sequence[str], unit: str
) -> bytes:
    """Draw serial of every item over conditions; items that are not kept are broken lines, the mean is bold."""
    with drawing():
        figure = new_figure(4.6, 2.7, SENTINEL)
        axes = figure.add_axes((0.12, 0.12, 0.86, 0.83))
        style_axes(axes, SENTINEL)
        axes.axhline(0, color=SENTINEL.muted, linewidth=0.9)
        places = range(len(names))
        for item, series in values.items():
            shown = [float("nan") if value is None else value for value in series]
            style = (0, (2, 2)) if item in out else "solid"
            axes.plot(places, shown, color=SENTINEL.unclear, linewidth=0.8, alpha=0.6, linestyle=style)
        means = [_mean([series[place] for item, series in values.items() if item not in out]) for place in places]
        axes.plot(places, means, color=SENTINEL.ink, linewidth=2, marker="o", markersize=4)
        axes.set_xticks(list(places), list(names), color=SENTINEL.ink)
        axes.set_ylabel(f"serial, {unit}", color=SENTINEL.muted, fontsize=8)
        return svg_bytes(figure)


def draw_cover(
    title: str, panels: Sequence[Panel], limit: float, form: Literal["svg", "png"], remark: str = ""
) -> bytes:
    """Draw the forests of all cells side by side; a remark goes below them."""
    theme = SENTINEL if form == "svg" else LIGHT
    shown = panels[:MOST_PANELS]
    columns = max(1, min(_COLUMNS, len(shown)))
    lines = -(-len(shown) // columns)
    rows = max((len(panel.rows) for panel in shown), default=1)
    width, height = 0.3 + columns * 3.1, 0.45 + lines * (0.75 + rows * 0.2)
    with drawing():
        figure = new_figure(max(width, 5.2), height, theme)
        width = max(width, 5.2)
        figure.text(0.16 / width, 1 - 0.14 / height, shorten(title, 70), va="top", color=theme.ink, size=12)
        for index, panel in enumerate(shown):
            left = 0.7 + (index % columns) * 3.1
            top = 0.72 + (index // columns) * (0.75 + rows * 0.2)
            tall = len(panel.rows) * 0.2
            axes = figure.add_axes((left / width, 1 - (top + tall) / height, 2.3 / width, tall / height))
            style_axes(axes, theme, grid="x")
            _plot_forest(axes, panel.rows, limit, theme)
            axes.tick_params(labelsize=7)
            said = f"{shorten(panel.title, 26)} · {shorten(panel.below, 22)}: {panel.words}"
            axes.set_title(said, fontsize=7.5, loc="left", pad=4, color=theme.ink)
        note = "Serial effect by condition with its intervals; left: first block."
        if len(panels) > MOST_PANELS:
            note += " First cells only."
        note = f"{note} {remark}".rstrip()
        figure.text(0.16 / width, 0.1 / height, note, va="bottom", color=theme.muted, size=7.5)
        return svg_bytes(figure) if form == "svg" else png_bytes(figure, dpi=200)


def axis_limit(ends: Sequence[float]) -> float:
    """Return an axis limit that holds all values: a round step beyond the largest."""
    reach = max(map(abs, ends), default=0.0) * 1.08
    steps = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 50.0)
    return next((step for step in steps if reach <= step), reach)


def ends_of(rows: Sequence[ForestRow]) -> list[float]:
    """Return every end that a forest has to hold."""
    numbers = [number for row in rows for number in (row.kept, row.narrow, row.whole) if number is not None]
    return [end for number in numbers for end in (number.estimate, number.low, number.high) if end is not None]


def _plot_forest(axes: Axes, rows: Sequence[ForestRow], limit: float, theme: Theme) -> None:
    axes.set_xlim(-limit, limit)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.axvline(0, color=theme.muted, linewidth=0.9, zorder=1)
    ticks = [-limit, -limit / 2, 0.0, limit / 2, limit]
    axes.set_xticks(ticks, [signed(tick, 2) for tick in ticks])
    axes.set_yticks(range(len(rows)), [row.name for row in rows], color=theme.ink)
    for place, row in enumerate(rows):
        colour = _colour(row.kept, theme)
        _line(axes, place - 0.12, row.kept, colour, 1.1)
        _line(axes, place - 0.12, row.narrow, colour, 2.8)
        _line(axes, place + 0.22, row.whole, theme.unclear, 0.9)
        if row.kept is not None and row.kept.estimate is not None:
            axes.plot(row.kept.estimate, place - 0.12, marker="o", markersize=5, color=colour, zorder=4)
        if row.whole is not None and row.whole.estimate is not None:
            axes.plot(
                row.whole.estimate,
                place + 0.22,
                marker="o",
                markersize=3.5,
                markerfacecolor=theme.paper,
                markeredgecolor=theme.unclear,
                markeredgewidth=0.9,
                zorder=3,
            )
        if row.kept is None or row.kept.estimate is None:
            axes.text(0, place - 0.12, " n/a", color=theme.muted, va="center", fontsize=7)


def _plot_place(axes: Axes, place: Place) -> None:
    colour = SENTINEL.bias if place.loaded else SENTINEL.good
    x, y = place.role, place.serial
    if x.estimate is None or y.estimate is None:
        return
    if x.low is not None and x.high is not None:
        axes.plot([x.low, x.high], [y.estimate] * 2, color=colour, linewidth=0.9, alpha=0.7)
    if y.low is not None and y.high is not None:
        axes.plot([x.estimate] * 2, [y.low, y.high], color=colour, linewidth=0.9, alpha=0.7)
    marker = "D" if place.loaded else "o"
    axes.plot(x.estimate, y.estimate, marker=marker, markersize=5, color=colour, zorder=4)


def _name_places(axes: Axes, places: Sequence[Place], limit: float) -> None:
    """Write the names in a column at the right, by height, each with a line to its dot: the dots lie close together."""
    points = [(p.serial.estimate, p.role.estimate, p.name) for p in places]
    known = sorted((y, x, name) for y, x, name in points if y is not None and x is not None)
    step = 2 * limit / 15
    lowest = sum(y for y, _, _ in known) / max(len(known), 1) - step * (len(known) - 1) / 2
    lowest = min(max(lowest, -0.95 * limit), 0.95 * limit - step * (len(known) - 1))
    for index, (y, x, name) in enumerate(known):
        at = lowest + index * step
        axes.plot([x, 0.8 * limit], [y, at], color=SENTINEL.line, linewidth=0.6, zorder=2)
        axes.text(0.82 * limit, at, name, color=SENTINEL.ink, fontsize=7.5, va="center")


def _line(axes: Axes, y: float, number: Number | None, colour: str, width: float) -> None:
    if number is not None and number.low is not None and number.high is not None:
        axes.plot([number.low, number.high], [y, y], color=colour, linewidth=width, zorder=3)


def _colour(number: Number | None, theme: Theme) -> str:
    if number is None or number.low is None or number.high is None or number.low <= 0 <= number.high:
        return theme.unclear
    return theme.bias if number.high < 0 else theme.good


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else float("nan")
