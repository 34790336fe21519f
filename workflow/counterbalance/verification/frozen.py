"""The frozen record: intact, named by all that followed it, and still the plan that the results carry out."""

from collections.abc import Iterable

from counterbalance.artifacts import Record
from counterbalance.artifacts.records import relative
from counterbalance.canonical import parse_json, sha256_bytes
from counterbalance.config import Study
from counterbalance.errors import CounterbalanceError
from counterbalance.prereg.changes import plan_changes
from counterbalance.prereg.gate import changed_tables
from counterbalance.prereg.parts import hash_file, plan_parts
from counterbalance.prereg.plan import load_plan
from counterbalance.prereg.record import FrozenRecord, inspect_chain
from counterbalance.stages.freeze import RECEIPT_SCHEMA
from counterbalance.verification.findings import Findings
from counterbalance.verification.manifest import Manifest


def check_frozen(study: Study, manifest: Manifest, made: Iterable[Record], findings: Findings) -> list[FrozenRecord]:
    """Check the frozen files, what names them, and the plan; return the chain as far as it can be read."""
    chain, problems = inspect_chain(study.layout)
    named = [(entry.path, entry.sha256) for entry in manifest.frozen]
    there = [(relative(record.path, study.root), record.sha256) for record in chain]
    if named != there:
        problems.append(f"the manifest names the frozen records {_pairs(named)}, and there are {_pairs(there)}")
    if not chain:
        findings.check([*problems, "no frozen record can be read; get the preregistration folder as well"], "")
        return chain
    last = chain[-1]
    problems += _check_receipt(study, last)
    problems += [
        f"{record.path}: was made under the frozen record {record.frozen_sha256}, and {last.path.name} is "
        f"{last.sha256}; run its stage again, or get the files of one run"
        for record in made
        if record.frozen_sha256 not in (None, last.sha256)
    ]
    findings.check(problems, f"frozen: {last.path.name} {last.sha256}, intact and named by all that follows it")
    _tell(chain, findings)
    _check_plan(study, last, findings)
    return chain


def _check_receipt(study: Study, last: FrozenRecord) -> list[str]:
    path = study.layout.receipt
    if not path.is_file():
        return []
    expected = {
        "schema": RECEIPT_SCHEMA,
        "record": relative(last.path, study.root),
        "sha256": last.sha256,
        "plan_hash": last.body.plan_hash,
    }
    name = relative(path, study.root)
    try:
        found = parse_json(path.read_bytes(), source=name)
    except CounterbalanceError as error:
        return [str(error)]
    return [] if found == expected else [f"{name}: is the receipt of another record than {last.path.name}"]


def _tell(chain: list[FrozenRecord], findings: Findings) -> None:
    """Note what a reader of the results must know of how they were frozen."""
    for record in chain:
        body = record.body
        if body.previous:
            findings.note(
                f"{record.path.name} amends number {body.previous.number} after {body.observed.calls} observed calls: "
                f"{body.reason}"
            )
        if body.late:
            findings.note(f"{record.path.name} was frozen LATE, after {body.observed.calls} observed calls")
    if chain[-1].body.exploratory:
        findings.note("exploratory: no preregistration was written")


def _check_plan(study: Study, record: FrozenRecord, findings: Findings) -> None:
    frozen = record.body.parts
    known = frozen.prompts | {entry.path: frozen.data.get(entry.id, "") for entry in study.used_datasets()}
    absent = [entry.path for entry in study.used_datasets() if entry.path.startswith("hf://")]

    def read(study: Study, name: str) -> str:
        if (study.root / name).is_file():
            return hash_file(study, name)
        absent.append(name)
        return known.get(name) or sha256_bytes(b"")

    try:
        plan = load_plan(study)
        now = plan_parts(study, plan, read)
        problems = plan_changes(study, record.body, now, () if plan is None else plan.predictions)
        problems += changed_tables(study, record)
    except CounterbalanceError as error:
        problems = [f"the plan cannot be compared with {record.path.name}: {error}"]
    if absent:
        findings.note(f"not compared with their frozen hashes, because not here: {', '.join(sorted(absent))}")
    findings.check(problems, "plan: text, predictions, settings, items and trials are the frozen ones")


def _pairs(files: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {digest}" for name, digest in files) or "(none)"
