"""Label probabilities against generated letters in the workflow, where a scout leaves out one of the cells compared."""

from pathlib import Path
from typing import Any

import pytest
from planted_project import STUDY, Project, make_project

from counterbalance.artifacts import SCHEMAS, read_table

MODELS = """\
models:
  - {id: able, vendor: simulated, seed: 5, ability_mean: 40.0}
  - {id: fair, vendor: simulated, seed: 4, ability_mean: 1.5, call_noise: 1.0}
"""
PROBABILITIES = """\
  - id: probabilities
    design: mcq
    datasets: [sums]
    models: [able, fair]
    prompt: {template: config/prompts/planted.j2, style: plain}
    read: {kind: logprob, top: 20}
    arrangement: {scheme: cyclic}
"""
PLACE = "experiment: probabilities, subset: sums, quantity: agreement@with=letters, rule: at_least, value: 0.34"
PLAN = f"""\
```yaml predictions
- {{id: P1, model: fair, {PLACE}}}
- {{id: P2, model: able, {PLACE}}}
```
"""


def compared_project(root: Path) -> Project:
    project = make_project(root)
    head, _, rest = STUDY.partition("models:\n")
    text = head + MODELS + "datasets:\n" + rest.partition("datasets:\n")[2]
    text = text.replace("models: [biased, fair]", "models: [able, fair]")
    text = text.replace(
        "read: {kind: generate}\n",
        "read: {kind: generate}\n    scout: {items: 10, keep: {max_accuracy: 0.95}}\n" + PROBABILITIES,
    )
    (project.root / "config/studies/planted.yaml").write_text(text, encoding="utf-8")
    (project.root / "preregistration/planted.md").write_text(PLAN, encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = compared_project(tmp_path_factory.mktemp("compared") / "a project é")
    project.snakemake("freeze_preregistration")
    project.snakemake()
    return project


def rows(project: Project, name: str) -> list[dict[str, Any]]:
    return list(read_table(project.root / f"results/planted/{name}.parquet", SCHEMAS[name]).to_pylist())


def test_what_both_experiments_asked_is_compared_and_judged(compared: Project) -> None:
    found = {row["model"]: row for row in rows(compared, "estimates") if row["quantity"] == "agreement@with=letters"}
    fair, able = found["fair"], found["able"]
    # The respondent's noise is that of an item in an order, whichever way it is read.
    assert (fair["estimate"], fair["n_items"], fair["n_calls"]) == (1.0, 24, 72)
    assert "72 prompts of letters have no counterpart here" in fair["reason"]
    assert (able["status"], able["estimate"]) == ("undefined", None)
    assert "letters/able/sums was not asked: scout accuracy 1.000 is above max_accuracy 0.95" in able["reason"]
    verdicts = {row["prediction"]: row["verdict"] for row in rows(compared, "predictions")}
    assert verdicts == {"P1": "confirmed", "P2": "not_evaluable"}


def test_it_is_derived_again_and_a_second_run_has_nothing_to_do(compared: Project) -> None:
    assert (compared.root / "results/planted/verification.txt").read_text().endswith(": verified\n")
    assert "Nothing to be done" in compared.snakemake()
