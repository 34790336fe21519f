"""The hashes that a freeze fixes, part by part, computed from what lies in the project now."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from counterbalance.artifacts import ArtifactSchema
from counterbalance.artifacts.digest import LogicalDigest
from counterbalance.artifacts.tables import Written, check_table
from counterbalance.canonical import Json, sha256_bytes, sha256_file, sha256_json
from counterbalance.config import Dataset, Study
from counterbalance.errors import ConfigError, InputError
from counterbalance.prereg.plan import Plan
from counterbalance.prereg.record import Parts, predictions_hash

# Rows held at once: a gate is passed beside thousands of replies, in little memory.
_SLICE = 2_048

UNFROZEN = ("accounts", "money")
"""Settings on which no reply depends: who pays, how fast, and at which price."""

# Settings that came after plans had been frozen, with the value that means what was done before they came. At that
# value they are no part of a plan, so that every record of an earlier release still holds.
_ADDED: dict[tuple[str, ...], Json] = {
    ("analysis", "stream"): "modern",
    ("analysis", "slot_contrasts"): None,
    ("datasets", "kept_column"): None,
    ("experiments", "prompt", "example_slots"): "fixed",
}


def hash_file(study: Study, name: str) -> str:
    """Hash a file that the study names.

    Raises
    ------
    InputError
        If it is not there.
    """
    path = study.root / name
    if not path.is_file():
        raise InputError(f"{name}: the file is not there; the study {study.path.name} names it, restore it")
    return sha256_file(path)


def frozen_settings(study: Study) -> dict[str, Json]:
    """Return the settings that a freeze fixes."""
    settings = {key: value for key, value in study.resolved.items() if key not in UNFROZEN}
    frozen: dict[str, Json] = _without_added(settings, ())
    return frozen


def _without_added(value: Json, place: tuple[str, ...]) -> Json:
    if isinstance(value, list):
        return [_without_added(entry, place) for entry in value]
    if not isinstance(value, dict):
        return value
    at = {name: (*place, name) for name in value}
    kept = (name for name in value if at[name] not in _ADDED or _ADDED[at[name]] != value[name])
    return {name: _without_added(value[name], at[name]) for name in kept}


def plan_parts(study: Study, plan: Plan | None, read: Callable[[Study, str], str] = hash_file) -> Parts:
    """Hash settings, plan text, predictions, prompt files and data files; no table is read.

    Parameters
    ----------
    study, plan
        The study, and its preregistration if it has one.
    read
        How the hash of a prompt or data file is found.
    """
    return Parts(
        plan_text=None if plan is None else sha256_bytes(plan.data),
        predictions=predictions_hash(() if plan is None else plan.predictions),
        settings={key: sha256_json(value) for key, value in frozen_settings(study).items()},
        prompts={name: read(study, name) for name in prompt_files(study)},
        data={entry.id: _data_hash(study, entry, read) for entry in study.used_datasets()},
    )


def prompt_files(study: Study) -> list[str]:
    """Return every template and example file of the study's experiments, sorted, relative to the project."""
    prompts = [entry.prompt for entry in study.config.experiments]
    return sorted({name for prompt in prompts for name in (prompt.template, prompt.examples) if name})


def trial_key(experiment: str, dataset: str) -> str:
    """Return the name under which a trial table's digest is frozen."""
    return f"{experiment}/{dataset}"


def scout_key(experiment: str, dataset: str) -> str:
    """Return the name under which the digest of a scout's trials is frozen; no id holds an @."""
    return f"{trial_key(experiment, dataset)}@scout"


def table_digest(path: Path, schema: ArtifactSchema) -> Written:
    """Return rows and digests of a table's content, reading a slice at a time.

    Raises
    ------
    InputError
        If the file is missing, is not Parquet, or does not have the declared columns.
    """
    if not path.is_file():
        raise InputError(f"{path}: {schema.name} table is not there; run the stage that writes it")
    digest = LogicalDigest(schema.arrow)
    stable = LogicalDigest(schema.arrow, set(schema.arrow.names) - schema.volatile) if schema.volatile else digest
    rows = 0
    try:
        with pq.ParquetFile(path) as source:
            for batch in source.iter_batches(_SLICE) if source.metadata.num_rows else [_empty(source)]:
                table = check_table(pa.Table.from_batches([batch]), schema, where=str(path)).combine_chunks()
                for part in table.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema.arrow)]:
                    for one in {digest, stable}:
                        one.update(part)
                rows += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); restore it or run its stage again") from error
    return Written(rows, digest.result(), stable.result())


def _empty(source: pq.ParquetFile) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=source.schema_arrow)


def _data_hash(study: Study, dataset: Dataset, read: Callable[[Study, str], str]) -> str:
    if not dataset.path.startswith("hf://"):
        return read(study, dataset.path)
    # A download is compared with the declared hash where it is read; no gate waits for a network.
    if dataset.sha256 is None:
        raise ConfigError(f"{study.path}: data set {dataset.id!r} is downloaded, so its `sha256` is needed")
    return dataset.sha256
