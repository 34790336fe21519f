"""`counterbalance power`: how small a bias each design would show, and what it costs, before anything is frozen."""

import json
import sys
from pathlib import Path

import click

from counterbalance.cli.options import study_option
from counterbalance.config import Study
from counterbalance.errors import ConfigError

_NUISANCE = click.FloatRange(0, 20)


@click.command()
@study_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON with full precision.")
@click.option("--figure", type=click.Path(path_type=Path, dir_okay=False), help="Also draw it, as an SVG file.")
@click.option("--items", type=click.IntRange(2, 2000), multiple=True, help="Numbers of items to try; may be repeated.")
@click.option(
    "--accuracy",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    multiple=True,
    help="Accuracies to try; may be repeated. Default: .5, .75 and .95.",
)
@click.option("--item-slot-sd", type=_NUISANCE, default=0.3, show_default=True, help="Spread of items' slot effects.")
@click.option("--call-noise", type=_NUISANCE, default=0.3, show_default=True, help="Noise of each call.")
@click.option("--cells", type=click.IntRange(100), default=300, show_default=True, help="Simulated cells per design.")
def power(
    study: Study,
    as_json: bool,
    figure: Path | None,
    items: tuple[int, ...],
    accuracy: tuple[float, ...],
    item_slot_sd: float,
    call_noise: float,
    cells: int,
) -> None:
    """Say which V each design would show, by simulation, with calls and cost; and the cheapest design that answers.

    Asks no model. Takes about two minutes with the defaults.
    """
    from counterbalance.files import write_bytes
    from counterbalance.power import grid, text
    from counterbalance.power.advice import cheapest
    from counterbalance.power.figure import draw_power

    analysis = study.config.analysis
    assumed = grid.Assumed(item_slot_sd, call_noise)
    levels = tuple(sorted(set(accuracy))) or grid.ACCURACIES
    groups = grid.find_groups(study)
    if not groups:
        raise ConfigError(f"{study.path}: no experiment of the design mcq; power is simulated for that design only")
    designs = sum(len(grid.schemes(group)) * len(grid.item_numbers(group, items)) * len(levels) for group in groups)
    done = []
    with click.progressbar(
        length=(designs + len(groups)) * cells,
        label=f"{designs} designs",
        file=sys.stderr,
        show_pos=True,
    ) as bar:
        for group in groups:
            rows = list(
                grid.simulate(
                    group, analysis, accuracies=levels, items=items, assumed=assumed, cells=cells, spent=bar.update
                )
            )
            advice = cheapest(rows, analysis.measurable_v, analysis.detectable_power)
            rough = None
            if advice.rows:
                middle = advice.rows[len(advice.rows) // 2]
                rough = grid.rough_power(group, analysis, middle, cells=cells, spent=bar.update)
            done.append((group, rows, advice, rough))
    if figure is not None:
        # One study may have several groups; each gets its own file.
        for number, (_, rows, _, _) in enumerate(done):
            path = figure if number == 0 else figure.with_stem(f"{figure.stem}-{number + 1}")
            write_bytes(path, draw_power(rows, analysis.measurable_v).file)
    if as_json:
        click.echo(json.dumps(text.as_json(study, done, assumed, cells), allow_nan=False, indent=1))
        return
    for group, rows, advice, rough in done:
        click.echo(f"{', '.join(group.experiments)}: {group.n_cells} cells, {group.k} options\n")
        click.echo("\n".join(text.table(study, group, rows)))
        click.echo(f"\n{advice.sentence}")
        if rough is not None:
            click.echo(text.rough_line(advice.rows[len(advice.rows) // 2], rough))
        click.echo("\n" + "\n".join(text.notes(study, group, rows, assumed, cells)))
