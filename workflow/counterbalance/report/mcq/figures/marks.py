"""Marks that several figures share: dots and bars with whiskers, and a note where a number is missing."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from counterbalance.report.mcq.slots import Slot
from counterbalance.report.numbers import Number
from counterbalance.report.text import shorten
from counterbalance.report.theme import Theme

VERDICT_ROLE = {"bias": "bias", "no_bias_seen": "none", "not_measurable": "unclear", "degenerate": "broken"}


def verdict_colour(verdict: str, theme: Theme) -> str:
    """Return the mark colour of a verdict."""
    colour: str = getattr(theme, VERDICT_ROLE.get(verdict, "unclear"))
    return colour


def verdict_ink(verdict: str, theme: Theme) -> str:
    """Return the text colour of a verdict."""
    colour: str = getattr(theme, VERDICT_ROLE.get(verdict, "unclear") + "_ink")
    return colour


def whisker(axes: Axes, x: float, number: Number, colour: str, *, width: float = 1.4) -> None:
    """Draw an interval as an upright line, where there is one."""
    if number.low is not None and number.high is not None:
        axes.plot([x, x], [number.low, number.high], color=colour, linewidth=width, zorder=3)


def draw_bars(axes: Axes, slots: Sequence[Slot], name: str, colour: str, theme: Theme) -> None:
    """Draw a series as bars from zero, with intervals."""
    found = values_of(slots, name)
    places, values = [index for index, _, _ in found], [value for _, _, value in found]
    axes.bar(places, values, width=0.56, color=colour, alpha=0.45, linewidth=0)
    edges = ([place - 0.28 for place in places], [place + 0.28 for place in places])
    axes.hlines(values, *edges, color=colour, linewidth=1.6, zorder=3)
    for index, number, _ in found:
        whisker(axes, index, number, colour)
    mark_missing(axes, sorted(set(range(len(slots))) - set(places)), len(slots), theme)


def label_slots(axes: Axes, slots: Sequence[Slot], theme: Theme) -> None:
    """Name the slots below the axes."""
    length = 8 if len(slots) <= 5 else 3
    axes.set_xticks(range(len(slots)), [shorten(slot.label, length) for slot in slots], color=theme.ink)
    axes.set_xlim(-0.6, len(slots) - 0.4)


def mark_missing(axes: Axes, places: Sequence[int], n_slots: int, theme: Theme) -> None:
    """Mark the places of numbers that are not there."""
    words = [((n_slots - 1) / 2, "no data")] if len(places) == n_slots else [(place, "n/a") for place in places]
    for place, text in words:
        axes.text(place, 0.5, text, color=theme.muted, ha="center", va="bottom", transform=axes.get_xaxis_transform())


def values_of(slots: Sequence[Slot], name: str) -> list[tuple[int, Number, float]]:
    """Return place, number and value of every slot that has one."""
    return [
        (index, number, number.estimate)
        for index, slot in enumerate(slots)
        if (number := slot.series(name)) is not None and number.estimate is not None
    ]
