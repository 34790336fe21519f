"""Small studies that ask the loopback vendors, and ways to run their stages without Snakemake."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .settings import VENDORS, Json

if TYPE_CHECKING:
    from counterbalance.config import Study

TEMPLATE = "{{ question }}\n{% for o in options %}{{ o.label }}. {{ o.text }}\n{% endfor %}Answer with one letter:"
KEYS = {vendor: f"sk-{vendor}-canary-5d1e8c0b7a" for vendor in VENDORS}


def key_env(vendor: str) -> str:
    """Return the name of the environment variable in which a vendor's key stands."""
    return f"LOOPBACK_{vendor.upper()}_KEY"


def set_keys() -> None:
    """Put the canary keys into this process's environment."""
    os.environ.update({key_env(vendor): key for vendor, key in KEYS.items()})


def study_body(
    urls: dict[str, str],
    *,
    datasets: dict[str, int],
    models: dict[str, dict[str, Json]] | None = None,
    accounts: dict[str, dict[str, Json]] | None = None,
    money: dict[str, Json] | None = None,
    read: dict[str, Json] | None = None,
    arrangement: dict[str, Json] | None = None,
    experiment: dict[str, Json] | None = None,
    **more: Json,
) -> dict[str, Json]:
    """Return a study with one model and one account a vendor, as the study file holds it.

    Parameters
    ----------
    urls
        Base URL by vendor; each named vendor is asked.
    datasets
        Number of items by data set.
    models, accounts
        By vendor: further fields of its model and account.
    money, read, arrangement, experiment, more
        Those blocks, and further fields of the experiment and of the study.
    """
    prices = {vendor: {"input": 1.0, "output": 4.0} for vendor in urls}
    return {
        "schema": "counterbalance/study/1",
        "id": "loop",
        "title": "Loopback vendors",
        "question": "Is every reply bought once?",
        "seed": 7,
        "preregistration": None,
        "models": [_model(vendor, url) | (models or {}).get(vendor, {}) for vendor, url in urls.items()],
        "accounts": [{"id": vendor, "key_env": key_env(vendor)} | (accounts or {}).get(vendor, {}) for vendor in urls],
        "money": {"prices": prices} | (money or {}),
        "datasets": [_dataset(name) for name in datasets],
        "experiments": [
            {
                "id": "letters",
                "design": "mcq",
                "datasets": list(datasets),
                "models": list(urls),
                "prompt": {"template": "config/prompts/letter.j2", "style": "chat"},
                "read": read or {"kind": "generate", "temperature": None},
                "arrangement": arrangement or {"scheme": "exhaustive"},
                **(experiment or {}),
            }
        ],
        "analysis": {"resamples": 199, "run_resamples": 99},
        **more,
    }


def _model(vendor: str, url: str) -> dict[str, Json]:
    return {"id": vendor, "vendor": vendor, "model": f"{vendor}-2026-01-01", "account": vendor, "base_url": url}


def _dataset(name: str) -> dict[str, Json]:
    return {
        "id": name,
        "path": f"config/items/{name}.csv",
        "format": "csv",
        "columns": {"options": ["a", "b", "c"], "key": "key", "id": "id"},
        "key": {"type": "letter"},
        "licence": "CC0-1.0",
        "source": "made by the test",
    }


def write_study(root: Path, body: dict[str, Json], datasets: dict[str, int], *, padding: str = "") -> Path:
    """Write a study and its files below a folder; return the study file. JSON is YAML too.

    Parameters
    ----------
    padding
        Words put before each question, to make prompts as long as real ones.
    """
    path = root / "config/studies/loop.yaml"
    for folder in ("config/studies", "config/items", "config/prompts"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    # A project's root is known by its Snakefile.
    if not (root / "workflow").is_dir():
        (root / "Snakefile").touch()
    path.write_text(json.dumps(body), encoding="utf-8")
    (root / "config/prompts/letter.j2").write_text(TEMPLATE, encoding="utf-8")
    for name, count in datasets.items():
        with (root / f"config/items/{name}.csv").open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow(["id", "question", "a", "b", "c", "key"])
            for n in range(count):
                question = f"{padding}What is {n} + {n} in {name}?"
                writer.writerow([f"{name}-{n:05d}", question, 2 * n, 2 * n + 1, 2 * n + 2, "A"])
    return path


def freeze_study(path: Path) -> Study:
    """Run the stages up to the frozen record, in this process; return the study."""
    from counterbalance.config import load_study
    from counterbalance.stages.expand import expand_trials
    from counterbalance.stages.freeze import freeze
    from counterbalance.stages.prepare import prepare_items

    study = load_study(path)
    for dataset in study.used_datasets():
        prepare_items(study, dataset.id)
    for experiment, dataset in study.trial_sets():
        expand_trials(study, experiment.id, dataset.id)
    freeze(study)
    return study


def prompts_of(study: Study, dataset: str) -> Sequence[str]:
    """Return the words of each trial's prompt."""
    from counterbalance.artifacts import SCHEMAS, read_table

    table = read_table(study.layout.trials("letters", dataset), SCHEMAS["trials"], ["prompt"])
    prompts = [json.loads(text) for text in table.column("prompt").to_pylist()]
    return [prompt["messages"][-1]["content"] for prompt in prompts]
