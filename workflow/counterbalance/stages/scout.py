"""Stage scout: ask two orders of a few items of a cell, and say what the rest of it would give and cost."""

from counterbalance.artifacts import SCHEMAS, read_table, write_record
from counterbalance.canonical import Json
from counterbalance.config import Cell, Study
from counterbalance.config.models import Scout
from counterbalance.errors import ConfigError, GateError
from counterbalance.files import write_json
from counterbalance.progress import Progress
from counterbalance.replies import derive_replies, replies_of
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.scouting.look import look
from counterbalance.scouting.trials import reused, scout_trials
from counterbalance.stages.command import command_line
from counterbalance.stages.query import ask_trials

_REPLIES = SCHEMAS["replies"]


def scout_cell(study: Study, experiment: str, model: str, dataset: str, progress: Progress) -> Json:
    """Buy a cell's scout, unless it is there, and write its replies and the decision; return the decision.

    Raises
    ------
    ConfigError
        If the experiment has no scout.
    GateError
        If the frozen record does not cover the scout's trials.
    PendingError, OutOfFundsError, KeyRefusedError, BudgetError, VendorError, LedgerBusyError
        As for any query.
    """
    names = {"experiment": experiment, "model": model, "dataset": dataset}
    cell, layout = study.cell(**names), study.layout
    if cell.experiment.scout is None:
        raise ConfigError(f"{study.path}: experiment {experiment!r} has no `scout`; see docs/scout.md")
    trials_path = layout.scout_trials(experiment, dataset)
    path, decision = layout.scout_replies(**names), layout.scout_decision(**names)
    trials = read_table(trials_path, SCHEMAS["trials"])
    command = command_line(study, "scout", **names)
    plan, frozen = ask_trials(study, cell, trials, progress=progress, command=command)
    written, bought = derive_replies(layout.ledger(**names), trials.column("trial_id").to_pylist(), plan.keys, path)
    body = look(study, cell, cell.experiment.scout, trials, read_table(path, _REPLIES)).body
    write_json(decision, body)
    settings, code = settings_sha256(study, "scout", **names), code_sha256("scout")
    write_record(
        path,
        study.root,
        stage="scout",
        inputs=[trials_path, frozen.path],
        command=command,
        config_sha256=settings,
        code_sha256=code,
        schema=_REPLIES,
        written=written,
        frozen_sha256=frozen.sha256,
        facts={**bought.facts(), "call_order": plan.call_order, "parameters_sent": list(plan.parameters)},
    )
    write_record(
        decision,
        study.root,
        stage="scout",
        inputs=[trials_path, path, layout.trials(experiment, dataset), frozen.path],
        command=command,
        config_sha256=settings,
        code_sha256=code,
        frozen_sha256=frozen.sha256,
    )
    return body


def look_by_hand(study: Study, cell: Cell, scout: Scout, progress: Progress) -> Json:
    """Look at a cell of an experiment that has no scout in the study; nothing is written but the ledger.

    Raises
    ------
    GateError
        If the scout would ask what the frozen record does not cover, or nothing is frozen.
    """
    from counterbalance.prereg.gate import check_gate

    check_gate(study, trials=True, only=(cell.experiment.id, cell.dataset.id))
    trials = scout_trials(study, cell.experiment, cell.dataset, scout.items)
    new = trials.num_rows - reused(trials)
    if new:
        raise GateError(
            f"{cell.name}: {new} of the scout's {trials.num_rows} prompts are not among those frozen, because the "
            f"scheme `{cell.experiment.arrangement.scheme}` does not ask them; write `scout` into experiment "
            f"{cell.experiment.id!r} and freeze, and they are frozen with it (docs/scout.md)"
        )
    names = {"experiment": cell.experiment.id, "model": cell.model.id, "dataset": cell.dataset.id}
    command = command_line(study, "scout", **names)
    plan, _ = ask_trials(study, cell, trials, progress=progress, command=command)
    replies = replies_of(study.layout.ledger(**names), trials.column("trial_id").to_pylist(), plan.keys)
    return look(study, cell, scout, trials, replies).body
