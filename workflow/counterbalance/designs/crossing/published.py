"""Published cells in the place of an asked model: their trials are addresses in a file, their replies its fields.

Nothing is made up for what a file of cells does not hold. A trial's prompt says where in the file its number stands,
answers are called A and B, and a reply is the field as it is written there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS
from counterbalance.canonical import canonical_json, parse_json, sha256_bytes
from counterbalance.config import Dataset
from counterbalance.designs.crossing.conditions import CELL_BLOCKS, CONDITIONS
from counterbalance.designs.crossing.effects import CELLS
from counterbalance.errors import InputError
from counterbalance.items.cells import CellRow, parse_flag, parse_nats

_TRIALS = SCHEMAS["trials"]
_ADDRESS = "published_cell"

RULE, KEPT_RULE, LEFT_OUT_RULE = "published_cell", "published_cell_kept", "published_cell_left_out"
"""How an outcome says that it is a published number, and whether the file has its item in the filtered set."""

RULES = (RULE, KEPT_RULE, LEFT_OUT_RULE)

Row = Mapping[str, Any]


def expand_cells(dataset: Dataset, items: pa.Table) -> Iterator[pa.Table]:
    """Yield one trial for each number of a file of cells, in key order.

    Raises
    ------
    InputError
        If a condition is none of the ten that a crossing has.
    """
    rows = [
        _trial(item, strata["item"], condition, strata["lines"][condition], index)
        for item in items.to_pylist()
        for strata in [parse_json(item["strata"], source=f"item {item['item_id']!r}")]
        for condition in sorted(_known(strata["lines"], dataset))
        for index in range(len(CELLS))
    ]
    yield pa.Table.from_pylist(rows, schema=_TRIALS.arrow)


def address_of(prompt: Any) -> Row | None:
    """Return condition, item, cell and line of a trial's published number; None for a prompt that was sent."""
    found = prompt.get(_ADDRESS) if isinstance(prompt, dict) else None
    return found if isinstance(found, dict) else None


def reply_text(row: CellRow, cell: str, kept_column: str | None) -> str:
    """Return a number as it is written in the file, with what stands in the column of the filtered set."""
    names = [cell, *([kept_column] if kept_column else [])]
    return canonical_json({name: row.written[name] for name in names}).decode()


def read_cell(trial: Row, reply: Row) -> dict[str, Any]:
    """Return what an outcome holds of a published number; the answer that it favours counts as chosen.

    Raises
    ------
    InputError
        If the reply is not the field of a file of cells.
    """
    cell = CELLS[trial["arrangement_index"]]
    try:
        fields = parse_json(str(reply["text"]), source=f"reply of {trial['trial_id']}")
        value, rule = parse_nats(cell, fields[cell]), _rule(cell, fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"reply of {trial['trial_id']}: {reply['text']!r} is not the field {cell} of a file of cells ({error}); "
            "run query again"
        ) from error
    favoured = None if value == 0 else trial["arrangement"].index("o2" if value > 0 else "o1")
    return {
        "outcome": "ok",
        "slot": favoured,
        "tie": value == 0,
        # The number stands here as text: `slot_logprobs` would claim log-probabilities, and only their difference is
        # known.
        "candidates": [fields[cell]],
        "rule": rule,
    }


def _rule(cell: str, fields: Row) -> str:
    flags = [parse_flag(name, text) for name, text in fields.items() if name != cell]
    return (KEPT_RULE if all(flags) else LEFT_OUT_RULE) if flags else RULE


def _known(lines: Mapping[str, int], dataset: Dataset) -> Mapping[str, int]:
    for name, line in lines.items():
        if name not in CONDITIONS:
            raise InputError(
                f"{dataset.path} line {line}, condition: found {name!r}; in a study the conditions are "
                f"{', '.join(CONDITIONS)} (docs/crossing.md). `counterbalance analyze crossing` takes any names"
            )
    return lines


def _trial(item: Row, name: str, condition: str, line: int, index: int) -> Row:
    cell = CELLS[index]
    order = [answer for _, answer in CELL_BLOCKS[cell]]
    address = {"cell": cell, "condition": condition, "item": name, "line": line}
    prompt = canonical_json({_ADDRESS: address})
    answers = [item["option_texts"][answer] for answer in order]
    return {
        "trial_id": f"{item['item_id']}.{condition}.{index:04d}.00",
        "item_id": item["item_id"],
        "group_id": item["group_id"],
        "condition": condition,
        "arrangement_index": index,
        "repeat": 0,
        "arrangement": [item["option_ids"][answer] for answer in order],
        "labels": answers,
        "option_texts": answers,
        "gold_slot": None,
        "prompt": prompt.decode(),
        "prompt_sha256": sha256_bytes(prompt),
    }
