"""`counterbalance analyze`: the estimates of a study, for logs that somebody already has."""

import json
from pathlib import Path
from typing import Any

import click

from counterbalance.cli.analyze_crossing import crossing
from counterbalance.config import Analysis


@click.group()
def analyze() -> None:
    """Analyse logs of your own, without a study file, a model or a key."""


analyze.add_command(crossing)


@analyze.command()
@click.argument("runs", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects with full precision.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=42, show_default=True, help="Seed of resampling.")
@click.option("--resamples", type=click.IntRange(99), default=9999, show_default=True, help="Draws of every test.")
def mcq(runs: Path, as_json: bool, seed: int, resamples: int) -> None:
    """Multiple-choice runs: accuracy by slot, published chi-squared and V, calibrated tests, shape, power.

    RUNS is a CSV with one row a call and the columns

    \b
      item_id       the question; calls of one question are one unit
      n_options     how many options it has (2 to 26)
      correct_slot  where the correct option stood, from 0
      picked_slot   which was chosen, from 0; blank where there was no answer

    and, where they are known,

    \b
      group_id       equal for items that share a source, which are then one unit
      picked_option  which option was chosen, wherever it stood
      order          equal where an item's options stood in the same order

    The result is exploratory: nothing was frozen before these calls were made.
    """
    from counterbalance.designs import get_design
    from counterbalance.logs import read_runs
    from counterbalance.stats.multiplicity import holm

    analysis = Analysis(seed=seed, resamples=resamples)
    design = get_design("mcq")
    rows: dict[str, dict[str, Any]] = {
        name: {"quantity": name} | vars(result) | {"p_adjusted": None}
        for name, result in design.estimate(analysis, read_runs(runs)).items()
    }
    tests = [row for name, row in rows.items() if design.is_test(name)]
    for row, adjusted in zip(tests, holm([row["p"] for row in tests]), strict=True):
        row["p_adjusted"] = adjusted
    rows["verdict"] = {"quantity": "verdict"} | vars(design.verdict(analysis, rows)) | {"p_adjusted": None}
    if as_json:
        click.echo(json.dumps(list(rows.values()), allow_nan=False, indent=1))
    else:
        click.echo("\n".join(_table(rows)))


def _table(rows: dict[str, dict[str, Any]]) -> list[str]:
    width = max(len(name) for name in rows)
    head = f"{'quantity':<{width}}  {'value':>16}  {'interval':<20}  {'p':>7}  {'p (Holm)':>8}  "
    head += f"{'items':>6}  {'calls':>7}  status"
    tests = [name for name, row in rows.items() if row["p_adjusted"] is not None]
    note = ["", f"p (Holm): corrected over {', '.join(tests)}; the verdict rests on these."] if tests else []
    return [head, *(_line(row, width) for row in rows.values()), *note]


def _line(row: dict[str, Any], width: int) -> str:
    value = row["label"] or _number(row["estimate"])
    interval = "" if row["low"] is None else f"[{_number(row['low'])}, {_number(row['high'])}]"
    reason = f": {row['reason']}" if row["reason"] else ""
    return (
        f"{row['quantity']:<{width}}  {value:>16}  {interval:<20}  {_p(row['p']):>7}  {_p(row['p_adjusted']):>8}  "
        f"{row['n_items']:>6}  {row['n_calls']:>7}  {row['status']}{reason}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _p(value: float | None) -> str:
    """Return a p-value with four digits, never as 0 or as 1 where it is neither."""
    if value is None:
        return ""
    text = f"{value:.4f}"
    if text == "0.0000":
        return "<0.0001"
    return ">0.9999" if text == "1.0000" and value < 1 else text
