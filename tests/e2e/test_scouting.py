"""The scout in the workflow: cells that the frozen rule leaves out cost their scout and nothing else."""

import re
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest
from planted_project import PLAN, STUDY, Project, make_project

from counterbalance.artifacts import SCHEMAS, logical_digest, read_table

N_ITEMS, ORDERS, LOOKED_AT = 24, 6, 10
ABLE = "  - {id: able, vendor: simulated, seed: 5, ability_mean: 40.0}\n"
PREDICTION = """\
- {id: P4, experiment: letters, model: able, subset: sums, quantity: accuracy, rule: at_least, value: 0.9}
```
"""
BOUGHT = {"biased": N_ITEMS * ORDERS, "able": 2 * LOOKED_AT, "fair": N_ITEMS * ORDERS}


def scouted_project(root: Path) -> Project:
    project = make_project(root)
    text = STUDY.replace("datasets:\n  - id: sums", f"{ABLE}datasets:\n  - id: sums")
    text = text.replace("models: [biased, fair]", "models: [biased, able, fair]")
    text = text.replace(
        "read: {kind: generate}\n", "read: {kind: generate}\n    scout: {items: 10, keep: {max_accuracy: 0.95}}\n"
    )
    assert "scout:" in text
    assert "able, fair" in text
    (project.root / "config/studies/planted.yaml").write_text(text, encoding="utf-8")
    (project.root / "preregistration/planted.md").write_text(PLAN.replace("```\n", PREDICTION), encoding="utf-8")
    return project


@dataclass(frozen=True)
class Run:
    project: Project
    output: str


@pytest.fixture(scope="module")
def scouted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    project = scouted_project(tmp_path_factory.mktemp("scouted") / "a project é")
    project.snakemake("freeze_preregistration")
    return Run(project, project.snakemake())


def jobs(output: str) -> set[str]:
    return set(re.findall(r"^(?:local)?(?:rule|checkpoint) (\w+):", output, re.MULTILINE))


def bought(project: Project) -> dict[str, int]:
    found = {}
    for path in (project.root / "ledger").rglob("sums.sqlite"):
        with sqlite3.connect(path) as connection:
            count = connection.execute("select count(*) from calls where reply is not null").fetchone()[0]
        found[path.parent.name] = count
    return found


def digests(project: Project) -> list[str]:
    results = project.root / "results/planted"
    tables = [logical_digest(read_table(results / f"{n}.parquet", SCHEMAS[n])) for n in ("estimates", "predictions")]
    return [*tables, (results / "scout/summary.json").read_text()]


def test_a_skipped_cell_costs_its_scout_and_a_kept_one_nothing_more(scouted: Run) -> None:
    left = N_ITEMS * ORDERS - 2 * LOOKED_AT
    assert f"scouts: 2 cells are asked in full, 1 are skipped; saved: {left} calls" in scouted.output
    assert "skipped letters/able/sums: scout accuracy 1.000 is above max_accuracy 0.95" in scouted.output
    assert {"scout_cell", "decide_cells"} <= jobs(scouted.output)
    assert bought(scouted.project) == BOUGHT
    results = scouted.project.root / "results/planted"
    assert not (results / "replies/letters/able").exists()
    assert (results / "verification.txt").read_text().endswith(": verified\n")
    rows = read_table(results / "predictions.parquet", SCHEMAS["predictions"]).to_pylist()
    found = {row["prediction"]: row for row in rows}
    assert found["P4"]["verdict"] == "not_evaluable"
    assert "above max_accuracy" in found["P4"]["reason"]
    assert found["P2"]["verdict"] == "confirmed"
    assert "scout accuracy 1.000 is above max_accuracy 0.95" in (results / "report.html").read_text(encoding="utf-8")


def test_a_second_run_has_nothing_to_do(scouted: Run) -> None:
    assert "Nothing to be done" in scouted.project.snakemake()
    assert bought(scouted.project) == BOUGHT


def test_a_skipped_cell_is_not_asked_even_when_told_to(scouted: Run) -> None:
    output = scouted.project.snakemake("results/planted/replies/letters/able/sums.parquet", check=False)
    assert "the frozen rule leaves this cell out" in output
    assert bought(scouted.project) == BOUGHT


def test_deleting_results_costs_no_call_and_decides_the_same(scouted: Run) -> None:
    before = digests(scouted.project)
    shutil.rmtree(scouted.project.root / "results")
    scouted.project.snakemake()
    assert digests(scouted.project) == before
    assert bought(scouted.project) == BOUGHT


def test_no_scout_before_the_freeze(tmp_path: Path) -> None:
    project = scouted_project(tmp_path / "a project é")
    assert "freeze" in project.snakemake(check=False)
    assert not (project.root / "ledger").exists()
