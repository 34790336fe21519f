"""A crossing in memory: our own kind of items, all prompts, and a respondent whose effects the test plants."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from small_study import write_files

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.config import Cell, Study, load_study
from counterbalance.designs import get_design
from counterbalance.items.prepare import prepare_table
from counterbalance.stages.contrast import combine_tables, estimate_cell_table

CUES = ("lately", "recently", "before", "since")
TEMPLATE = """\
{%- set marks = {
  "verbatim": {0: {"same": ""}, 2: {"same": "lately "}},
  "mixed": {1: {"a": "lately ", "b": ""}, 2: {"a": "lately ", "b": "recently "}},
  "loaded": {1: {"stale": "", "recent": "since "}, 2: {"stale": "before ", "recent": "since "}},
} -%}
{% for block in blocks %}{{ "Report of " if header == "framed" }}{{ block.source }}: \
{{ marks[body][cues][block.wording] }}{{ fields.claim }} {{ block.answer }}.
{% endfor %}{{ question }} {{ fields.claim }}"""
WORDS = (
    "red",
    "blue",
    "green",
    "white",
    "gold",
    "pink",
    "brown",
    "gray",
    "black",
    "teal",
    "plum",
    "rose",
    "jade",
    "rust",
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Planted:
    """Half-effects in nats: on average, how items differ in them, and what single calls add."""

    token: float = 0.0
    role: Mapping[str, float] = field(default_factory=dict)
    serial: Mapping[str, float] = field(default_factory=dict)
    wording: float = 0.0
    """Lean to the block with the first wording of a mixed pair: averaged out by the two assignments."""
    order: float = 0.0
    item_sd: float = 0.1
    call_sd: float = 0.05
    seed: int = 1


def make_study(
    root: Path,
    *,
    read: Row | None = None,
    crossing: Row | None = None,
    contrasts: Row | None = None,
    items: int = 14,
    template: str = TEMPLATE,
    models: Sequence[Row] = ({"id": "planted", "vendor": "simulated"},),
    **experiment: object,
) -> Study:
    """Write a study of one experiment; further keys of the experiment as given."""
    study: Row = {
        "schema": "counterbalance/study/1",
        "id": "tiny",
        "title": "A tiny crossing",
        "question": "First or last?",
        "seed": 7,
        "preregistration": None,
        "models": list(models),
        "datasets": [
            {
                "id": "doors",
                "path": "items.csv",
                "format": "csv",
                "columns": {
                    "id": "id",
                    "question": "question",
                    "options": ["a", "b"],
                    "key": None,
                    "fields": ["claim", "stale_source", "recent_source"],
                },
                "licence": "CC0-1.0",
                "source": "written for this test",
            }
        ],
        "experiments": [
            {
                "id": "notes",
                "design": "crossing",
                "datasets": ["doors"],
                "models": [model["id"] for model in models],
                "prompt": {"template": "blocks.j2", "style": "plain"},
                "read": read or {"kind": "option_text"},
                "crossing": {"conditions": "all", "cues": list(CUES), **(crossing or {})},
                **experiment,
            }
        ],
        "analysis": {"resamples": 999, **({"contrasts": "contrasts.yaml"} if contrasts else {})},
    }
    rows = [
        f"door{n:02d},What about door {n}?,door {n} is,{WORDS[n % 14]},{WORDS[(n + 5) % 14]},Source P{n},Source Q{n}"
        for n in range(1, items + 1)
    ]
    files = {
        "blocks.j2": template,
        "items.csv": "\n".join(["id,question,claim,a,b,stale_source,recent_source", *rows]) + "\n",
        "contrasts.yaml": json.dumps({"schema": "counterbalance/contrasts/1", **(contrasts or {})}),
        "tiny.yaml": json.dumps(study),
        "Snakefile": "",
    }
    write_files(root, files)
    return load_study(root / "tiny.yaml")


def make_items(study: Study) -> pa.Table:
    dataset = study.dataset("doors")
    return prepare_table((study.root / dataset.path).read_bytes(), dataset, study.config.seed).items


def make_trials(study: Study) -> pa.Table:
    cell = the_cell(study)
    return pa.concat_tables(get_design("crossing").expand(study, cell.experiment, cell.dataset, make_items(study)))


def the_cell(study: Study) -> Cell:
    return next(iter(study.cells()))


def lean(planted: Planted, trials: pa.Table) -> list[float]:
    """Return log P(B) - log P(A) of every trial, by the signs that the four cells have by definition."""
    signs = {"token": (1, 1, 1, 1), "role": (1, 1, -1, -1), "order": (1, -1, 1, -1), "serial": (1, -1, -1, 1)}
    rng = np.random.default_rng(planted.seed)
    own: dict[tuple[str, str], float] = {}
    found = []
    for row in trials.select(["item_id", "condition", "arrangement_index"]).to_pylist():
        item, condition, index = row["item_id"], row["condition"], row["arrangement_index"]
        cell, assignment = index % 4, index // 4
        amounts = {
            "token": planted.token,
            "role": planted.role.get(condition, 0.0),
            "order": planted.order,
            "serial": planted.serial.get(condition, 0.0),
        }
        total = 0.0
        for effect, amount in amounts.items():
            key = (item, effect)
            if key not in own:
                own[key] = 0.0 if effect == "order" else float(rng.normal(0, planted.item_sd))
            total += signs[effect][cell] * (amount + own[key])
        if condition in ("T2", "T2c", "T4", "T4c"):
            # The stale block says A in e1 and e2, and has the first wording in the first assignment.
            stale_says_b, stale_has_first = cell >= 2, assignment == 0
            total += planted.wording if stale_says_b == stale_has_first else -planted.wording
        found.append(total + float(rng.normal(0, planted.call_sd)))
    return found


def make_replies(trials: pa.Table, leans: Sequence[float], kind: str = "option_text", seed: int = 5) -> list[Row]:
    """Return rows of the replies table that say so, in the trials' order."""
    empty = dict.fromkeys(SCHEMAS["replies"].arrow.names)
    rng = np.random.default_rng(seed)
    rows = []
    for place, (trial, e) in enumerate(zip(trials.to_pylist(), leans, strict=True)):
        slot_of_b = trial["arrangement"].index("o2")
        pair = [_logistic(-e), _logistic(-e)]
        pair[slot_of_b] = _logistic(e)
        reply: Row = {"option_logprobs": [math.log(p) - 0.1 for p in pair], "option_tokens": [1, 1]}
        if kind == "logprob":
            reply = {"top_tokens": [f" {w}" for w in trial["labels"]], "top_logprobs": reply["option_logprobs"]}
        elif kind == "generate":
            said = slot_of_b if rng.random() < _logistic(e) else 1 - slot_of_b
            reply = {"text": trial["labels"][said], "finish_reason": "stop"}
        rows.append(
            {
                **empty,
                "status": "ok",
                **reply,
                "trial_id": trial["trial_id"],
                "call_sha256": f"sha256:{place:064x}",
                "model_returned": "planted",
                "attempts": 1,
                "call_order": place,
                "session": 1,
                "started_at": "2026-01-01T00:00:00Z",
            }
        )
    return rows


def make_outcomes(study: Study, trials: pa.Table, replies: list[Row]) -> pa.Table:
    experiment = the_cell(study).experiment
    return get_design("crossing").score(experiment, trials, table_from_rows(replies, SCHEMAS["replies"]))


def estimates_of(study: Study, outcomes: pa.Table) -> dict[str, Row]:
    """Return a cell's estimates by quantity, corrected, with its verdict."""
    table = combine_tables(study, [estimate_cell_table(study, the_cell(study), outcomes)])[0]
    return {row["quantity"]: row for row in table.to_pylist()}


def run_cell(
    study: Study, planted: Planted, change: Callable[[list[Row]], None] = lambda replies: None
) -> dict[str, Row]:
    """Return the estimates of a planted respondent; `change` may spoil its replies first."""
    trials = make_trials(study)
    replies = make_replies(trials, lean(planted, trials), the_cell(study).experiment.read.kind)
    change(replies)
    return estimates_of(study, make_outcomes(study, trials, replies))


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def finish(study: Study) -> Study:
    """Run every stage of a study with simulated respondents, as the workflow does."""
    from click.testing import CliRunner

    from counterbalance.cli.main import main

    def run(*words: str) -> None:
        done = CliRunner().invoke(main, [words[0], "--study", str(study.path), *words[1:]])
        if done.exit_code:
            raise AssertionError(f"{' '.join(words)}: {done.output} {done.exception!r}")

    run("resolve")
    run("prepare", "--dataset", "doors")
    for experiment in study.config.experiments:
        run("expand", "--experiment", experiment.id, "--dataset", "doors")
    run("freeze")
    for cell in study.cells():
        place = ("--experiment", cell.experiment.id, "--model", cell.model.id, "--dataset", cell.dataset.id)
        run("query", *place, "--progress", "plain")
        run("score", *place)
        run("contrast", *place)
    run("combine")
    return study
