"""Plans that were frozen with earlier releases still hold: a setting added since is no change while it is not used."""

import shutil
from pathlib import Path

import pytest

from counterbalance.config import load_study
from counterbalance.prereg.gate import changed_plan, present
from counterbalance.prereg.record import read_chain

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["demo", "crossing"])
def test_no_setting_was_added_to_a_frozen_plan(name: str) -> None:
    study = load_study(ROOT / "config" / "studies" / f"{name}.yaml")
    plan, now, _ = present(study)
    for record in read_chain(study.layout):
        assert [line for line in changed_plan(study, record, plan, now) if "(not there) ->" in line] == []


def test_a_setting_added_since_counts_where_it_is_used(tmp_path: Path) -> None:
    text = (ROOT / "config" / "studies" / "crossing.yaml").read_text(encoding="utf-8")
    assert "\nanalysis:\n" in text
    folder = tmp_path / "config" / "studies"
    folder.mkdir(parents=True)
    (tmp_path / "Snakefile").touch()
    for entry in ("items", "prompts", "contrasts"):
        shutil.copytree(ROOT / "config" / entry, tmp_path / "config" / entry)
    shutil.copytree(ROOT / "preregistration", tmp_path / "preregistration")
    path = folder / "crossing.yaml"
    path.write_text(text.replace("\nanalysis:\n", "\nanalysis:\n  stream: legacy\n"), encoding="utf-8")
    study = load_study(path)
    plan, now, record = present(study)
    assert record is not None
    assert any('stream: (not there) -> "legacy"' in line for line in changed_plan(study, record, plan, now))
