from pathlib import Path

import pytest
from sample import make_sample

from counterbalance.artifacts import SCHEMAS, read_record, read_table, write_record, write_table
from counterbalance.canonical import sha256_bytes
from counterbalance.config import Study
from counterbalance.errors import GateError, InputError
from counterbalance.report import render
from counterbalance.stages.report import render_report


def make(root: Path) -> Study:
    return make_sample(root, models=["smollm2"], subsets=["copying"])


def test_report_and_figures_are_written_with_records(tmp_path: Path) -> None:
    study = make(tmp_path / "a study é")
    path = render_report(study)
    first = path.read_bytes()
    assert path == study.layout.report
    record = read_record(path)
    assert record.sha256 == sha256_bytes(first)
    assert record.frozen_sha256 == read_record(study.layout.estimates).frozen_sha256
    used = {entry.path for entry in record.materials}
    assert {"results/sample/estimates.parquet", "results/sample/items/copying.parquet"} <= used
    assert {"preregistration/frozen/sample-1.json", "preregistration/frozen/sample-2.json"} <= used
    names = ("crossing.html.j2", "mcq.html.j2", "parts.html.j2", "planned.html.j2", "report.html.j2", "style.css.j2")
    assert set(record.facts["templates"]) == set(names)
    figures = [entry for entry in study.layout.figures.iterdir() if entry.suffix in (".svg", ".png")]
    # The cover twice, the plot of all cells, and of one cell in two experiments five.
    assert len(figures) == 8
    assert all(read_record(figure).stage == "report" for figure in figures)
    render_report(study)
    assert path.read_bytes() == first
    assert str(tmp_path).encode() not in first


def test_figures_of_cells_that_are_gone_are_removed_and_other_files_stay(tmp_path: Path) -> None:
    study = make(tmp_path)
    render_report(study)
    kept, stale = study.layout.figures / "mine.svg", study.layout.figures / "letters.old.copying.picks.svg"
    kept.write_text("<svg/>")
    (study.layout.figures / "letters.smollm2.copying.picks.svg").rename(stale)
    record = stale.with_name("letters.smollm2.copying.picks.svg.record.json")
    record.rename(stale.with_name(stale.name + ".record.json"))
    render_report(study)
    assert not stale.exists()
    assert not stale.with_name(stale.name + ".record.json").exists()
    assert kept.exists()
    assert record.exists()


def test_a_changed_plan_stops_it(tmp_path: Path) -> None:
    study = make(tmp_path)
    plan = tmp_path / "preregistration" / "sample.md"
    plan.write_text(plan.read_text() + "\nafterthought\n")
    with pytest.raises(GateError, match="plan text changed"):
        render_report(study)


def test_estimates_of_another_frozen_record_stop_it(tmp_path: Path) -> None:
    study = make(tmp_path)
    path, schema = study.layout.estimates, SCHEMAS["estimates"]
    write_record(
        path,
        study.root,
        stage="combine",
        inputs=[],
        command=[],
        config_sha256=study.sha256,
        code_sha256=study.sha256,
        schema=schema,
        written=write_table(path, read_table(path, schema), schema),
        frozen_sha256=sha256_bytes(b"another"),
    )
    with pytest.raises(GateError, match=r"run `counterbalance combine --study sample.yaml` again"):
        render_report(study)


@pytest.mark.parametrize(
    "artifact", ["estimates.parquet", "rejected/copying.parquet", "outcomes/letters/smollm2/copying.parquet"]
)
def test_a_missing_artifact_is_named(tmp_path: Path, artifact: str) -> None:
    study = make(tmp_path)
    (study.layout.results / artifact).unlink()
    with pytest.raises(InputError, match=f"{artifact}: .* table is not there"):
        render_report(study)


def test_missing_templates_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make(tmp_path)
    monkeypatch.setattr(render, "TEMPLATES", tmp_path / "nowhere")
    with pytest.raises(InputError, match="restore the folder workflow/report"):
        render_report(study)
