"""Stage report: one self-contained page for a person, and its figures as files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from counterbalance.artifacts import read_record, write_record
from counterbalance.artifacts.records import relative
from counterbalance.config import Study
from counterbalance.errors import GateError
from counterbalance.files import write_bytes
from counterbalance.prereg.gate import check_gate
from counterbalance.prereg.record import FrozenRecord, read_chain
from counterbalance.report.build import build_report
from counterbalance.report.render import template_hashes
from counterbalance.report.sources import read_sources
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.stages.command import command_line


def render_report(study: Study) -> Path:
    """Write the report and its figures, each with a record; return the report's path.

    Raises
    ------
    GateError
        If the plan is not the frozen one, or the estimates were made under another frozen record.
    InputError
        If an artifact is missing or malformed.
    """
    frozen = check_gate(study, trials=False)
    _require_same_plan(study, frozen)
    sources = read_sources(study, read_chain(study.layout))
    report = build_report(sources)
    folder = study.layout.figures
    files = {study.layout.report: report.html} | {folder / name: data for name, data in report.figures.items()}
    _remove_stale(folder, files)
    code = code_sha256("report")
    for path, data in files.items():
        write_bytes(path, data)
        # A figure shows estimates alone; the page also shows prompts, replies and what was left out.
        inputs = sources.inputs if path == study.layout.report else [study.layout.estimates, frozen.path]
        _write_record(study, path, inputs, frozen, code)
    return study.layout.report


def _require_same_plan(study: Study, frozen: FrozenRecord) -> None:
    made_under = read_record(study.layout.estimates).frozen_sha256
    if made_under != frozen.sha256:
        name = relative(study.layout.estimates, study.root)
        raise GateError(
            f"{name} was made under the frozen record {made_under}, and {frozen.path.name} ({frozen.sha256}) governs "
            f"now; run `counterbalance combine --study {relative(study.path, study.root)}` again"
        )


def _remove_stale(folder: Path, files: Mapping[Path, bytes]) -> None:
    """Remove figures of cells that the study no longer has; only files that this stage has a record of."""
    for record in folder.glob("*.record.json") if folder.is_dir() else ():
        figure = record.with_name(record.name.removesuffix(".record.json"))
        if figure not in files:
            figure.unlink(missing_ok=True)
            record.unlink()


def _write_record(study: Study, path: Path, inputs: Sequence[Path], frozen: FrozenRecord, code: str) -> None:
    write_record(
        path,
        study.root,
        stage="report",
        inputs=inputs,
        command=command_line(study, "report"),
        config_sha256=settings_sha256(study, "report"),
        code_sha256=code,
        frozen_sha256=frozen.sha256,
        facts={"templates": template_hashes()},
    )
