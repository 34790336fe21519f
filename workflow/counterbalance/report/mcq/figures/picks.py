"""How often each slot was chosen."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from counterbalance.report.canvas import drawing, new_figure, share_axis, style_axes, svg_bytes
from counterbalance.report.mcq.figures.marks import draw_bars, label_slots, values_of, verdict_colour
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
        draw_bars(axes, slots, "picks", verdict_colour(verdict, SENTINEL), SENTINEL)
        _wrong(axes, slots, SENTINEL)
        if even is not None:
            axes.axhline(even, color=SENTINEL.muted, linewidth=0.9, linestyle=(0, (4, 3)), zorder=3)
        return svg_bytes(figure)


def _wrong(axes: Axes, slots: Sequence[Slot], theme: Theme) -> None:
    found = values_of(slots, "picks_when_wrong")
    if found:
        axes.plot(
            [index + 0.4 for index, _, _ in found],
            [value for _, _, value in found],
            linestyle="none",
            marker="D",
            markersize=4,
            color=theme.paper,
            markeredgecolor=theme.ink,
            markeredgewidth=0.9,
            zorder=4,
        )
