"""A small project by hand: a study file, its plan, a prompt, data, and the tables that a freeze needs."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from small_study import study_text, sums_csv, trial_row

from counterbalance.artifacts import SCHEMAS, table_from_rows, write_record, write_table
from counterbalance.config import Study, load_study
from counterbalance.rerun import code_sha256, settings_sha256

RESPONDENTS = """\
  - {id: planted, vendor: simulated, slot_bonus: [0.5, 0.0]}
  - {id: fair, vendor: simulated}
"""
STUDY = study_text(
    ("preregistration: null", "preregistration: preregistration/tiny.md"),
    ("  - {id: planted, vendor: simulated}\n", RESPONDENTS),
    ("models: [planted]", "models: [planted, fair]"),
    ("read: {kind: generate}\n", "read: {kind: generate}\nanalysis: {alpha: 0.05}\n"),
)
PLAN = """\
# What we expect

“Curly quotes”, so that the bytes matter.

```yaml predictions
- {id: P1, experiment: letters, model: planted, subset: sums, quantity: accuracy.slot_1, rule: at_least, value: 0.5}
- {id: P2, experiment: letters, model: fair, subset: sums, quantity: V.corrected, rule: at_most, value: 0.1}
```
"""


@dataclass(frozen=True)
class Project:
    root: Path

    @property
    def study(self) -> Study:
        return load_study(self.root / "tiny.yaml")

    def read(self, name: str) -> str:
        return (self.root / name).read_bytes().decode()

    def write(self, name: str, text: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.read(name)
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {name}"
        self.write(name, text.replace(old, new))

    def frozen(self, number: int = 1) -> str:
        return f"preregistration/frozen/tiny-{number}.json"

    def make_tables(self, stem: str = "What is {n} + {n}?") -> None:
        """Write items and trials with current records, as prepare and expand would."""
        study, layout = self.study, self.study.layout
        items = [_item(n, stem) for n in range(3)]
        trials = [_trial(item, index) for item in items for index in range(2)]
        for path, rows, name, stage, inputs, ids in (
            (layout.items("sums"), items, "items", "prepare", ["sums.csv"], {"dataset": "sums"}),
            (
                layout.trials("letters", "sums"),
                trials,
                "trials",
                "expand",
                ["letter.j2"],
                {"experiment": "letters", "dataset": "sums"},
            ),
        ):
            write_record(
                path,
                self.root,
                stage=stage,
                inputs=[self.root / entry for entry in inputs],
                command=["by", "hand"],
                config_sha256=settings_sha256(study, stage, **ids),
                code_sha256=code_sha256(stage),
                schema=SCHEMAS[name],
                written=write_table(path, table_from_rows(rows, SCHEMAS[name]), SCHEMAS[name]),
            )


def _item(n: int, stem: str) -> dict[str, object]:
    return {
        "item_id": f"sum-{n}",
        "group_id": f"sum-{n}",
        "stem": stem.format(n=n),
        "option_ids": ["o1", "o2"],
        "option_texts": [str(2 * n), str(2 * n + 1)],
        "gold_option_id": "o1",
        "strata": json.dumps({}),
        "source_row": n,
    }


def _trial(item: dict[str, object], index: int) -> dict[str, object]:
    order = ["o1", "o2"] if index == 0 else ["o2", "o1"]
    return trial_row(str(item["item_id"]), index, order, {"text": f"{item['stem']} {order}"})


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("template"))
    made.write("tiny.yaml", STUDY)
    made.write("preregistration/tiny.md", PLAN)
    made.write("letter.j2", "{{ question }}\nAnswer:")
    made.write("sums.csv", sums_csv(3))
    made.make_tables()
    return made


@pytest.fixture
def project(template: Project, tmp_path: Path) -> Project:
    shutil.copytree(template.root, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)
