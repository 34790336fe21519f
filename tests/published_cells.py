"""A study of published cells: its files, its stages as the workflow runs them, and what `analyze crossing` says."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from small_study import write_files

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.cli.main import main
from counterbalance.config import Study, load_study

Row = dict[str, Any]

REPOSITORY = Path(__file__).parents[1]
AD_SERIES = REPOSITORY.parent / "shared" / "data" / "ad_series" / "T1_T1c_cells.csv"
CONTRASTS = REPOSITORY / "config" / "contrasts" / "ad_series.yaml"
HEADER = "condition,item,kept,e1,e2,e3,e4"
# By condition: token, role, serial. Order is 0 but for the last item, which the file leaves out.
PLANTED = {"T3": (-0.2, 0.0, -0.7), "T1": (-0.2, 0.0, -0.4), "T1c": (-0.2, 0.1, -0.9), "T5": (-0.2, 0.5, -0.2)}


def planted_file(items: int = 9, seed: int = 3) -> str:
    """Return a file of cells whose conditions are not in the order of their names, nor its items."""
    rng = random.Random(seed)
    names = [f"thing {9 - place}" if place % 2 else f"Pair/{place}" for place in range(items)]
    rows = [HEADER]
    for condition, (token, role, serial) in PLANTED.items():
        for name in names:
            last = name == names[-1]
            t, r, s = (amount + rng.gauss(0, 0.15) for amount in (token, role, serial))
            o = 0.7 if last else rng.gauss(0, 0.05)
            cells = (t + r + o + s, t + r - o - s, t - r + o - s, t - r - o + s)
            rows.append(f"{condition},{name},{'no' if last else 'yes'},{','.join(map(repr, cells))}")
    return "\n".join(rows) + "\n"


def settings(stream: str = "modern", **dataset: object) -> Row:
    """Return the settings of a study of published cells, as its file has them."""
    return {
        "schema": "counterbalance/study/1",
        "id": "cells",
        "title": "Published cells",
        "question": "First or last?",
        "seed": 1,
        "preregistration": None,
        "models": [{"id": "published", "vendor": "cells", "described_as": "a model of theirs"}],
        "datasets": [
            {
                "id": "theirs",
                "path": "cells.csv",
                "format": "cells",
                "licence": "CC0-1.0",
                "source": "written for this test",
                **dataset,
            }
        ],
        "experiments": [
            {
                "id": "crossed",
                "design": "crossing",
                "datasets": ["theirs"],
                "models": ["published"],
                "read": {"kind": "cells"},
            }
        ],
        "analysis": {"stream": stream, "contrasts": "contrasts.yaml"},
    }


def make_study(root: Path, cells: str, value: Row | None = None) -> Study:
    """Write a study and its files."""
    files = {
        "cells.csv": cells,
        "contrasts.yaml": CONTRASTS.read_text(encoding="utf-8"),
        "cells.yaml": json.dumps(value or settings()),
        "Snakefile": "",
    }
    write_files(root, files)
    return load_study(root / "cells.yaml")


def run(study: Study, *words: str) -> None:
    """Run one stage by its command.

    Raises
    ------
    AssertionError
        If it ends in an error, with its message.
    """
    done = CliRunner().invoke(main, [words[0], "--study", str(study.path), *words[1:]])
    if done.exit_code:
        raise AssertionError(f"{' '.join(words)}: {done.output} {done.exception!r}")


def finish(study: Study) -> dict[str, Row]:
    """Run all stages up to the manifest; return the estimates by quantity."""
    place = ("--experiment", "crossed", "--model", "published", "--dataset", "theirs")
    run(study, "resolve")
    run(study, "prepare", *place[4:])
    run(study, "expand", *place[:2], *place[4:])
    run(study, "freeze")
    run(study, "query", *place, "--progress", "plain")
    run(study, "score", *place)
    run(study, "contrast", *place)
    run(study, "combine")
    run(study, "report")
    run(study, "manifest")
    return estimates_of(study.layout.estimates)


def estimates_of(path: Path) -> dict[str, Row]:
    return {row["quantity"]: row for row in read_table(path, SCHEMAS["estimates"]).to_pylist()}


def analysed(cells: Path, contrasts: Path, stream: str) -> list[Row]:
    """Return what `analyze crossing` gives for a file."""
    words = ["analyze", "crossing", str(cells), "--contrasts", str(contrasts), "--stream", stream, "--json"]
    done = CliRunner().invoke(main, words)
    if done.exit_code:
        raise AssertionError(done.output)
    rows: list[Row] = json.loads(done.stdout)
    return rows


def differences(estimates: Mapping[str, Row], rows: Sequence[Row]) -> tuple[int, list[str]]:
    """Return how many numbers of `analyze crossing` were looked up in a study, and which are not the same."""
    pairs: list[tuple[str, object, object]] = []
    for row in rows:
        suffix = "" if row["set"] == "kept" else "@all"
        ratio = row["quantity"] == "ratio_of_means"
        kind = "ratio_of_means" if ratio else "contrast"
        name = f"{kind}.{row['contrast']}" if "contrast" in row else f"{row['quantity']}.{row['condition']}"
        main = estimates[name + suffix]
        if ratio:
            pairs.append((name + suffix, row["estimate"], main["estimate"]))
            continue
        wide = row["level"] == 0.95
        found = main if wide else estimates[f"tost.{name}{suffix}"]
        told = {
            **{key: (row[key], found[key]) for key in ("estimate", "low", "high")},
            "p": (row["p"] if wide else row["p_tost"], found["p"]),
            "sd": (row["sd"], estimates[f"sd.{name}{suffix}"]["estimate"]),
            "negative": (row["n_negative"], estimates[f"negative.{name}{suffix}"]["estimate"]),
            "holm": (row.get("p_adjusted"), main["p_adjusted"]) if "contrast" in row else (None, None),
        }
        if row.get("null_verdict"):
            null = estimates[f"null.{row['quantity']}.{row['condition']}{suffix}"]
            told["null"] = (row["null_verdict"], null["label"])
        pairs += [(f"{name}{suffix} {row['level']} {key}", *pair) for key, pair in told.items()]
    return len(pairs), [f"{name}: {one!r} and {other!r}" for name, one, other in pairs if one != other]
