"""Everything the report is made from, read from a study's artifacts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from counterbalance.artifacts import SCHEMAS, ArtifactSchema, read_table
from counterbalance.artifacts.tables import check_table
from counterbalance.config import Cell, Experiment, Study
from counterbalance.errors import InputError
from counterbalance.prereg.record import FrozenRecord
from counterbalance.report.bought import Bought, bought_paths, read_bought
from counterbalance.report.numbers import CellNumbers, Number
from counterbalance.scouting.outcome import skipped_cells

Row = Mapping[str, Any]
CellKey = tuple[str, str, str]


@dataclass(frozen=True)
class Example:
    """One trial of an experiment, with each model's reply to it and how that was read."""

    trial: Row
    replies: Sequence[tuple[str, Row, Row]]
    """Model id, row of the replies, row of the outcomes."""


@dataclass(frozen=True)
class Sources:
    """A study's artifacts, as far as the report shows them.

    Attributes
    ----------
    cells
        Estimates by (experiment, model, subset) and quantity.
    option_counts
        By data set, the numbers of options that its items have, ascending.
    rejected
        By data set, the rows that were excluded.
    examples
        By experiment, one trial.
    bought
        By cell, how its replies came to be.
    chain
        The frozen records, oldest first; the last one governs.
    """

    study: Study
    cells: Mapping[CellKey, CellNumbers]
    predictions: Sequence[Row]
    option_counts: Mapping[str, Sequence[int]]
    n_items: Mapping[str, int]
    rejected: Mapping[str, Sequence[Row]]
    examples: Mapping[str, Example]
    bought: Mapping[CellKey, Bought]
    chain: Sequence[FrozenRecord]
    inputs: Sequence[Path]


def read_sources(study: Study, chain: Sequence[FrozenRecord]) -> Sources:
    """Read what the report needs.

    Raises
    ------
    InputError
        If an artifact is missing, is not of its schema, or holds a cell that the study does not have.
    """
    layout = study.layout
    datasets = [entry.id for entry in study.used_datasets()]
    rejected = {name: read_table(layout.rejected(name), SCHEMAS["rejected"]).to_pylist() for name in datasets}
    options = {
        name: pc.list_value_length(read_table(layout.items(name), SCHEMAS["items"], ["option_ids"]).column(0))
        for name in datasets
    }
    return Sources(
        study=study,
        cells=_cells(study),
        predictions=read_table(layout.predictions, SCHEMAS["predictions"]).to_pylist(),
        option_counts={name: sorted(pc.unique(lengths).to_pylist()) for name, lengths in options.items()},
        n_items={name: len(lengths) for name, lengths in options.items()},
        rejected=rejected,
        examples={entry.id: _example(study, entry) for entry in study.config.experiments},
        bought={_key(entry.cell): entry for entry in read_bought(study)},
        chain=chain,
        inputs=[
            layout.estimates,
            layout.predictions,
            *(path(name) for name in datasets for path in (layout.items, layout.rejected)),
            *(layout.trials(entry.id, _example_dataset(study, entry)) for entry in study.config.experiments),
            *bought_paths(study),
            *(record.path for record in chain),
        ],
    )


def _cells(study: Study) -> dict[CellKey, dict[str, Number]]:
    path = study.layout.estimates
    cells: dict[CellKey, dict[str, Number]] = {_key(cell): {} for cell in study.cells()}
    for index, row in enumerate(read_table(path, SCHEMAS["estimates"]).to_pylist()):
        key = (row["experiment"], row["model"], row["subset"])
        if key not in cells:
            raise InputError(
                f"{path} row {index}: cell {'/'.join(key)} is not in {study.path.name}; run the stages from prepare on "
                "again with this study file"
            )
        cells[key][row["quantity"]] = Number.from_row(row)
    return cells


def _key(cell: Cell) -> CellKey:
    return cell.experiment.id, cell.model.id, cell.dataset.id


def _asked_models(study: Study, experiment: Experiment, dataset: str) -> list[str]:
    skipped = skipped_cells(study)
    return [model for model in experiment.models if f"{experiment.id}/{model}/{dataset}" not in skipped]


def _example_dataset(study: Study, experiment: Experiment) -> str:
    """Return the first data set that a model was asked about; the first one if all were left out."""
    asked = (name for name in experiment.datasets if _asked_models(study, experiment, name))
    return next(asked, experiment.datasets[0])


def _example(study: Study, experiment: Experiment) -> Example:
    layout, dataset = study.layout, _example_dataset(study, experiment)
    trial = _first_row(layout.trials(experiment.id, dataset), SCHEMAS["trials"])
    replies = []
    for model in _asked_models(study, experiment, dataset):
        path = layout.replies(experiment.id, model, dataset)
        reply = _row_of(path, SCHEMAS["replies"], trial["trial_id"])
        outcome = _row_of(layout.outcomes(experiment.id, model, dataset), SCHEMAS["outcomes"], trial["trial_id"])
        replies.append((model, reply, outcome))
    return Example(trial, replies)


def _first_row(path: Path, schema: ArtifactSchema) -> Row:
    # Only the head is read: a table of trials may hold hundreds of thousands of prompts.
    batches = _open(path, schema).iter_batches(batch_size=1)
    first = next(batches, None)
    if first is None or first.num_rows == 0:
        raise InputError(f"{path}: holds no rows; run expand again")
    row: Row = check_table(pa.Table.from_batches([first]), schema, where=str(path)).to_pylist()[0]
    return row


def _row_of(path: Path, schema: ArtifactSchema, trial_id: str) -> Row:
    _open(path, schema)
    found = pq.read_table(path, partitioning=None, filters=[("trial_id", "=", trial_id)])
    if found.num_rows != 1:
        raise InputError(f"{path}: {found.num_rows} rows for trial {trial_id!r}, expected one; run its stage again")
    row: Row = check_table(found, schema, where=str(path)).to_pylist()[0]
    return row


def _open(path: Path, schema: ArtifactSchema) -> pq.ParquetFile:
    if not path.is_file():
        raise InputError(f"{path}: {schema.name} table is not there; run the stage that writes it")
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); run its stage again") from error
