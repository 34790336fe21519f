"""What a test can set: prices, funds, latency, the respondent, which parameters models refuse, faults, batches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any

Json = Any
VENDORS = ("openai", "anthropic", "google")


@dataclass
class Settings:
    """Everything settable, with the names used in ``POST /control/settings``.

    Attributes
    ----------
    latency_ms
        From the arrival of a request to its answer.
    hold
        By vendor: the number of delivered replies from which on answers are kept back, until this changes.
    keys
        Key by vendor; a vendor that is not listed takes any key.
    prices
        By vendor: ``{"input", "cached_input", "output", "batch_discount"}`` in USD per million tokens.
    funds_nano_usd
        By vendor: what the account holds; once the bill has reached it, requests are refused as out of funds.
    respondent
        ``{"kind": "hash" | "content" | "first" | "fixed", "letter", "first_share", "noise", "text"}``.
    cached_share, reasoning_tokens
        Share of input tokens reported as cached; reasoning tokens billed and reported beside each answer.
    models
        By vendor: ids that exist; a vendor that is not listed knows every id.
    refuses, accepts
        By model: parameters refused; by vendor: further parameters accepted.
    model_changes
        ``{"vendor", "after", "model"}``: the id in replies from that number of delivered replies on.
    faults
        Rules; see `loopback.faults`.
    batch
        ``{"delay_s", "order", "expired", "errored", "fail", "drop_output", "spoil", "spoiled_batches",
        "lose_answer"}``; see `loopback.batches`.
    record
        Whether each request leaves a line in ``GET /control/requests``.
    """

    latency_ms: float = 0.0
    hold: dict[str, int] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    prices: dict[str, dict[str, float]] = field(
        default_factory=lambda: {vendor: {"input": 1.0, "output": 4.0} for vendor in VENDORS}
    )
    funds_nano_usd: dict[str, int] = field(default_factory=dict)
    respondent: dict[str, Json] = field(default_factory=lambda: {"kind": "hash"})
    cached_share: float = 0.0
    reasoning_tokens: int = 0
    models: dict[str, list[str]] = field(default_factory=dict)
    refuses: dict[str, list[str]] = field(default_factory=dict)
    accepts: dict[str, list[str]] = field(default_factory=dict)
    model_changes: list[dict[str, Json]] = field(default_factory=list)
    faults: list[dict[str, Json]] = field(default_factory=list)
    batch: dict[str, Json] = field(default_factory=dict)
    record: bool = True

    def update(self, changes: Mapping[str, Json]) -> None:
        """Take over the given settings; a name that does not exist is an error, for a typing slip hides a fault."""
        known = {entry.name for entry in fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise ValueError(f"no such setting: {unknown}; there are {sorted(known)}")
        for name, value in changes.items():
            setattr(self, name, value)


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer; `input` includes `cached`, `output` does not include `reasoning`."""

    input: int
    cached: int
    output: int
    reasoning: int


def count_tokens(text: str) -> int:
    """Return the declared tokenizer's count: UTF-8 bytes divided by four, rounded up."""
    return -(-len(text.encode()) // 4)


def cost_nano_usd(usage: Usage, prices: Mapping[str, float], *, batch: bool = False) -> int:
    """Return an answer's price in nano-USD, rounded up to a whole one."""
    rate = prices["input"], prices.get("cached_input"), prices["output"], prices.get("batch_discount", 0.0)
    return _cost(usage, rate, batch)


@lru_cache(maxsize=4096)
def _cost(usage: Usage, rate: tuple[float, float | None, float, float], batch: bool) -> int:
    fresh, cached, output = (
        Fraction(str(price)) for price in (rate[0], rate[0] if rate[1] is None else rate[1], rate[2])
    )
    total = (usage.input - usage.cached) * fresh + usage.cached * cached + (usage.output + usage.reasoning) * output
    if batch:
        total *= 1 - Fraction(str(rate[3]))
    nano = total * 1000
    return -(-nano.numerator // nano.denominator)


def draw(*words: object) -> float:
    """Return a number in [0, 1) that depends on the words alone."""
    digest = hashlib.sha256("\x1f".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56
