"""V against accuracy, one point a cell: where a bias was seen, and where it could have been."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from counterbalance.report.live import element
from counterbalance.report.mcq.figures.labels import place_labels
from counterbalance.report.mcq.figures.marks import verdict_colour
from counterbalance.report.text import percent, proportion
from counterbalance.report.theme import SENTINEL

HEIGHT = 320
_NARROW, _WIDE = 300, 640
_RADIUS = 4.5
_TICK = 6


@dataclass(frozen=True)
class Point:
    """One cell: accuracy, V with its interval, and the smallest V that it could have shown."""

    number: int
    href: str
    words: str
    """Name and numbers, shown at the point and read aloud."""
    verdict: str
    accuracy: float
    v: float
    low: float | None
    high: float | None
    detectable: float | None


@dataclass(frozen=True)
class Axes:
    """Limits of both axes; V starts at 0 and accuracy ends at 1."""

    left: float
    top: float

    def x(self, accuracy: float) -> float:
        """Place of an accuracy, as a share of the width."""
        return (accuracy - self.left) / (1 - self.left)

    def across(self, accuracy: float) -> str:
        """Place of an accuracy, as SVG writes it."""
        return f"{100 * self.x(accuracy):.2f}%"

    def y(self, v: float) -> float:
        """Place of a V, in pixels from above."""
        return round(HEIGHT * (1 - v / self.top), 1)


def v_limit(points: Sequence[Point]) -> float:
    """Return a round limit of the axis of V that holds all points, intervals and bars."""
    ends = (end for point in points for end in (point.v, point.high, point.detectable) if end is not None)
    reach = max(ends, default=0.0)
    return next((limit for limit in (0.2, 0.3, 0.4, 0.5, 0.6, 0.8) if reach <= 0.92 * limit), 1.0)


def draw_goldilocks(points: Sequence[Point], band: tuple[float, float], aim: float) -> str:
    """Draw all cells, with the bands of accuracy shaded and named.

    A mark is V with its interval, its form and colour the verdict; the short bar at the same accuracy is the smallest
    V that the cell would have shown. `aim` is the V that the plan wants to be able to see, drawn as a broken line.
    Marks are numbered as in the list of cells, where there is room for the number.
    """
    axes = Axes(_left_limit(points), v_limit(points))
    plot = ET.Element("g")
    _bands(plot, axes, band)
    _scales(plot, axes, aim)
    for point in points:
        if point.detectable is not None:
            _bar(plot, axes, point.accuracy, point.detectable)
    places = [(axes.x(point.accuracy), axes.y(point.v)) for point in points]
    labels = place_labels(places, [str(point.number) for point in points], narrow=_NARROW, wide=_WIDE)
    # The first in the list are drawn last, and so on top.
    for point, label in reversed(list(zip(points, labels, strict=True))):
        link = element(plot, "a", href=point.href, tabindex="-1", class_="cell-point")
        element(link, "title", point.words)
        _mark(link, axes, point)
        if label is not None:
            style = f"fill: {SENTINEL.ink}; font-size: 10.5px; text-anchor: middle"
            x, y, kind = axes.across(point.accuracy), axes.y(point.v), "roomy" if label.roomy else "number"
            element(link, "text", str(point.number), x=x, y=y, dx=label.dx, dy=label.dy, style=style, class_=kind)
    return ET.tostring(plot, encoding="unicode")


def _left_limit(points: Sequence[Point]) -> float:
    lowest = min((point.accuracy for point in points), default=0.0)
    left = max(0, int(10 * lowest - 0.3))
    # Below one half the ticks are two tenths apart and have to reach 1.
    return (left if left >= 5 else left - left % 2) / 10


def _bands(plot: ET.Element, axes: Axes, band: tuple[float, float]) -> None:
    edges = [axes.left, *(edge for edge in band if edge > axes.left), 1.0]
    names = ("low", "middle", "high")[-(len(edges) - 1) :]
    for name, (low, high) in zip(names, pairwise(edges), strict=True):
        width = f"{100 * (axes.x(high) - axes.x(low)):.2f}%"
        if name == "middle":
            style = f"fill: {SENTINEL.surface}; stroke: none"
            element(plot, "rect", x=axes.across(low), y=0, width=width, height=HEIGHT, style=style)
        # The high band may be too narrow to hold its name, which then ends at the edge.
        at_edge = name == "high"
        style = f"fill: {SENTINEL.muted}; font-size: 11px; text-anchor: {'end' if at_edge else 'middle'}"
        place = "100%" if at_edge else axes.across((low + high) / 2)
        element(plot, "text", name, x=place, y=-5 if at_edge else 14, style=style)


def _scales(plot: ET.Element, axes: Axes, aim: float) -> None:
    grid = f"stroke: {SENTINEL.line}; stroke-width: 1"
    words = f"fill: {SENTINEL.muted}; font-size: 11px"
    step = next(step for step, longest in ((0.05, 0.2), (0.1, 0.6), (0.2, 1.0)) if axes.top <= longest)
    for count in range(round(axes.top / step) + 1):
        v = step * count
        element(plot, "line", x1=0, x2="100%", y1=axes.y(v), y2=axes.y(v), style=grid)
        style = f"{words}; text-anchor: end"
        element(plot, "text", proportion(v, 2) if count else "0", x=-8, y=axes.y(v) + 4, style=style)
    y = axes.y(aim)
    element(plot, "line", x1=0, x2="100%", y1=y, y2=y, style=f"stroke: {SENTINEL.muted}; stroke-dasharray: 5 4")
    element(plot, "text", "V", x=-8, y=-14, style=f"{words}; text-anchor: end; font-style: italic")
    tenths = range(round(10 * axes.left), 11, 1 if axes.left >= 0.5 else 2)
    for tenth in tenths:
        style = f"{words}; text-anchor: middle"
        element(plot, "text", percent(tenth / 10), x=axes.across(tenth / 10), y=HEIGHT + 18, style=style)
    element(plot, "text", "accuracy", x="50%", y=HEIGHT + 36, style=f"{words}; text-anchor: middle")


def _bar(plot: ET.Element, axes: Axes, accuracy: float, v: float) -> None:
    style, y = f"fill: {SENTINEL.ink}; stroke: none", round(axes.y(v) - 0.9, 1)
    moved = f"translate({-_TICK} 0)"
    element(plot, "rect", x=axes.across(accuracy), y=y, width=2 * _TICK, height=1.8, transform=moved, style=style)


def _mark(link: ET.Element, axes: Axes, point: Point) -> None:
    colour, x, y = verdict_colour(point.verdict, SENTINEL), axes.across(point.accuracy), axes.y(point.v)
    if point.detectable is not None:
        style = f"stroke: {SENTINEL.muted}; stroke-dasharray: 2 2"
        element(link, "line", x1=x, x2=x, y1=y, y2=axes.y(point.detectable), style=style, class_="reach")
    if point.low is not None and point.high is not None:
        style = f"stroke: {colour}; stroke-width: 1.4; opacity: .75"
        element(link, "line", x1=x, x2=x, y1=axes.y(point.low), y2=axes.y(point.high), style=style)
    # A wide ring that cannot be seen, for fingers.
    element(link, "circle", cx=x, cy=y, r=11, style="fill: transparent; stroke: none")
    filled = point.verdict == "bias"
    dashes = "; stroke-dasharray: 1.6 1.6" if point.verdict == "not_measurable" else ""
    ground = colour if filled else SENTINEL.paper
    style = f"fill: {ground}; stroke: {SENTINEL.paper if filled else colour}; stroke-width: {1 if filled else 1.8}"
    if point.verdict == "degenerate":
        turned = f"transform: translate(-{_RADIUS}px, -{_RADIUS}px) rotate(45deg)"
        turn = f"; transform-box: fill-box; transform-origin: center; {turned}"
        element(link, "rect", x=x, y=y, width=2 * _RADIUS, height=2 * _RADIUS, style=style + turn)
    else:
        element(link, "circle", cx=x, cy=y, r=_RADIUS, style=style + dashes)
