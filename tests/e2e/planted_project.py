"""A whole project in a folder with a space and an accent, with planted respondents instead of a model."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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
TEMPLATE = """\
{{ question }}
{% for option in options %}{{ option.label }}. {{ option.text }}
{% endfor %}Answer:"""


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
        "config/items/sums.csv": items(),
        "config/prompts/planted.j2": TEMPLATE,
        "preregistration/planted.md": PLAN,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return Project(root)


def items() -> str:
    rows = [f"sum-{n:02d},What is {n} + {n}?,{2 * n},{2 * n + 1},{2 * n + 2},A" for n in range(1, 25)]
    return "\n".join(["id,question,a,b,c,key", *rows]) + "\n"
