"""Where every number comes from: the frozen chain, the code, and the hash of each artifact."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from counterbalance.artifacts import Record, read_record
from counterbalance.artifacts.records import record_path, relative
from counterbalance.canonical import parse_json
from counterbalance.config import Study
from counterbalance.prereg.record import FrozenRecord
from counterbalance.report.sources import Sources
from counterbalance.report.text import MISSING, count, plural
from counterbalance.rerun import code_sha256
from counterbalance.verification.manifest import expected_artifacts


@dataclass(frozen=True)
class FrozenStep:
    """One frozen record of the chain."""

    number: int
    path: str
    sha256: str
    reason: str
    observed: str


@dataclass(frozen=True)
class ArtifactRow:
    """One artifact with its hashes."""

    path: str
    rows: str
    sha256: str
    digest: str


@dataclass(frozen=True)
class Provenance:
    """What a reader needs to check the report."""

    chain: Sequence[FrozenStep]
    plan_path: str
    plan_text: str
    plan_hash: str
    config_sha256: str
    code_differs: Sequence[str]
    artifacts: Sequence[ArtifactRow]
    tools: Sequence[tuple[str, str]]
    command: str


def view_provenance(sources: Sources) -> Provenance:
    """Read the records beside the artifacts and the chain of frozen records."""
    study, governing = sources.study, sources.chain[-1].body
    records = [read_record(path) for path in expected_artifacts(study) if path != study.layout.report]
    return Provenance(
        chain=[_step(study, record) for record in reversed(sources.chain)],
        plan_path=study.config.preregistration or "",
        plan_text=governing.parts.plan_text or "",
        plan_hash=governing.plan_hash,
        config_sha256=study.sha256,
        code_differs=_code_differs(records, governing.code),
        artifacts=[_row(record) for record in records],
        tools=_tools(study.layout.estimates),
        command=f"counterbalance verify results/{study.config.id}",
    )


def _row(record: Record) -> ArtifactRow:
    rows = MISSING if record.rows is None else count(record.rows)
    return ArtifactRow(record.path, rows, record.sha256, record.digest or "")


def _step(study: Study, record: FrozenRecord) -> FrozenStep:
    return FrozenStep(
        number=record.body.number,
        path=relative(record.path, study.root),
        sha256=record.sha256,
        reason=record.body.reason or "",
        observed=plural(record.body.observed.calls, "call"),
    )


def _code_differs(records: Iterable[Record], frozen: Mapping[str, str]) -> list[str]:
    """Return the stages that ran with other code than was there when the plan was frozen."""
    ran = {(record.stage, record.code_sha256) for record in records} | {("report", code_sha256("report"))}
    return sorted({stage for stage, code in ran if frozen.get(stage, code) != code})


def _tools(estimates: Path) -> list[tuple[str, str]]:
    body = parse_json(record_path(estimates).read_bytes(), source=str(record_path(estimates)))
    return sorted(body.get("tools", {}).items())
