"""The study in pictures: type I error and coverage, by scenario."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from counterbalance.report.canvas import drawing, new_figure, style_axes, svg_bytes
from counterbalance.report.pictures import Picture
from counterbalance.report.theme import SENTINEL
from counterbalance.simulation.scenarios import SCENARIOS
from counterbalance.validation.rows import COVERAGE_BAND, JOINT, LEVEL_BAND, Band, coverage_rows, rejection_rows

_TESTS = ("relabelling.accuracy", "relabelling.picks", "recentred.accuracy", "chi2.published")
_INTERVALS = ("V.corrected", "accuracy", JOINT, "V.published")
_MARKERS = ("o", "s", "^", "x")


@dataclass(frozen=True)
class _Mark:
    scenario: str
    name: str
    rate: float
    low: float
    high: float


def draw_study(study: Mapping[str, Any]) -> list[Picture]:
    """Return the figures of a study: type I error of the tests, coverage of the intervals."""
    found = study["scenarios"]
    level = [
        _Mark(row.scenario, row.test, row.rate, row.low, row.high)
        for row in rejection_rows(found)
        if row.test in _TESTS and SCENARIOS[row.scenario].is_null
    ]
    coverage = [
        _Mark(row.scenario, row.quantity, row.rate, row.low, row.high)
        for row in coverage_rows(found)
        if row.quantity in _INTERVALS and row.rate is not None and row.low is not None and row.high is not None
    ]
    return [
        _picture("type_one_error", "Type I error by scenario", level, _TESTS, LEVEL_BAND, (0.0, 0.3)),
        _picture("coverage", "Coverage of 95% intervals by scenario", coverage, _INTERVALS, COVERAGE_BAND, (0.7, 1.0)),
    ]


def _picture(
    name: str, title: str, marks: Sequence[_Mark], series: Sequence[str], band: Band, limits: tuple[float, float]
) -> Picture:
    words = "; ".join(f"{mark.scenario} {mark.name} {mark.rate:.3f}" for mark in marks)
    return Picture(name, title, words, _draw(marks, series, band, limits))


def _draw(marks: Sequence[_Mark], series: Sequence[str], band: Band, limits: tuple[float, float]) -> bytes:
    names = list(dict.fromkeys(mark.scenario for mark in marks))
    theme = SENTINEL
    colours = (theme.good, theme.none, theme.broken, theme.bias)
    with drawing():
        figure = new_figure(6.4, 0.7 + 0.24 * len(names), theme)
        axes = figure.add_axes((0.08, 0.5 / (0.7 + 0.24 * len(names)), 0.66, 0.97 - 0.5 / (0.7 + 0.24 * len(names))))
        style_axes(axes, theme, grid="x")
        axes.axvspan(*band, color=theme.none_wash, linewidth=0, zorder=0)
        for place, (name, colour, marker) in enumerate(zip(series, colours, _MARKERS, strict=True)):
            mine = [mark for mark in marks if mark.name == name]
            heights = [names.index(mark.scenario) + 0.16 * (place - 1.5) for mark in mine]
            for mark, height in zip(mine, heights, strict=True):
                ends = [min(max(end, limits[0]), limits[1]) for end in (mark.low, mark.high)]
                axes.plot(ends, [height] * 2, color=colour, linewidth=1.0, zorder=2)
            inside = [(mark.rate, height) for mark, height in zip(mine, heights, strict=True) if _within(mark, limits)]
            _dots(axes, inside, colour, marker, name)
            # What lies beyond the axis gets an arrow at its edge; the table has the number.
            for arrow, edge, beyond in (("<", limits[0], -1), (">", limits[1], 1)):
                off = [
                    (edge, height)
                    for mark, height in zip(mine, heights, strict=True)
                    if not _within(mark, limits) and (mark.rate - edge) * beyond > 0
                ]
                _dots(axes, off, colour, arrow, None)
        axes.set_xlim(*limits)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_yticks(range(len(names)), names)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, labelcolor=theme.ink, fontsize=7.5)
        return svg_bytes(figure)


def _within(mark: _Mark, limits: tuple[float, float]) -> bool:
    return limits[0] <= mark.rate <= limits[1]


def _dots(axes: Axes, places: Sequence[tuple[float, float]], colour: str, marker: str, label: str | None) -> None:
    axes.plot(
        [x for x, _ in places],
        [y for _, y in places],
        color=colour,
        marker=marker,
        markersize=4,
        linestyle="none",
        label=label,
        clip_on=False,
        zorder=3,
    )
