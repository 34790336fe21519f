"""`counterbalance answer`: the result in a few lines, read from the tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.cli.options import study_option
from counterbalance.config import Cell, Study
from counterbalance.designs import Design, get_design
from counterbalance.designs.base import Column

Row = Mapping[str, Any]
Values = dict[tuple[str, str, str, str], Row]

_NOTHING = "-"
_CONTRAST: Sequence[Column] = (
    ("estimate", "contrast.{}", "interval"),
    ("p", "contrast.{}", "p"),
    ("p (Holm)", "contrast.{}", "p_adjusted"),
    ("p (TOST)", "tost.contrast.{}", "p"),
)


@click.command()
@study_option
def answer(study: Study) -> None:
    """Print the answer: what says most about each cell, its contrasts, the predictions, the report's path."""
    values = _by_cell(read_table(study.layout.estimates, SCHEMAS["estimates"]))
    predictions = read_table(study.layout.predictions, SCHEMAS["predictions"]).to_pylist()
    click.echo(f"\n{study.config.title}\n{study.config.question}\n")
    for name in dict.fromkeys(cell.experiment.design for cell in study.cells()):
        cells = [cell for cell in study.cells() if cell.experiment.design == name]
        _print(_of_design(study, get_design(name), cells, values))
    simulated = [cell.name for cell in study.cells() if cell.model.vendor == "simulated"]
    if simulated:
        click.echo(f"simulated respondents, no evidence about a model: {', '.join(simulated)}\n")
    published = [cell.name for cell in study.cells() if cell.model.vendor == "cells"]
    if published:
        click.echo(f"published cells, for which no model was asked: {', '.join(published)}\n")
    _print(_predictions(predictions))
    click.echo(f"report: {study.layout.report}")


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        click.echo(line)


def _by_cell(estimates: pa.Table) -> Values:
    return {(row["experiment"], row["model"], row["subset"], row["quantity"]): row for row in estimates.to_pylist()}


def _of_design(study: Study, design: Design, cells: Sequence[Cell], values: Values) -> Iterator[str]:
    head = ["cell", *(title for title, _, _ in design.answer)]
    yield from _aligned([head, *([cell.name, *_parts(cell, design.answer, values)] for cell in cells)])
    yield ""
    for cell in cells:
        yield from _breakdown(study, design, cell, values)
        yield from _contrasts(study, design, cell, values)


def _breakdown(study: Study, design: Design, cell: Cell, values: Values) -> Iterator[str]:
    found = design.breakdown
    if found is None:
        return
    table = [[name, *_parts(cell, _filled(found.columns, name), values)] for name in found.names]
    asked = [line for line in table if set(line[1:]) != {_NOTHING}]
    if asked:
        yield f"{cell.name}: {found.title}, {_scale(study, design, cell)}"
        yield from _aligned([[found.part, *(title for title, _, _ in found.columns)], *asked])
        yield ""


def _contrasts(study: Study, design: Design, cell: Cell, values: Values) -> Iterator[str]:
    """Yield a cell's planned contrasts, and below them what has to be known of some; without a number, why."""
    table, notes = [], dict[str, list[str]]()
    for entry in design.contrasts(study.config.analysis):
        row = values.get((*_place(cell), f"contrast.{entry.id}"))
        if row is None:
            continue
        if row["estimate"] is not None:
            table.append([entry.id, entry.status, *_parts(cell, _filled(_CONTRAST, entry.id), values)])
        for text in (row["reason"] or "").split("; "):
            if text not in ("", entry.status):
                notes.setdefault(text, []).append(entry.id)
    if table or notes:
        yield f"{cell.name}: planned contrasts, {_scale(study, design, cell)}"
        yield from _aligned([["contrast", "status", *(title for title, _, _ in _CONTRAST)], *table] if table else [])
        yield from (f"  {', '.join(names)}: {text}" for text, names in notes.items())
        yield ""


def _scale(study: Study, design: Design, cell: Cell) -> str:
    return f"{design.unit(cell.experiment)}, with {study.config.analysis.level:.0%} intervals"


def _predictions(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        yield "exploratory: no predictions were registered\n"
        return
    cells = ["/".join((row["experiment"], row["model"], row["subset"])) for row in rows]
    table = [
        [row["prediction"], row["verdict"], cell, row["quantity"], row["expected"], row["reason"]]
        for row, cell in zip(rows, cells, strict=True)
    ]
    yield from _aligned([["prediction", "verdict", "cell", "quantity", "predicted", "found"], *table])
    yield ""


def _filled(columns: Sequence[Column], name: str) -> Sequence[Column]:
    return [(title, quantity.format(name), part) for title, quantity, part in columns]


def _place(cell: Cell) -> tuple[str, str, str]:
    return cell.experiment.id, cell.model.id, cell.dataset.id


def _parts(cell: Cell, columns: Sequence[Column], values: Values) -> list[str]:
    return [_show(values.get((*_place(cell), quantity)), part) for _, quantity, part in columns]


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()


def _show(row: Row | None, part: str) -> str:
    if row is None:
        return _NOTHING
    if part == "label":
        return row["label"] or _NOTHING
    if part in ("p", "p_adjusted"):
        p = row[part]
        return _NOTHING if p is None else "<.001" if p < 0.001 else ">.999" if p > 0.9995 else _number(p)
    text = _number(row["estimate"])
    if part == "interval" and row["low"] is not None and row["high"] is not None:
        text += f" [{_number(row['low'])}, {_number(row['high'])}]"
    return text


def _number(value: float | None) -> str:
    if value is None:
        return _NOTHING
    if value == round(value) and abs(value) > 1:
        return str(round(value))
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
