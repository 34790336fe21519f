"""Counts to rates with intervals, and a word for each: does the test hold its level, does the interval cover?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from counterbalance.simulation.scenarios import SCENARIOS, Shape
from counterbalance.stats.proportions import wilson
from counterbalance.stats.shape import ShapeLabel
from counterbalance.validation.measure import REJECTIONS

Word = Literal["holds", "unclear", "conservative", "liberal", "too narrow", "too wide", "exception", "power", "-"]
Band = tuple[float, float]

LEVEL_BAND: Band = (0.03, 0.07)
COVERAGE_BAND: Band = (0.93, 0.98)
LEVEL_BANDS: Mapping[str, Band] = {"bias": (0.02, 0.07), "V.corrected > 0": (0.0, 0.05)}
"""Holm over two related tests rejects less than each; one end of a 95% interval misses with .025."""

PUBLISHED_TESTS = ("chi2.published", "mechanism.v0_2", "mechanism.v0_1")
PUBLISHED_INTERVALS = tuple(
    f"{name}{level}" for level in ("", ".question") for name in ("V.published", "V.bergsma", "rho.published")
)
JOINT = "shape, jointly"

_RIGHT: Mapping[Shape, ShapeLabel] = {
    "monotone": "linear_decline",
    "first_boost": "first_boost",
    "last_drop": "last_drop",
    "middle_drop": "middle_drop",
    "null": "inactive",
}


@dataclass(frozen=True)
class RejectionRow:
    """How often a test rejected in a scenario; `word` is ``power`` where something was planted."""

    scenario: str
    test: str
    rejected: int
    n: int
    rate: float
    low: float
    high: float
    word: Word
    note: str | None


@dataclass(frozen=True)
class CoverageRow:
    """How often an interval held the truth in a scenario; quantities by slot are pooled over the slots.

    Attributes
    ----------
    covered, n
        Replicates; fractions of one where slots are pooled.
    absent
        Share of replicates without an interval.
    below, above
        Share of intervals wholly below and wholly above the truth.
    bias, width
        Mean estimate less truth, and mean width; None where slots are pooled.
    """

    scenario: str
    quantity: str
    covered: float
    n: float
    rate: float | None
    low: float | None
    high: float | None
    absent: float
    below: float | None
    above: float | None
    bias: float | None
    width: float | None
    word: Word


def rejection_rows(scenarios: Sequence[Mapping[str, Any]]) -> Iterator[RejectionRow]:
    """Yield a row for each scenario and test."""
    for found in scenarios:
        scenario, n = SCENARIOS[found["name"]], found["replicates"]
        for test in REJECTIONS:
            rejected = found["rejected"][test]
            rate, low, high = share(rejected, n)
            note = scenario.exceptions.get(test)
            band = LEVEL_BANDS.get(test, LEVEL_BAND)
            word = standing(rate, low, high, band, ("conservative", "liberal")) if scenario.is_null else "power"
            if note is not None and word not in ("holds", "power"):
                word = "exception"
            yield RejectionRow(scenario.name, test, rejected, n, rate, low, high, word, note)


def coverage_rows(scenarios: Sequence[Mapping[str, Any]]) -> Iterator[CoverageRow]:
    """Yield a row for each scenario and interval."""
    for found in scenarios:
        name, replicates = found["name"], found["replicates"]
        pooled: dict[str, list[Mapping[str, Any]]] = {}
        for quantity, counts in found["coverage"].items():
            family, _, slot = quantity.rpartition("_")
            pooled.setdefault(family if slot.isdigit() else quantity, []).append(counts)
        for quantity, parts in pooled.items():
            yield _coverage_row(name, quantity, parts, replicates)
        joint = found["jointly"] | {"absent": replicates - found["jointly"]["n"]}
        yield _coverage_row(name, JOINT, [joint], replicates)


def _coverage_row(scenario: str, quantity: str, parts: Sequence[Mapping[str, Any]], replicates: int) -> CoverageRow:
    # Slots of a replicate are not independent: they count as one.
    n = sum(part["n"] for part in parts) / len(parts)
    covered = sum(part["covered"] for part in parts) / len(parts)
    absent = sum(part["absent"] for part in parts) / len(parts) / replicates
    single = parts[0] if len(parts) == 1 and "truth" in parts[0] else None
    if n == 0:
        return CoverageRow(scenario, quantity, 0.0, 0.0, None, None, None, absent, None, None, None, None, "-")
    rate, low, high = share(covered, n)
    sides = {
        side: sum(part[side] for part in parts) / len(parts) / n if side in parts[0] else None
        for side in ("below", "above")
    }
    bias = single["estimate"] / single["estimates"] - single["truth"] if single and single["estimates"] else None
    width = single["width"] / n if single else None
    word = standing(rate, low, high, COVERAGE_BAND, ("too narrow", "too wide"))
    return CoverageRow(
        scenario, quantity, covered, n, rate, low, high, absent, **sides, bias=bias, width=width, word=word
    )


def right_and_wrong(row: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many labels of a row of the confusion table are right, and how many say what is not so."""
    own = _RIGHT[row["shape"]]
    labels: Mapping[str, int] = row["labels"]
    silent = {own, "inactive"} | (set() if row["shape"] == "null" else {"undetermined"})
    return labels.get(own, 0), sum(count for label, count in labels.items() if label not in silent)


def share(hits: float, n: float) -> tuple[float, float, float]:
    """Return a rate with the ends of its Wilson interval; pooled counts are rounded for the interval."""
    found = wilson(round(hits), max(1, round(n)))
    if found.low is None or found.high is None:
        return hits / n, 0.0, 1.0
    return hits / n, found.low, found.high


def standing(rate: float, low: float, high: float, band: Band, words: tuple[Word, Word]) -> Word:
    """Say where a rate lies: in its band, outside it beyond doubt, or outside it but not beyond doubt."""
    if band[0] <= rate <= band[1]:
        return "holds"
    if high < band[0]:
        return words[0]
    return words[1] if low > band[1] else "unclear"
