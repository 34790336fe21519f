"""Stage query: ask what is still unanswered, then derive the table of replies from the ledger."""

import asyncio
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table, write_record
from counterbalance.calls import TRIAL_COLUMNS, CallPlan, plan_calls, unanswered_calls
from counterbalance.config import Cell, Study
from counterbalance.engine import Call, Engine, Tally
from counterbalance.errors import PendingError
from counterbalance.ledger import Ledger, answered_keys
from counterbalance.limits import WATCHED_REPLIES, TruncationGuard, check_number_of_calls
from counterbalance.progress import Progress
from counterbalance.replies import Bought, derive_replies
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.stages.command import command_line
from counterbalance.vendors import get_vendor
from counterbalance.vendors.base import Vendor

if TYPE_CHECKING:
    from counterbalance.prereg.record import FrozenRecord


@dataclass(frozen=True)
class QueryCounts:
    """What a query did and what the cell holds now.

    Attributes
    ----------
    trials
        Trials of the cell.
    new
        Calls answered by this session.
    bought
        The calls behind the trials, over all sessions.
    """

    cell: str
    trials: int
    new: int
    bought: Bought

    def __str__(self) -> str:
        statuses = ", ".join(f"{n} {status}" for status, n in sorted(self.bought.statuses.items())) or "none"
        return (
            f"{self.cell}: {self.trials} trials, {self.bought.calls} calls ({self.new} new), replies: {statuses}; "
            f"{self.bought.attempts} attempts, {self.bought.transport_errors} transport errors, "
            f"{self.bought.possibly_sent_twice} possibly sent twice"
        )


def query_replies(study: Study, experiment: str, model: str, dataset: str, progress: Progress) -> QueryCounts:
    """Buy the replies that are missing in one cell, and write its table of replies.

    Raises
    ------
    GateError
        If the frozen record does not cover what would be asked.
    PendingError
        If calls are left unanswered; no table is written then.
    LedgerBusyError
        If another process is asking the same cell.
    """
    from counterbalance.prereg.gate import check_gate

    cell = study.cell(experiment, model, dataset)
    frozen = check_gate(study, trials=True, only=(experiment, dataset))
    check_number_of_calls(study)
    trials = _read_trials(study, cell)
    vendor = get_vendor(cell.model, cell.experiment, study)
    path = study.layout.ledger(experiment, model, dataset)
    with Ledger(path, study=study.config.id, cell=cell.name) as ledger:
        plan = plan_calls(vendor, cell, trials, ledger.answered, seed=study.config.seed)
        tally = Tally()
        if plan.pending:
            guard = TruncationGuard(cell, study, ledger.first_statuses(WATCHED_REPLIES))
            engine = Engine(vendor, ledger, frozen_sha256=frozen.sha256, progress=progress, guard=guard)
            progress.start(cell.name, total=plan.calls, done=plan.answered)
            try:
                tally = asyncio.run(_ask(engine, vendor, unanswered_calls(vendor, cell, trials, plan)))
            finally:
                progress.finish()
        if tally.answered < len(plan.pending):
            raise PendingError(_pending_message(study, cell, plan, tally))
        return _write_replies(study, cell, trials, plan, tally, frozen)


def pending_calls(study: Study, cell: Cell) -> tuple[int, int, int]:
    """Return how many calls a cell needs, how many are answered, and how many are new; nothing is opened or asked.

    Raises
    ------
    InputError
        If the cell's trials are not there yet.
    """
    vendor = get_vendor(cell.model, cell.experiment, study)
    answered = answered_keys(study.layout.ledger(cell.experiment.id, cell.model.id, cell.dataset.id))
    plan = plan_calls(vendor, cell, _read_trials(study, cell), answered, seed=study.config.seed)
    return plan.calls, plan.answered, len(plan.pending)


async def _ask(engine: Engine, vendor: Vendor, calls: Iterator[Call]) -> Tally:
    async with vendor:
        return await engine.run(calls)


def _read_trials(study: Study, cell: Cell) -> pa.Table:
    path = study.layout.trials(cell.experiment.id, cell.dataset.id)
    return read_table(path, SCHEMAS["trials"], list(TRIAL_COLUMNS))


def _write_replies(
    study: Study, cell: Cell, trials: pa.Table, plan: CallPlan, tally: Tally, frozen: "FrozenRecord"
) -> QueryCounts:
    names = {"experiment": cell.experiment.id, "model": cell.model.id, "dataset": cell.dataset.id}
    path = study.layout.replies(**names)
    trial_ids = trials.column("trial_id").to_pylist()
    written, bought = derive_replies(study.layout.ledger(**names), trial_ids, plan.keys, path)
    write_record(
        path,
        study.root,
        stage="query",
        inputs=[study.layout.trials(cell.experiment.id, cell.dataset.id), frozen.path],
        command=command_line(study, "query", **names),
        config_sha256=settings_sha256(study, "query", **names),
        code_sha256=code_sha256("query"),
        schema=SCHEMAS["replies"],
        written=written,
        frozen_sha256=frozen.sha256,
        facts=bought.facts(),
    )
    return QueryCounts(cell.name, written.rows, tally.answered, bought)


def _pending_message(study: Study, cell: Cell, plan: CallPlan, tally: Tally) -> str:
    left = len(plan.pending) - tally.answered
    why = [tally.stopped] if tally.stopped else []
    if tally.given_up:
        why.append(f"{tally.given_up} failed at every try, the last with: {tally.last_error}")
    names = {"experiment": cell.experiment.id, "model": cell.model.id, "dataset": cell.dataset.id}
    command = shlex.join(command_line(study, "query", **names))
    return (
        f"{cell.name}: {left} of {plan.calls} calls are still unanswered ({'; '.join(why) or 'not sent yet'}). "
        f"Nothing is lost: start the same run again, or type: {command}"
    )
