"""A realistic finished study, made up without asking any model: what the report is tested and looked at with."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from counterbalance.artifacts import SCHEMAS, table_from_rows, write_record, write_table
from counterbalance.canonical import sha256_json
from counterbalance.config import Cell, Study, load_study
from counterbalance.prereg.judge import judge
from counterbalance.prereg.parts import frozen_settings, plan_parts
from counterbalance.prereg.plan import load_plan
from counterbalance.prereg.record import (
    FrozenBody,
    FrozenRecord,
    Observed,
    Previous,
    plan_hash_of,
    read_chain,
    write_frozen,
)
from counterbalance.report.sources import Sources, read_sources
from counterbalance.stages.resolve import resolve_study

Row = dict[str, Any]
Text = Callable[[str], str]

SLOTS = 4
ITEMS = 50
CALLS = ITEMS * 24


@dataclass(frozen=True)
class Planted:
    """What a made-up cell shows."""

    verdict: str
    accuracy: tuple[float, ...] = ()
    picks: tuple[float, ...] = ()
    p: float = 0.5
    v: float = 0.0
    spread: float = 0.03
    detectable: float = 0.08
    refused: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    shape: str = "undetermined"


KINDS = (
    Planted("bias", (0.93, 0.41, 0.33, 0.22), (0.71, 0.13, 0.1, 0.06), 0.0002, 0.584, 0.06, 0.076, shape="first_boost"),
    Planted("no_bias_seen", (0.96, 0.95, 0.95, 0.96), (0.25, 0.25, 0.245, 0.255), 0.61, 0.008, 0.02, 0.058),
    Planted("not_measurable", (0.31, 0.27, 0.24, 0.26), (0.29, 0.26, 0.22, 0.23), 0.18, 0.049, 0.07, 0.213),
    Planted("degenerate"),
    Planted(
        "bias",
        (0.78, 0.71, 0.66, 0.58),
        (0.31, 0.26, 0.23, 0.2),
        0.004,
        0.152,
        0.06,
        0.083,
        (0.0, 0.02, 0.06, 0.11),
        "linear_decline",
    ),
    Planted("no_bias_seen", (0.81, 0.79, 0.8, 0.78), (0.26, 0.25, 0.25, 0.24), 0.34, 0.021, 0.03, 0.091),
)


def make_sample(
    root: Path,
    *,
    models: Sequence[str] = ("smollm2", "planted"),
    subsets: Sequence[str] = ("copying", "capitals", "sums"),
    text: Text = str,
    exploratory: bool = False,
    only: Callable[[str], bool] = lambda quantity: True,
) -> Study:
    """Write a finished study below `root` and return it.

    `text` changes every text that a person or a model may have written; `only` says which quantities there are.
    """
    study = _write_plan(root, models, subsets, text, exploratory)
    resolve_study(study)
    for subset in subsets:
        _write_items(study, subset, text)
    for experiment, dataset in study.trial_sets():
        trials = _trials(experiment.id, dataset.id, text)
        _put(study, study.layout.trials(experiment.id, dataset.id), trials, "trials", "expand")
    frozen = _freeze(study)
    estimates: list[Row] = []
    for index, cell in enumerate(study.cells()):
        names = (cell.experiment.id, cell.model.id, cell.dataset.id)
        replies, outcomes = _replies(cell, text)
        _put(study, study.layout.replies(*names), replies, "replies", "query", facts=_facts(cell, text))
        _put(study, study.layout.outcomes(*names), outcomes, "outcomes", "score")
        rows = [row for row in _estimates(cell, KINDS[index % len(KINDS)], text) if only(row["quantity"])]
        _put(study, study.layout.cell_estimates(*names), rows, "estimates", "contrast")
        estimates += rows
    _put(study, study.layout.estimates, estimates, "estimates", "combine", frozen)
    judged = judge(frozen.body.predictions, table_from_rows(estimates, SCHEMAS["estimates"])).to_pylist()
    for row in judged:
        row["reason"] = text(row["reason"])
    _put(study, study.layout.predictions, judged, "predictions", "combine", frozen)
    return study


def sources_of(study: Study) -> Sources:
    """Read a finished study as the report does."""
    return read_sources(study, read_chain(study.layout))


def _write_plan(root: Path, models: Sequence[str], subsets: Sequence[str], text: Text, exploratory: bool) -> Study:
    listed: list[Row] = [{"id": models[0], "vendor": "local"}]
    listed += [{"id": name, "vendor": "simulated", "slot_bonus": [1.2, 0.0]} for name in models[1:]]
    data: Row = {
        "schema": "counterbalance/study/1",
        "id": "sample",
        "title": text("Does a small model choose by position?"),
        "question": text("When the right option moves, does the answer follow it or stay where it was?"),
        "seed": 7,
        "preregistration": None if exploratory else "preregistration/sample.md",
        "models": listed,
        "datasets": [
            {
                "id": name,
                "path": f"config/{name}.csv",
                "format": "csv",
                "columns": {"options": ["a", "b", "c", "d"]},
                "key": {"type": "letter"},
                "licence": text("CC0-1.0"),
                "source": text(f"written for this project: {name}"),
            }
            for name in subsets
        ],
        "experiments": [
            _experiment("letters", {"kind": "generate"}, models, subsets, text),
            _experiment("logprobs", {"kind": "logprob"}, models, subsets, text),
        ],
    }
    predictions = json.dumps(_predictions(models, subsets))
    files = {
        "sample.yaml": json.dumps(data, ensure_ascii=True),
        "Snakefile": "",
        "config/letter.j2": "{{ question }}",
        "preregistration/sample.md": f"# Sample\n\n```yaml predictions\n{predictions}\n```\n",
        **{f"config/{name}.csv": "question,a,b,c,d,key\n" for name in subsets},
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    return load_study(root / "sample.yaml")


def _experiment(name: str, read: Row, models: Sequence[str], subsets: Sequence[str], text: Text) -> Row:
    labels = None if text("A") == "A" else [text(label) for label in "ABCD"]
    prompt = {"template": "config/letter.j2", "style": "plain" if name == "logprobs" else "chat", "labels": labels}
    return {
        "id": name,
        "design": "mcq",
        "datasets": list(subsets),
        "models": list(models),
        "prompt": prompt,
        "read": read,
    }


def _predictions(models: Sequence[str], subsets: Sequence[str]) -> list[Row]:
    place = {"experiment": "letters", "model": models[0]}
    accuracy = "relabelling.accuracy"
    return [
        {"id": "P1", **place, "subset": subsets[0], "quantity": "picks.slot_1", "rule": "at_least", "value": 0.5},
        {
            "id": "P2",
            **place,
            "subset": subsets[1 % len(subsets)],
            "quantity": accuracy,
            "rule": "p_below",
            "value": 0.05,
        },
        {"id": "P3", **place, "subset": subsets[-1], "quantity": accuracy, "rule": "p_at_least", "value": 0.05},
        {"id": "P4", **place, "subset": subsets[0], "quantity": "V.corrected", "rule": "interval_above", "value": 0.1},
        {"id": "P5", **place, "subset": subsets[0], "quantity": "shape.label", "rule": "label_is", "value": "linear"},
    ]


def _write_items(study: Study, subset: str, text: Text) -> None:
    items = [
        {
            "item_id": f"{subset}-{n:03d}",
            "group_id": f"{subset}-{n:03d}",
            "stem": "?",
            "option_ids": ["o1", "o2", "o3", "o4"],
            "option_texts": ["w", "x", "y", "z"],
            "gold_option_id": "o1",
            "strata": "{}",
            "source_row": n,
        }
        for n in range(ITEMS)
    ]
    rule = "option_refers_to_others"
    rejected: list[Row] = [
        {
            "source_row": 61,
            "item_id": text("row 61"),
            "rule": rule,
            "reason": text("option d is all of the above"),
        },
        {"source_row": 70, "item_id": None, "rule": rule, "reason": text("option c is both a and b")},
    ]
    _put(study, study.layout.items(subset), items, "items", "prepare")
    _put(study, study.layout.rejected(subset), rejected if subset != "sums" else [], "rejected", "prepare")


def _trials(experiment: str, subset: str, text: Text) -> list[Row]:
    words = text("Which of these is the capital of Norway?\n\nA. Bergen\nB. Oslo\nC. Turku\nD. Malmö\n\nAnswer:")
    prompt: Any = {"text": words}
    if experiment == "letters":
        system = {"role": "system", "content": text("Answer with one letter.")}
        prompt = {"messages": [system, {"role": "user", "content": words}]}
    return [
        {
            "trial_id": f"{subset}-000.mcq.{index:04d}.00",
            "item_id": f"{subset}-000",
            "group_id": f"{subset}-000",
            "condition": "mcq",
            "arrangement_index": index,
            "repeat": 0,
            "arrangement": ["o1", "o2", "o3", "o4"],
            "labels": [text(label) for label in "ABCD"],
            "option_texts": ["Bergen", "Oslo", "Turku", "Malmö"],
            "gold_slot": 1,
            "prompt": json.dumps(prompt),
            "prompt_sha256": sha256_json(prompt),
        }
        for index in range(2)
    ]


def _facts(cell: Cell, text: Text) -> Row:
    """What the query's record says; one cell's is of a release that said less."""
    known: Row = {"calls": CALLS, "attempts": CALLS + 3, "transport_errors": 2, "possibly_sent_twice": 1}
    if cell.dataset.id == "sums":
        return known
    return known | {
        "parameters_sent": [{"max_tokens": 16, "temperature": 0.0, "note": text("x")}],
        "call_order": "interleaved",
        "sessions": [{"session": 1, "ended_because": text("every call was answered"), "calls": CALLS}],
        "spent_nano_usd": 12_345_678,
        "charged_at_worst": 2,
        "maybe_billed": 1,
    }


def _replies(cell: Cell, text: Text) -> tuple[list[Row], list[Row]]:
    wordy = cell.experiment.read.kind == "generate"
    empty: Row = dict.fromkeys(SCHEMAS["replies"].arrow.names)
    replies, outcomes = [], []
    for trial in _trials(cell.experiment.id, cell.dataset.id, text):
        slot = trial["arrangement_index"]
        replies.append(
            empty
            | {"trial_id": trial["trial_id"], "call_sha256": sha256_json([cell.name, slot]), "status": "ok"}
            | {"text": text("**Answer: A**") if wordy else None, "attempts": 1, "call_order": slot}
            | {"session": 1, "started_at": "2026-01-01T00:00:00Z"}
        )
        outcomes.append(
            {name: trial[name] for name in SCHEMAS["outcomes"].arrow.names if name in trial}
            | {"n_options": SLOTS, "gold_slot": 1, "outcome": "ok", "slot": 0, "option_id": "o1", "correct": False}
            | {"tie": None if wordy else False, "slot_logprobs": None if wordy else [-0.4, -1.3, -2.9, -3.4]}
            | {"slot_censored": None if wordy else [False] * SLOTS, "label_mass": None if wordy else 0.97}
            | {"candidates": [], "rule": "cue", "parser": "reader/1", "extra": False, "model_returned": None}
        )
    return replies, outcomes


def _estimates(cell: Cell, kind: Planted, text: Text) -> Iterator[Row]:
    place = {"experiment": cell.experiment.id, "model": cell.model.id, "subset": cell.dataset.id}
    for name, values in _quantities(cell, kind, text):
        row: Row = dict.fromkeys(("estimate", "low", "high", "level", "p", "p_adjusted", "family", "reason", "label"))
        row |= {"method": text("see docs/statistics.md"), "n_items": ITEMS, "n_calls": CALLS, "status": "ok"}
        if values.get("low") is not None:
            row["level"] = 0.95
        yield place | {"quantity": name} | row | values


def _quantities(cell: Cell, kind: Planted, text: Text) -> Iterator[tuple[str, Row]]:
    for slot, share in enumerate(kind.refused, start=1):
        yield f"status.refused.slot_{slot}", {"estimate": share}
    yield "status.refused", {"estimate": math.fsum(kind.refused) / SLOTS}
    yield "status.ok", {"estimate": 1 - math.fsum(kind.refused) / SLOTS}
    if kind.verdict == "degenerate":
        yield from _degenerate(text)
        return
    mean = math.fsum(kind.accuracy) / SLOTS
    yield "accuracy", _around(mean, 0.02)
    for slot in range(1, SLOTS + 1):
        yield f"accuracy.slot_{slot}", _around(kind.accuracy[slot - 1], 0.04)
        yield f"picks.slot_{slot}", _around(kind.picks[slot - 1], 0.03)
        yield f"picks_when_wrong.slot_{slot}", _around(min(1.0, kind.picks[slot - 1] * 1.25), 0.1)
        if cell.experiment.read.kind == "logprob":
            yield f"label_logprob.slot_{slot}", _around(-1.8 + math.log(kind.picks[slot - 1] * SLOTS), 0.2)
            yield f"slot_bonus.slot_{slot}", _around(math.log(kind.picks[slot - 1] * SLOTS), 0.15)
    yield from _tests(kind, mean)
    unsure = {"status": "not_measurable", "reason": text("a V of 0.1 would not be found with power 0.8")}
    for name in ("detectable_V", "detectable_V.family"):
        yield name, {"estimate": kind.detectable} | (unsure if kind.detectable > 0.1 else {})
    yield "band", {"label": "low" if mean < 0.6 else "middle" if mean <= 0.95 else "high"}
    yield "verdict", {"label": kind.verdict} | (unsure if kind.verdict == "not_measurable" else {})
    yield "consistency", {"estimate": 0.34, "reason": text("only 8 items; intervals from so few tend to be too narrow")}
    yield "unstable_items", {"estimate": 33.0}
    yield "disagreement.same_order", _around(0.04, 0.03)
    yield "disagreement.other_order", _around(0.04 + kind.v, 0.03)
    yield "disagreement.excess", _around(kind.v, 0.05)


def _tests(kind: Planted, mean: float) -> Iterator[tuple[str, Row]]:
    v = math.sqrt(math.fsum((a - mean) ** 2 for a in kind.accuracy) / SLOTS / (mean * (1 - mean)))
    chi2 = CALLS * v**2
    yield "chi2.published", {"estimate": chi2, "p": math.exp(-chi2 / 4)}
    yield "V.published", _around(v, 0.025)
    yield "V.bergsma", {"estimate": max(0.0, v - 0.02)}
    yield "V.corrected", _around(kind.v, kind.spread)
    yield "rho.published", {"estimate": -0.9 if kind.verdict == "bias" else 0.1, "status": "descriptive"}
    active = "processing_load" if kind.verdict == "bias" else "inactive"
    yield "mechanism.v0_1", {"label": active, "status": "descriptive"}
    yield "mechanism.v0_2", {"label": active, "status": "descriptive"}
    adjusted = {"p": kind.p, "p_adjusted": min(1.0, kind.p * 4), "family": "letters"}
    yield "relabelling.accuracy", {"estimate": 812.0, **adjusted}
    yield "relabelling.picks", {"estimate": 901.0, **adjusted}
    yield "recentred.accuracy", {"p": kind.p * 1.1}
    for name in ("linear", "first", "last"):
        yield f"shape.{name}", {"estimate": -0.11, "low": -0.19, "high": -0.03}
    yield "shape.label", {"label": kind.shape}


def _degenerate(text: Text) -> Iterator[tuple[str, Row]]:
    reason = text("no item's answers change with the slot, so there is nothing to test")
    tests = ("relabelling.accuracy", "relabelling.picks", "chi2.published")
    for name in ("accuracy", "V.corrected", "V.published", *tests):
        yield name, {"status": "degenerate", "reason": reason}
    yield "verdict", {"label": "degenerate", "status": "degenerate", "reason": reason}


def _around(value: float, half: float) -> Row:
    """A number with an interval; shares stay between 0 and 1."""
    low, high = value - half, value + half
    return {"estimate": value, "low": max(0.0, low) if value >= 0 else low, "high": min(1.0, high)}


def _freeze(study: Study) -> FrozenRecord:
    """Freeze twice, so that there is a chain to show."""
    plan = load_plan(study)
    parts = plan_parts(study, plan)
    body = FrozenBody(
        schema="counterbalance/frozen/1",
        study="sample",
        number=1,
        previous=None,
        reason=None,
        exploratory=plan is None,
        late=False,
        plan_hash=plan_hash_of(parts),
        parts=parts,
        predictions=() if plan is None else plan.predictions,
        config=frozen_settings(study),
        counts={"items": {}, "trials": {}, "calls": {}},
        code={"expand": _code("expand"), "score": sha256_json("older code")},
        observed=Observed(calls=0, by_cell={}, calls_sha256=sha256_json([])),
    )
    first = write_frozen(study.layout, body)
    amended = body.model_copy(
        update={
            "number": 2,
            "previous": Previous(number=1, sha256=first.sha256),
            "reason": "item 12 had two right answers",
            "observed": Observed(calls=144, by_cell={"letters/smollm2/copying": 144}, calls_sha256=sha256_json(["a"])),
        }
    )
    return replace(write_frozen(study.layout, amended), created=False)


def _code(stage: str) -> str:
    return sha256_json(["code of", stage])


def _put(
    study: Study,
    path: Path,
    rows: list[Row],
    schema: str,
    stage: str,
    frozen: FrozenRecord | None = None,
    facts: Row | None = None,
) -> None:
    declared = SCHEMAS[schema]
    write_record(
        path,
        study.root,
        stage=stage,
        inputs=[],
        command=["counterbalance", stage],
        config_sha256=study.sha256,
        code_sha256=_code(stage),
        schema=declared,
        written=write_table(path, table_from_rows(rows, declared), declared),
        frozen_sha256=frozen.sha256 if frozen else None,
        facts=facts,
    )
