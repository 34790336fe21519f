"""V against accuracy: whether a bias could be seen at all where the cell lies."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from counterbalance.report.canvas import drawing, new_figure, style_axes, svg_bytes
from counterbalance.report.mcq.figures.marks import verdict_colour
from counterbalance.report.text import proportion, shorten
from counterbalance.report.theme import SENTINEL, Theme

_LABEL_GAP = 0.09
_MOST_LABELS = 9


@dataclass(frozen=True)
class Point:
    """One cell: accuracy, V with interval, and the smallest V it could have shown."""

    name: str
    words: str
    """The numbers, for the text alternative."""
    verdict: str
    accuracy: float
    v: float
    low: float | None
    high: float | None
    detectable: float | None


def draw_capability(points: Sequence[Point], band: tuple[float, float], top: float) -> bytes:
    """Draw one model's cells, with the middle band of accuracy shaded.

    A dot is V with its interval; the short bar at the same accuracy is the smallest V that the cell could have shown.
    `top` is the largest V on the axis, the same for all models.
    """
    with drawing():
        figure = new_figure(3.4, 2.35, SENTINEL)
        labelled = len(points) <= _MOST_LABELS
        axes = figure.add_axes((0.115, 0.175, 0.6 if labelled else 0.86, 0.79))
        style_axes(axes, SENTINEL)
        axes.axvspan(*band, color=SENTINEL.surface, linewidth=0, zorder=0)
        axes.text(sum(band) / 2, top * 0.975, "middle band", color=SENTINEL.muted, ha="center", va="top", fontsize=7)
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02 * top, 1.03 * top)
        ticks = [top * share for share in (0, 0.25, 0.5, 0.75, 1)]
        axes.set_yticks(ticks, [proportion(tick, 2) for tick in ticks])
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100%"])
        axes.set_xlabel("accuracy", color=SENTINEL.muted, labelpad=2)
        for point in points:
            _plot_point(axes, point, SENTINEL)
        if labelled:
            _label_points(axes, points, top, SENTINEL)
        return svg_bytes(figure)


def v_limit(points: Sequence[Point]) -> float:
    """Return a round limit of the axis of V that holds all points, intervals and bars."""
    ends = (end for point in points for end in (point.v, point.high, point.detectable) if end is not None)
    reach = max(ends, default=0.0)
    return next((limit for limit in (0.2, 0.4, 0.6, 0.8) if reach <= 0.92 * limit), 1.0)


def _plot_point(axes: Axes, point: Point, theme: Theme) -> None:
    colour = verdict_colour(point.verdict, theme)
    if point.detectable is not None:
        reach = sorted([point.v, point.detectable])
        axes.plot([point.accuracy] * 2, reach, color=theme.muted, linewidth=0.7, linestyle=(0, (1, 2)), zorder=1)
        edges = [point.accuracy - 0.022, point.accuracy + 0.022]
        axes.plot(edges, [point.detectable] * 2, color=theme.ink, linewidth=1.8, solid_capstyle="butt", zorder=3)
    if point.low is not None and point.high is not None:
        axes.plot([point.accuracy] * 2, [point.low, point.high], color=colour, linewidth=1.4, zorder=3)
    filled = point.verdict == "bias"
    axes.plot(
        point.accuracy,
        point.v,
        marker="o",
        markersize=6,
        color=colour if filled else theme.paper,
        markeredgecolor=theme.paper if filled else colour,
        markeredgewidth=0.8 if filled else 1.5,
        zorder=4,
    )


def _label_points(axes: Axes, points: Sequence[Point], top: float, theme: Theme) -> None:
    """Name the points at the right edge, each with a thin line to its dot."""
    ordered = sorted(points, key=lambda point: (point.v, point.accuracy, point.name))
    heights = spread([point.v / top for point in ordered], _LABEL_GAP, 0.97)
    for point, height in zip(ordered, heights, strict=True):
        line = ([point.accuracy, 1.04, 1.09], [point.v, height * top, height * top])
        axes.plot(*line, color=theme.muted, linewidth=0.5, alpha=0.7, clip_on=False, zorder=2)
        axes.text(1.11, height * top, shorten(point.name, 17), color=theme.ink, va="center", size=7.5, clip_on=False)


def spread(heights: Sequence[float], gap: float, limit: float) -> list[float]:
    """Move ascending heights so that neighbours are `gap` apart and none is above `limit`, as far as there is room."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else height)
    for index in reversed(range(len(moved))):
        ceiling = limit if index == len(moved) - 1 else moved[index + 1] - gap
        moved[index] = min(moved[index], ceiling)
    return moved
