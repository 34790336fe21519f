"""Published cells through the whole workflow: frozen, read from the file, estimated, reported, derived again."""

import json
import sqlite3

import pytest
from planted_project import REPOSITORY, make_project
from published_cells import analysed, differences, estimates_of, planted_file, settings
from small_study import write_files

CONTRASTS = "config/contrasts/ad_series.yaml"
CELLS = "config/items/cells.csv"
PLAN = """\
# Published cells

```yaml predictions
- {id: P1, experiment: crossed, model: published, subset: theirs, quantity: contrast.A1, rule: interval_below, value: 0}
```
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("cells") / "a project é")
    value = {**settings("legacy", path=CELLS), "id": "planted", "preregistration": "preregistration/planted.md"}
    value["analysis"]["contrasts"] = CONTRASTS
    files = {
        CONTRASTS: (REPOSITORY / CONTRASTS).read_text(encoding="utf-8"),
        CELLS: planted_file(),
        "config/studies/planted.yaml": json.dumps(value),
        "preregistration/planted.md": PLAN,
    }
    write_files(project.root, files)
    project.snakemake("freeze_preregistration")
    project.snakemake()
    return project


def test_every_number_is_taken_once_and_a_second_run_does_nothing(cells) -> None:
    path = cells.root / "ledger/planted/crossed/published/theirs.sqlite"
    with sqlite3.connect(path) as connection:
        (calls,) = connection.execute("select count(*) from calls where reply is not null").fetchone()
    assert calls == 9 * 4 * 4
    assert "Nothing to be done" in cells.snakemake()


def test_the_study_says_what_analyze_says_and_is_verified(cells) -> None:
    results = cells.root / "results/planted"
    rows = analysed(cells.root / CELLS, cells.root / CONTRASTS, "legacy")
    n, odd = differences(estimates_of(results / "estimates.parquet"), rows)
    assert (n > 700, odd) == (True, [])
    text = (results / "verification.txt").read_text(encoding="utf-8")
    assert "estimates: computed again from the outcomes" in text
    assert "FAIL" not in text
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "no model was asked for these numbers" in page
    assert "legacy stream" in page


def test_a_changed_number_stops_the_next_run(cells) -> None:
    with cells.changed(CELLS, "T1,Pair/0,yes,-", "T1,Pair/0,yes,-1"):
        output = cells.snakemake(check=False)
    assert "data set theirs changed" in output
    assert "--amend" in output


def test_another_stream_is_another_plan(cells) -> None:
    with cells.changed("config/studies/planted.yaml", '"legacy"', '"modern"'):
        output = cells.snakemake(check=False)
    assert "analysis" in output
    assert "--amend" in output
