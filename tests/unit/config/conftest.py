from pathlib import Path

import pytest

STUDY = """\
schema: counterbalance/study/1
id: tiny
title: A tiny study
question: Does it answer by position?
seed: 7
preregistration: null
models:
  - {id: planted, vendor: simulated, slot_bonus: [0.5, 0.0]}
datasets:
  - id: sums
    path: sums.csv
    format: csv
    columns: {options: [a, b], key: key}
    key: {type: letter}
    licence: CC0-1.0
    source: written for this test
experiments:
  - id: letters
    design: mcq
    datasets: [sums]
    models: [planted]
    prompt: {template: letter.j2, style: plain}
    read: {kind: generate}
"""


@pytest.fixture
def study_text() -> str:
    return STUDY


@pytest.fixture
def write_study(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "tiny.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
