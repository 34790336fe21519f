"""A whole project in a folder with a space and an accent, with planted respondents instead of a model."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from small_study import TEMPLATE, sums_csv, write_files

REPOSITORY = Path(__file__).parents[2]

STUDY = """\
schema: counterbalance/study/1
id: planted
title: Planted biases
question: Does the pipeline find a bias that was planted, and none where none was?
seed: 11
preregistration: preregistration/planted.md
models:
  - {id: biased, vendor: simulated, seed: 3, ability_mean: 1.0, slot_bonus: [2.0, 0.0], call_noise: 0.3,
     latency_ms: 2.0, error_rate: 0.02}
  - {id: fair, vendor: simulated, seed: 4, ability_mean: 1.5, slot_bonus: [0.0], call_noise: 1.0}
datasets:
  - id: sums
    path: config/items/sums.csv
    format: csv
    columns: {options: [a, b, c], key: key, id: id}
    key: {type: letter}
    licence: CC0-1.0
    source: made by the test
experiments:
  - id: letters
    design: mcq
    datasets: [sums]
    models: [biased, fair]
    prompt: {template: config/prompts/planted.j2, style: plain}
    read: {kind: generate}
analysis: {resamples: 999, run_resamples: 199}
"""
PLAN = """\
# Planted biases

The first slot of one respondent gets a bonus; the other gets none.

```yaml predictions
- {id: P1, experiment: letters, model: biased, subset: sums, quantity: picks.slot_1, rule: at_least, value: 0.5}
- {id: P2, experiment: letters, model: biased, subset: sums, quantity: relabelling.accuracy, rule: p_below, value: 0.05}
- {id: P3, experiment: letters, model: fair, subset: sums, quantity: relabelling.accuracy, rule: p_below, value: 0.05}
```
"""


@dataclass(frozen=True)
class Project:
    root: Path

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def snakemake(self, *arguments: str, check: bool = True) -> str:
        command = ("snakemake", *arguments, "--cores", "2", "--configfile", "config/studies/planted.yaml")
        done = self.run(*command, check=check)
        return done.stdout + done.stderr

    @contextmanager
    def changed(self, name: str, old: str, new: str) -> Iterator[None]:
        """Have words of a file stand in the place of others for a while, the first time these stand there."""
        path = self.root / name
        original = path.read_text(encoding="utf-8")
        assert old in original, f"{old!r} is not in {name}"
        path.write_text(original.replace(old, new, 1), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(original, encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "PYTHONPATH": str(self.root / "workflow"), "MPLBACKEND": "agg"}


def make_project(root: Path) -> Project:
    for name in ("Snakefile", "workflow", "profiles", "envs"):
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            root.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / name)
    files = {
        "config/studies/planted.yaml": STUDY,
        "config/items/sums.csv": sums_csv(24),
        "config/prompts/planted.j2": TEMPLATE,
        "preregistration/planted.md": PLAN,
    }
    write_files(root, files)
    return Project(root)
