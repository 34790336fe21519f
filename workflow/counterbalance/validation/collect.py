"""The jobs' files to the study's: numbers, text and figures."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from counterbalance.canonical import Json, parse_json
from counterbalance.codedigest import stage_digest
from counterbalance.config import Analysis
from counterbalance.errors import InputError
from counterbalance.files import write_bytes, write_json
from counterbalance.simulation.scenarios import SCENARIOS
from counterbalance.validation.figures import draw_study
from counterbalance.validation.jobs import Size
from counterbalance.validation.rows import coverage_rows, rejection_rows
from counterbalance.validation.text import rows_markdown, study_markdown

SCHEMA = "counterbalance/validation/1"
_CODE = ("validation.jobs", "designs.mcq.score", "designs.mcq.estimate")


def code_sha256() -> str:
    """Digest of the code that the study runs."""
    return stage_digest(*_CODE)


def write_job(path: Path, value: Json) -> None:
    """Write one job's counts."""
    write_json(path, value)


def collect_study(size: Size, jobs: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Join the jobs' counts and write `validation.json`, `validation.md` and the figures.

    Raises
    ------
    InputError
        If a file is not a job's.
    """
    study: dict[str, Any] = {
        "schema": SCHEMA,
        "size": size.name,
        "resamples": size.resamples,
        "alpha": Analysis().alpha,
        "code_sha256": code_sha256(),
        "scenarios": [],
        "shapes": [],
        "detectable": [],
    }
    for path in jobs:
        value = parse_json(path.read_bytes(), source=str(path))
        match value:
            case {"scenario": found}:
                study["scenarios"].append(found)
            case {"shapes": [*rows]}:
                study["shapes"] += rows
            case {"detectable": [*rows]}:
                study["detectable"] += rows
            case _:
                raise InputError(f"{path}: not the counts of a validation job; delete it and run `validate` again")
    order = list(SCENARIOS)
    study["scenarios"].sort(key=lambda found: order.index(found["name"]))
    study["shapes"].sort(key=lambda row: row["n_items"])
    write_study(study, folder)
    return study


def write_study(study: dict[str, Any], folder: Path) -> None:
    """Write a study's files."""
    rows = {
        "tests": [asdict(row) for row in rejection_rows(study["scenarios"])],
        "coverage": [asdict(row) for row in coverage_rows(study["scenarios"])],
    }
    text = json.dumps(study | rows, indent=1, sort_keys=True, allow_nan=False)
    write_bytes(folder / "validation.json", f"{text}\n".encode())
    page = f"# Validation\n\n{study_markdown(study)}\n### Every rate\n\n{rows_markdown(study)}"
    write_bytes(folder / "validation.md", page.encode())
    for picture in draw_study(study):
        write_bytes(folder / "figures" / f"{picture.name}.svg", picture.file)
