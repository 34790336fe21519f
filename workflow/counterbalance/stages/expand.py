"""Stage expand: items to rendered prompts, the same for every model."""

from collections import Counter

from counterbalance.artifacts import SCHEMAS, TableWriter, read_table, write_record
from counterbalance.config import Study
from counterbalance.designs import get_design
from counterbalance.errors import ConfigError
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.stages.command import command_line

_TRIALS = SCHEMAS["trials"]


def expand_trials(study: Study, experiment: str, dataset: str) -> str:
    """Write the trials of an experiment on a data set; return what was done, in a line, and warnings below it."""
    names = {"experiment": experiment, "dataset": dataset}
    settings, source = study.experiment(experiment), study.dataset(dataset)
    if dataset not in settings.datasets:
        raise ConfigError(f"{study.path}: experiment {experiment!r} does not use data set {dataset!r}")
    items_path, path = study.layout.items(dataset), study.layout.trials(**names)
    items = read_table(items_path, SCHEMAS["items"])
    slots: Counter[str] = Counter()
    design = get_design(settings.design)
    with TableWriter(path, _TRIALS) as writer:
        for table in design.expand(study, settings, source, items):
            writer.write(table)
            slots.update(str(slot) for slot in table.column("gold_slot").to_pylist() if slot is not None)
    written = writer.result()
    prompt = settings.prompt
    write_record(
        path,
        study.root,
        stage="expand",
        inputs=[items_path, *(study.root / name for name in (prompt.template, prompt.examples) if name)],
        command=command_line(study, "expand", **names),
        config_sha256=settings_sha256(study, "expand", **names),
        code_sha256=code_sha256("expand"),
        schema=_TRIALS,
        written=written,
        facts={"items": items.num_rows, "trials": written.rows, "gold_slots": dict(slots)},
    )
    warnings = [f"warning: {text}" for text in design.unasked(study, settings, items)]
    return "\n".join([f"{experiment}/{dataset}: {written.rows} trials of {items.num_rows} items", *warnings])
