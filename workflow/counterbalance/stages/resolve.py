"""Stage resolve: write every setting of the study, defaults included, as one canonical file."""

from pathlib import Path

from counterbalance.artifacts import write_record
from counterbalance.artifacts.records import relative
from counterbalance.canonical import sha256_file
from counterbalance.config import Study
from counterbalance.files import write_json
from counterbalance.rerun import code_sha256

STUDY_SCHEMA = "counterbalance/resolved/1"


def resolve_study(study: Study) -> Path:
    """Write the resolved settings and their record; return the path."""
    path = study.layout.resolved_config
    write_json(
        path,
        {
            "schema": STUDY_SCHEMA,
            "study_file": {"path": relative(study.path, study.root), "sha256": sha256_file(study.path)},
            "config_sha256": study.sha256,
            "config": study.resolved,
        },
    )
    write_record(
        path,
        study.root,
        stage="resolve",
        inputs=[study.path],
        command=["counterbalance", "resolve", "--study", relative(study.path, study.root)],
        config_sha256=study.sha256,
        code_sha256=code_sha256("resolve"),
    )
    return path
