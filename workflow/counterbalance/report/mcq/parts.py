"""The parts of a cell that more than one model answered."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.report.numbers import CellNumbers, Shown, show, show_p
from counterbalance.report.text import count

_MARK = "@model="
_COLUMNS = ("accuracy", "V.corrected")
_TESTS = ("relabelling.accuracy", "relabelling.picks")
PART_HEADS = ("Accuracy", "V", "p, accuracy by slot", "p, picks by slot")


@dataclass(frozen=True)
class PartRow:
    """What one model's part of a cell gives; p-values are raw, as no plan foresaw these tests."""

    model: str
    calls: str
    values: Sequence[Shown]


def is_part(quantity: str) -> bool:
    """Whether a quantity is about one model's part of a cell."""
    return _MARK in quantity


def part_rows(numbers: CellNumbers) -> list[PartRow]:
    """Return a row for each model that answered part of a cell; none for other cells."""
    models = [name.partition(_MARK)[2] for name in numbers if name.startswith(f"status.ok{_MARK}")]
    return [_row(numbers, model) for model in sorted(models)]


def _row(numbers: CellNumbers, model: str) -> PartRow:
    values = [show(numbers.get(f"{name}{_MARK}{model}")) for name in _COLUMNS]
    tests = [show_p(numbers.get(f"{name}{_MARK}{model}"), adjusted=False) for name in _TESTS]
    return PartRow(model, count(numbers[f"status.ok{_MARK}{model}"].n_calls), [*values, *tests])
