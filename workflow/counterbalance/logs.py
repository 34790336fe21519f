"""Logs of somebody else's runs, as a table of outcomes: for one-shot analysis without a study."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.errors import InputError

COLUMNS = ("item_id", "n_options", "correct_slot", "picked_slot")
OPTIONAL = ("group_id", "picked_option", "order")
_SHOWN = 20


def read_runs(path: Path) -> pa.Table:
    """Read a CSV of runs, one row a call.

    Parameters
    ----------
    path
        Columns `item_id`, `n_options`, `correct_slot`, `picked_slot`, in any order; slots count from 0; a blank
        `picked_slot` is a call without an answer. Three more may follow: `group_id`, equal for items that share a
        source, which then are one unit of inference; `picked_option`, any name that says which option was picked
        wherever it stood, without which nothing can be said of changed choices; `order`, any text that is equal where
        an item's options stood in the same order, without which every call counts as an order of its own.

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
    repeats: Counter[tuple[str, int]] = Counter()
    sizes: dict[str, tuple[int, int]] = {}
    groups: dict[str, tuple[str, int]] = {}
    orders: dict[str, dict[str, int]] = {}
    for line, fields in _records(path):
        try:
            item, k, gold, picked = _parse(fields)
            group = _group(fields, groups, line)
            option = _picked_option(fields, picked)
            first_k, first_line = sizes.setdefault(item, (k, line))
            if first_k != k:
                raise ValueError(f"n_options: item {item!r} has {k} here and {first_k} on line {first_line}")
        except ValueError as error:
            problems.append(f"line {line}, {error}")
            continue
        known = orders.setdefault(item, {})
        order = known.setdefault(fields.get("order", str(seen[item])), len(known))
        place = {"group_id": group, "arrangement_index": order, "repeat": repeats[item, order], "option_id": option}
        rows.append(_outcome(item, seen[item], k, gold, picked) | place)
        seen[item] += 1
        repeats[item, order] += 1
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
            given = sorted(name for name in header if name not in OPTIONAL)
            if given != sorted(COLUMNS) or len(set(header)) != len(header):
                raise InputError(
                    f"{path} line 1: header is {','.join(header)!r}; expected {','.join(COLUMNS)}, and "
                    f"{', '.join(OPTIONAL)} as well where they are known"
                )
            found, line = [], reader.line_num + 1
            for values in reader:
                if len(values) != len(header):
                    raise InputError(f"{path} line {line}: {len(values)} fields; expected {len(header)}")
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


def _group(fields: dict[str, str], seen: dict[str, tuple[str, int]], line: int) -> str:
    item = fields["item_id"]
    group = fields.get("group_id", item)
    if not group.strip():
        raise ValueError("group_id: empty; expected the group's name, equal to item_id for an item on its own")
    first, first_line = seen.setdefault(item, (group, line))
    if first != group:
        raise ValueError(f"group_id: item {item!r} is in {group!r} here and in {first!r} on line {first_line}")
    return group


def _picked_option(fields: dict[str, str], picked: int | None) -> str | None:
    if "picked_option" not in fields:
        return None
    option = fields["picked_option"].strip()
    if bool(option) != (picked is not None):
        raise ValueError(
            f"picked_option: found {fields['picked_option']!r} beside picked_slot {fields['picked_slot']!r}; expected "
            "both or neither"
        )
    return option or None


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
