"""One estimate as it stands in the table, and as the report writes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from counterbalance.report.text import MISSING, count, interval, nats, p_value, percent, proportion, signed

USABLE = ("ok", "descriptive")
"""Statuses of numbers that may be read as they are; a reason beside them is a caveat."""

_NATS = ("slot_bonus.", "label_logprob.")
_EFFECTS = ("token.", "role.", "order.", "serial.", "contrast.", "ratio_of_means.", "sd.", "tost.")
_COUNTS = ("unstable_items", "negative.", "items.", "flagged.", "incomplete.", "sets_differ", "models_returned")
_STATISTICS = ("relabelling.", "recentred.")
_WRITERS: dict[str, Callable[[float], str]] = {
    "chi2.published": lambda value: f"{value:.2f}",
}
_NOT_COMPUTED = "not computed for this cell"


@dataclass(frozen=True)
class Number:
    """A row of the estimates table, without its cell."""

    quantity: str
    estimate: float | None
    low: float | None
    high: float | None
    level: float | None
    method: str
    p: float | None
    p_adjusted: float | None
    family: str | None
    n_items: int
    n_calls: int
    status: str
    reason: str | None
    label: str | None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Take the fields from a row of the table."""
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


CellNumbers = Mapping[str, Number]


@dataclass(frozen=True)
class Shown:
    """A number as the report writes it.

    Attributes
    ----------
    text
        The number or word, or a dash.
    interval
        Its interval in brackets, or nothing.
    note
        Why there is no number, or what it is not fit for; never empty where `text` is a dash.
    """

    text: str
    interval: str = ""
    note: str = ""


def show(number: Number | None, *, as_percent: bool = False) -> Shown:
    """Write an estimate or label with its interval, or say why there is none."""
    if number is None:
        return Shown(MISSING, note=_NOT_COMPUTED)
    note = _note(number)
    if number.label is not None:
        return Shown(number.label.replace("_", " "), note=note)
    if number.estimate is None:
        return Shown(MISSING, note=note or _NOT_COMPUTED)
    write = percent if as_percent else writer_of(number.quantity)
    ends = ""
    if number.low is not None and number.high is not None:
        ends = interval(write(number.low), write(number.high))
    return Shown(write(number.estimate), ends, note)


def show_p(number: Number | None, *, adjusted: bool) -> Shown:
    """Write a raw or adjusted p-value, or say why there is none."""
    if number is None:
        return Shown(MISSING, note=_NOT_COMPUTED)
    p = number.p_adjusted if adjusted else number.p
    note = _note(number)
    return Shown(MISSING, note=note or "no p-value") if p is None else Shown(p_value(p), note=note)


def writer_of(quantity: str) -> Callable[[float], str]:
    """Return the function that writes a quantity's values in its unit."""
    name = quantity.partition("@")[0]
    if name.startswith(_NATS):
        return nats
    if name.startswith(_EFFECTS):
        return lambda value: signed(value, 3)
    if name.startswith(_COUNTS):
        return lambda value: count(round(value))
    if name.startswith("shape."):
        return lambda value: signed(value, 3).replace("0.", ".", 1)
    if name.startswith(_STATISTICS):
        return lambda value: f"{value:.4g}"
    return _WRITERS.get(name, proportion)


def verdict_of(cell: CellNumbers) -> str:
    """Return the verdict's label, or an empty string where there is none."""
    number = cell.get("verdict")
    return (number.label or "") if number else ""


def mixture_of(cell: CellNumbers) -> str:
    """Return who answered a cell, if it was more than one model; an empty string for any other cell."""
    number = cell.get("models_returned")
    return (number.reason or "more than one model answered") if number else ""


def _note(number: Number) -> str:
    if number.status in USABLE:
        return ""
    return number.reason or f"{number.status.replace('_', ' ')}, no reason given"
