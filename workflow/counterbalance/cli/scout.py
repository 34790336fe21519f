"""`counterbalance scout`: is a cell worth the sweep? Two orders of a few items tell, and the frozen rule decides."""

import json
from collections.abc import Iterator
from typing import Any

import click

from counterbalance.canonical import Json
from counterbalance.cli.options import dataset_option, experiment_option, say, study_option
from counterbalance.config import Cell, Study
from counterbalance.errors import ConfigError


@click.command("scout-trials")
@study_option
@experiment_option
@dataset_option
def scout_trials(study: Study, experiment: str, dataset: str) -> None:
    """Make the prompts of a scout, to be frozen with those of the sweep."""
    from counterbalance.stages.scout_trials import expand_scout

    say(expand_scout(study, experiment, dataset))


@click.command()
@study_option
@click.option("--experiment", help="Only this experiment of the study file.")
@click.option("--model", help="Only this model.")
@click.option("--dataset", help="Only this data set.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with full precision.")
@click.option("--progress", type=click.Choice(["auto", "plain", "none"]), default="auto", help="Progress on stderr.")
def scout(
    study: Study, experiment: str | None, model: str | None, dataset: str | None, as_json: bool, progress: str
) -> None:
    """Look at cells: accuracy, band, the V that a sweep would show, its cost, and what the frozen rule decides.

    Asks the source's own order and its reverse of 25 items, drawn by the seed (`scout` in the study file says
    otherwise), once the plan is frozen. The replies are kept: the sweep does not buy them again, and neither does this
    command.
    """
    from counterbalance.config.models import Scout
    from counterbalance.progress import make_progress
    from counterbalance.stages.scout import look_by_hand, scout_cell

    found = []
    for cell in _chosen(study, experiment, model, dataset):
        names = (cell.experiment.id, cell.model.id, cell.dataset.id)
        if cell.experiment.scout is None:
            body = look_by_hand(study, cell, Scout(action="report"), make_progress(progress))
        else:
            body = scout_cell(study, *names, make_progress(progress))
        found.append(body)
        if not as_json:
            say("\n".join(_lines(body)))
    if as_json:
        click.echo(json.dumps(found, allow_nan=False, indent=1))


@click.command()
@study_option
def decide(study: Study) -> None:
    """Write down which cells the scouts leave out by the frozen rule, and what that saves."""
    from counterbalance.stages.decide import decide as decide_cells

    say(decide_cells(study))


def _chosen(study: Study, experiment: str | None, model: str | None, dataset: str | None) -> list[Cell]:
    wanted = {"experiment": experiment, "model": model, "dataset": dataset}
    cells = [
        cell
        for cell in study.cells()
        if cell.experiment.design == "mcq"
        and all(name is None or getattr(cell, kind).id == name for kind, name in wanted.items())
    ]
    if not cells:
        given = ", ".join(f"{kind} {name!r}" for kind, name in wanted.items() if name is not None) or "the design mcq"
        raise ConfigError(f"{study.path}: no cell of the design mcq with {given}; see its experiments")
    return cells


def _lines(body: Json) -> Iterator[str]:
    from counterbalance.spending.prices import show_usd

    sweep, found = body["sweep"], body["accuracy"]
    band = f", band {body['band']}" if body["band"] else ""
    asked = f"{body['trials']} calls, {body['items']} items in two orders"
    yield f"{body['cell']}: accuracy {_interval(found)}{band}; {asked}"
    odd = ", ".join(f"{count} {name}" for name, count in body["outcomes"].items() if name != "ok")
    if odd:
        yield f"  without a usable answer: {odd}"
    yield f"  same option in both orders: {_interval(body['same_option'])} of the items"
    yield f"  a sweep would show {_detectable(body['detectable_V'])}"
    cost = "" if sweep["nano_usd"] is None else f", about {show_usd(sweep['nano_usd'])}"
    yield (
        f"  the sweep: {sweep['trials']:,} calls, {sweep['reused']} of them asked now and kept; "
        f"{sweep['left']:,} left{cost}"
    )
    yield f"  {'SKIP' if body['decision'] == 'skip' else 'keep'}: {body['reason']}"


def _interval(found: dict[str, Any]) -> str:
    if found["estimate"] is None:
        return f"not known ({found['reason']})"
    return f"{found['estimate']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


def _detectable(found: dict[str, Any]) -> str:
    least, most = found["least"], found["most"]
    if least is None and most is None:
        return f"nothing that can be told: {found['reason']}"
    ends = f"V = {least:.3f} to {most:.3f}" if None not in (least, most) else f"V = {least or most:.3f} at best"
    return f"{ends} with {found['power']:.0%} power (planned: {found['planned']:g})"
