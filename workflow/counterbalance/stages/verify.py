"""Stage verify: list every artifact in the manifest, then check all of it as a stranger would."""

from pathlib import Path

from pydantic import ValidationError

from counterbalance.canonical import Json, canonical_json, parse_json, sha256_json
from counterbalance.config import Layout, Study, StudyConfig
from counterbalance.errors import CounterbalanceError, VerificationError
from counterbalance.files import write_bytes
from counterbalance.prereg.gate import check_gate
from counterbalance.prereg.record import read_chain
from counterbalance.stages.resolve import STUDY_SCHEMA
from counterbalance.verification.findings import Findings, NotVerifiedError, VerificationReport
from counterbalance.verification.frozen import check_frozen
from counterbalance.verification.manifest import Manifest, build_manifest, read_manifest
from counterbalance.verification.rederive import Rederivation
from counterbalance.verification.walk import check_chain, check_complete, check_files, check_listing, records


def write_manifest(study: Study) -> Path:
    """Write the manifest of a finished study; return its path.

    Raises
    ------
    GateError
        If the plan is not the frozen one.
    InputError
        If an artifact is missing or is not the one that its record describes.
    """
    check_gate(study, trials=True)
    path = study.layout.manifest
    write_bytes(path, build_manifest(study, read_chain(study.layout)).dumps())
    return path


def verify(folder: Path) -> VerificationReport:
    """Check a study's published results: `results/STUDY`, with `preregistration` beside `results`.

    Parameters
    ----------
    folder
        The results; they may have been copied anywhere together with the preregistration folder.

    Returns
    -------
    VerificationReport
        What was checked and holds, and what could not be checked.

    Raises
    ------
    NotVerifiedError
        With all findings, if anything does not hold.
    VerificationError
        If there is no study or no readable manifest to check.
    """
    findings = Findings()
    layout = _layout(folder)
    manifest = read_manifest(layout.manifest)
    check_listing(layout, manifest, findings)
    check_files(layout.root, manifest, findings)
    try:
        study = open_study(layout, manifest)
    except VerificationError as error:
        findings.fail(str(error))
    else:
        _check_study(study, manifest, findings)
    report = VerificationReport(str(folder), findings)
    if findings.failures:
        raise NotVerifiedError(report)
    return report


def open_study(layout: Layout, manifest: Manifest) -> Study:
    """Return the study whose settings lie in the results.

    Raises
    ------
    VerificationError
        If they are missing, malformed, or not those of the manifest.
    """
    path = layout.resolved_config
    try:
        value: Json = parse_json(path.read_bytes(), source=str(path))
        if value["schema"] != STUDY_SCHEMA or value["config"]["id"] != layout.study or manifest.study != layout.study:
            raise ValueError(f"not the settings of study {layout.study!r} in schema {STUDY_SCHEMA}")
        if not sha256_json(value["config"]) == value["config_sha256"] == manifest.config_sha256:
            raise ValueError("its settings do not hash to the hash that it and the manifest name")
        config = StudyConfig.model_validate_json(canonical_json(value["config"]))
        study = Study(layout.root / value["study_file"]["path"], layout.root, config)
    except (CounterbalanceError, ValidationError, ValueError, KeyError, TypeError, OSError) as error:
        raise VerificationError(
            f"{path.name}: the settings cannot be read, so no number is derived again: {error}"
        ) from error
    if study.sha256 != manifest.config_sha256:
        raise VerificationError(
            f"{path.name}: this version fills in other defaults than the results were made with, so no number is "
            "derived again; verify with the version that made them"
        )
    return study


def _layout(folder: Path) -> Layout:
    place = folder.resolve()
    if place.parent.name != "results":
        raise VerificationError(
            f"{folder}: not a study's results; give a folder results/STUDY, with preregistration beside results"
        )
    return Layout(place.parents[1], place.name)


def _check_study(study: Study, manifest: Manifest, findings: Findings) -> None:
    made = list(records(study.root, manifest))
    try:
        check_complete(study, manifest, findings)
    except CounterbalanceError as error:
        findings.fail(f"it cannot be told which cells were asked, so no number is derived again: {error}")
        return
    chain = check_frozen(study, manifest, made, findings)
    check_chain(study, manifest, chain, findings)
    frozen = chain[-1] if chain else None
    Rederivation(study, findings).run(frozen, made)
    if frozen is not None and study.layout.report.is_file():
        named = frozen.sha256.removeprefix("sha256:").encode() in study.layout.report.read_bytes()
        findings.check(
            [] if named else [f"report.html does not name the frozen record {frozen.sha256}"],
            "report: names the frozen record",
        )
