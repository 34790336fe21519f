"""Accuracy by the slot in which the correct option stood."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from counterbalance.report.canvas import drawing, new_figure, share_axis, style_axes, svg_bytes
from counterbalance.report.mcq.figures.marks import label_slots, mark_missing, values_of, verdict_colour, whisker
from counterbalance.report.mcq.slots import Slot
from counterbalance.report.theme import SENTINEL, Theme


def draw_profile(slots: Sequence[Slot], mean: float | None, verdict: str) -> bytes:
    """Draw a cell's accuracies by slot with their intervals, and its overall accuracy as a broken line."""
    with drawing():
        figure = new_figure(3.4, 1.9, SENTINEL)
        axes = figure.add_axes((0.115, 0.13, 0.875, 0.83))
        style_axes(axes, SENTINEL)
        share_axis(axes)
        label_slots(axes, slots, SENTINEL)
        plot_profile(axes, slots, mean, verdict, SENTINEL, size=5)
        return svg_bytes(figure)


def plot_profile(
    axes: Axes, slots: Sequence[Slot], mean: float | None, verdict: str, theme: Theme, *, size: float
) -> None:
    """Plot accuracies on axes from 0 to 1."""
    colour = verdict_colour(verdict, theme)
    if mean is not None:
        axes.axhline(mean, color=theme.muted, linewidth=0.9, linestyle=(0, (4, 3)), zorder=2)
    found = values_of(slots, "accuracy")
    places = [index for index, _, _ in found]
    axes.plot(places, [value for _, _, value in found], color=colour, linewidth=0.9, alpha=0.5, zorder=2)
    for index, number, _ in found:
        whisker(axes, index, number, colour)
    axes.plot(
        places,
        [value for _, _, value in found],
        linestyle="none",
        marker="o",
        markersize=size,
        color=colour,
        markeredgecolor=theme.paper,
        markeredgewidth=0.4,
        zorder=4,
    )
    mark_missing(axes, sorted(set(range(len(slots))) - set(places)), len(slots), theme)
