"""Which trials a scout asks: the source's own order and its reverse, of items that the seed draws."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from counterbalance.artifacts import SCHEMAS, read_table, table_from_rows
from counterbalance.artifacts.tables import check_table
from counterbalance.canonical import sha256_json
from counterbalance.config import Dataset, Experiment, Study
from counterbalance.config.models import Arrangement
from counterbalance.designs import get_design
from counterbalance.errors import InputError

CONDITION = "scout"
"""Condition of trials that the sweep does not ask; the others are the sweep's own rows."""

_TRIALS = SCHEMAS["trials"]


def scout_trials(study: Study, experiment: Experiment, dataset: Dataset, n_items: int) -> pa.Table:
    """Return the scout's trials of an experiment on a data set, the same for every model.

    Parameters
    ----------
    n_items
        Items to look at; all where there are fewer.

    Returns
    -------
    pyarrow.Table
        Trials of the declared schema. Where the sweep asks the same item in the same order, its row itself, so that
        one reply serves both; else a row of condition `scout`.

    Raises
    ------
    InputError
        If items or trials are missing, or the trials were made from other prompts than the present ones.
    """
    items = read_table(study.layout.items(dataset.id), SCHEMAS["items"])
    chosen = draw_items(study.config.seed, items.column("item_id").to_pylist(), n_items)
    drawn = items.filter(pc.is_in(items.column("item_id"), value_set=pa.array(chosen)))
    path = study.layout.trials(experiment.id, dataset.id)
    asked = {
        (row["item_id"], tuple(row["arrangement"])): row
        for row in rows_of_items(path, chosen).to_pylist()
        if row["repeat"] == 0
    }
    two = {"arrangement": Arrangement(scheme="identity_reverse"), "repeats": 1, "repeat_share": 0.0}
    alone = experiment.model_copy(update=two)
    rows = []
    for table in get_design(experiment.design).expand(study, alone, dataset, drawn):
        for row in table.to_pylist():
            same = asked.get((row["item_id"], tuple(row["arrangement"])))
            if same is not None and same["prompt_sha256"] != row["prompt_sha256"]:
                raise InputError(f"{path}: trial {same['trial_id']} has another prompt than it gets now; expand again")
            name = f"{row['item_id']}.{CONDITION}.{row['arrangement_index']:04d}.00"
            rows.append(same or row | {"condition": CONDITION, "trial_id": name})
    return table_from_rows(rows, _TRIALS)


def draw_items(seed: int, item_ids: Sequence[str], n: int) -> list[str]:
    """Return n of the ids, drawn by a hash of seed and id, sorted; the first m of n drawn are those of `n=m`."""
    return sorted(sorted(item_ids, key=lambda item: sha256_json(["scout", seed, item]))[:n])


def reused(trials: pa.Table) -> int:
    """Return how many of a scout's trials the sweep asks too, and so need not buy."""
    return sum(name != CONDITION for name in trials.column("condition").to_pylist())


def rows_of_items(path: Path, item_ids: Sequence[str]) -> pa.Table:
    """Read the trials of a few items from a table that may hold hundreds of thousands.

    Raises
    ------
    InputError
        If the table is missing or malformed.
    """
    if not path.is_file():
        raise InputError(f"{path}: trials table is not there; run expand")
    try:
        found = pq.read_table(path, partitioning=None, filters=[("item_id", "in", list(item_ids))])
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); run expand again") from error
    return check_table(found, _TRIALS, where=str(path))
