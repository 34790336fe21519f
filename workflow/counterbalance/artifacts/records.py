"""The record beside each artifact: what went in, what came out, by which command, settings and code."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from counterbalance.artifacts.schemas import ArtifactSchema
from counterbalance.artifacts.tables import Written
from counterbalance.canonical import Json, parse_json, sha256_file
from counterbalance.errors import InputError
from counterbalance.files import write_json

RECORD_SCHEMA = "counterbalance/record/1"
_TOOLS = ("counterbalance", "pyarrow", "polars", "numpy", "scipy")


@dataclass(frozen=True)
class Material:
    """A file that went in: path relative to the project, hash of its bytes, and a table's content digest."""

    path: str
    sha256: str
    digest: str | None = None


@dataclass(frozen=True)
class Record:
    """What is known about one artifact; every field is covered by the manifest's hash of the record file."""

    stage: str
    path: str
    sha256: str
    schema: str
    rows: int | None
    digest: str | None
    stable_digest: str | None
    materials: tuple[Material, ...]
    command: tuple[str, ...]
    config_sha256: str
    code_sha256: str
    frozen_sha256: str | None = None
    facts: Mapping[str, Json] = field(default_factory=dict)


def record_path(artifact: Path) -> Path:
    """Return where an artifact's record lies: beside it, with `.record.json` appended."""
    return artifact.with_name(artifact.name + ".record.json")


def material(path: Path, root: Path) -> Material:
    """Describe an input file; a table's content digest is taken from its record where there is one."""
    beside = record_path(path)
    digest = read_record(path).digest if beside.is_file() else None
    return Material(relative(path, root), sha256_file(path), digest)


def relative(path: Path, root: Path) -> str:
    """Return a path as written in records: relative to the project, with forward slashes."""
    return path.resolve().relative_to(root.resolve()).as_posix()


def write_record(
    artifact: Path,
    root: Path,
    *,
    stage: str,
    inputs: Sequence[Path],
    command: Sequence[str],
    config_sha256: str,
    code_sha256: str,
    schema: ArtifactSchema | None = None,
    written: Written | None = None,
    frozen_sha256: str | None = None,
    facts: Mapping[str, Json] | None = None,
) -> Record:
    """Hash an artifact and its inputs and write the record beside it.

    Parameters
    ----------
    artifact, inputs
        Files below `root`.
    schema, written
        For tables: their declaration and digests.
    facts
        Further hashed facts of the stage (for example counts), JSON values.

    Returns
    -------
    Record
        What was written.
    """
    record = Record(
        stage=stage,
        path=relative(artifact, root),
        sha256=sha256_file(artifact),
        schema=f"{schema.name}/{schema.version}" if schema else "file",
        rows=written.rows if written else None,
        digest=written.digest if written else None,
        stable_digest=written.stable_digest if written else None,
        materials=tuple(material(path, root) for path in inputs),
        command=tuple(command),
        config_sha256=config_sha256,
        code_sha256=code_sha256,
        frozen_sha256=frozen_sha256,
        facts=dict(facts or {}),
    )
    body = {"schema": RECORD_SCHEMA, "artifact": _as_json(record), "tools": tool_versions()}
    write_json(record_path(artifact), body)
    return record


def read_record(artifact: Path) -> Record:
    """Read the record that lies beside an artifact.

    Raises
    ------
    InputError
        If it is missing or not a record of this schema.
    """
    path = record_path(artifact)
    if not path.is_file():
        raise InputError(f"{path}: the artifact's record is not there; run its stage again")
    body = parse_json(path.read_bytes(), source=str(path))
    if not isinstance(body, dict) or body.get("schema") != RECORD_SCHEMA:
        raise InputError(f"{path}: not a record of {RECORD_SCHEMA}; run the artifact's stage again")
    fields = dict(body["artifact"])
    fields["materials"] = tuple(Material(**entry) for entry in fields["materials"])
    fields["command"] = tuple(fields["command"])
    return Record(**fields)


def tool_versions() -> dict[str, str]:
    """Return the versions that could bear on an artifact's bytes."""
    return {"python": platform.python_version(), **{name: version(name) for name in _TOOLS}}


def _as_json(record: Record) -> Json:
    body = dict(vars(record))
    body["materials"] = [vars(entry) for entry in record.materials]
    body["command"] = list(record.command)
    body["facts"] = dict(record.facts)
    return body
