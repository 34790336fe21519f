"""How long a server asks to wait: milliseconds, seconds, a date, or Google's own detail."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from counterbalance.canonical import Json
from counterbalance.vendors.fields import as_text, dig

_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


def wait_hint(headers: Mapping[str, str], details: Sequence[Json] = (), *, now: datetime | None = None) -> float | None:
    """Return the wait that a server asks for.

    Parameters
    ----------
    headers
        Names in lower case; `retry-after-ms` is finer than `retry-after`, which is seconds or an HTTP date.
    details
        Details of a Google error, of which one may hold `retryDelay`.
    now
        What an HTTP date is compared with; by default the server's own `date`, so that its clock may be wrong.

    Returns
    -------
    float or None
        Seconds, 0 for a date that has passed; None if nothing is said, or nothing that can be understood.
    """
    said = _number(headers.get("retry-after-ms"))
    if said is not None:
        said /= 1000
    elif (after := headers.get("retry-after")) is not None:
        said = _number(after)
        if said is None:
            said = _until(after, now or _date(headers.get("date")) or datetime.now(UTC))
    known = [value for value in (said, google_delay(details)) if value is not None]
    return max(known, default=None)


def google_delay(details: Sequence[Json]) -> float | None:
    """Return the seconds of a Google error's `retryDelay`, such as "2.5s"."""
    for entry in details:
        found = _SECONDS.fullmatch(as_text(dig(entry, "retryDelay")) or "")
        if found is not None:
            return float(found[1])
    return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _date(text: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(text or "")
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _until(text: str, now: datetime) -> float | None:
    then = _date(text)
    return None if then is None else max(0.0, (then - now).total_seconds())
