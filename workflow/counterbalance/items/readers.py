"""Reading data files as they are: every value a text as written, no guessing of types or of missing values."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from counterbalance.canonical import parse_json
from counterbalance.config import Dataset
from counterbalance.errors import InputError
from counterbalance.items.csvscan import scan_csv
from counterbalance.items.problems import Problems

_BOM = b"\xef\xbb\xbf"
_WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Row:
    """One record: its row number (physical line for text files, from 1) and its values by column name.

    Values are texts, whole numbers, None or lists of these; anything else is left for the validator to refuse.
    """

    number: int
    values: Mapping[str, Any]


@dataclass(frozen=True)
class RawTable:
    """A file's columns, in order, and its rows."""

    columns: Sequence[str]
    rows: Sequence[Row]


def read_rows(data: bytes, dataset: Dataset, problems: Problems) -> RawTable:
    """Read a data file's bytes in the declared format.

    Raises
    ------
    InputError
        If the bytes are not of that format at all. What is wrong with single rows goes to `problems`.
    """
    if not data.removeprefix(_BOM).strip():
        raise InputError(f"{dataset.path}: the file is empty; expected items")
    match dataset.format:
        case "csv" | "csv_headerless":
            return _read_csv(data, dataset, problems)
        case "jsonl":
            return _read_jsonl(data, dataset, problems)
        case "parquet":
            return _read_parquet(data, dataset)
        case "cells":
            raise InputError(f"{dataset.path}: published cells hold no items; they are read by `prepare_cells`")


def declared_columns(dataset: Dataset) -> list[str]:
    """Return every column that the study names, each once."""
    columns = dataset.columns
    options = [columns.options] if isinstance(columns.options, str) else columns.options
    named = [columns.question, *options, columns.key, columns.id, columns.group, *columns.strata, *columns.fields]
    return list(dict.fromkeys(name for name in named if name is not None))


def _read_csv(data: bytes, dataset: Dataset, problems: Problems) -> RawTable:
    data = _utf8(data, dataset.path)
    shape = scan_csv(data, problems)
    problems.check()
    width = shape.widths[0]
    names = [f"column_{number}" for number in range(1, width + 1)]
    try:
        frame = pl.read_csv(
            data[: shape.end],
            has_header=False,
            schema=dict.fromkeys(names, pl.String),
            empty_string_is_null=False,
            glob=False,
        )
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{dataset.path}: not readable as CSV: {error}") from error
    if frame.height != len(shape.lines) or frame.width != width:
        raise InputError(
            f"{dataset.path}: {frame.height} records were read where the file has {len(shape.lines)}; "
            "please report this file, since one of two readers takes it wrongly"
        )
    rows, lines = frame.rows(), shape.lines
    if dataset.format == "csv":
        names, rows, lines = list(rows[0]), rows[1:], lines[1:]
        _check_names(names, dataset.path)
    return RawTable(
        names, [Row(line, dict(zip(names, row, strict=True))) for line, row in zip(lines, rows, strict=True)]
    )


def _read_jsonl(data: bytes, dataset: Dataset, problems: Problems) -> RawTable:
    lines = _utf8(data, dataset.path).split(b"\n")
    ended = lines[-1] == b""
    if ended:
        lines.pop()
    rows: list[Row] = []
    columns: dict[str, None] = {}
    for number, line in enumerate(lines, start=1):
        torn = number == len(lines) and not ended
        value = _parse_line(line, number, dataset.path, problems, torn=torn)
        if isinstance(value, dict):
            rows.append(Row(number, value))
            columns |= dict.fromkeys(value)
    return RawTable(list(columns), rows)


def _parse_line(line: bytes, number: int, name: str, problems: Problems, *, torn: bool) -> Any:
    if not line.strip():
        problems.add(number, None, "the line is blank; delete it")
        return None
    try:
        value = parse_json(line.decode("utf-8"), source="the line")
    # Python's reader also stops at numbers of thousands of digits and at very deep nesting.
    except (InputError, ValueError, RecursionError) as error:
        end = "; the file ends in the middle of it, so copy the file again" if torn else ""
        problems.add(number, None, f"{error}{end}")
        return None
    if not isinstance(value, dict):
        problems.add(number, None, "expected one JSON object per line")
    return value


def _read_parquet(data: bytes, dataset: Dataset) -> RawTable:
    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise InputError(f"{dataset.path}: not a readable Parquet file ({error}); fetch it again") from error
    used = declared_columns(dataset)
    for name in frame.columns:
        if name in used and not _is_text_like(frame.schema[name]):
            raise InputError(
                f"{dataset.path}, column {name!r}: its type is {frame.schema[name]}; expected text, whole numbers or "
                "lists of these, since other types would have to be guessed at; store the column as text"
            )
    names = [name for name in frame.columns if name in used]
    rows = [
        Row(number, dict(zip(names, row, strict=True)))
        for number, row in enumerate(frame.select(names).iter_rows(), start=1)
    ]
    return RawTable(frame.columns, rows)


def _is_text_like(kind: pl.DataType) -> bool:
    if isinstance(kind, pl.List | pl.Array):
        return isinstance(kind.inner, pl.DataType) and _is_text_like(kind.inner)
    return kind.is_integer() or isinstance(kind, pl.String | pl.Categorical | pl.Enum | pl.Null)


def _utf8(data: bytes, name: str) -> bytes:
    if data.startswith(_WIDE_BOMS):
        raise InputError(f"{name}: the file is UTF-16; save it as UTF-8")
    data = data.removeprefix(_BOM)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name} row {line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        ) from error
    return data


def _check_names(names: Sequence[str], path: str) -> None:
    hint = "correct the header, or use `format: csv_headerless` if row 1 is an item"
    for index, column in enumerate(names):
        if not column.strip():
            raise InputError(f"{path} row 1: column {index + 1} has no name; {hint}")
        if column in names[:index]:
            raise InputError(f"{path} row 1: column name {column!r} is there twice; {hint}")
