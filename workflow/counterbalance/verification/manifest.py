"""The manifest: every artifact of a study with its hashes, and the frozen chain it hangs on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from counterbalance.artifacts import read_record
from counterbalance.artifacts.records import record_path, relative
from counterbalance.canonical import canonical_json, parse_json, sha256_file
from counterbalance.config import Layout, Study
from counterbalance.config.datasets import Sha256
from counterbalance.config.vendors import Block
from counterbalance.errors import InputError, VerificationError
from counterbalance.prereg.record import FrozenRecord
from counterbalance.scouting.outcome import swept_cells

MANIFEST_SCHEMA: Literal["counterbalance/manifest/1"] = "counterbalance/manifest/1"
_RECORD = ".record.json"


def _stay_inside(path: str) -> str:
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"{path!r} does not stay inside the project's folder")
    return path


RelativePath = Annotated[str, AfterValidator(_stay_inside)]


class FileHash(Block):
    """A file below the project's folder and the hash of its bytes."""

    path: RelativePath
    sha256: Sha256


class Artifact(FileHash):
    """An artifact as its record describes it, and the hash of the record itself."""

    stage: str
    form: str = Field(alias="schema")
    rows: int | None
    digest: Sha256 | None
    stable_digest: Sha256 | None
    record: Sha256
    inputs: tuple[FileHash, ...]


class Manifest(Block):
    """All artifacts of one study, sorted by path."""

    schema_version: Literal["counterbalance/manifest/1"] = Field(alias="schema")
    study: str
    config_sha256: Sha256
    frozen: Annotated[tuple[FileHash, ...], Field(min_length=1)]
    artifacts: tuple[Artifact, ...]

    def dumps(self) -> bytes:
        """Return the file's bytes: canonical JSON and a newline."""
        return canonical_json(self.model_dump(mode="json", by_alias=True)) + b"\n"


def expected_artifacts(study: Study) -> Iterator[Path]:
    """Yield every artifact that a finished study has, its figures left out.

    Raises
    ------
    InputError
        If it cannot be told which cells were asked.
    """
    layout = study.layout
    yield layout.resolved_config
    for dataset in study.used_datasets():
        yield layout.items(dataset.id)
        yield layout.rejected(dataset.id)
    for experiment, dataset in study.trial_sets():
        yield layout.trials(experiment.id, dataset.id)
    for experiment, model in study.preflights():
        yield layout.preflight(experiment.id, model.id)
    yield from _of_scouts(study)
    for cell in swept_cells(study):
        names = (cell.experiment.id, cell.model.id, cell.dataset.id)
        yield from (layout.replies(*names), layout.outcomes(*names), layout.cell_estimates(*names))
    yield from (layout.estimates, layout.predictions, layout.report)


def _of_scouts(study: Study) -> Iterator[Path]:
    layout = study.layout
    for experiment, dataset in study.scouted_sets():
        yield layout.scout_trials(experiment.id, dataset.id)
    cells = list(study.scouted_cells())
    for cell in cells:
        names = (cell.experiment.id, cell.model.id, cell.dataset.id)
        yield from (layout.scout_replies(*names), layout.scout_decision(*names))
    if cells:
        yield layout.scout_summary


def present_files(layout: Layout) -> list[Path]:
    """Return the files in a study's results that a manifest has to list, without the records beside them.

    The manifest itself, the verification's own output and the receipt of the freeze are not among them, nor are
    hidden files, which a killed run or a file browser leaves behind.
    """
    apart = {layout.manifest, layout.verification, layout.receipt}
    found = []
    for path in sorted(layout.results.rglob("*")):
        inside = path.relative_to(layout.results)
        if path.is_dir() or path in apart or any(part.startswith(".") for part in inside.parts):
            continue
        artifact = path.with_name(path.name.removesuffix(_RECORD))
        if not (path.name.endswith(_RECORD) and artifact.is_file()):
            found.append(path)
    return found


def build_manifest(study: Study, chain: list[FrozenRecord]) -> Manifest:
    """Describe every artifact of a finished study.

    Raises
    ------
    InputError
        If an artifact is missing or is not the one that its record describes.
    """
    figures = [path for path in present_files(study.layout) if study.layout.figures in path.parents]
    return Manifest(
        schema=MANIFEST_SCHEMA,
        study=study.config.id,
        config_sha256=study.sha256,
        frozen=tuple(FileHash(path=relative(entry.path, study.root), sha256=entry.sha256) for entry in chain),
        artifacts=tuple(
            sorted(
                (_describe(path, study.root) for path in [*expected_artifacts(study), *figures]),
                key=lambda entry: entry.path,
            )
        ),
    )


def read_manifest(path: Path) -> Manifest:
    """Read a manifest strictly.

    Raises
    ------
    VerificationError
        If it is missing, malformed, or not in the bytes that this package writes.
    """
    again = "write it with `counterbalance manifest --study FILE`, or get the published one again"
    if not path.is_file():
        raise VerificationError(f"{path}: there is no manifest here; {again}")
    data = path.read_bytes()
    try:
        parse_json(data, source=str(path))
        manifest = Manifest.model_validate_json(data)
    except InputError as error:
        raise VerificationError(f"{error}; {again}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "(whole file)"
        raise VerificationError(f"{path} key {where}: {first['msg']}; {again}") from None
    paths = [entry.path for entry in manifest.artifacts]
    if manifest.dumps() != data or paths != sorted(set(paths)):
        raise VerificationError(f"{path}: not canonical JSON with each path once, in order; {again}")
    return manifest


def _describe(path: Path, root: Path) -> Artifact:
    name = relative(path, root)
    if not path.is_file():
        raise InputError(f"{name}: the artifact is not there; run its stage again")
    record, digest = read_record(path), sha256_file(path)
    if (record.path, record.sha256) != (name, digest):
        raise InputError(
            f"{name}: hashes to {digest}, its record describes {record.path} {record.sha256}; run its stage again"
        )
    return Artifact(
        path=name,
        sha256=digest,
        stage=record.stage,
        schema=record.schema,
        rows=record.rows,
        digest=record.digest,
        stable_digest=record.stable_digest,
        record=sha256_file(record_path(path)),
        inputs=tuple(FileHash(path=entry.path, sha256=entry.sha256) for entry in record.materials),
    )
