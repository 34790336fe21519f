"""Stage score: one outcome per trial, from replies that are already there."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.artifacts import SCHEMAS, TableWriter, read_table, write_record
from counterbalance.config import Study
from counterbalance.designs import get_design
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.stages.command import command_line

# Slices keep the memory of a 300,000-trial cell small.
_SLICE = 50_000
_NEEDED = [name for name in SCHEMAS["trials"].arrow.names if name not in ("prompt", "prompt_sha256")]


def score_replies(study: Study, experiment: str, model: str, dataset: str) -> str:
    """Score one cell; return what was done, in a line."""
    names = {"experiment": experiment, "model": model, "dataset": dataset}
    layout = study.layout
    inputs = [layout.trials(experiment, dataset), layout.replies(**names)]
    trials = read_table(inputs[0], SCHEMAS["trials"], _NEEDED)
    replies = read_table(inputs[1], SCHEMAS["replies"])
    path = layout.outcomes(**names)
    counts: Counter[str] = Counter()
    with TableWriter(path, SCHEMAS["outcomes"]) as writer:
        for outcomes in score_slices(study, experiment, trials, replies):
            writer.write(outcomes)
            counts.update(outcomes.column("outcome").to_pylist())
    write_record(
        path,
        study.root,
        stage="score",
        inputs=inputs,
        command=command_line(study, "score", **names),
        config_sha256=settings_sha256(study, "score", **names),
        code_sha256=code_sha256("score"),
        schema=SCHEMAS["outcomes"],
        written=writer.result(),
        facts={"outcomes": dict(counts)},
    )
    found = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"{study.cell(**names).name}: {found}"


def score_slices(study: Study, experiment: str, trials: pa.Table, replies: pa.Table) -> Iterator[pa.Table]:
    """Yield outcomes in key order, a slice of trials at a time."""
    settings = study.experiment(experiment)
    design = get_design(settings.design)
    for start in range(0, trials.num_rows, _SLICE):
        part = trials.slice(start, _SLICE)
        mine = pc.is_in(replies.column("trial_id"), value_set=part.column("trial_id").combine_chunks())
        yield design.score(settings, part, replies.filter(mine))
