"""Trials of an experiment, gathered into tables: the same for every design that renders prompts."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS

_TRIALS = SCHEMAS["trials"].arrow
# Items and trials held as Python objects at once: a study may have millions.
_ITEMS, _BATCH = 1_000, 20_000

Columns = dict[str, list[Any]]


def trial_tables(items: pa.Table, add: Callable[[dict[str, Any], Columns], None]) -> Iterator[pa.Table]:
    """Yield the trials of items, in the items' order, about 20,000 at a time.

    Parameters
    ----------
    items
        Table of the declared schema.
    add
        Appends the trials of one item, row by row, to all columns of the trials' schema.
    """
    columns: Columns = {name: [] for name in _TRIALS.names}
    for batch in items.to_batches(max_chunksize=_ITEMS):
        for item in batch.to_pylist():
            add(item, columns)
            if len(columns["trial_id"]) >= _BATCH:
                yield pa.Table.from_pydict(columns, schema=_TRIALS)
                columns = {name: [] for name in _TRIALS.names}
    if columns["trial_id"]:
        yield pa.Table.from_pydict(columns, schema=_TRIALS)
