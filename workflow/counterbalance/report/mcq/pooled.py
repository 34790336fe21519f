"""What all cells together show, in sentences."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from counterbalance.config import Analysis
from counterbalance.report.mcq.gallery import Figured
from counterbalance.report.mcq.kinds import kind_of
from counterbalance.report.mcq.notes import MIXED, headline
from counterbalance.report.text import listing, percent, plural, proportion

_BANDS = ("low", "middle", "high")


def verdict_in_count(entry: Figured) -> str:
    """Return a cell's verdict where cells are counted."""
    return MIXED if entry.view.mixture else entry.view.verdict


def pooled(cells: Sequence[Figured], analysis: Analysis) -> tuple[str, list[str]]:
    """Return the one sentence that counts the verdicts, and further ones on size, kind and accuracy."""
    first = headline([verdict_in_count(entry) for entry in cells], analysis)
    if len(cells) == 1:
        return first, []
    biased = [entry for entry in cells if verdict_in_count(entry) == "bias"]
    return first, [text for text in (_sizes(biased), _kinds(biased, analysis), _by_band(cells, analysis)) if text]


def _sizes(biased: Sequence[Figured]) -> str:
    sizes = sorted(v for entry in biased if (v := value_of(entry, "V.corrected")) is not None)
    if not sizes:
        return ""
    if len(sizes) == 1:
        return f"V is {proportion(sizes[0])} in the cell with a bias."
    low, middle, high = (proportion(v) for v in (sizes[0], median(sizes), sizes[-1]))
    return f"Where there is a bias, V goes from {low} to {high}, its median being {middle}."


def _kinds(biased: Sequence[Figured], analysis: Analysis) -> str:
    if not biased:
        return ""
    counts = Counter(kind_of(entry.numbers, analysis) for entry in biased)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return f"Of what kind: {', '.join(f'{kind} ({number})' for kind, number in ordered)}."


def _by_band(cells: Sequence[Figured], analysis: Analysis) -> str:
    low, high = (percent(edge) for edge in analysis.capability_band)
    names = {
        "low": f"low accuracy (below {low})",
        "middle": f"middle accuracy ({low} to {high})",
        "high": f"high accuracy ({high} or more)",
    }
    counted = [entry for entry in cells if not entry.view.mixture]
    by_band = {name: [entry for entry in counted if band_of(entry) == name] for name in _BANDS}
    parts = [
        f"{sum(verdict_in_count(entry) == 'bias' for entry in found)} of {plural(len(found), 'cell')} of {names[name]}"
        for name, found in by_band.items()
        if found
    ]
    return f"A bias is seen in {listing(parts)}." if len(parts) > 1 else ""


def band_of(entry: Figured) -> str:
    """Return a cell's band of accuracy, or an empty string."""
    number = entry.numbers.get("band")
    return (number.label or "") if number else ""


def value_of(entry: Figured, quantity: str) -> float | None:
    """Return a cell's number, or None."""
    number = entry.numbers.get(quantity)
    return number.estimate if number else None
