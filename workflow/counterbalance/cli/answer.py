"""`counterbalance answer`: the result in a few lines, read from the tables."""

import click
import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.cli.options import study_option
from counterbalance.config import Cell, Study


@click.command()
@study_option
def answer(study: Study) -> None:
    """Print the answer in a few lines: per cell accuracy, V, p, label; then the predictions and the report's path."""
    estimates = read_table(study.layout.estimates, SCHEMAS["estimates"])
    predictions = read_table(study.layout.predictions, SCHEMAS["predictions"])
    click.echo(f"\n{study.config.title}\n{study.config.question}\n")
    width = max(len(cell.name) for cell in study.cells())
    head = f"{'accuracy':>8}  {'V [interval]':<18}  {'p (Holm)':>8}  {'verdict':<15}  shape"
    click.echo(f"{'cell':<{width}}  {head}")
    values = _by_cell(estimates)
    for cell in study.cells():
        click.echo(f"{cell.name:<{width}}  {_line(values, cell)}")
    click.echo("")
    for row in predictions.to_pylist():
        click.echo(f"{row['prediction']:<4} {row['verdict']:<14} {row['reason']}")
    if predictions.num_rows == 0:
        click.echo("exploratory: no predictions were registered")
    click.echo(f"\nreport: {study.layout.report}")


Values = dict[tuple[str, str, str, str], dict[str, object]]


def _by_cell(estimates: pa.Table) -> Values:
    return {(row["experiment"], row["model"], row["subset"], row["quantity"]): row for row in estimates.to_pylist()}


def _line(values: Values, cell: Cell) -> str:
    def get(quantity: str, column: str) -> object:
        row = values.get((cell.experiment.id, cell.model.id, cell.dataset.id, quantity))
        return row[column] if row else None

    interval = _number(get("V.corrected", "estimate"))
    if get("V.corrected", "low") is not None:
        interval += f" [{_number(get('V.corrected', 'low'))}, {_number(get('V.corrected', 'high'))}]"
    p = get("relabelling.accuracy", "p_adjusted")
    shown = "-" if not isinstance(p, float) else "<.001" if p < 0.001 else _number(p)
    verdict, shape = get("verdict", "label") or "-", get("shape.label", "label") or "-"
    return f"{_number(get('accuracy', 'estimate')):>8}  {interval:<18}  {shown:>8}  {verdict!s:<15}  {shape!s}"


def _number(value: object) -> str:
    return "-" if not isinstance(value, float) else f"{value:.3f}".removeprefix("0")
