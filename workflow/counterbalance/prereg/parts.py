"""The hashes that a freeze fixes, part by part, computed from what lies in the project now."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from counterbalance.artifacts import ArtifactSchema
from counterbalance.artifacts.digest import LogicalDigest
from counterbalance.artifacts.tables import check_table
from counterbalance.canonical import sha256_bytes, sha256_file, sha256_json
from counterbalance.config import Dataset, Study
from counterbalance.errors import ConfigError, InputError
from counterbalance.prereg.plan import Plan, load_plan
from counterbalance.prereg.predictions import PREDICTIONS
from counterbalance.prereg.record import Parts


def plan_parts(study: Study, plan: Plan | None) -> Parts:
    """Hash settings, plan text, predictions, prompt files and data files; no table is read.

    Raises
    ------
    InputError
        If a prompt, example or data file is missing.
    """
    return Parts(
        plan_text=None if plan is None else sha256_bytes(plan.data),
        predictions=sha256_json(PREDICTIONS.dump_python(() if plan is None else plan.predictions, mode="json")),
        settings={key: sha256_json(value) for key, value in study.resolved.items()},
        prompts={name: _hash_file(study, name) for name in prompt_files(study)},
        data={entry.id: _data_hash(study, entry) for entry in study.used_datasets()},
    )


def current_plan_parts(study: Study) -> Parts:
    """Read the preregistration and hash the plan as it is now."""
    return plan_parts(study, load_plan(study))


def prompt_files(study: Study) -> list[str]:
    """Return every template and example file of the study's experiments, sorted, relative to the project."""
    prompts = [entry.prompt for entry in study.config.experiments]
    return sorted({name for prompt in prompts for name in (prompt.template, prompt.examples) if name})


def trial_key(experiment: str, dataset: str) -> str:
    """Return the name under which a trial table's digest is frozen."""
    return f"{experiment}/{dataset}"


def table_digest(path: Path, schema: ArtifactSchema) -> tuple[int, str]:
    """Return rows and logical digest of a table's content, reading a slice at a time.

    Raises
    ------
    InputError
        If the file is missing, is not Parquet, or does not have the declared columns.
    """
    if not path.is_file():
        raise InputError(f"{path}: {schema.name} table is not there; run the stage that writes it")
    digest, rows = LogicalDigest(schema.arrow), 0
    try:
        with pq.ParquetFile(path) as source:
            batches = source.iter_batches() if source.metadata.num_rows else [_empty(source)]
            for batch in batches:
                table = check_table(pa.Table.from_batches([batch]), schema, where=str(path)).combine_chunks()
                for part in table.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema.arrow)]:
                    digest.update(part)
                rows += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); restore it or run its stage again") from error
    return rows, digest.result()


def _empty(source: pq.ParquetFile) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=source.schema_arrow)


def _data_hash(study: Study, dataset: Dataset) -> str:
    if not dataset.path.startswith("hf://"):
        return _hash_file(study, dataset.path)
    if dataset.sha256 is None:
        raise ConfigError(f"{study.path}: data set {dataset.id!r} is downloaded, so its `sha256` is needed")
    return dataset.sha256


def _hash_file(study: Study, name: str) -> str:
    path = study.root / name
    if not path.is_file():
        raise InputError(f"{name}: the file is not there; the study {study.path.name} names it, restore it")
    return sha256_file(path)
