"""The workflow as a user runs it: frozen first, nothing twice, only what changed, and kill -9 at any moment."""

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest
from planted_project import Project

from counterbalance.artifacts import SCHEMAS, logical_digest, read_table

FINAL_TABLES = ("estimates", "predictions")


def jobs(output: str) -> set[str]:
    return set(re.findall(r"^(?:local)?(?:rule|checkpoint) (\w+):", output, re.MULTILINE))


def answered(project: Project) -> int:
    total = 0
    for path in (project.root / "ledger").rglob("*.sqlite"):
        with sqlite3.connect(path) as connection:
            total += connection.execute("select count(*) from calls where reply is not null").fetchone()[0]
    return total


def test_no_reply_is_bought_before_the_freeze(project: Project) -> None:
    output = project.snakemake(check=False)
    assert "freeze" in output
    assert not (project.root / "ledger").exists()
    assert not (project.root / "results" / "planted" / "replies").exists()


def test_a_planted_bias_is_found_and_a_planted_null_is_not(finished: Project) -> None:
    rows = read_table(finished.root / "results/planted/predictions.parquet", SCHEMAS["predictions"]).to_pylist()
    assert {row["prediction"]: row["verdict"] for row in rows} == {
        "P1": "confirmed",
        "P2": "confirmed",
        "P3": "falsified",
    }


def test_a_second_run_has_nothing_to_do(finished: Project) -> None:
    before = answered(finished)
    assert "Nothing to be done" in finished.snakemake()
    assert answered(finished) == before == 2 * 24 * 6


def test_both_entry_points_plan_the_same_jobs(finished: Project) -> None:
    top = jobs(finished.snakemake("-n", "--forceall"))
    inner = jobs(finished.snakemake("-n", "--forceall", "--snakefile", "workflow/Snakefile"))
    assert top == inner
    assert {"query_replies", "render_report", "verify_results", "all"} <= top
    # A study without a scout has no job of scouts.
    assert not top & {"expand_scout", "scout_cell", "decide_cells"}


def test_an_edit_runs_only_what_follows_from_it(finished: Project) -> None:
    before = answered(finished)
    try:
        with finished.changed("workflow/report/report.html.j2", "</main>", "<!-- edited --></main>"):
            by_page = jobs(finished.snakemake())
            with finished.changed("workflow/counterbalance/reading/answer.py", '"""', '"""Edited. '):
                by_reading = jobs(finished.snakemake())
    finally:
        finished.snakemake()
    assert "render_report" in by_page
    assert not {"score_replies", "estimate_cell", "combine_estimates"} & by_page
    assert "score_replies" in by_reading
    assert not {"prepare_items", "expand_trials", "query_replies"} & (by_page | by_reading)
    assert answered(finished) == before


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        ("config/studies/planted.yaml", "resamples: 999", "resamples: 1999", "analysis"),
        ("preregistration/planted.md", "value: 0.5}", "value: 0.4}", "prediction"),
        ("config/items/sums.csv", "What is 1 + 1?", "What is 1+1?", "sums"),
        ("config/prompts/planted.j2", "Answer:", "Answer: ", "planted.j2"),
    ],
)
def test_a_plan_changed_after_the_freeze_stops_and_says_what(finished: Project, file, old, new, named) -> None:
    frozen = sorted((finished.root / "preregistration/frozen").iterdir())
    content = [entry.read_bytes() for entry in frozen]
    with finished.changed(file, old, new):
        output = finished.snakemake("--forceall", check=False)
    assert named in output
    assert "sha256:" in output
    assert "--amend" in output
    assert sorted((finished.root / "preregistration/frozen").iterdir()) == frozen
    assert [entry.read_bytes() for entry in frozen] == content


def test_settings_on_the_command_line_are_refused(finished: Project) -> None:
    assert "--config is not read" in finished.snakemake("-n", "--config", "seed=12", check=False)


def test_deleting_results_costs_no_call(finished: Project) -> None:
    before = answered(finished)
    digests = final_digests(finished)
    shutil.rmtree(finished.root / "results")
    finished.snakemake()
    assert answered(finished) == before
    assert final_digests(finished) == digests


def final_digests(project: Project) -> list[str]:
    return [
        logical_digest(read_table(project.root / f"results/planted/{name}.parquet", SCHEMAS[name]))
        for name in FINAL_TABLES
    ]


def test_killed_at_random_moments_nothing_is_lost_or_asked_twice(finished: Project, project: Project) -> None:
    project.snakemake("freeze_preregistration")
    moments = random.Random(5)
    # What is there when it is killed, some moment later: by the clock alone it would not have begun on a slow machine.
    for sign in ("ledger/**/*.sqlite", "results/planted/replies/**/*.parquet", "results/planted/cells/**/*.parquet"):
        run = subprocess.Popen(
            ["snakemake", "--cores", "2", "--configfile", "config/studies/planted.yaml"],
            cwd=project.root,
            env=project.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while run.poll() is None and not any(project.root.glob(sign)):
            time.sleep(0.01)
        time.sleep(moments.uniform(0.0, 0.5))
        os.killpg(run.pid, signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
    project.snakemake()
    assert answered(project) == 2 * 24 * 6
    assert final_digests(project) == final_digests(finished)
