"""Stage freeze: fix plan, predictions, items and prompts in a record that is written once."""

from pathlib import Path

from counterbalance.artifacts import SCHEMAS, read_record
from counterbalance.artifacts.records import relative
from counterbalance.canonical import sha256_file
from counterbalance.config import Study
from counterbalance.errors import GateError, InputError
from counterbalance.files import write_json
from counterbalance.ledger import observed_calls
from counterbalance.prereg.gate import changed_plan, changed_tables, present, refusal
from counterbalance.prereg.parts import frozen_settings, scout_key, table_digest, trial_key
from counterbalance.prereg.plan import Plan
from counterbalance.prereg.possible import require_possible
from counterbalance.prereg.record import (
    FROZEN_SCHEMA,
    FrozenBody,
    FrozenRecord,
    Observed,
    Parts,
    Previous,
    plan_hash_of,
    write_frozen,
)
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.stages.command import command_line

RECEIPT_SCHEMA = "counterbalance/receipt/1"
_CODE = ("prepare", "expand", "query", "score", "contrast", "report")
_SCOUT_CODE = ("scout-trials", "scout", "decide")


def freeze(study: Study, *, reason: str | None = None) -> FrozenRecord:
    """Freeze a study's plan, or return the record that already holds it.

    Parameters
    ----------
    study
        The study; its items and trials must have been made from it.
    reason
        Why an already frozen plan is amended; None for a first freeze.

    Returns
    -------
    FrozenRecord
        The record that governs from now on.

    Raises
    ------
    GateError
        If the plan changed and no reason is given, if there is nothing to amend, or if the chain is damaged.
    ConfigError
        If contrasts or predictions name slots that no item has.
    InputError
        If items or trials are missing or were made from something else than the present files and settings.
    """
    if reason is not None and not reason.strip():
        raise GateError('the reason is empty; say why the plan is amended, for example --reason "a typo in item 12"')
    plan, parts, record = present(study)
    changes = changed_plan(study, record, plan, parts) if record else []
    if record and changes and reason is None:
        raise GateError(refusal(study, record, changes))
    _require_current(study)
    if record is None:
        if reason is not None:
            raise GateError(f"study {study.config.id!r} has no frozen record to amend; freeze without --amend")
        require_possible(study, () if plan is None else plan.predictions)
        record = write_frozen(study.layout, _body(study, plan, parts, None, None))
    else:
        changes += changed_tables(study, record)
        if changes and reason is None:
            raise GateError(refusal(study, record, changes))
        other_code = reason is not None and record.body.code != _code(study)
        if reason is not None and not changes and not other_code:
            raise GateError(f"plan and code are those frozen in {record.path.name}; there is nothing to amend")
        if changes or other_code:
            require_possible(study, () if plan is None else plan.predictions)
            record = write_frozen(study.layout, _body(study, plan, parts, record, reason))
    _write_receipt(study, record)
    return record


def _body(
    study: Study, plan: Plan | None, parts: Parts, previous: FrozenRecord | None, reason: str | None
) -> FrozenBody:
    layout = study.layout
    items = {entry.id: table_digest(layout.items(entry.id), SCHEMAS["items"]) for entry in study.used_datasets()}
    trials = {
        trial_key(experiment.id, dataset.id): table_digest(layout.trials(experiment.id, dataset.id), SCHEMAS["trials"])
        for experiment, dataset in study.trial_sets()
    }
    scouts = {
        scout_key(e.id, d.id): table_digest(layout.scout_trials(e.id, d.id), SCHEMAS["trials"])
        for e, d in study.scouted_sets()
    }
    observed = observed_calls(study)
    return FrozenBody(
        schema=FROZEN_SCHEMA,
        study=study.config.id,
        number=previous.body.number + 1 if previous else 1,
        previous=Previous(number=previous.body.number, sha256=previous.sha256) if previous else None,
        reason=reason.strip() if reason else None,
        exploratory=plan is None,
        late=previous is None and observed.calls > 0,
        plan_hash=plan_hash_of(parts),
        parts=parts.model_copy(
            update={
                "items": {key: found.digest for key, found in items.items()},
                "trials": {key: found.digest for key, found in (trials | scouts).items()},
            }
        ),
        predictions=() if plan is None else plan.predictions,
        config=frozen_settings(study),
        counts={
            "items": {key: found.rows for key, found in items.items()},
            "trials": {key: found.rows for key, found in (trials | scouts).items()},
            "calls": {cell.name: trials[trial_key(cell.experiment.id, cell.dataset.id)].rows for cell in study.cells()},
        },
        code=_code(study),
        observed=Observed(calls=observed.calls, by_cell=dict(observed.by_cell), calls_sha256=observed.calls_sha256),
    )


def _code(study: Study) -> dict[str, str]:
    """Return the hash of each stage's code; that alone is no reason to amend, but may be amended for."""
    return {stage: code_sha256(stage) for stage in (*_CODE, *(_SCOUT_CODE if study.scouted_sets() else ()))}


def _require_current(study: Study) -> None:
    """Refuse tables that are left over from other settings or files: they would be frozen with this plan's name."""
    layout = study.layout
    made = [(layout.items(entry.id), "prepare", {"dataset": entry.id}) for entry in study.used_datasets()]
    made += [
        (layout.trials(experiment.id, dataset.id), "expand", {"experiment": experiment.id, "dataset": dataset.id})
        for experiment, dataset in study.trial_sets()
    ]
    made += [
        (layout.scout_trials(e.id, d.id), "scout-trials", {"experiment": e.id, "dataset": d.id})
        for e, d in study.scouted_sets()
    ]
    for path, stage, names in made:
        why = _stale(study, path, stage, names)
        if why:
            command = " ".join(command_line(study, stage, **names))
            raise InputError(
                f"{relative(path, study.root)}: {why}; make it again before freezing: {command} (or all that need "
                f"it: snakemake --cores 2 --configfile {relative(study.path, study.root)} freeze_preregistration)"
            )


def _stale(study: Study, path: Path, stage: str, names: dict[str, str]) -> str | None:
    if not path.is_file():
        return "the table is not there"
    record = read_record(path)
    if record.sha256 != sha256_file(path):
        return "the table is not the one that its record describes"
    if record.config_sha256 != settings_sha256(study, stage, **names):
        return "it was made with other settings than the study file has now"
    if record.code_sha256 != code_sha256(stage):
        return "it was made by another version of the code"
    for entry in record.materials:
        source = study.root / entry.path
        if source.is_file() and sha256_file(source) != entry.sha256:
            return f"it was made from another {entry.path} than the one that is there now"
    return None


def _write_receipt(study: Study, record: FrozenRecord) -> None:
    write_json(
        study.layout.receipt,
        {
            "schema": RECEIPT_SCHEMA,
            "record": relative(record.path, study.root),
            "sha256": record.sha256,
            "plan_hash": record.body.plan_hash,
        },
    )
