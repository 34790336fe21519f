"""Stage query: ask what is still unanswered, then derive the table of replies from the ledger."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from counterbalance.artifacts import SCHEMAS, TableWriter, read_table, table_from_rows, write_record
from counterbalance.calls import TRIAL_COLUMNS, CallPlan, plan_calls
from counterbalance.calls import pending_calls as iter_pending
from counterbalance.canonical import Json
from counterbalance.config import Cell, Study
from counterbalance.engine import Engine, Tally
from counterbalance.errors import ConfigError, InputError, PendingError, VendorError
from counterbalance.ledger import AnsweredCall, Ledger, read_answered, read_state
from counterbalance.progress import Progress
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.stages.command import command_line
from counterbalance.vendors import get_vendor
from counterbalance.vendors.base import Vendor

_REPLIES = SCHEMAS["replies"]
_SLICE = 20_000
_WATCHED = 50
_OF_THE_CALL = ("call_sha256", "attempts", "call_order", "started_at")
_OF_THE_REPLY = [name for name in _REPLIES.arrow.names if name not in ("trial_id", *_OF_THE_CALL)]


@dataclass(frozen=True)
class QueryCounts:
    """What a query did and what the cell holds now.

    Attributes
    ----------
    trials, calls
        Trials of the cell, and different calls behind them.
    new
        Calls answered by this session.
    statuses
        Trials by their reply's status.
    attempts, transport_errors, unknown
        Sendings over all sessions. `unknown` ones were under way when a process ended; the vendor may have answered
        them, so these calls were possibly bought twice.
    """

    cell: str
    trials: int
    calls: int
    new: int
    statuses: Mapping[str, int]
    attempts: int
    transport_errors: int
    unknown: int

    def __str__(self) -> str:
        statuses = ", ".join(f"{n} {status}" for status, n in sorted(self.statuses.items()))
        return (
            f"{self.cell}: {self.trials} trials, {self.calls} calls ({self.new} new), replies: {statuses or 'none'}; "
            f"{self.attempts} attempts, {self.transport_errors} transport errors, {self.unknown} possibly sent twice"
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
        plan = plan_calls(vendor, cell, trials, read_state(path), seed=study.config.seed)
        tally = Tally()
        if plan.pending:
            guard = TruncationGuard(cell, study, ledger.first_statuses(_WATCHED))
            engine = Engine(vendor, ledger, frozen_sha256=frozen.sha256, progress=progress, guard=guard)
            progress.start(cell.name, total=plan.calls, done=plan.answered)
            try:
                tally = asyncio.run(_ask(engine, vendor, iter_pending(vendor, cell, trials, plan)))
            finally:
                progress.finish()
        if tally.answered < len(plan.pending):
            raise PendingError(_pending_message(study, cell, plan, tally))
        return _write_replies(study, cell, trials, plan, tally, [frozen.path], frozen.sha256)


def pending_calls(study: Study, cell: Cell) -> tuple[int, int, int]:
    """Return how many calls a cell needs, how many are answered, and how many are new; nothing is opened or asked.

    Raises
    ------
    InputError
        If the cell's trials are not there yet.
    """
    vendor = get_vendor(cell.model, cell.experiment, study)
    state = read_state(study.layout.ledger(cell.experiment.id, cell.model.id, cell.dataset.id))
    plan = plan_calls(vendor, cell, _read_trials(study, cell), state, seed=study.config.seed)
    return plan.calls, plan.answered, len(plan.pending)


def check_number_of_calls(study: Study) -> None:
    """Stop if the study's trials that are known by now need more calls than its limit.

    Raises
    ------
    ConfigError
        With the number and the limit.
    """
    counted = {}
    for cell in study.cells():
        path = study.layout.trials(cell.experiment.id, cell.dataset.id)
        if path.is_file():
            counted[cell.name] = _count_rows(str(path))
    total, limit = sum(counted.values()), study.config.limits.max_calls
    if total > limit:
        largest = max(counted, key=counted.__getitem__)
        raise ConfigError(
            f"{study.path}: the study's trials need {total} calls, more than limits.max_calls: {limit} (largest cell "
            f"{largest}: {counted[largest]}); take fewer items or arrangements, or raise the limit"
        )


class TruncationGuard:
    """Stops a cell whose first 50 replies are cut at the output limit too often: the rest would be bought in vain.

    Parameters
    ----------
    seen
        Statuses of replies that earlier sessions bought, in the order of sending.
    """

    def __init__(self, cell: Cell, study: Study, seen: Sequence[str]) -> None:
        self._cell, self._study = cell, study
        self._limit = study.config.limits.max_truncated_share
        self._seen = list(seen)
        if len(self._seen) >= _WATCHED:
            self._judge()

    def __call__(self, status: str) -> None:
        """Take one reply in.

        Raises
        ------
        VendorError
            At the 50th reply, if too many were cut.
        """
        if len(self._seen) < _WATCHED:
            self._seen.append(status)
            if len(self._seen) == _WATCHED:
                self._judge()

    def _judge(self) -> None:
        cut = self._seen.count("truncated")
        if cut > self._limit * _WATCHED:
            raise VendorError(
                f"{self._cell.name}: {cut} of the first {_WATCHED} replies were cut at the output limit, more than "
                f"limits.max_truncated_share: {self._limit}; raise experiments.{self._cell.experiment.id}.read."
                f"max_tokens in {self._study.path}, or that share, and amend the preregistration. The replies bought "
                "so far are kept"
            )


async def _ask(engine: Engine, vendor: Vendor, calls: Iterator[Any]) -> Tally:
    async with vendor:
        return await engine.run(calls)


def _read_trials(study: Study, cell: Cell) -> pa.Table:
    path = study.layout.trials(cell.experiment.id, cell.dataset.id)
    return read_table(path, SCHEMAS["trials"], list(TRIAL_COLUMNS))


def _count_rows(path: str) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); run expand again") from error


def _write_replies(
    study: Study,
    cell: Cell,
    trials: pa.Table,
    plan: CallPlan,
    tally: Tally,
    frozen: Sequence[Any],
    frozen_sha256: str,
) -> QueryCounts:
    names = {"experiment": cell.experiment.id, "model": cell.model.id, "dataset": cell.dataset.id}
    path = study.layout.replies(**names)
    used: dict[str, AnsweredCall] = {}
    statuses: Counter[str] = Counter()
    return QueryCounts(cell.name, 0, 0, 0, statuses, 0, 0, 0)
