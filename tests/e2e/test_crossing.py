"""A crossing as a user runs it: frozen first, planted effects found, nothing asked twice, numbers derived again."""

import json
import re
import sqlite3

import pytest
from planted_project import REPOSITORY, make_project

from counterbalance.artifacts import SCHEMAS, read_table

STUDY = """\
schema: counterbalance/study/1
id: planted
title: A planted lean to the first block
question: Is a lean to the first of two sources found?
seed: 5
preregistration: preregistration/planted.md
models:
  - {id: first, vendor: simulated, seed: 3, distractor_sd: 0.3, item_slot_sd: 0.2, slot_bonus: [0.8, 0.0]}
datasets:
  - id: sources
    path: config/items/crossing.csv
    format: csv
    columns: {id: id, question: question, options: [answer_a, answer_b], key: null,
      fields: [claim, stale_source, recent_source]}
    licence: CC0-1.0
    source: written for this project
experiments:
  - id: notes
    design: crossing
    datasets: [sources]
    models: [first]
    prompt: {template: config/prompts/crossing_notes.j2, style: plain}
    read: {kind: logprob, top: 50}
    crossing: {conditions: all, cues: [currently, presently, updated, outdated]}
analysis: {resamples: 999, contrasts: config/contrasts/crossing.yaml}
"""
PLAN = """\
# Planted

```yaml predictions
- {id: P1, experiment: notes, model: first, subset: sources, quantity: serial.T1, rule: interval_below, value: 0}
- {id: P2, experiment: notes, model: first, subset: sources, quantity: verdict, rule: label_is, value: primacy}
- {id: P3, experiment: notes, model: first, subset: sources, quantity: contrast.loading, rule: interval_above, value: 0}
```
"""
FILES = ("config/items/crossing.csv", "config/prompts/crossing_notes.j2", "config/contrasts/crossing.yaml")


@pytest.fixture(scope="module")
def crossing(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("crossing") / "a project é")
    for name in FILES:
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_bytes((REPOSITORY / name).read_bytes())
    (project.root / "config/studies/planted.yaml").write_text(STUDY, encoding="utf-8")
    (project.root / "preregistration/planted.md").write_text(PLAN, encoding="utf-8")
    project.snakemake("freeze_preregistration")
    project.snakemake()
    return project


def test_784_calls_are_bought_and_none_of_them_twice(crossing) -> None:
    path = crossing.root / "ledger/planted/notes/first/sources.sqlite"
    with sqlite3.connect(path) as connection:
        (calls,) = connection.execute("select count(*) from calls where reply is not null").fetchone()
    assert calls == 784
    assert "Nothing to be done" in crossing.snakemake()


def test_predictions_are_judged(crossing) -> None:
    rows = read_table(crossing.root / "results/planted/predictions.parquet", SCHEMAS["predictions"]).to_pylist()
    verdicts = {row["prediction"]: row["verdict"] for row in rows}
    assert verdicts["P1"] == verdicts["P2"] == "confirmed"
    # The respondent's lean is the same in all conditions, so the items' differences are all zero.
    assert verdicts["P3"] in ("falsified", "not_evaluable")


def test_every_number_is_derived_again(crossing) -> None:
    text = (crossing.root / "results/planted/verification.txt").read_text(encoding="utf-8")
    assert "estimates: computed again from the outcomes" in text
    assert not re.search(r"^(FAIL|✗|not ok)", text, re.MULTILINE)
    assert (crossing.root / "results/planted/figures/hero.svg").is_file()


def test_a_changed_file_of_contrasts_is_a_changed_plan(crossing) -> None:
    with crossing.changed("config/contrasts/crossing.yaml", "bound: 0.15", "bound: 0.30"):
        output = crossing.snakemake(check=False)
    assert "analysis" in output
    assert "--amend" in output


def test_the_resolved_study_holds_the_contrasts(crossing) -> None:
    resolved = json.loads((crossing.root / "results/planted/study.json").read_text(encoding="utf-8"))
    text = json.dumps(resolved)
    assert "T1c.serial - T1.serial" in text
