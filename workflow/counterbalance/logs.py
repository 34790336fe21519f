"""Logs of somebody else's runs, as a table of outcomes: for one-shot analysis without a study."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.errors import InputError

COLUMNS = ("item_id", "n_options", "correct_slot", "picked_slot")
_SHOWN = 20


def read_runs(path: Path) -> pa.Table:
    """Read a CSV of runs, one row a call.

    Parameters
    ----------
    path
        Columns `item_id`, `n_options`, `correct_slot`, `picked_slot`, in any order; slots count from 0; a blank
        `picked_slot` is a call without an answer.

    Returns
    -------
    pyarrow.Table
        Outcomes of the declared schema, one per row.

    Raises
    ------
    InputError
        With file, line, column and value of everything that is wrong.
    """
    rows, problems = [], []
    seen: Counter[str] = Counter()
    sizes: dict[str, tuple[int, int]] = {}
    for line, fields in _records(path):
        try:
            item, k, gold, picked = _parse(fields)
            first_k, first_line = sizes.setdefault(item, (k, line))
            if first_k != k:
                raise ValueError(f"n_options: item {item!r} has {k} here and {first_k} on line {first_line}")
        except ValueError as error:
            problems.append(f"line {line}, {error}")
            continue
        rows.append(_outcome(item, seen[item], k, gold, picked))
        seen[item] += 1
    if problems:
        more = f"\n... and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InputError(f"{path}: {len(problems)} rows are wrong:\n" + "\n".join(problems[:_SHOWN]) + more)
    if not rows:
        raise InputError(f"{path}: no rows; expected a header {','.join(COLUMNS)} and one row a call")
    return table_from_rows(rows, SCHEMAS["outcomes"])


def _records(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle, strict=True)
            header = next(reader, [])
            if sorted(header) != sorted(COLUMNS):
                raise InputError(f"{path} line 1: header is {','.join(header)!r}; expected {','.join(COLUMNS)}")
            found, line = [], reader.line_num + 1
            for values in reader:
                if len(values) != len(COLUMNS):
                    raise InputError(f"{path} line {line}: {len(values)} fields; expected {len(COLUMNS)}")
                found.append((line, dict(zip(header, values, strict=True))))
                line = reader.line_num + 1
            return found
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV in UTF-8: {error}") from error


def _parse(fields: dict[str, str]) -> tuple[str, int, int, int | None]:
    item = fields["item_id"]
    if not item.strip():
        raise ValueError("item_id: empty; expected the item's id")
    k = _whole(fields, "n_options", 2, 26)
    gold = _whole(fields, "correct_slot", 0, k - 1)
    picked = None if not fields["picked_slot"].strip() else _whole(fields, "picked_slot", 0, k - 1)
    return item, k, gold, picked


def _whole(fields: dict[str, str], name: str, low: int, high: int) -> int:
    text = fields[name].strip()
    if not (text.isascii() and text.isdigit()) or not low <= int(text) <= high:
        raise ValueError(f"{name}: found {fields[name]!r}; expected a whole number from {low} to {high}")
    return int(text)


def _outcome(item: str, index: int, k: int, gold: int, picked: int | None) -> dict[str, Any]:
    return {
        "trial_id": f"{item}.log.{index:06d}",
        "item_id": item,
        "group_id": item,
        "condition": "mcq",
        "arrangement_index": index,
        "repeat": 0,
        "extra": False,
        "n_options": k,
        "arrangement": None,
        "gold_slot": gold,
        "outcome": "unparsed" if picked is None else "ok",
        "slot": picked,
        "option_id": None,
        "correct": None if picked is None else picked == gold,
        "tie": None,
        "slot_logprobs": None,
        "slot_censored": None,
        "label_mass": None,
        "candidates": [],
        "rule": "log",
        "parser": "log",
        "model_returned": None,
    }
