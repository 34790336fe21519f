"""Planned contrasts of a cell as rows of a table, the same for every design; and those of mcq as a part of the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.config import Cell
from counterbalance.config.contrasts import Contrast, ContrastFile
from counterbalance.report.numbers import USABLE, CellNumbers, Number, Shown
from counterbalance.report.sources import Sources
from counterbalance.report.text import MISSING, anchor_of, interval, p_value, signed


@dataclass(frozen=True)
class ContrastRow:
    """One planned contrast: its number on the chosen items and, where a design has two sets, on all of them."""

    name: str
    expression: str
    status: str
    kept: Shown
    whole: Shown
    narrow: str
    p: str
    adjusted: str
    tost: str
    negative: str
    notes: Sequence[str]


@dataclass(frozen=True)
class PlannedView:
    """The planned contrasts of one cell of the multiple-choice design."""

    name: str
    anchor: str
    rows: Sequence[ContrastRow]
    notes: Sequence[tuple[str, str]]


def view_planned(sources: Sources) -> list[PlannedView]:
    """Format the planned contrasts by slot of every cell that has them."""
    plan = sources.study.config.analysis.slot_contrasts
    if plan is None:
        return []
    cells = [cell for cell in sources.study.cells() if cell.experiment.design == "mcq"]
    views = [_view(cell, sources, plan) for cell in cells]
    return [view for view in views if view.rows]


def contrast_rows(numbers: CellNumbers, plan: ContrastFile | None) -> list[ContrastRow]:
    """Return a row for each planned contrast that a cell has, in the plan's order."""
    found = [(entry, numbers.get(f"contrast.{entry.id}")) for entry in (plan.contrasts if plan else [])]
    return [_row(entry, number, numbers) for entry, number in found if number is not None]


def contrast_notes(rows: Sequence[ContrastRow]) -> list[tuple[str, str]]:
    """Return what has to be said of contrasts below their table: the names, and a text that is true of all of them."""
    about: dict[str, list[str]] = {}
    for row in rows:
        for text in row.notes:
            about.setdefault(text, []).append(row.name)
    return [(", ".join(names), text) for text, names in about.items()]


def amount(number: Number | None) -> Shown:
    """Write an effect with its interval, three digits and a sign, or say why there is none."""
    if number is None:
        return Shown(MISSING, note="not computed for this cell")
    note = "" if number.status in USABLE else number.reason or number.status.replace("_", " ")
    if number.estimate is None:
        return Shown(MISSING, note=note or "not computed for this cell")
    return Shown(signed(number.estimate, 3), ends(number), note)


def ends(number: Number | None) -> str:
    """Write an interval, or nothing where there is none."""
    if number is None or number.low is None or number.high is None:
        return ""
    return interval(signed(number.low, 3), signed(number.high, 3))


def p_words(value: float | None) -> str:
    """Write a p-value, or a dash."""
    return MISSING if value is None else p_value(value)


def negative(numbers: CellNumbers, name: str) -> str:
    """Write how many items are below zero, of how many."""
    number = numbers.get(f"negative.{name}")
    if number is None or number.estimate is None:
        return MISSING
    return f"{round(number.estimate)}/{number.n_items}"


def _view(cell: Cell, sources: Sources, plan: ContrastFile) -> PlannedView:
    numbers = sources.cells[cell.experiment.id, cell.model.id, cell.dataset.id]
    rows = contrast_rows(numbers, plan)
    return PlannedView(
        name=f"{cell.experiment.id} · {cell.model.id} · {cell.dataset.id}",
        anchor=anchor_of(cell.name),
        rows=rows,
        notes=contrast_notes(rows),
    )


def _row(contrast: Contrast, number: Number, numbers: CellNumbers) -> ContrastRow:
    quantity = f"contrast.{contrast.id}"
    tost = numbers.get(f"tost.{quantity}")
    return ContrastRow(
        name=contrast.id,
        expression=" ".join(contrast.expression.split()),
        status=contrast.status,
        kept=amount(number),
        whole=amount(numbers.get(f"{quantity}@all")),
        narrow=ends(tost),
        p=p_words(number.p),
        adjusted=p_words(number.p_adjusted),
        tost=p_words(tost.p if tost else None),
        negative=negative(numbers, quantity),
        notes=[text for text in (number.reason or "").split("; ") if text and text != contrast.status],
    )
