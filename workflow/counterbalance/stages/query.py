"""Stage query: ask what is still unanswered, then derive the table of replies from the ledger."""

import asyncio
import gc
import shlex
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table, write_record
from counterbalance.calls import TRIAL_COLUMNS, CallPlan, plan_calls, unanswered_calls
from counterbalance.config import Cell, Study
from counterbalance.config.models import Account, ApiModel, Model
from counterbalance.engine import Engine, RetryPolicy
from counterbalance.errors import BudgetError, ConfigError, KeyRefusedError, OutOfFundsError, PendingError, VendorError
from counterbalance.exchange import Call, Guard, Tally
from counterbalance.ledger import AnsweredCall, Ledger, answered_keys, read_answered
from counterbalance.ledger.batches import Batches
from counterbalance.limits import WATCHED_REPLIES, FirstReplies, check_number_of_calls
from counterbalance.progress import Progress
from counterbalance.replies import Bought, derive_replies
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.scouting.outcome import require_kept
from counterbalance.spending.allowance import CellAllowance, open_allowance
from counterbalance.spending.budget import read_budgets
from counterbalance.spending.prices import show_usd
from counterbalance.stages.command import command_line
from counterbalance.vendors import get_vendor
from counterbalance.vendors.base import BatchVendor, CallRefusedError, Vendor

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
            f"{self.bought.possibly_sent_twice} possibly sent twice{self._money()}"
        )

    def _money(self) -> str:
        spent = self.bought.spent
        if spent.nano_usd is None:
            return ""
        worst = f", {spent.at_worst} attempts of it at the worst case" if spent.at_worst else ""
        billed = f"; {spent.maybe_billed} attempts without reply perhaps billed" if spent.maybe_billed else ""
        return f"; {show_usd(spent.nano_usd)} spent{worst}{billed}"


def query_replies(study: Study, experiment: str, model: str, dataset: str, progress: Progress) -> QueryCounts:
    """Buy the replies that are missing in one cell, and write its table of replies.

    Raises
    ------
    GateError
        If the frozen record does not cover what would be asked, or its rule leaves the cell out.
    PendingError
        If calls are left unanswered; no table is written then.
    OutOfFundsError, KeyRefusedError, BudgetError, VendorError
        If nothing more can be bought; what was bought is kept, and the message says how to go on.
    LedgerBusyError
        If another process is asking the same cell.
    """
    cell = study.cell(experiment, model, dataset)
    require_kept(study, cell)
    frozen, trials, vendor = _prepare(study, cell)
    with _open_ledger(study, cell) as ledger:
        plan = plan_calls(vendor, cell, trials, ledger.answered, seed=study.config.seed)
        guard = _guard(study, cell, ledger, plan)
        purchase = _Purchase(study, cell, ledger, plan)
        tally = purchase.make(vendor, trials, frozen.sha256, progress, guard)
        return _write_replies(study, cell, trials, plan, tally, frozen)


def ask_calls(
    study: Study,
    cell: Cell,
    *,
    limit: int,
    progress: Progress,
    live: bool = False,
    command: Sequence[str] | None = None,
) -> list[AnsweredCall]:
    """Buy the first calls of a cell into the cell's own ledger, so that the sweep need not buy them again.

    Parameters
    ----------
    limit
        How many calls at most, in the order of asking, each of another item.
    live
        Whether to ask call by call also where the account hands in batches.
    command
        What to type to go on, for messages; by default the whole cell's query.

    Returns
    -------
    list of AnsweredCall
        These calls in the order of asking, whether bought now or before.

    Raises
    ------
    GateError, PendingError, OutOfFundsError, KeyRefusedError, BudgetError, VendorError, LedgerBusyError
        As `query_replies`.
    """
    frozen, trials, vendor = _prepare(study, cell)
    with _open_ledger(study, cell) as ledger:
        whole = plan_calls(vendor, cell, trials, ledger.answered, seed=study.config.seed)
        items = trials.column("item_id").to_pylist()
        first: dict[str, int] = {}
        for row in whole.order:
            first.setdefault(items[row], row)
        order = list(first.values())[:limit]
        plan = replace(whole, order=order, pending=[row for row in whole.pending if row in set(order)])
        purchase = _Purchase(study, cell, ledger, plan, command, live=live)
        purchase.make(vendor, trials, frozen.sha256, progress, _no_guard)
    keys = [plan.keys[row] for row in order]
    found = read_answered(study.layout.ledger(cell.experiment.id, cell.model.id, cell.dataset.id), keys)
    return [found[key] for key in keys]


def ask_trials(
    study: Study, cell: Cell, trials: pa.Table, *, progress: Progress, command: Sequence[str]
) -> tuple[CallPlan, "FrozenRecord"]:
    """Buy the calls of some trials of a cell into the cell's own ledger, where the sweep finds them.

    Parameters
    ----------
    trials
        Of the declared schema; the caller has seen to it that the frozen record covers them.
    command
        What to type to go on, for messages.

    Returns
    -------
    CallPlan, FrozenRecord
        The calls, all answered, and the record under which they were asked.

    Raises
    ------
    GateError, PendingError, OutOfFundsError, KeyRefusedError, BudgetError, VendorError, LedgerBusyError
        As `query_replies`.
    """
    frozen, vendor = _pass_gate(study, cell)
    with _open_ledger(study, cell) as ledger:
        plan = plan_calls(vendor, cell, trials, ledger.answered, seed=study.config.seed)
        guard = _guard(study, cell, ledger, plan)
        _Purchase(study, cell, ledger, plan, command).make(vendor, trials, frozen.sha256, progress, guard)
    return plan, frozen


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


def _prepare(study: Study, cell: Cell) -> tuple["FrozenRecord", pa.Table, Vendor]:
    frozen, vendor = _pass_gate(study, cell)
    return frozen, _read_trials(study, cell), vendor


def _pass_gate(study: Study, cell: Cell) -> tuple["FrozenRecord", Vendor]:
    from counterbalance.prereg.gate import check_gate

    frozen = check_gate(study, trials=True, only=(cell.experiment.id, cell.dataset.id))
    check_number_of_calls(study)
    return frozen, get_vendor(cell.model, cell.experiment, study)


def _open_ledger(study: Study, cell: Cell) -> Ledger:
    path = study.layout.ledger(cell.experiment.id, cell.model.id, cell.dataset.id)
    account = cell.model.account if isinstance(cell.model, ApiModel) else None
    return Ledger(path, study=study.config.id, cell=cell.name, account=account)


def _guard(study: Study, cell: Cell, ledger: Ledger, plan: CallPlan) -> Guard:
    if not plan.pending:
        return _no_guard
    # The ledger may also hold replies to other calls: those of a lower output limit say nothing of this one.
    return FirstReplies(cell, study, ledger.first_statuses(WATCHED_REPLIES, set(plan.keys)))


def _place(model: Model, account: Account) -> str:
    """Say where and with which key a model is asked."""
    address = model.base_url if isinstance(model, ApiModel) else None
    key = f"the key in {account.key_env}" if account.key_env else "no key"
    return f"{model.vendor} at {address or 'its own address'} with {key}"


def _no_guard(status: str) -> None:
    return


@contextmanager
def _few_collections() -> Iterator[None]:
    """Let the collector of reference cycles run seldom: calls make many objects and few cycles, and it took a tenth."""
    before = gc.get_threshold()
    gc.set_threshold(20_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Purchase:
    """One session that buys what is pending of a plan."""

    def __init__(
        self,
        study: Study,
        cell: Cell,
        ledger: Ledger,
        plan: CallPlan,
        command: Sequence[str] | None = None,
        *,
        live: bool = False,
    ) -> None:
        self._study, self._cell, self._ledger, self._plan = study, cell, ledger, plan
        names = {"experiment": cell.experiment.id, "model": cell.model.id, "dataset": cell.dataset.id}
        self._query = shlex.join(command_line(study, "query", **names))
        self._command = shlex.join(command) if command else self._query
        self._account: Account | None = None
        if isinstance(cell.model, ApiModel):
            self._account = study.account(cell.model.account)
        self._live = live or self._account is None or self._account.mode == "live"

    def make(self, vendor: Vendor, trials: pa.Table, frozen_sha256: str, progress: Progress, guard: Guard) -> Tally:
        """Ask, and note in the ledger why the session ended.

        Raises
        ------
        PendingError
            If calls are left unanswered.
        ConfigError
            If batches of an earlier session are still out and this one would ask live.
        CounterbalanceError
            What stopped the session, with where things stand and how to go on.
        """
        batches = Batches(self._ledger, frozen_sha256=frozen_sha256)
        waiting = batches.open()
        if not self._plan.pending and (self._live or not waiting):
            return Tally()
        if waiting and self._live:
            self._refuse_to_buy_again({key for batch in waiting for key in batches.calls(batch.run_id)})
        because = "interrupted"
        progress.start(
            self._cell.name, total=self._plan.calls, done=self._plan.answered, most_nano_usd=self._most_nano_usd()
        )
        try:
            calls = unanswered_calls(vendor, self._cell, trials, self._plan)
            opened = open_allowance(self._study, self._cell, live=self._live) or nullcontext()
            with opened as allowance, _few_collections():
                tally = asyncio.run(self._ask(vendor, calls, frozen_sha256, progress, guard, allowance))
            because = tally.stopped or ("pending" if self._left else "done")
        except (OutOfFundsError, KeyRefusedError, BudgetError, VendorError) as error:
            because = type(error).__name__
            said = f"{str(error).rstrip('.')}. {self._state()}"
            if isinstance(error, CallRefusedError):
                raise CallRefusedError(said, error.reply) from error
            raise type(error)(said) from error
        except Exception as error:
            because = type(error).__name__
            raise
        finally:
            self._ledger.end_session(because)
            progress.finish()
        if self._left:
            raise PendingError(self._pending_message(tally))
        return tally

    def _refuse_to_buy_again(self, handed_in: Set[str]) -> None:
        """Stop if a live session would send what is in a batch at the vendor; other calls may go."""
        both = sum(self._plan.keys[row] in handed_in for row in self._plan.pending)
        if not both or self._account is None:
            return
        mode = f"set accounts.{self._account.id}.mode: batch in {self._study.path} and "
        raise ConfigError(
            f"{self._cell.name}: {both} of the calls to be asked live are in batches at the vendor and would be bought "
            f"again; {mode if self._account.mode == 'live' else ''}collect them first: {self._query}"
        )

    async def _ask(
        self,
        vendor: Vendor,
        calls: Iterator[Call],
        frozen_sha256: str,
        progress: Progress,
        guard: Guard,
        allowance: CellAllowance | None,
    ) -> Tally:
        account = self._account
        async with vendor:
            if account is not None and not self._live:
                from counterbalance.batch import run_batches

                return await run_batches(
                    cast(BatchVendor, vendor),
                    self._ledger,
                    calls,
                    frozen_sha256=frozen_sha256,
                    progress=progress,
                    guard=guard,
                    allowance=allowance,
                    account=account,
                    cell=self._cell.name,
                    place=_place(self._cell.model, account),
                )
            engine = Engine(
                vendor,
                self._ledger,
                frozen_sha256=frozen_sha256,
                progress=progress,
                guard=guard,
                retry=None if account is None else RetryPolicy.of(account),
                allowance=allowance,
            )
            return await engine.run(calls)

    def _most_nano_usd(self) -> int | None:
        """Return what the caps let this cell hold in all, by what the ledgers say now."""
        if self._account is None:
            return None
        whole, accounts = read_budgets(self._study)
        left = [budget.left for budget in (whole, accounts[self._account.id]) if budget.left is not None]
        return min(left) + self._ledger.held if left else None

    @property
    def _left(self) -> int:
        return sum(self._plan.keys[row] not in self._ledger.answered for row in self._plan.pending)

    def _state(self) -> str:
        """Say what is bought, what is left, and how to go on."""
        left, spent = self._left, ""
        if self._account is not None:
            spent = f" for {show_usd(self._ledger.held)}, unknown costs at their worst case"
        return (
            f"{self._cell.name}: {self._plan.calls - left} of {self._plan.calls} calls are answered{spent}; {left} are "
            f"left. Nothing that was bought is lost or bought again. To go on, start the same run again, or type: "
            f"{self._command}"
        )

    def _pending_message(self, tally: Tally) -> str:
        why = [tally.stopped] if tally.stopped else []
        if tally.given_up:
            why.append(f"{tally.given_up} failed at every try, the last with: {tally.last_error}")
        return (
            f"{self._cell.name}: {self._left} of {self._plan.calls} calls are still unanswered "
            f"({'; '.join(why) or 'not sent yet'}). Nothing is lost: start the same run again, or type: {self._command}"
        )


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
        facts={**bought.facts(), "call_order": plan.call_order, "parameters_sent": list(plan.parameters)},
    )
    return QueryCounts(cell.name, written.rows, tally.answered, bought)
