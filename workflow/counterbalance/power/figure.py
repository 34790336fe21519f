"""Detectable V against calls, one panel for each accuracy."""

from collections.abc import Sequence

from matplotlib.axes import Axes

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
_TICKS = (50, 200, 1_000, 5_000, 20_000, 100_000)


def draw_power(rows: Sequence[Row], v: float, *, name: str = "power") -> Picture:
    """Draw the designs of one group; the line is the V that the plan wants to see."""
    levels = sorted({row.accuracy for row in rows})
    drawn = [row for row in rows if row.found.accuracy.v is not None]
    words = "; ".join(
        f"accuracy {row.accuracy:g}, {row.scheme}, {row.n_items} items, {row.calls} calls: V {row.found.accuracy.v:.3f}"
        for row in drawn
    )
    with drawing():
        figure = new_figure(1.0 + 2.1 * len(levels), 2.7, SENTINEL)
        width = 1 / (1.0 + 2.1 * len(levels))
        top = max([row.found.accuracy.v or 0.0 for row in drawn], default=v)
        for place, level in enumerate(levels):
            axes = figure.add_axes(((0.48 + 2.1 * place) * width, 0.2, 1.85 * width, 0.68))
            _panel(axes, [row for row in drawn if row.accuracy == level], v, 1.08 * max(top, v))
            axes.set_title(f"accuracy {level:g}", color=SENTINEL.ink, fontsize=8.5, loc="left")
            axes.set_xlabel("calls per cell", color=SENTINEL.muted)
            if place:
                axes.set_yticklabels([])
            else:
                axes.set_ylabel("detectable V", color=SENTINEL.muted)
                axes.legend(frameon=False, labelcolor=SENTINEL.ink, fontsize=7, loc="upper right")
        return Picture(name, "Smallest detectable V by calls per cell", words, svg_bytes(figure))


def _panel(axes: Axes, rows: Sequence[Row], v: float, top: float) -> None:
    style_axes(axes, SENTINEL)
    axes.set_xscale("log")
    axes.axhline(v, color=SENTINEL.ink, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    for scheme in dict.fromkeys(row.scheme for row in rows):
        mine = sorted((row for row in rows if row.scheme == scheme), key=lambda row: row.calls)
        axes.errorbar(
            [row.calls for row in mine],
            [row.found.accuracy.v or 0.0 for row in mine],
            yerr=[1.96 * (row.found.accuracy.error or 0.0) for row in mine],
            color=_COLOURS[scheme],
            marker=_MARKERS[scheme],
            markersize=3.5,
            linewidth=1.1,
            elinewidth=0.8,
            label=scheme,
        )
    axes.set_ylim(0, top)
    calls = [row.calls for row in rows] or [100, 1000]
    axes.set_xlim(min(calls) / 1.3, max(calls) * 1.3)
    ticks = [tick for tick in _TICKS if min(calls) / 1.3 <= tick <= max(calls) * 1.3]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize=7)
    axes.minorticks_off()
