"""A cell's numbers by slot."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.report.numbers import CellNumbers, Number, show

_SLOT = re.compile(r"\.slot_([1-9][0-9]*)$")


@dataclass(frozen=True)
class Slot:
    """What was estimated for one slot; None where nothing was."""

    label: str
    accuracy: Number | None
    picks: Number | None
    picks_when_wrong: Number | None
    label_logprob: Number | None
    slot_bonus: Number | None
    label_prior: Number | None

    def series(self, name: str) -> Number | None:
        number: Number | None = getattr(self, name)
        return number


def read_slots(cell: CellNumbers, labels: Sequence[str]) -> list[Slot]:
    """Return a cell's slots in order, as many as its quantities name."""
    found = [int(match.group(1)) for name in cell if (match := _SLOT.search(name))]
    return [
        Slot(
            label_of(index, labels),
            **{
                name: cell.get(f"{name}.slot_{index}")
                for name in ("accuracy", "picks", "picks_when_wrong", "label_logprob", "slot_bonus", "label_prior")
            },
        )
        for index in range(1, max(found, default=0) + 1)
    ]


def label_of(index: int, labels: Sequence[str]) -> str:
    """Return the label shown in a slot, counted from 1."""
    return labels[index - 1] if index <= len(labels) else str(index)


def has_series(slots: Sequence[Slot], name: str) -> bool:
    """Whether any slot has a number of this kind."""
    return any((number := slot.series(name)) is not None and number.estimate is not None for slot in slots)


def in_words(slots: Sequence[Slot], name: str) -> str:
    """Write a series for a text alternative: ``A .930 [.880, .970]; B ...``."""
    parts = []
    for slot in slots:
        shown = show(slot.series(name))
        parts.append(" ".join(part for part in (slot.label, shown.text, shown.interval) if part))
    return "; ".join(parts)
