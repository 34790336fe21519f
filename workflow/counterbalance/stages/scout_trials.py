"""Stage scout-trials: the prompts of a scout, made and frozen with those of the sweep."""

from counterbalance.artifacts import SCHEMAS, write_record, write_table
from counterbalance.config import Study
from counterbalance.config.models import Scout
from counterbalance.errors import ConfigError
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.scouting.trials import reused, scout_trials
from counterbalance.stages.command import command_line

_TRIALS = SCHEMAS["trials"]


def expand_scout(study: Study, experiment: str, dataset: str) -> str:
    """Write the scout's trials of an experiment on a data set; return what was done, in a line."""
    names = {"experiment": experiment, "dataset": dataset}
    settings, source, layout = study.experiment(experiment), study.dataset(dataset), study.layout
    if dataset not in settings.datasets:
        raise ConfigError(f"{study.path}: experiment {experiment!r} does not use data set {dataset!r}")
    scout = scout_of(study, experiment)
    table = scout_trials(study, settings, source, scout.items)
    path, kept = layout.scout_trials(**names), reused(table)
    prompt = settings.prompt
    write_record(
        path,
        study.root,
        stage="scout-trials",
        inputs=[
            layout.items(dataset),
            layout.trials(**names),
            *(study.root / name for name in (prompt.template, prompt.examples) if name),
        ],
        command=command_line(study, "scout-trials", **names),
        config_sha256=settings_sha256(study, "scout-trials", **names),
        code_sha256=code_sha256("scout-trials"),
        schema=_TRIALS,
        written=write_table(path, table, _TRIALS),
        facts={"items": len(set(table.column("item_id").to_pylist())), "trials": table.num_rows, "reused": kept},
    )
    return f"{experiment}/{dataset}: scout of {table.num_rows} trials, {kept} of them are trials of the sweep"


def scout_of(study: Study, experiment: str) -> Scout:
    """Return an experiment's scout.

    Raises
    ------
    ConfigError
        If it has none.
    """
    scout = study.experiment(experiment).scout
    if scout is None:
        raise ConfigError(f"{study.path}: experiment {experiment!r} has no `scout`; see docs/scout.md")
    return scout
