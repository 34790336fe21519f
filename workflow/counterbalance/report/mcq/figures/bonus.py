"""What a slot adds to the log-odds of being chosen, in nats."""

from collections.abc import Sequence

from counterbalance.report.canvas import drawing, new_figure, style_axes, svg_bytes
from counterbalance.report.mcq.figures.marks import draw_bars, label_slots, verdict_colour
from counterbalance.report.mcq.slots import Slot
from counterbalance.report.numbers import Number
from counterbalance.report.text import signed
from counterbalance.report.theme import SENTINEL


def draw_bonus(slots: Sequence[Slot], verdict: str, limit: float) -> bytes:
    """Draw a cell's slot bonuses with their intervals around zero.

    `limit` is the largest amount on the axis, in nats, the same for all cells of an experiment.
    """
    colour = verdict_colour(verdict, SENTINEL)
    with drawing():
        figure = new_figure(3.4, 1.9, SENTINEL)
        axes = figure.add_axes((0.115, 0.13, 0.875, 0.83))
        style_axes(axes, SENTINEL)
        label_slots(axes, slots, SENTINEL)
        axes.set_ylim(-limit, limit)
        ticks = [-limit / 1.25, -limit / 2.5, 0.0, limit / 2.5, limit / 1.25]
        axes.set_yticks(ticks, [signed(tick, 1) for tick in ticks])
        axes.axhline(0, color=SENTINEL.muted, linewidth=0.9)
        draw_bars(axes, slots, "slot_bonus", colour, SENTINEL)
        return svg_bytes(figure)


def bonus_limit(numbers: Sequence[Number]) -> float:
    """Return an axis limit that holds all bonuses and intervals: a round step beyond the largest."""
    reach = max((abs(end) for n in numbers for end in (n.estimate, n.low, n.high) if end is not None), default=0.0)
    step = next((step for step in (0.2, 0.4, 1.0, 2.0, 4.0, 10.0, 20.0, 40.0, 100.0) if reach <= step), reach)
    return 1.25 * step
