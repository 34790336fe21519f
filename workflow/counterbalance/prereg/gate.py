"""The gate: no call before the frozen record, and none under another plan."""

from pathlib import Path

from counterbalance.artifacts import SCHEMAS, ArtifactSchema
from counterbalance.artifacts.records import relative
from counterbalance.config import Study
from counterbalance.errors import CounterbalanceError, GateError
from counterbalance.prereg.changes import plan_changes, table_changes
from counterbalance.prereg.parts import plan_parts, scout_key, table_digest, trial_key
from counterbalance.prereg.plan import Plan, load_plan
from counterbalance.prereg.record import FrozenRecord, Parts, plan_hash_of, read_chain


def plan_hash(study: Study) -> str:
    """Return one hash over settings, plan text, predictions, prompt files and data files.

    It reads those files and no table, so a workflow can ask for it once per rule.
    """
    return plan_hash_of(plan_parts(study, load_plan(study)))


def check_gate(study: Study, *, trials: bool, only: tuple[str, str] | None = None) -> FrozenRecord:
    """Return the frozen record that governs, or stop.

    Parameters
    ----------
    study
        The study as it is now.
    trials
        Whether the content of items and trials is compared as well, read from the tables themselves.
    only
        Experiment and data set whose tables are compared; all of the study's by default.

    Raises
    ------
    GateError
        If nothing is frozen, a frozen file or the chain is damaged, or the plan is not the frozen one: then every
        part that changed is listed with both hashes, and what can be done.
    """
    plan, now, record = present(study)
    if record is None:
        raise GateError(
            f"nothing is frozen for study {study.config.id!r}, and nothing is asked before that; look the plan over, "
            f"then type:\n  snakemake freeze_preregistration --cores 2 --configfile {_study_name(study)}\n"
            f"or, when the prompts are made: counterbalance freeze --study {_study_name(study)}"
        )
    changes = changed_plan(study, record, plan, now)
    if trials and not changes:
        changes = changed_tables(study, record, only)
    if changes:
        raise GateError(refusal(study, record, changes))
    return record


def present(study: Study) -> tuple[Plan | None, Parts, FrozenRecord | None]:
    """Return the plan as it is now, its hashes, and the newest frozen record if there is one."""
    chain = read_chain(study.layout)
    plan = load_plan(study)
    return plan, plan_parts(study, plan), chain[-1] if chain else None


def changed_plan(study: Study, record: FrozenRecord, plan: Plan | None, now: Parts) -> list[str]:
    """Return what changed in the plan since a record, tables left out."""
    if plan_hash_of(now) == record.body.plan_hash:
        return []
    return plan_changes(study, record.body, now, () if plan is None else plan.predictions)


def changed_tables(study: Study, record: FrozenRecord, only: tuple[str, str] | None = None) -> list[str]:
    """Return which items and trials hold something else than what was frozen, from the tables' content."""
    pairs = [only] if only else [(experiment.id, dataset.id) for experiment, dataset in study.trial_sets()]
    layout, parts = study.layout, record.body.parts
    items = {name: _digest(layout.items(name), SCHEMAS["items"]) for _, name in pairs}
    asked = {trial_key(*pair): _digest(layout.trials(*pair), SCHEMAS["trials"]) for pair in pairs}
    for pair in pairs:
        if study.experiment(pair[0]).scout is not None:
            asked[scout_key(*pair)] = _digest(layout.scout_trials(*pair), SCHEMAS["trials"])
    return table_changes("items", parts.items, items) + table_changes("trials", parts.trials, asked)


def refusal(study: Study, record: FrozenRecord, changes: list[str]) -> str:
    """Return the message for a plan that is not the frozen one."""
    name = relative(record.path, study.root)
    listed = "\n".join(f"  {line}" if line.startswith(" ") else f"- {line}" for line in changes)
    return (
        f"the plan is not the one frozen in {name} ({record.sha256}):\n{listed}\n"
        "Nothing was asked and nothing is frozen anew. Undo the change, or keep it as an amendment that says why:\n"
        f'  counterbalance freeze --study {_study_name(study)} --amend --reason "why"'
    )


def _study_name(study: Study) -> str:
    return relative(study.path, study.root)


def _digest(path: Path, schema: ArtifactSchema) -> str:
    try:
        return table_digest(path, schema).digest
    except CounterbalanceError as error:
        raise GateError(f"{error}; the frozen prompts cannot be compared without it") from error
