"""From a data file's bytes to the tables of items and of excluded rows."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.canonical import Json, sha256_json
from counterbalance.config import Dataset
from counterbalance.config.names import fold
from counterbalance.errors import ConfigError, InputError
from counterbalance.items.cells import prepare_cells
from counterbalance.items.columns import check_columns
from counterbalance.items.folding import fold_text
from counterbalance.items.keys import counting_note
from counterbalance.items.prepared import Prepared
from counterbalance.items.problems import Problems
from counterbalance.items.readers import RawTable, read_rows
from counterbalance.items.validate import Candidate, RowReader

_OPTION_LINE = re.compile(r"^[ \t]*[(\[]?([A-Z])[.)\]:][ \t]", re.MULTILINE)
_ROWS_SHOWN = 10


def prepare_table(data: bytes, dataset: Dataset, seed: int) -> Prepared:
    """Read and check a data file.

    Parameters
    ----------
    data
        The file's bytes.
    dataset
        Its declaration.
    seed
        The study's seed; decides which items a random `take` draws.

    Returns
    -------
    Prepared
        Options have the ids o1, o2, ... in the file's order.

    Raises
    ------
    InputError
        Naming everything that is malformed at once: file, row, field, what was expected and what to do.
    ConfigError
        If the declaration contradicts itself.
    """
    if dataset.format == "cells":
        return prepare_cells(data, dataset)
    _check_declaration(dataset)
    problems = Problems(dataset.path)
    table = read_rows(data, dataset, problems)
    if not table.rows:
        problems.check()
        raise InputError(f"{dataset.path}: the file holds no items")
    unused = check_columns(table, dataset)
    reader = RowReader(dataset, problems)
    found = [item for row in table.rows if (item := reader.read(row)) is not None]
    _check_ids(found, problems, dataset)
    found = _judge_repeats(found, problems, set(dataset.exclude))
    kept = [item for item in found if not item.excluded]
    notes = [note for note in [_counting_note(dataset, reader)] if note]
    for note in notes:
        problems.note(note)
    problems.check()
    taken = _take(kept, dataset, seed)
    notes += [note for note in [_option_line_note(taken)] if note]
    facts = _facts(table, found, kept, taken)
    facts |= {"columns_not_used": unused, "warnings": [f"{dataset.path}: {note}" for note in notes]}
    return Prepared(_items_table(taken), _rejected_table(found), facts)


def _check_declaration(dataset: Dataset) -> None:
    if (dataset.columns.key is None) != (dataset.key is None):
        raise ConfigError(
            f"data set {dataset.id!r}: `columns.key` names the column and `key` says how it is written; give both, or "
            "set `columns.key: null` and leave `key` out if the items have no correct answer"
        )
    if isinstance(dataset.columns.options, str) and dataset.format.startswith("csv"):
        raise ConfigError(
            f"data set {dataset.id!r}: a CSV file has no lists; name one column per option in `columns.options`"
        )
    columns = dataset.columns
    options = [columns.options] if isinstance(columns.options, str) else columns.options
    used = Counter(name for name in (columns.question, *options, columns.key, columns.id) if name is not None)
    for name, times in used.items():
        if times > 1:
            raise ConfigError(f"data set {dataset.id!r}: column {name!r} is named for two things; name each once")


def _check_ids(found: Iterable[Candidate], problems: Problems, dataset: Dataset) -> None:
    field = dataset.columns.id
    seen: dict[str, Candidate] = {}
    for item in found:
        first = seen.setdefault(fold(item.item_id), item)
        if first is item or (field is None and _content(first) == _content(item)):
            continue
        if first.item_id == item.item_id:
            text = f"id {item.item_id!r} is also that of row {first.row}; every item needs its own"
        else:
            text = f"id {item.item_id!r} and {first.item_id!r} of row {first.row} differ by case or form; rename one"
        problems.add(item.row, field, text)


def _judge_repeats(found: Iterable[Candidate], problems: Problems, rules: set[str]) -> list[Candidate]:
    """Exclude, if the rule `duplicate_items` is named, what asks the same as an earlier row; else it is a problem."""
    judged = []
    seen: dict[tuple[str, frozenset[str]], Candidate] = {}
    for item in found:
        first = item if item.excluded else seen.setdefault(_content(item), item)
        if first is not item:
            ids = "" if first.item_id == item.item_id else f" (ids {first.item_id!r} and {item.item_id!r})"
            reason = f"the same question and options as in row {first.row}{ids}"
            if _gold_text(first) != _gold_text(item):
                problems.add(item.row, None, f"{reason}, but with another key; correct one, or delete both")
            elif "duplicate_items" not in rules:
                problems.add(item.row, None, f"{reason}; delete one, or name the rule 'duplicate_items' in `exclude`")
            item = replace(item, excluded=(("duplicate_items", reason),))
        judged.append(item)
    return judged


def _gold_text(item: Candidate) -> str | None:
    return None if item.gold is None else fold_text(item.options[item.gold])


def _content(item: Candidate) -> tuple[str, frozenset[str]]:
    return fold_text(item.stem), frozenset(fold_text(option) for option in item.options)


def _counting_note(dataset: Dataset, reader: RowReader) -> str | None:
    if dataset.key is None or not reader.key_numbers:
        return None
    numbers = Counter(number for number, _ in reader.key_numbers)
    return counting_note(numbers, dataset.key, max(count for _, count in reader.key_numbers))


def _option_line_note(taken: Sequence[Candidate]) -> str | None:
    rows = [
        item.row
        for item in taken
        if any(ord(letter) - ord("A") < len(item.options) for letter in _OPTION_LINE.findall(item.stem))
    ]
    if not rows:
        return None
    more = ", ..." if len(rows) > _ROWS_SHOWN else ""
    return (
        f"{len(rows)} questions have lines that begin as an option does ('A. '), so that a model may take them for "
        f"options: rows {', '.join(map(str, rows[:_ROWS_SHOWN]))}{more}"
    )


def _take(kept: Sequence[Candidate], dataset: Dataset, seed: int) -> list[Candidate]:
    if not kept:
        raise InputError(f"{dataset.path}: no item is left after the rules in `exclude`; nothing can be asked")
    take = dataset.take
    if take is None:
        return list(kept)
    if take.n > len(kept):
        raise InputError(f"{dataset.path}: `take.n` is {take.n}, but there are only {len(kept)} valid items")
    if take.how == "first":
        return list(kept[: take.n])
    # The rank of an item depends on itself alone, so that rows added or deleted elsewhere hardly change the draw.
    return sorted(kept, key=lambda item: sha256_json(["take", seed, item.item_id]))[: take.n]


def _facts(
    table: RawTable, found: Sequence[Candidate], kept: Sequence[Candidate], taken: Sequence[Candidate]
) -> dict[str, Json]:
    return {
        "rows": len(table.rows),
        "kept": len(kept),
        "rejected": dict(Counter(rule for item in found for rule, _ in item.excluded)),
        "taken": len(taken),
        "not_taken": len(kept) - len(taken),
        "keys": dict(Counter(item.key_value for item in kept if item.key_value is not None)),
        "options": dict(Counter(str(len(item.options)) for item in kept)),
        "stems_with_crlf": sum(item.line_ends_folded for item in kept),
    }


def _items_table(taken: Iterable[Candidate]) -> pa.Table:
    rows = [
        {
            "item_id": item.item_id,
            "group_id": item.group_id,
            "stem": item.stem,
            "option_ids": [f"o{number}" for number in range(1, len(item.options) + 1)],
            "option_texts": list(item.options),
            "gold_option_id": None if item.gold is None else f"o{item.gold + 1}",
            "strata": item.strata,
            "source_row": item.row,
        }
        for item in taken
    ]
    return table_from_rows(rows, SCHEMAS["items"])


def _rejected_table(found: Iterable[Candidate]) -> pa.Table:
    rows = [
        {"source_row": item.row, "item_id": item.item_id, "rule": rule, "reason": reason}
        for item in found
        for rule, reason in item.excluded
    ]
    return table_from_rows(rows, SCHEMAS["rejected"])
