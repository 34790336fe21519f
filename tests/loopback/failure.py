"""A refusal by the server: status, body and headers, as the vendor words them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from .settings import Json


@dataclass
class WireError(Exception):
    """Raised by a wire format instead of an answer."""

    status: int
    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)


def wait_headers(fault: Mapping[str, Json]) -> dict[str, str]:
    """Return the headers in which a fault's hint travels: ``hint`` names the form, ``wait_s`` the wait."""
    wait = float(fault.get("wait_s", 1.0))
    match fault.get("hint"):
        case "seconds":
            return {"retry-after": f"{wait:g}"}
        case "date":
            # An HTTP date has whole seconds: rounded up, so that the hint is never shorter than asked.
            until = datetime.now(UTC) + timedelta(seconds=wait + 0.999)
            return {"retry-after": format_datetime(until.replace(microsecond=0), usegmt=True)}
        case "ms":
            return {"retry-after-ms": f"{wait * 1000:g}"}
        case "garbage":
            return {"retry-after": "soon"}
        case _:
            return {}
