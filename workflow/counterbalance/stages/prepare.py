"""Stage prepare: a data file to checked items, and a list of what is excluded and why."""

from counterbalance.artifacts import SCHEMAS, write_record, write_table
from counterbalance.canonical import Json
from counterbalance.config import Study
from counterbalance.items.prepare import prepare_table
from counterbalance.items.source import read_source
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.stages.command import command_line


def prepare_items(study: Study, dataset: str) -> str:
    """Write a data set's items and excluded rows; return what was done, in a line, and any warning below it."""
    settings = study.dataset(dataset)
    source = read_source(settings, study.root)
    prepared = prepare_table(source.data, settings, study.config.seed)
    facts = {**prepared.facts, "source": {"path": settings.path, "sha256": source.sha256}}
    for path, table, schema in (
        (study.layout.items(dataset), prepared.items, SCHEMAS["items"]),
        (study.layout.rejected(dataset), prepared.rejected, SCHEMAS["rejected"]),
    ):
        write_record(
            path,
            study.root,
            stage="prepare",
            inputs=[] if source.path is None else [source.path],
            command=command_line(study, "prepare", dataset=dataset),
            config_sha256=settings_sha256(study, "prepare", dataset=dataset),
            code_sha256=code_sha256("prepare"),
            schema=schema,
            written=write_table(path, table, schema),
            facts=facts,
        )
    return _summary(dataset, facts)


def _summary(dataset: str, facts: dict[str, Json]) -> str:
    rejected = "".join(f", {count} excluded by {rule}" for rule, count in sorted(facts["rejected"].items()))
    left = f", {facts['not_taken']} valid ones not taken" if facts["not_taken"] else ""
    line = f"{dataset}: {facts['taken']} items of {facts['rows']} rows{rejected}{left}"
    return "\n".join([line, *(f"warning: {text}" for text in facts["warnings"])])
