"""Steps that tests of verification share: running on after a change, and forging settings."""

from counterbalance.artifacts.records import record_path
from counterbalance.canonical import parse_json, sha256_file, sha256_json
from counterbalance.files import write_json
from counterbalance.progress import make_progress
from counterbalance.stages.contrast import combine_estimates, estimate_cell
from counterbalance.stages.expand import expand_trials
from counterbalance.stages.freeze import freeze
from counterbalance.stages.prepare import prepare_items
from counterbalance.stages.query import query_replies
from counterbalance.stages.report import render_report
from counterbalance.stages.resolve import resolve_study
from counterbalance.stages.score import score_replies
from counterbalance.stages.verify import write_manifest

CELL = "letters/biased/sums.parquet"
REPLIES, OUTCOMES, ESTIMATES = (f"results/planted/{name}/{CELL}" for name in ("replies", "outcomes", "cells"))
TRIALS = "results/planted/trials/letters/sums.parquet"
ITEMS = "results/planted/items/sums.parquet"


def finish(study, reason=None) -> None:
    """Run all stages, as the workflow does."""
    resolve_study(study)
    prepare_items(study, "sums")
    expand_trials(study, "letters", "sums")
    freeze(study, reason=reason)
    query_replies(study, "letters", "biased", "sums", make_progress("none"))
    derive_after_replies(study)


def derive_after_replies(study) -> None:
    score_replies(study, "letters", "biased", "sums")
    estimate_cell(study, "letters", "biased", "sums")
    combine_estimates(study)
    render_report(study)
    write_manifest(study)


def change_alpha(project) -> None:
    path = project.path("config/studies/planted.yaml")
    path.write_text(path.read_text().replace("analysis: {", "analysis: {alpha: 0.01, "))


def amend(project) -> None:
    change_alpha(project)
    finish(project.study, reason="0.05 was a typing error")


def forge_settings(project, change) -> None:
    """Change the published settings with all hashes that depend on them."""
    path = project.study.layout.resolved_config
    body = parse_json(path.read_bytes(), source="study")
    change(body["config"])
    body["config_sha256"] = sha256_json(body["config"])
    write_json(path, body)
    name = "results/planted/study.json"
    project.edit_record(name, lambda record: record.update(sha256=sha256_file(path)))
    project.follow()
    manifest = parse_json(project.study.layout.manifest.read_bytes(), source="manifest")
    manifest["config_sha256"] = body["config_sha256"]
    write_json(project.study.layout.manifest, manifest)
    assert record_path(path).is_file()
