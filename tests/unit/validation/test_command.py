"""`counterbalance validate` at its small size, through Snakemake, and the documented run."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from counterbalance.cli import validate as module
from counterbalance.cli.validate import validate
from counterbalance.errors import ConfigError
from counterbalance.validation.docs import BEGIN, END
from counterbalance.validation.text import study_markdown

DOCS = Path(__file__).parents[3] / "docs"


def test_small_study_runs_through_the_workflow(tmp_path):
    out = tmp_path / "a folder"
    done = CliRunner().invoke(validate, ["--size", "small", "--cores", "2", "--out", str(out)])
    assert done.exit_code == 0, (done.output, done.exception)
    study = json.loads((out / "validation.json").read_text(encoding="utf-8"))
    assert [found["name"] for found in study["scenarios"]] == ["N3b", "N7", "C8"]
    # Of 200 cells without bias, Binomial(200, .07) exceeds 27 once in ten thousand times.
    false = sum(found["rejected"]["relabelling.accuracy"] for found in study["scenarios"] if found["name"][0] == "N")
    assert false <= 27
    assert "### Type I error" in done.output
    made = out / "validation.md"
    before = made.stat().st_mtime_ns
    assert CliRunner().invoke(validate, ["--size", "small", "--cores", "2", "--out", str(out)]).exit_code == 0
    assert made.stat().st_mtime_ns == before


def test_an_installation_without_the_workflow_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SNAKEFILE", tmp_path / "Snakefile")
    with pytest.raises(ConfigError, match="from a clone"):
        module.run_workflow("small", 1, tmp_path)


def test_a_small_run_is_not_put_into_the_documentation(tmp_path):
    done = CliRunner().invoke(validate, ["--docs", str(tmp_path)])
    assert isinstance(done.exception, ConfigError)
    assert "--size full" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_the_documented_tables_are_those_of_the_stored_run():
    study = json.loads((DOCS / "validation.json").read_text(encoding="utf-8"))
    page = (DOCS / "validation.md").read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0] == study_markdown(study)
