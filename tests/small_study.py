"""The smallest study that loads, its items and rows of its trials; each test says what is different in its own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from counterbalance.canonical import canonical_json, sha256_bytes

Row = dict[str, Any]

STUDY = """\
schema: counterbalance/study/1
id: tiny
title: A tiny study
question: Does it answer by position?
seed: 7
preregistration: null
models:
  - {id: planted, vendor: simulated}
datasets:
  - id: sums
    path: sums.csv
    format: csv
    columns: {options: [a, b, c], key: key, id: id}
    key: {type: letter}
    licence: CC0-1.0
    source: made by the test
experiments:
  - id: letters
    design: mcq
    datasets: [sums]
    models: [planted]
    prompt: {template: letter.j2, style: plain}
    read: {kind: generate}
"""
TEMPLATE = "{{ question }}\n{% for o in options %}{{ o.label }}. {{ o.text }}\n{% endfor %}Answer:"


def study_text(*changes: tuple[str, str]) -> str:
    """Return the study file with words put in the place of others, the first time these stand there."""
    text = STUDY
    for old, new in changes:
        assert old in text, f"{old!r} is not in the study"
        text = text.replace(old, new, 1)
    return text


def study_body(
    models: Sequence[Row] | None = None, *, dataset: Row | None = None, experiment: Row | None = None, **study: Any
) -> Row:
    """Return the study as values, its experiment with all models; further fields replace what stands there."""
    body: Row = yaml.safe_load(STUDY)
    body["models"] = models = list(models or body["models"])
    body["datasets"][0] |= dataset or {}
    body["experiments"][0] |= {"models": [model["id"] for model in models], **(experiment or {})}
    return body | study


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Write text files below a folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def write_study(root: Path, content: Row | str, name: str = "tiny.yaml") -> Path:
    """Write a study file and return its path; JSON is YAML too, here with a line for each field."""
    write_files(root, {name: content if isinstance(content, str) else json.dumps(content, indent=1)})
    return root / name


def sums_csv(n: int) -> str:
    """Return the items of the study: sums, the first option right."""
    rows = [f"sum-{n:02d},What is {n} + {n}?,{2 * n},{2 * n + 1},{2 * n + 2},A\n" for n in range(1, n + 1)]
    return "id,question,a,b,c,key\n" + "".join(rows)


def trial_row(item: str, index: int, order: Sequence[str], prompt: Row, *, repeat: int = 0) -> Row:
    """Return a row of the trials table: an item's options in one order; option `o1` is right."""
    sent = canonical_json(prompt)
    return {
        "trial_id": f"{item}.mcq.{index:04d}.{repeat:02d}",
        "item_id": item,
        "group_id": item,
        "condition": "mcq",
        "arrangement_index": index,
        "repeat": repeat,
        "arrangement": list(order),
        "labels": [chr(65 + slot) for slot in range(len(order))],
        "option_texts": [f"text {option}" for option in order],
        "gold_slot": order.index("o1"),
        "prompt": sent.decode(),
        "prompt_sha256": sha256_bytes(sent),
    }
