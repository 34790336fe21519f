"""What every statistic returns: a number that is defined, or none and the reason why."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from counterbalance.errors import DegenerateDataError, InputError

Status = Literal["ok", "degenerate", "not_measurable", "descriptive", "undefined"]

FEW_ITEMS = 10
"""Below this many items a result says so: intervals from so few clusters tend to be too narrow."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One number with its interval, its n and what is to be thought of it.

    Attributes
    ----------
    method
        How it was computed, in words that a reader of the field knows.
    estimate, low, high
        None where undefined; never NaN or infinite.
    level
        Level of the interval, for example 0.95; None without an interval.
    p
        Raw p-value where the number is a test.
    n_items, n_calls
        Items (clusters, where items were summed by group) and scored calls that it rests on.
    status
        ``ok``; ``degenerate``: the data do not vary where they would have to; ``not_measurable``: no outcome of this
        cell could have shown an effect; ``descriptive``: defined, but not a calibrated inference; ``undefined``:
        there is no number.
    reason
        Why, where `status` is not ``ok``; a caveat where it is.
    label
        For results whose value is a word.

    Raises
    ------
    DegenerateDataError
        If a number is NaN or infinite: that is a fault of the calling function, and no table may get it.
    """

    method: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    p: float | None = None
    n_items: int | None = None
    n_calls: int | None = None
    status: Status = "ok"
    reason: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        for name in ("estimate", "low", "high", "level", "p"):
            value = getattr(self, name)
            if value is None:
                continue
            if not math.isfinite(value):
                raise DegenerateDataError(
                    f"{self.method}: {name} is {value}; expected a finite number or None with a status; report this"
                )
            object.__setattr__(self, name, float(value))  # NumPy scalars would reach tables and JSON
        if self.status not in get_args(Status):
            raise InputError(f"{self.method}: unknown status {self.status!r}; expected one of {get_args(Status)}")
        if self.status != "ok" and not self.reason:
            raise InputError(f"{self.method}: status {self.status!r} needs a reason")


def few_items(n_items: int) -> str | None:
    """Return the caveat for results that rest on few items, or None."""
    return f"only {n_items} items; intervals from so few tend to be too narrow" if n_items < FEW_ITEMS else None


def checked_level(level: float) -> float:
    """Return a confidence level or a power as given.

    Raises
    ------
    InputError
        Unless it lies strictly between 0 and 1.
    """
    if not 0 < level < 1:
        raise InputError(f"level is {level}; expected a number between 0 and 1, such as 0.95")
    return level
