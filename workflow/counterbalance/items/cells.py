"""Cells of a crossing that somebody has published, read strictly from a CSV, every field kept as written."""

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.canonical import canonical_json
from counterbalance.config import Dataset
from counterbalance.errors import InputError
from counterbalance.items.prepared import Prepared

CELLS = ("e1", "e2", "e3", "e4")
COLUMNS = ("condition", "item", *CELLS)
KEPT = "kept"
ANSWERS = ("A", "B")
"""What the two answers are called here: the file holds log P(B) - log P(A), and not their words."""

_SHOWN = 20
_LARGEST_NATS = 1e6
# pandas writes a column of flags with gaps as 1.0 and 0.0.
_FLAGS = dict.fromkeys(("1", "1.0", "true", "yes"), True) | dict.fromkeys(("0", "0.0", "false", "no"), False)
_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class CellRow:
    """One item in one condition: its line, its fields as written, e1 to e4 in nats, and whether it is kept."""

    line: int
    condition: str
    item: str
    written: Mapping[str, str]
    cells: tuple[float, ...]
    kept: bool | None


@dataclass(frozen=True)
class CellFile:
    """A checked file: no condition has an item twice.

    Attributes
    ----------
    rows
        In the file's order.
    kept_column
        The column of the filtered set, None where there is none.
    unused
        Columns that were not read.
    """

    rows: tuple[CellRow, ...]
    kept_column: str | None
    unused: tuple[str, ...]

    @property
    def items(self) -> tuple[str, ...]:
        """The items, in the order in which the file first names them."""
        return tuple(dict.fromkeys(row.item for row in self.rows))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions, in the order in which the file first names them."""
        return tuple(dict.fromkeys(row.condition for row in self.rows))

    @property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """By condition, the items of others that it has no row for; only conditions that lack one."""
        there = {(row.condition, row.item) for row in self.rows}
        lacking = {
            condition: tuple(item for item in self.items if (condition, item) not in there)
            for condition in self.conditions
        }
        return {condition: items for condition, items in lacking.items() if items}

    @property
    def gaps(self) -> list[str]:
        """What is missing, in words."""
        return [
            f"condition {condition!r}: no row for {len(items)} of {len(self.items)} items, {_listed(items)}"
            for condition, items in self.missing.items()
        ]


def read_cell_file(data: bytes, source: str, *, kept_column: str | None = None) -> CellFile:
    """Read the bytes of a CSV of cells, one row for each item in each condition that has it.

    Parameters
    ----------
    data
        UTF-8, with the columns `condition`, `item`, `e1`, `e2`, `e3`, `e4` (nats), in any order.
    source
        Name of the file, for messages.
    kept_column
        Column that says which items belong to the filtered set; `kept` where there is one.

    Raises
    ------
    InputError
        With file, line, column and value of everything that is wrong.
    """
    header, records = _records(data, source, kept_column)
    column = kept_column or (KEPT if KEPT in header else None)
    rows, problems = [], []
    for line, fields in records:
        try:
            rows.append(_parse(line, fields, column))
        except ValueError as error:
            problems.append(f"line {line}, {error}")
    problems += _inconsistent(rows) if not problems else []
    if problems:
        more = f"\n... and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        count = "1 thing is" if len(problems) == 1 else f"{len(problems)} things are"
        raise InputError(f"{source}: {count} wrong:\n" + "\n".join(problems[:_SHOWN]) + more)
    if not rows:
        raise InputError(f"{source}: no rows; expected a header {','.join(COLUMNS)} and one row per condition and item")
    return CellFile(tuple(rows), column, tuple(name for name in header if name not in {*COLUMNS, column}))


def prepare_cells(data: bytes, dataset: Dataset) -> Prepared:
    """Make the items of a file of published cells.

    Returns
    -------
    Prepared
        Ids are the file's names with their place in front, since the order of the items is part of what a seed
        reproduces. `strata` holds the file's name of the item, the line of each of its conditions and what the file
        says of the filtered set. Questions and answers are not known, and no text stands in for them.

    Raises
    ------
    InputError
        As `read_cell_file`.
    """
    file = read_cell_file(data, dataset.path, kept_column=dataset.kept_column)
    of_item = {name: [row for row in file.rows if row.item == name] for name in file.items}
    width = max(2, len(str(len(file.items))))
    rows = []
    for place, (name, mine) in enumerate(of_item.items(), start=1):
        strata = {"item": name, "kept": mine[0].kept, "lines": {row.condition: row.line for row in mine}}
        item = f"{place:0{width}d}-{name}"
        rows.append(
            {
                "item_id": item,
                "group_id": item,
                "stem": "",
                "option_ids": ["o1", "o2"],
                "option_texts": list(ANSWERS),
                "gold_option_id": None,
                "strata": canonical_json(strata).decode(),
                "source_row": mine[0].line,
            }
        )
    n = len(file.items)
    warnings = [f"{dataset.path}, {gap}" for gap in file.gaps]
    facts = {"rows": len(file.rows), "kept": n, "rejected": {}, "taken": n, "not_taken": 0, "warnings": warnings}
    facts |= {"conditions": list(file.conditions), "kept_column": file.kept_column}
    facts |= {"columns_not_used": list(file.unused)}
    return Prepared(table_from_rows(rows, SCHEMAS["items"]), table_from_rows([], SCHEMAS["rejected"]), facts)


def parse_nats(name: str, text: str) -> float:
    """Return a field as a number of nats.

    Raises
    ------
    ValueError
        With the field's name, what was found and what was expected.
    """
    try:
        # Python alone would also read 1_000 and digits of other scripts.
        value = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not abs(value) <= _LARGEST_NATS:
        raise ValueError(f"{name}: found {text!r}; expected a finite number of nats")
    return value


def parse_flag(name: str, text: str) -> bool:
    """Return a field as a flag.

    Raises
    ------
    ValueError
        With the field's name, what was found and what was expected.
    """
    found = _FLAGS.get(text.strip().lower())
    if found is None:
        raise ValueError(f"{name}: found {text!r}; expected 1 or 0, true or false, yes or no")
    return found


def _check_header(header: list[str], source: str, kept_column: str | None) -> None:
    separators = [name for sign, name in _SEPARATORS.items() if sign in "".join(header)]
    if separators and not set(header) & set(COLUMNS):
        raise InputError(
            f"{source} line 1: the columns are separated by {separators[0]}, found {','.join(header)!r}; expected "
            "commas, with a point in decimal numbers: save the file as CSV with commas"
        )
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise InputError(
            f"{source} line 1: no column {', '.join(missing)}; expected {','.join(COLUMNS)} and optionally {KEPT}, "
            f"found {','.join(header)}"
        )
    if kept_column is not None and kept_column not in header:
        raise InputError(
            f"{source} line 1: no column {kept_column}, which --kept-column, or kept_column in a study, names; found "
            f"{','.join(header)}: name one of these, or leave it out where the rule for flags is to decide"
        )


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def _records(data: bytes, source: str, kept_column: str | None) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    line = 1
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        header = [name.strip() for name in next(reader, [])]
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise InputError(f"{source} line 1: column {', '.join(twice)} is there twice; expected every column once")
        _check_header(header, source, kept_column)
        found, line = [], reader.line_num + 1
        for values in reader:
            if values and len(values) != len(header):
                raise InputError(
                    f"{source} line {line}: {len(values)} fields; the header has {len(header)}, and every row needs as "
                    "many: add what is missing, or put a field that holds a comma in double quotes"
                )
            if values:
                found.append((line, dict(zip(header, values, strict=True))))
            line = reader.line_num + 1
        return header, found
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: cannot be read as CSV in UTF-8: {error}; save it as UTF-8") from error
    except csv.Error as error:
        raise InputError(
            f"{source} line {line}: cannot be read as CSV: {error}; see to the quotes from there on"
        ) from error


def _parse(line: int, fields: dict[str, str], column: str | None) -> CellRow:
    names = {name: fields[name].strip() for name in ("condition", "item")}
    for name, text in names.items():
        if not text:
            raise ValueError(f"{name}: empty; expected a name")
    cells = tuple(parse_nats(name, fields[name]) for name in CELLS)
    kept = None if column is None else parse_flag(column, fields[column])
    return CellRow(line, names["condition"], names["item"], fields, cells, kept)


def _inconsistent(rows: list[CellRow]) -> list[str]:
    problems = []
    seen: dict[tuple[str, str], int] = {}
    kept: dict[str, CellRow] = {}
    for row in rows:
        first = seen.setdefault((row.condition, row.item), row.line)
        if first != row.line:
            problems.append(
                f"line {row.line}: condition {row.condition!r}, item {row.item!r} is on line {first} too; expected one "
                "row for an item in a condition: remove one, or average them"
            )
        before = kept.setdefault(row.item, row)
        if before.kept != row.kept:
            problems.append(
                f"line {row.line}: item {row.item!r} is {'kept' if row.kept else 'not kept'} here and otherwise on "
                f"line {before.line}; an item belongs to the filtered set in all conditions or in none: give it "
                "one flag"
            )
    return problems
