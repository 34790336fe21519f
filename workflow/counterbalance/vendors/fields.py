"""Reading what a vendor sent without trusting its form: every function takes any JSON value."""

import math
from collections.abc import Iterable

from counterbalance.canonical import Json

_LARGEST = 2**53


def dig(value: Json, *path: str | int) -> Json:
    """Return what lies at a path of keys and indices, or None where there is no such place."""
    for step in path:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and len(value) > step else None
    return value


def as_list(value: Json) -> list[Json]:
    """Return a list, empty if the value is none."""
    return value if isinstance(value, list) else []


def as_text(value: Json) -> str | None:
    """Return a string, or None."""
    return value if isinstance(value, str) else None


def as_count(value: Json) -> int | None:
    """Return a count of tokens, or None if the value is no whole number that could be one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < _LARGEST else None


def total(*counts: int | None) -> int | None:
    """Return a sum, None if nothing is known of any part; a part that is missing beside others counts nothing."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def rank_tokens(entries: Iterable[tuple[Json, Json]]) -> tuple[list[str], list[float]]:
    """Return tokens and log-probabilities, likeliest first; entries without a token or a finite number are left out."""
    usable = [(token, float(value)) for token, value in entries if isinstance(token, str) and _is_finite(value)]
    usable.sort(key=lambda entry: -entry[1])
    return [token for token, _ in usable], [value for _, value in usable]


def _is_finite(value: Json) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    # A whole number of JSON can be larger than any float.
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST
