"""From the manifest to the files: listed and there, hashing as listed, each record true, all chained."""

from collections.abc import Iterable
from pathlib import Path

from counterbalance.artifacts import SCHEMAS, Record, read_record
from counterbalance.artifacts.records import record_path, relative
from counterbalance.canonical import sha256_file
from counterbalance.config import Layout, Study
from counterbalance.errors import CounterbalanceError
from counterbalance.prereg.parts import table_digest
from counterbalance.prereg.record import FrozenRecord
from counterbalance.scouting.outcome import skipped_cells
from counterbalance.verification.findings import Findings
from counterbalance.verification.manifest import Artifact, Manifest, expected_artifacts, present_files


def check_listing(layout: Layout, manifest: Manifest, findings: Findings) -> None:
    """Compare what is listed with what is there."""
    listed = {entry.path for entry in manifest.artifacts}
    there = {relative(path, layout.root) for path in present_files(layout)}
    problems = [f"{name}: listed in the manifest and not there; get it again" for name in sorted(listed - there)]
    problems += [f"{name}: there and not listed in the manifest; move it away" for name in sorted(there - listed)]
    findings.check(problems, f"manifest: {len(listed)} artifacts listed, all there, and none besides")


def check_complete(study: Study, manifest: Manifest, findings: Findings) -> None:
    """Compare what is listed with what the study's settings ask for."""
    listed = {entry.path for entry in manifest.artifacts}
    asked = {relative(path, study.root) for path in expected_artifacts(study)}
    figures = relative(study.layout.results, study.root) + "/figures/"
    problems = [f"{name}: the study asks for it and the manifest does not list it" for name in sorted(asked - listed)]
    problems += [
        f"{name}: listed, and no artifact of this study"
        for name in sorted(listed - asked)
        if not name.startswith(figures)
    ]
    left_out = len(skipped_cells(study))
    more = f", {left_out} skipped after their scouts" if left_out else ""
    cells = len(list(study.cells())) - left_out
    findings.check(problems, f"study: {cells} cells, each with all its artifacts{more}")


def check_files(root: Path, manifest: Manifest, findings: Findings) -> None:
    """Hash every artifact and its record again, and the content of every table."""
    problems: list[str] = []
    tables = 0
    for entry in manifest.artifacts:
        path = root / entry.path
        if not path.is_file():
            continue
        problems += _check_record(path, entry)
        same_bytes = sha256_file(path) == entry.sha256
        if entry.digest is not None:
            tables += 1
            problems += _check_table(path, entry, same_bytes)
        elif not same_bytes:
            problems.append(f"{entry.path}: its bytes are not those listed; get it again")
    count = len(manifest.artifacts)
    findings.check(
        problems, f"files: {count} artifacts and their records hash as listed, {tables} tables by content too"
    )


def _check_table(path: Path, entry: Artifact, same_bytes: bool) -> list[str]:
    bytes_text = "bytes equal" if same_bytes else "bytes differ"
    schema = SCHEMAS.get(entry.form.split("/")[0])
    if schema is None or entry.form != f"{schema.name}/{schema.version}":
        return [f"{entry.path}: schema {entry.form!r} is not known to this version; verify with the one that wrote it"]
    try:
        found = table_digest(path, schema)
    except CounterbalanceError as error:
        return [f"{entry.path}: {bytes_text}, and the table cannot be read: {error}"]
    if (found.rows, found.digest, found.stable_digest) != (entry.rows, entry.digest, entry.stable_digest):
        rows = "" if found.rows == entry.rows else f" ({found.rows} rows where {entry.rows} are listed)"
        return [
            f"{entry.path}: {bytes_text}, content differs{rows}: {found.digest} where {entry.digest} is listed; get it "
            "again"
        ]
    if not same_bytes:
        return [
            f"{entry.path}: content equal, bytes differ: the data are the published ones, in a file that was written "
            "anew or damaged outside them; get it again"
        ]
    return []


def _check_record(path: Path, entry: Artifact) -> list[str]:
    name = entry.path + ".record.json"
    if not record_path(path).is_file():
        return [f"{name}: the record is not there; get it again"]
    if sha256_file(record_path(path)) != entry.record:
        return [f"{name}: its bytes are not those listed; get it again"]
    try:
        record = read_record(path)
    except (CounterbalanceError, TypeError, KeyError) as error:
        return [f"{name}: not a record: {error}"]
    said = (record.path, record.sha256, record.stage, record.schema, record.rows, record.digest, record.stable_digest)
    listed = (entry.path, entry.sha256, entry.stage, entry.form, entry.rows, entry.digest, entry.stable_digest)
    inputs = [(item.path, item.sha256) for item in entry.inputs]
    if said != listed or [(item.path, item.sha256) for item in record.materials] != inputs:
        return [f"{name}: says something else of {path.name} than the manifest does"]
    return []


def check_chain(study: Study, manifest: Manifest, chain: list[FrozenRecord], findings: Findings) -> None:
    """Follow every input to the artifact, frozen record or outside file that it names, back from the report."""
    known = {entry.path: entry.sha256 for entry in manifest.artifacts}
    known |= {relative(record.path, study.root): record.sha256 for record in chain}
    results = relative(study.layout.results, study.root) + "/"
    problems: list[str] = []
    absent: set[str] = set()
    for entry in manifest.artifacts:
        for source in entry.inputs:
            where = f"{entry.path}: was made from {source.path} of {source.sha256}"
            there = study.root / source.path
            found = known.get(source.path) or (sha256_file(there) if there.is_file() else None)
            if found is not None and found != source.sha256:
                problems.append(f"{where}, and that is now {found}; run the stage again or get the file again")
            elif found is None and source.path.startswith(results):
                problems.append(f"{where}, which is no artifact of the manifest")
            elif found is None:
                absent.add(source.path)
    problems += _unchained(study, manifest, chain)
    if absent:
        findings.note(f"not checked, because not here: {', '.join(sorted(absent))}")
    findings.check(
        problems, "chain: every input is the file that was listed, back from the report to the frozen record"
    )


def _unchained(study: Study, manifest: Manifest, chain: list[FrozenRecord]) -> list[str]:
    inputs = {entry.path: [source.path for source in entry.inputs] for entry in manifest.artifacts}
    reached = _reach(relative(study.layout.report, study.root), inputs)
    problems = []
    if chain and relative(chain[-1].path, study.root) not in reached:
        problems.append(f"report.html: does not go back to {chain[-1].path.name}; run the stages again")
    for entry in manifest.artifacts:
        if entry.digest is not None and entry.path not in reached:
            problems.append(f"{entry.path}: the report does not go back to it")
    return problems


def _reach(start: str, inputs: dict[str, list[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += inputs.get(name, [])
    return reached


def records(root: Path, manifest: Manifest) -> Iterable[Record]:
    """Yield the records that can be read."""
    for entry in manifest.artifacts:
        try:
            yield read_record(root / entry.path)
        except (CounterbalanceError, TypeError, KeyError):
            continue
