"""Cells of a crossing that somebody has published or measured, read strictly from a CSV."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counterbalance.contrasts.table import EffectTable, Flags
from counterbalance.designs.crossing.effects import CELLS, FLAG_ORDER, FLAG_TOKEN, flagged, half_effects
from counterbalance.errors import InputError

COLUMNS = ("condition", "item", *CELLS)
KEPT = "kept"
_SHOWN = 20
_LARGEST_NATS = 1e6
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True)
class Cells:
    """The cells of a file.

    Attributes
    ----------
    table
        Half-effects by condition, items in the order in which the file first names them.
    kept
        Which items belong to the filtered set, shape (items,).
    kept_by
        Where that comes from, in words.
    unused
        Columns that were not read.
    """

    table: EffectTable
    kept: Flags
    kept_by: str
    unused: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    line: int
    condition: str
    item: str
    cells: tuple[float, ...]
    kept: bool | None


def read_cells(path: Path, *, kept_column: str | None = None) -> Cells:
    """Read a CSV of cells, one row for each item in each condition.

    Parameters
    ----------
    path
        Columns `condition`, `item`, `e1`, `e2`, `e3`, `e4` (nats), in any order.
    kept_column
        Column that says which items belong to the filtered set; `kept` where there is one. Without it an item is kept
        if it is flagged in no condition.

    Raises
    ------
    InputError
        With file, line, column and value of everything that is wrong.
    """
    header, records = _records(path)
    column = kept_column or (KEPT if KEPT in header else None)
    missing = [name for name in (*COLUMNS, *([column] if column else [])) if name not in header]
    if missing:
        raise InputError(
            f"{path} line 1: no column {', '.join(missing)}; expected {','.join(COLUMNS)} and optionally {KEPT}, "
            f"found {','.join(header)}"
        )
    rows, problems = [], []
    for line, fields in records:
        try:
            rows.append(_parse(line, fields, column))
        except ValueError as error:
            problems.append(f"line {line}, {error}")
    problems += _inconsistent(rows) if not problems else []
    if problems:
        more = f"\n... and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InputError(f"{path}: {len(problems)} things are wrong:\n" + "\n".join(problems[:_SHOWN]) + more)
    if not rows:
        raise InputError(f"{path}: no rows; expected a header {','.join(COLUMNS)} and one row per condition and item")
    unused = tuple(name for name in header if name not in {*COLUMNS, column})
    return _cells(rows, column, unused)


def _records(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            reader = csv.reader(handle, strict=True)
            header = [name.strip() for name in next(reader, [])]
            twice = sorted({name for name in header if header.count(name) > 1})
            if twice:
                raise InputError(f"{path} line 1: column {', '.join(twice)} is there twice; expected every column once")
            found, line = [], reader.line_num + 1
            for values in reader:
                if values and len(values) != len(header):
                    raise InputError(f"{path} line {line}: {len(values)} fields; the header has {len(header)}")
                if values:
                    found.append((line, dict(zip(header, values, strict=True))))
                line = reader.line_num + 1
            return header, found
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as CSV in UTF-8: {error}") from error


def _parse(line: int, fields: dict[str, str], column: str | None) -> _Row:
    names = {name: fields[name].strip() for name in ("condition", "item")}
    for name, text in names.items():
        if not text:
            raise ValueError(f"{name}: empty; expected a name")
    cells = tuple(_nats(name, fields[name]) for name in CELLS)
    kept = None
    if column is not None:
        kept = _FLAGS.get(fields[column].strip().lower())
        if kept is None:
            raise ValueError(f"{column}: found {fields[column]!r}; expected 1 or 0, true or false, yes or no")
    return _Row(line, names["condition"], names["item"], cells, kept)


def _nats(name: str, text: str) -> float:
    try:
        # Python alone would also read 1_000 and digits of other scripts.
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not abs(value) <= _LARGEST_NATS:
        raise ValueError(f"{name}: found {text!r}; expected a finite number of nats")
    return value


def _inconsistent(rows: list[_Row]) -> list[str]:
    problems = []
    seen: dict[tuple[str, str], int] = {}
    kept: dict[str, _Row] = {}
    for row in rows:
        first = seen.setdefault((row.condition, row.item), row.line)
        if first != row.line:
            problems.append(f"line {row.line}: condition {row.condition!r}, item {row.item!r} is on line {first} too")
        before = kept.setdefault(row.item, row)
        if before.kept != row.kept:
            problems.append(
                f"line {row.line}: item {row.item!r} is {'kept' if row.kept else 'not kept'} here and otherwise on "
                f"line {before.line}; an item belongs to the filtered set in all conditions or in none"
            )
    conditions = dict.fromkeys(row.condition for row in rows)
    problems += [
        f"condition {condition!r}: no row for item {item!r} of line {row.line}; every condition needs every item"
        for condition in conditions
        for item, row in kept.items()
        if (condition, item) not in seen
    ]
    return problems


def _cells(rows: list[_Row], column: str | None, unused: tuple[str, ...]) -> Cells:
    items = tuple(dict.fromkeys(row.item for row in rows))
    by_condition: dict[str, dict[str, dict[str, float]]] = {}
    keep = np.ones(len(items), dtype=bool)
    for condition in dict.fromkeys(row.condition for row in rows):
        by_item = {row.item: row.cells for row in rows if row.condition == condition}
        effects = half_effects([by_item[item] for item in items])
        by_condition[condition] = {
            name: dict(zip(items, values.tolist(), strict=True)) for name, values in effects.items()
        }
        keep &= ~flagged(effects["token"], effects["order"])
    kept_by = f"unflagged in every condition (|token| <= {FLAG_TOKEN} and |order| <= {FLAG_ORDER} nats)"
    if column is not None:
        marked = {row.item for row in rows if row.kept}
        keep = np.array([item in marked for item in items], dtype=bool)
        kept_by = f"marked in column {column!r}"
    return Cells(EffectTable.build(items, by_condition), keep, kept_by, unused)
