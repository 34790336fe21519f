"""How often each slot was chosen."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from counterbalance.report.canvas import drawing, new_figure, share_axis, style_axes, svg_bytes
from counterbalance.report.mcq.figures.marks import label_slots, mark_missing, values_of, verdict_colour, whisker
from counterbalance.report.mcq.slots import Slot
from counterbalance.report.theme import SENTINEL, Theme


def draw_picks(slots: Sequence[Slot], even: float | None, verdict: str) -> bytes:
    """Draw the share of answers that fell on each slot as bars, and among wrong answers as open diamonds.

    `even` is the share without any preference, drawn as a broken line; None where items have unequal numbers of
    options.
    """
    with drawing():
        figure = new_figure(3.4, 1.9, SENTINEL)
        axes = figure.add_axes((0.115, 0.13, 0.875, 0.83))
        style_axes(axes, SENTINEL)
        share_axis(axes)
        label_slots(axes, slots, SENTINEL)
        _bars(axes, slots, verdict, SENTINEL)
        _wrong(axes, slots, SENTINEL)
        if even is not None:
            axes.axhline(even, color=SENTINEL.muted, linewidth=0.9, linestyle=(0, (4, 3)), zorder=3)
        return svg_bytes(figure)


def _bars(axes: Axes, slots: Sequence[Slot], verdict: str, theme: Theme) -> None:
    colour = verdict_colour(verdict, theme)
    found = values_of(slots, "picks")
    for index, number, value in found:
        axes.bar(index, value, width=0.56, color=colour, alpha=0.45, linewidth=0)
        axes.plot([index - 0.28, index + 0.28], [value, value], color=colour, linewidth=1.6, solid_capstyle="butt")
        whisker(axes, index, number, colour)
    mark_missing(axes, sorted(set(range(len(slots))) - {index for index, _, _ in found}), len(slots), theme)


def _wrong(axes: Axes, slots: Sequence[Slot], theme: Theme) -> None:
    for index, _, value in values_of(slots, "picks_when_wrong"):
        axes.plot(
            index + 0.4,
            value,
            marker="D",
            markersize=4,
            color=theme.paper,
            markeredgecolor=theme.ink,
            markeredgewidth=0.9,
            zorder=4,
        )
