"""Detectable V against calls, one panel for each accuracy."""

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from counterbalance.power.grid import Row
from counterbalance.report.canvas import drawing, new_figure, style_axes, svg_bytes
from counterbalance.report.pictures import Picture
from counterbalance.report.theme import SENTINEL

_COLOURS = {
    "exhaustive": SENTINEL.good,
    "williams": SENTINEL.bias,
    "cyclic": SENTINEL.broken,
    "sampled": SENTINEL.none,
}
_MARKERS = {"exhaustive": "o", "williams": "s", "cyclic": "^", "sampled": "D"}
_BESIDE = {"exhaustive": 1.0, "williams": 0.96, "cyclic": 1.04, "sampled": 1.0}
"""Schemes of equally many calls are drawn this much to the side of them, or one would hide the other."""
_LEFT, _PANEL, _STEP, _KEY = 0.62, 1.85, 2.1, 0.95
"""Inches: before the first panel, of a panel, from one to the next, and for the key after the last."""
_TICKS = (50, 200, 1_000, 5_000, 20_000, 100_000)


def draw_power(rows: Sequence[Row], v: float, *, name: str = "power") -> Picture:
    """Draw the designs of one group; the line is the V that the plan wants to see."""
    levels = sorted({row.accuracy for row in rows})
    drawn = [row for row in rows if row.found.accuracy.v is not None]
    words = "; ".join(
        f"accuracy {row.accuracy:g}, {row.scheme}, {row.n_items} items, {row.calls} calls: V {row.found.accuracy.v:.3f}"
        for row in drawn
    )
    width = _LEFT + _STEP * (len(levels) - 1) + _PANEL + _KEY
    with drawing():
        figure = new_figure(width, 2.7, SENTINEL)
        top = max([_reach(row) for row in drawn], default=v)
        for place, level in enumerate(levels):
            axes = figure.add_axes(((_LEFT + _STEP * place) / width, 0.2, _PANEL / width, 0.68))
            _panel(axes, [row for row in drawn if row.accuracy == level], v, 1.05 * max(top, v))
            axes.set_title(f"accuracy {level:g}", color=SENTINEL.ink, fontsize=8.5, loc="left")
            axes.set_xlabel("calls per cell", color=SENTINEL.muted)
            if place:
                axes.set_yticklabels([])
            else:
                axes.set_ylabel("detectable V", color=SENTINEL.muted)
        _key(figure, dict.fromkeys(row.scheme for row in drawn), (width - _KEY) / width)
        return Picture(name, "Smallest detectable V by calls per cell", words, svg_bytes(figure))


def _reach(row: Row) -> float:
    """Return the upper end of a design's error bar."""
    return (row.found.accuracy.v or 0.0) + 1.96 * (row.found.accuracy.error or 0.0)


def _key(figure: Figure, schemes: Iterable[str], left: float) -> None:
    lines = [
        Line2D([], [], color=_COLOURS[name], marker=_MARKERS[name], markersize=3.5, linewidth=1.1, label=name)
        for name in schemes
    ]
    figure.legend(
        handles=lines,
        frameon=False,
        labelcolor=SENTINEL.ink,
        fontsize=7,
        loc="upper left",
        bbox_to_anchor=(left, 0.92),
        borderaxespad=0.3,
    )


def _panel(axes: Axes, rows: Sequence[Row], v: float, top: float) -> None:
    style_axes(axes, SENTINEL)
    axes.set_xscale("log")
    axes.axhline(v, color=SENTINEL.ink, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    for scheme in dict.fromkeys(row.scheme for row in rows):
        mine = sorted((row for row in rows if row.scheme == scheme), key=lambda row: row.calls)
        axes.errorbar(
            [row.calls * _BESIDE[scheme] for row in mine],
            [row.found.accuracy.v or 0.0 for row in mine],
            yerr=[1.96 * (row.found.accuracy.error or 0.0) for row in mine],
            color=_COLOURS[scheme],
            marker=_MARKERS[scheme],
            markersize=3.5,
            linewidth=1.1,
            elinewidth=0.8,
        )
    axes.set_ylim(0, top)
    calls = [row.calls for row in rows] or [100, 1000]
    # At least so wide that a mark of the scale is in it.
    low, high = min(calls) / 1.3, max(max(calls) * 1.3, 5 * min(calls))
    axes.set_xlim(low, high)
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize=7)
    axes.minorticks_off()
