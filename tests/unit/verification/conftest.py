"""A finished study with planted respondents, made once by the real stages; every test gets its own copy."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from small_study import TEMPLATE, study_text, sums_csv, write_files
from verification_cases import finish

from counterbalance.artifacts import SCHEMAS, read_record, read_table, table_from_rows, write_table
from counterbalance.artifacts.records import record_path
from counterbalance.canonical import parse_json, sha256_file
from counterbalance.config import Study, load_study
from counterbalance.files import write_bytes, write_json
from counterbalance.prereg.record import inspect_chain
from counterbalance.verification.manifest import build_manifest

RESPONDENT = "{id: biased, vendor: simulated, seed: 3, ability_mean: 1.0, slot_bonus: [2.0, 0.0], call_noise: 0.3}"
STUDY = study_text(
    ("id: tiny", "id: planted"),
    ("seed: 7", "seed: 11"),
    ("preregistration: null", "preregistration: preregistration/planted.md"),
    ("{id: planted, vendor: simulated}", RESPONDENT),
    ("path: sums.csv", "path: config/items/sums.csv"),
    ("models: [planted]", "models: [biased]"),
    ("template: letter.j2", "template: config/prompts/planted.j2"),
    ("read: {kind: generate}\n", "read: {kind: generate}\nanalysis: {resamples: 299, run_resamples: 99}\n"),
)
PLAN = """\
# Planted biases

```yaml predictions
- {id: P1, experiment: letters, model: biased, subset: sums, quantity: picks.slot_1, rule: at_least, value: 0.5}
```
"""


@dataclass(frozen=True)
class Project:
    root: Path

    @property
    def study(self) -> Study:
        return load_study(self.root / "config/studies/planted.yaml")

    @property
    def results(self) -> Path:
        return self.root / "results/planted"

    def path(self, name: str) -> Path:
        return self.root / name

    def flip(self, name: str, where: float = 0.5) -> None:
        """Change one bit of a file."""
        path = self.path(name)
        data = bytearray(path.read_bytes())
        data[int(where * (len(data) - 1))] ^= 1
        self.replace(name, bytes(data))

    def replace(self, name: str, data: bytes) -> None:
        self.path(name).unlink()
        self.path(name).write_bytes(data)

    def rows(self, name: str, kind: str) -> list[dict[str, Any]]:
        return read_table(self.path(name), SCHEMAS[kind]).to_pylist()

    def forge(self, name: str, kind: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
        """Change a table as somebody would who wants it unseen: its record and all that name it follow."""
        path, rows = self.path(name), self.rows(name, kind)
        change(rows)
        written = write_table(path, table_from_rows(rows, SCHEMAS[kind]), SCHEMAS[kind])
        new = {"sha256": sha256_file(path), **vars(written)}
        self.edit_record(name, lambda record: record.update(new))
        self.follow()

    def edit_record(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        path = record_path(self.path(name))
        body = parse_json(path.read_bytes(), source=str(path))
        change(body["artifact"])
        write_json(path, body)

    def follow(self) -> None:
        """Rewrite the hashes of inputs in all records, and the manifest."""
        for path in self.results.rglob("*.record.json"):
            name = str(path.relative_to(self.root)).removesuffix(".record.json")

            def update(record: dict[str, Any]) -> None:
                for entry in record["materials"]:
                    source = self.path(entry["path"])
                    entry["sha256"] = sha256_file(source)
                    if record_path(source).is_file():
                        entry["digest"] = read_record(source).digest

            self.edit_record(name, update)
        chain, _ = inspect_chain(self.study.layout)
        write_bytes(self.study.layout.manifest, build_manifest(self.study, chain).dumps())


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("verification") / "a project é"
    files = {
        "Snakefile": "",
        "config/studies/planted.yaml": STUDY,
        "config/items/sums.csv": sums_csv(5),
        "config/prompts/planted.j2": TEMPLATE,
        "preregistration/planted.md": PLAN,
    }
    write_files(root, files)
    project = Project(root)
    finish(project.study)
    return project


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Project:
    root = tmp_path / "copy"
    shutil.copytree(finished.root, root)
    return Project(root)
