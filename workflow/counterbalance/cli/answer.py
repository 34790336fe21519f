"""`counterbalance answer`: the result in a few lines, read from the tables."""

from collections.abc import Mapping
from typing import Any

import click
import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.cli.options import study_option
from counterbalance.config import Cell, Study
from counterbalance.designs import get_design

Row = Mapping[str, Any]
Values = dict[tuple[str, str, str, str], Row]


@click.command()
@study_option
def answer(study: Study) -> None:
    """Print the answer in a few lines: what says most about each cell, the predictions, the report's path."""
    estimates = read_table(study.layout.estimates, SCHEMAS["estimates"])
    predictions = read_table(study.layout.predictions, SCHEMAS["predictions"])
    click.echo(f"\n{study.config.title}\n{study.config.question}\n")
    values = _by_cell(estimates)
    for design in dict.fromkeys(cell.experiment.design for cell in study.cells()):
        cells = [cell for cell in study.cells() if cell.experiment.design == design]
        for line in _table(design, cells, values):
            click.echo(line)
        click.echo("")
    simulated = [cell.name for cell in study.cells() if cell.model.vendor == "simulated"]
    if simulated:
        click.echo(f"simulated respondents, no evidence about a model: {', '.join(simulated)}\n")
    published = [cell.name for cell in study.cells() if cell.model.vendor == "cells"]
    if published:
        click.echo(f"published cells, for which no model was asked: {', '.join(published)}\n")
    for row in predictions.to_pylist():
        click.echo(f"{row['prediction']:<4} {row['verdict']:<14} {row['reason']}")
    if predictions.num_rows == 0:
        click.echo("exploratory: no predictions were registered")
    click.echo(f"\nreport: {study.layout.report}")


def _by_cell(estimates: pa.Table) -> Values:
    return {(row["experiment"], row["model"], row["subset"], row["quantity"]): row for row in estimates.to_pylist()}


def _table(design: str, cells: list[Cell], values: Values) -> list[str]:
    columns = get_design(design).answer
    rows = [["cell", *(title for title, _, _ in columns)]]
    for cell in cells:
        place = (cell.experiment.id, cell.model.id, cell.dataset.id)
        found = (values.get((*place, quantity)) for _, quantity, _ in columns)
        rows.append([cell.name, *(_show(row, part) for row, (_, _, part) in zip(found, columns, strict=True))])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _show(row: Row | None, part: str) -> str:
    if row is None:
        return "-"
    if part == "label":
        return row["label"] or "-"
    if part == "p_adjusted":
        p = row["p_adjusted"]
        return "-" if p is None else "<.001" if p < 0.001 else _number(p)
    text = _number(row["estimate"])
    if part == "interval" and row["low"] is not None and row["high"] is not None:
        text += f" [{_number(row['low'])}, {_number(row['high'])}]"
    return text


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value == round(value) and abs(value) > 1:
        return str(round(value))
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text
