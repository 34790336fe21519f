"""`counterbalance analyze crossing`: effects and contrasts of cells that somebody already has."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from counterbalance.contrasts import ContrastEstimate, ContrastPlan, Estimate
    from counterbalance.designs.crossing.analysis import CrossingAnalysis, SetAnalysis

_NULLS = {"pass": "PASS", "fail": "FAIL", "not_applicable": "n/a", "not_evaluable": "?", None: ""}


@click.command()
@click.argument("cells", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--contrasts", type=click.Path(path_type=Path, dir_okay=False), help="YAML file of contrasts (docs/contrasts.md)."
)
@click.option(
    "--kept-column", metavar="NAME", help="Column of the filtered set.  [default: kept, where there is such a column]"
)
@click.option(
    "--stream",
    type=click.Choice(["modern", "legacy"]),
    default="modern",
    show_default=True,
    help="Random numbers: NumPy's Generator, or the older RandomState that published intervals were drawn with.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects with full precision.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=42, show_default=True, help="Seed of resampling.")
@click.option("--resamples", type=click.IntRange(99), default=9999, show_default=True, help="Draws of every interval.")
def crossing(
    cells: Path,
    contrasts: Path | None,
    kept_column: str | None,
    stream: str,
    as_json: bool,
    seed: int,
    resamples: int,
) -> None:
    """Crossing of conflicting sources: token, role, order and serial by condition, and planned contrasts.

    CELLS is a CSV, separated by commas, with one row for each item in each condition and the columns

    \b
      condition, item     names; the order of the items is part of what a seed reproduces
      e1, e2, e3, e4      log P(B) - log P(A) in nats when the blocks are printed
                          e1 stale (A), recent (B)      e2 recent (B), stale (A)
                          e3 stale (B), recent (A)      e4 recent (A), stale (B)
      kept                optional, 1 or 0: whether the item belongs to the filtered set;
                          without it, items with |token| > 2.0 or |order| > 0.50 in any
                          condition are left out of that set

    Everything is computed on the kept items and on all of them; what excludes zero on one set only is listed. Where a
    condition lacks items, they are named on standard error, contrasts take the items that all their conditions have,
    and without a column only items that every condition has are kept.

    \b
    Example: the cells of a published study, with the intervals as they were printed
      counterbalance analyze crossing cells.csv --contrasts config/contrasts/ad_series.yaml --stream legacy

    A file of contrasts is as short as

    \b
      schema: counterbalance/contrasts/1
      contrasts:
        - {id: A1, expression: T1c.serial - T1.serial, status: inferential}

    The result is exploratory: nothing was frozen before these cells were measured.
    """
    from counterbalance.contrasts import Resampling, load_contrasts
    from counterbalance.designs.crossing.analysis import analyse_cells, rows
    from counterbalance.designs.crossing.cells import read_cells
    from counterbalance.designs.crossing.effects import EFFECTS

    read = read_cells(cells, kept_column=kept_column)
    there = tuple(read.table.effects)
    plan = None if contrasts is None else load_contrasts(contrasts, effects=EFFECTS, conditions=there)
    resampling = Resampling(n_resamples=resamples, seed=seed, stream="legacy" if stream == "legacy" else "modern")
    analysis = analyse_cells(read, plan, resampling)
    if read.unused:
        click.echo(f"columns not used: {', '.join(read.unused)}", err=True)
    for text in (*read.gaps, *(() if plan is None else _absent(plan, there))):
        click.echo(text, err=True)
    if as_json:
        click.echo(json.dumps(list(rows(analysis)), allow_nan=False, indent=1))
        return
    click.echo(f"kept: {read.kept_by}. Intervals: BCa, {resamples} resamples, {stream} stream, seed {seed}.")
    click.echo("*: the 95% interval excludes zero. p: sign-flip test. Holm p: p corrected within the declared family.")
    for found in (analysis.kept, analysis.all_items):
        click.echo("\n".join(_set_text(found)))
    click.echo("\n".join(_closing(analysis)))


def _absent(plan: "ContrastPlan", there: Sequence[str]) -> Iterator[str]:
    """Say which contrasts need a condition that the data lack, and whether an undeclared one may be meant."""
    from counterbalance.contrasts.words import did_you_mean

    needing: dict[str, list[str]] = {}
    for entry in plan.contrasts:
        for name in entry.conditions:
            if name not in there:
                needing.setdefault(name, []).append(entry.id)
    undeclared = [name for name in there if name not in (plan.file.conditions or {})]
    for name, ids in needing.items():
        has = ", ".join(there) + did_you_mean(name, undeclared)
        yield f"condition {name} is not in the data, which have {has}: not evaluable {', '.join(ids)}"


def _set_text(found: "SetAnalysis") -> Iterator[str]:
    yield f"\n== {found.name}: {found.n_items} items =="
    head = ["condition", "quantity", "mean", "95% interval", "", "90% interval", "SD", "negative", "TOST p", "null"]
    table = [[*head, "90% beyond bound", "note"]]
    for condition, by_effect in found.effects.items():
        for effect, estimate in by_effect.items():
            null = _NULLS[found.nulls[condition].get(effect)]
            table.append([condition, effect, *_numbers(estimate), null, _beyond(estimate), _note(estimate)])
    yield from _aligned(table)
    if found.contrasts:
        yield ""
        head = ["contrast", "status", *head[2:-1], "p", "Holm p", "expression"]
        shown = [result for result in found.contrasts if result.n_items]
        yield from _aligned([head, *(line for result in shown for line in _contrast_lines(result))])
        yield from (
            f"{result.planned.id}: not evaluable: {result.estimate.reason}"
            for result in found.contrasts
            if not result.n_items
        )


def _contrast_lines(result: "ContrastEstimate") -> Iterator[list[str]]:
    contrast, estimate = result.planned.contrast, result.estimate
    tests = [_p(estimate.p), _p(result.p_adjusted)]
    note = f"{' '.join(contrast.expression.split())}  {_note(estimate)}".rstrip()
    yield [contrast.id, contrast.status, *_numbers(estimate), *tests, note]
    if result.planned.is_ratio:
        value = _number(result.ratio_of_means)
        yield [contrast.id, contrast.status, value, *[""] * 8, "ratio of the means; the row above: mean of the ratios"]


def _closing(analysis: "CrossingAnalysis") -> Iterator[str]:
    names = [
        f"{name if effect is None else f'{name}.{effect}'} ({only})"
        for (name, effect), only in analysis.differing.items()
    ]
    yield "\nExcludes zero on one set only: " + (", ".join(names) or "none")
    sets = (analysis.kept, analysis.all_items)
    warned: dict[tuple[str, str], list[str]] = {}
    for found in sets:
        for result in found.contrasts:
            for text in result.warnings:
                warned.setdefault((result.planned.id, text), []).append(found.name)
    if warned:
        yield "\nWarnings"
    for (name, text), where in warned.items():
        yield f"  {name} ({' and '.join(where)}): {text}"


def _numbers(estimate: "Estimate") -> list[str]:
    wide, narrow = (
        "" if interval.low is None else f"[{_number(interval.low)}, {_number(interval.high)}]"
        for interval in estimate.intervals
    )
    star = "*" if estimate.excludes_zero else ""
    sd = "" if estimate.sd is None else f"{estimate.sd:.3f}"
    negative = "" if estimate.n_negative is None else f"{estimate.n_negative}/{estimate.n}"
    return [_number(estimate.estimate), wide, star, narrow, sd, negative, _p(estimate.p_tost)]


def _beyond(estimate: "Estimate") -> str:
    beyond = None if estimate.bound is None else estimate.beyond(estimate.intervals[1], estimate.bound)
    return "" if beyond is None else ("yes" if beyond else "no")


def _note(estimate: "Estimate") -> str:
    if estimate.evaluation == "ok":
        return f"({estimate.reason})" if estimate.reason else ""
    return f"({estimate.evaluation}: {estimate.reason})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _aligned(table: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    for line in table:
        yield "  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip()
