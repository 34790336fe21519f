"""Expand, score and estimate 1.35 million trials: the size of MMLU's test set in all orders, asked of four models.

Each stage runs in a process of its own, as in the workflow, so that its peak memory is its own. Replies are drawn at
random here: what is measured is the pipeline around the model.
"""

import csv
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, TableWriter, read_table
from counterbalance.config import Study, load_study
from counterbalance.stages.contrast import estimate_cell
from counterbalance.stages.expand import expand_trials
from counterbalance.stages.prepare import prepare_items
from counterbalance.stages.score import score_replies

ITEMS = int(sys.argv[1]) if len(sys.argv) > 1 else 14_042
MODELS = ("one", "two", "three", "four")
STUDY = """\
schema: counterbalance/study/1
id: large
title: Large
question: How long does it take?
seed: 1
preregistration: null
models: [{models}]
datasets:
  - id: all
    path: items.csv
    format: csv
    columns: {{options: [a, b, c, d], key: key, id: id}}
    key: {{type: letter}}
    licence: none
    source: made by the benchmark
experiments:
  - id: letters
    design: mcq
    datasets: [all]
    models: [{names}]
    prompt: {{template: letter.j2, style: plain}}
    read: {{kind: generate}}
limits: {{max_calls: 10000000}}
"""
TEMPLATE = "{{ question }}\n{% for o in options %}{{ o.label }}. {{ o.text }}\n{% endfor %}Answer:"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        study = make_study(root)
        print(f"{ITEMS} items x 24 orders x {len(MODELS)} models = {ITEMS * 24 * len(MODELS):,} trials")
        measure("prepare", prepare_items, study, "all")
        measure("expand (once for all models)", expand_trials, study, "letters", "all")
        for model in MODELS:
            measure(f"(draw replies, {model})", draw_replies, study, model)
            measure(f"score, {model}", score_replies, study, "letters", model, "all")
            measure(f"estimate, {model}", estimate_cell, study, "letters", model, "all")


def make_study(root: Path) -> Study:
    with (root / "items.csv").open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["id", "question", "a", "b", "c", "d", "key"])
        for n in range(ITEMS):
            stem = f"Question number {n}: which of the following numbers is {n} plus seventeen? " * 3
            writer.writerow([f"q-{n:05d}", stem, n + 17, n + 18, n + 19, n + 20, "ABCD"[n % 4]])
    (root / "letter.j2").write_text(TEMPLATE, encoding="utf-8")
    models = ", ".join(f"{{id: {name}, vendor: simulated}}" for name in MODELS)
    path = root / "large.yaml"
    path.write_text(STUDY.format(models=models, names=", ".join(MODELS)), encoding="utf-8")
    return load_study(path)


def draw_replies(study: Study, model: str) -> None:
    """Write a replies table in which 70% of the answers are right and the first slot gets a bonus."""
    schema = SCHEMAS["replies"]
    trials = read_table(study.layout.trials("letters", "all"), SCHEMAS["trials"], ["trial_id", "gold_slot"])
    trials = trials.sort_by("trial_id")
    draw = np.random.default_rng(len(model))
    gold = trials.column("gold_slot").to_numpy()
    other = np.where(draw.random(len(gold)) < 0.4, 0, draw.integers(0, 4, len(gold)))
    picked = np.where(draw.random(len(gold)) < 0.7, gold, other)
    text = pa.array(np.array(["A", "B", "C", "D"])[picked])
    columns = {name: pa.nulls(len(gold), schema.arrow.field(name).type) for name in schema.arrow.names}
    fixed = {"call_sha256": "x", "status": "ok", "started_at": "", "finish_reason": "stop"}
    columns |= {key: pa.array([value] * len(gold)) for key, value in fixed.items()}
    columns |= {key: pa.array(np.ones(len(gold), dtype=np.int64)) for key in ("attempts", "call_order")}
    columns |= {"trial_id": trials.column("trial_id"), "text": text}
    with TableWriter(study.layout.replies("letters", model, "all"), schema) as writer:
        writer.write(pa.table(columns).select(schema.arrow.names))


def measure(what: str, stage: Callable[..., object], *arguments: object) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[tuple[float, float, float]] = context.Queue()
    process = context.Process(target=_measured, args=(results, stage, arguments))
    process.start()
    wall, processor, peak = results.get()
    process.join()
    print(f"{what:<32} {wall:7.1f} s wall  {processor:7.1f} s CPU  {peak:7.0f} MB peak", flush=True)


def _measured(
    results: "multiprocessing.Queue[tuple[float, float, float]]",
    stage: Callable[..., object],
    arguments: tuple[object, ...],
) -> None:
    start = time.perf_counter()
    stage(*arguments)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
    results.put((time.perf_counter() - start, time.process_time(), peak))


if __name__ == "__main__":
    main()
