"""What was asked, answered and billed: exact, by vendor, by endpoint, by identical body and by request id."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from .settings import VENDORS, Json


@dataclass
class VendorCounts:
    """Counts of one vendor. Money in nano-USD."""

    requests: int = 0
    delivered: int = 0
    billed: int = 0
    delivered_nano_usd: int = 0
    undelivered_nano_usd: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    # By identical body: [sendings, delivered replies, price of one reply].
    bodies: dict[bytes, list[int]] = field(default_factory=dict)
    # Price by request id, for delivered replies.
    replies: dict[str, int] = field(default_factory=dict)

    def view(self) -> dict[str, Json]:
        """Return the counts as JSON; `repeats` are sendings of a body beyond its first."""
        answered = [entry for entry in self.bodies.values() if entry[1]]
        return {
            "requests": self.requests,
            "delivered": self.delivered,
            "billed": self.billed,
            "bill_nano_usd": self.delivered_nano_usd + self.undelivered_nano_usd,
            "delivered_nano_usd": self.delivered_nano_usd,
            "undelivered_nano_usd": self.undelivered_nano_usd,
            "bill_once_nano_usd": sum(entry[2] for entry in answered),
            "bodies": len(self.bodies),
            "bodies_delivered": len(answered),
            "repeats": sum(entry[0] - 1 for entry in self.bodies.values()),
            "most_sendings": max((entry[0] for entry in self.bodies.values()), default=0),
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
            "outcomes": dict(self.outcomes),
        }


class Counts:
    """All counts since the last reset."""

    def __init__(self, *, record: bool) -> None:
        self.vendors = {vendor: VendorCounts() for vendor in VENDORS}
        self.endpoints: Counter[str] = Counter()
        self.lines: list[tuple[Json, ...]] = []
        self._record, self._began, self.serial = record, time.monotonic(), 0

    def arrive(self, vendor: str, endpoint: str, body: bytes) -> tuple[int, int, int]:
        """Count a request; return its serial number, its ordinal of the vendor's and its sending of this body."""
        counts = self.vendors[vendor]
        ordinal = counts.requests
        counts.requests += 1
        counts.in_flight += 1
        counts.most_in_flight = max(counts.most_in_flight, counts.in_flight)
        self.endpoints[f"{vendor} {endpoint}"] += 1
        self.serial += 1
        entry = counts.bodies.setdefault(body, [0, 0, 0])
        entry[0] += 1
        return self.serial, ordinal, entry[0]

    def end(self, vendor: str, body: bytes, outcome: str, *, arrived: float, cost: int, reply: str | None) -> None:
        """Count how a request ended; `reply` is the request id if its answer was delivered."""
        counts = self.vendors[vendor]
        counts.in_flight -= 1
        self.close(vendor, body, outcome, cost=cost, reply=reply, billed=outcome == "ok" or cost > 0)
        if self._record:
            now = time.monotonic() - self._began
            sending = counts.bodies[body][0]
            self.lines.append((vendor, outcome, arrived - self._began, now, body.hex()[:16], sending, cost, reply))

    def close(self, vendor: str, body: bytes, outcome: str, *, cost: int, reply: str | None, billed: bool) -> None:
        """Enter an outcome into the bill; batches come here directly."""
        counts = self.vendors[vendor]
        counts.outcomes[outcome] += 1
        counts.billed += billed
        if reply is None:
            counts.undelivered_nano_usd += cost
            return
        counts.delivered += 1
        counts.delivered_nano_usd += cost
        counts.replies[reply] = cost
        entry = counts.bodies.setdefault(body, [1, 0, 0])
        entry[1] += 1
        entry[2] = cost

    def view(self) -> dict[str, Json]:
        """Return everything as JSON."""
        return {
            "vendors": {vendor: counts.view() for vendor, counts in self.vendors.items()},
            "endpoints": dict(self.endpoints),
        }

    def log(self) -> list[dict[str, Json]]:
        """Return one line a request, in the order in which they ended; times in seconds since the last reset."""
        names = ("vendor", "outcome", "arrived_s", "ended_s", "body", "sending", "nano_usd", "reply")
        return [dict(zip(names, line, strict=True)) for line in self.lines]
