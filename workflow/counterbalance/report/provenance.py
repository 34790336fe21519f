"""Where every number comes from: the frozen chain, the code, and the hash of each artifact."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from counterbalance.artifacts import Record, read_record
from counterbalance.artifacts.records import record_path, relative
from counterbalance.canonical import Json, parse_json, sha256_file
from counterbalance.config import Study
from counterbalance.report.sources import Sources
from counterbalance.report.text import MISSING, count, plural


@dataclass(frozen=True)
class FrozenStep:
    """One frozen record of the chain."""

    number: int
    path: str
    sha256: str
    reason: str
    observed: str
    problem: str


@dataclass(frozen=True)
class ArtifactRow:
    """One artifact with its hashes."""

    path: str
    stage: str
    rows: str
    sha256: str
    digest: str


@dataclass(frozen=True)
class Provenance:
    """What a reader needs to check the report."""

    chain: Sequence[FrozenStep]
    plan_hash: str
    config_sha256: str
    code_differs: Sequence[str]
    artifacts: Sequence[ArtifactRow]
    tools: Sequence[tuple[str, str]]
    command: str


def view_provenance(sources: Sources) -> Provenance:
    """Read the records beside the artifacts and the chain of frozen records."""
    study = sources.study
    records = [read_record(path) for path in _artifacts(study)]
    return Provenance(
        chain=_chain(study, sources.frozen_path, sources.frozen),
        plan_hash=sources.frozen.get("plan_hash", MISSING),
        config_sha256=study.sha256,
        code_differs=_code_differs(records, sources.frozen.get("code", {})),
        artifacts=[_row(record) for record in records],
        tools=_tools(study.layout.estimates),
        command=f"counterbalance verify results/{study.config.id}",
    )


def _artifacts(study: Study) -> Iterable[Path]:
    layout = study.layout
    yield layout.resolved_config
    for dataset in study.used_datasets():
        yield layout.items(dataset.id)
        yield layout.rejected(dataset.id)
    for experiment, dataset in study.trial_sets():
        yield layout.trials(experiment.id, dataset.id)
    for path in (layout.replies, layout.outcomes, layout.cell_estimates):
        for cell in study.cells():
            yield path(cell.experiment.id, cell.model.id, cell.dataset.id)
    yield layout.estimates
    yield layout.predictions


def _row(record: Record) -> ArtifactRow:
    rows = MISSING if record.rows is None else count(record.rows)
    return ArtifactRow(record.path, record.stage, rows, record.sha256, record.digest or MISSING)


def _chain(study: Study, path: Path, frozen: Json) -> list[FrozenStep]:
    """Return the frozen records from the newest back to the first, with what does not fit."""
    steps = [_step(study, path, frozen, problem="")]
    while (previous := frozen.get("previous")) is not None:
        path = study.layout.frozen(previous["number"])
        if not path.is_file():
            missing = FrozenStep(previous["number"], relative(path, study.root), previous["sha256"], "", "", "not there")
            return [*steps, missing]
        problem = "" if sha256_file(path) == previous["sha256"] else f"expected {previous['sha256']}"
        frozen = parse_json(path.read_bytes(), source=str(path))
        steps.append(_step(study, path, frozen, problem=problem))
    return steps


def _step(study: Study, path: Path, frozen: Json, *, problem: str) -> FrozenStep:
    observed = frozen.get("observed", {}).get("calls")
    return FrozenStep(
        number=frozen["number"],
        path=relative(path, study.root),
        sha256=sha256_file(path),
        reason=frozen.get("reason") or "",
        observed="not recorded" if observed is None else plural(observed, "call"),
        problem=problem,
    )


def _code_differs(records: Iterable[Record], frozen_code: Json) -> list[str]:
    """Return the stages that ran with other code than was there when the plan was frozen."""
    differing = {
        record.stage
        for record in records
        if (was := frozen_code.get(record.stage, frozen_code.get(f"stages.{record.stage}"))) is not None
        and was != record.code_sha256
    }
    return sorted(differing)


def _tools(estimates: Path) -> list[tuple[str, str]]:
    body = parse_json(record_path(estimates).read_bytes(), source=str(record_path(estimates)))
    return sorted(body.get("tools", {}).items())
