"""Cells that somebody has published or measured, as half-effects by condition and item."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counterbalance.contrasts.table import EffectTable, Flags
from counterbalance.designs.crossing.effects import FLAG_ORDER, FLAG_TOKEN, flagged, half_effects
from counterbalance.errors import InputError
from counterbalance.items.cells import CellFile, read_cell_file


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
    gaps
        Which conditions have no row for which items, in words.
    """

    table: EffectTable
    kept: Flags
    kept_by: str
    unused: tuple[str, ...]
    gaps: tuple[str, ...] = ()


def read_cells(path: Path, *, kept_column: str | None = None) -> Cells:
    """Read a CSV of cells, one row for each item in each condition that has it.

    Parameters
    ----------
    path
        Columns `condition`, `item`, `e1`, `e2`, `e3`, `e4` (nats), in any order.
    kept_column
        Column that says which items belong to the filtered set; `kept` where there is one. Without it an item is kept
        if every condition has it and it is flagged in none.

    Raises
    ------
    InputError
        With file, line, column and value of everything that is wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give the path of a CSV of cells") from error
    return _cells(read_cell_file(data, str(path), kept_column=kept_column))


def _cells(file: CellFile) -> Cells:
    items = file.items
    by_condition: dict[str, dict[str, dict[str, float]]] = {}
    keep = np.ones(len(items), dtype=bool)
    for condition in file.conditions:
        by_item = {row.item: row.cells for row in file.rows if row.condition == condition}
        effects = half_effects(list(by_item.values()))
        by_condition[condition] = {
            name: dict(zip(by_item, values.tolist(), strict=True)) for name, values in effects.items()
        }
        out = dict(zip(by_item, flagged(effects["token"], effects["order"]).tolist(), strict=True))
        keep &= ~np.array([out.get(item, True) for item in items], dtype=bool)
    complete = "complete and unflagged" if file.missing else "unflagged"
    kept_by = f"{complete} in every condition (|token| <= {FLAG_TOKEN} and |order| <= {FLAG_ORDER} nats)"
    if file.kept_column is not None:
        marked = {row.item for row in file.rows if row.kept}
        keep = np.array([item in marked for item in items], dtype=bool)
        kept_by = f"marked in column {file.kept_column!r}"
    return Cells(EffectTable.build(items, by_condition), keep, kept_by, file.unused, tuple(file.gaps))
