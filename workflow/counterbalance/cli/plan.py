"""`counterbalance plan`: what would run, how many new calls, how long, before anything is asked."""

import click

from counterbalance.cli.options import study_option
from counterbalance.config import Cell, Study
from counterbalance.errors import CounterbalanceError

# Seconds per call on one core of a shared 2-core x86-64 machine; measured, see docs/speed.md.
_SECONDS_PER_CALL = {
    ("local", "logprob"): 0.1,
    ("local", "option_text"): 0.1,
    ("local", "generate"): 0.1,
}


@click.command()
@study_option
def plan(study: Study) -> None:
    """Say what a run would do: calls per cell, how many of them are new, and about how long they take.

    Asks no model. Before the prompts are made (`snakemake freeze_preregistration` makes them) the number of calls is
    not known yet, and the plan says so.
    """
    click.echo(f"{study.config.title} ({study.path})\nsettings {study.sha256}\nfrozen   {_frozen(study)}\n")
    width = max(len(cell.name) for cell in study.cells())
    click.echo(f"{'cell':<{width}}  {'calls':>8}  {'answered':>8}  {'new':>8}  about")
    new_calls, seconds = 0, 0.0
    for cell in study.cells():
        line, new, cost = _cell_line(study, cell)
        new_calls, seconds = new_calls + new, seconds + cost
        click.echo(f"{cell.name:<{width}}  {line}")
    click.echo(f"\n{new_calls} new calls, about {seconds:.0f} s of computing; no money is spent by these vendors.")


def _cell_line(study: Study, cell: Cell) -> tuple[str, int, float]:
    from counterbalance.stages.query import pending_calls

    if not study.layout.trials(cell.experiment.id, cell.dataset.id).is_file():
        return f"{'?':>8}  {'?':>8}  {'?':>8}  prompts are not made yet", 0, 0.0
    total, answered, new = pending_calls(study, cell)
    cost = new * _SECONDS_PER_CALL.get((cell.model.vendor, cell.experiment.read.kind), 0.0)
    return f"{total:>8}  {answered:>8}  {new:>8}  {cost:.0f} s", new, cost


def _frozen(study: Study) -> str:
    from counterbalance.prereg.gate import check_gate

    try:
        record = check_gate(study, trials=False)
    except CounterbalanceError as error:
        return f"NOT READY: {error}"
    return f"{record.path.name} {record.sha256}"
