"""The allowance of one cell: prices, the caps of study and account, and the pace, over the purse of all processes."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from counterbalance.config import Cell, Study
from counterbalance.config.models import ApiModel
from counterbalance.errors import BudgetError
from counterbalance.ledger import held_by_account
from counterbalance.spending.base import Admission
from counterbalance.spending.pace import Limits
from counterbalance.spending.prices import Tariff, nano_usd, show_usd
from counterbalance.spending.purse import Others, Page, Purse
from counterbalance.spending.spent import held_by_cell
from counterbalance.vendors.base import Reply, TokenBounds

# How often to look whether another process has given back what it had reserved.
_LOOK_S = 0.5
# Vendors' own windows end within a day; a longer pause is asked for again when it has not.
_LONGEST_PAUSE_S = 86_400.0
# A process that has not been seen for its time-out and this long is no longer waited for.
_GRACE_S = 30.0


class CellAllowance:
    """The allowance of one cell; open it as a context manager.

    Parameters
    ----------
    study, cell
        Whose money it is, and what for; the cell's model is behind an account.
    live
        Whether calls are charged and paced as live ones although the account's mode is batch.
    clock
        Epoch seconds.
    """

    def __init__(
        self, study: Study, cell: Cell, model: ApiModel, *, live: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        account = study.account(model.account)
        if live:
            account = account.model_copy(update={"mode": "live"})
        self._cell, self._account, self._path, self._clock = cell.name, account, study.path, clock
        self._tariff = Tariff.of(study.config.money.prices[model.id], batch=account.mode == "batch")
        self._limits = Limits.of(account)
        # Vendors count by key: two accounts of one key share pace and pauses.
        self._payer = f"key {account.key_env}" if account.key_env else account.id
        self._study_cap, self._account_cap = _cap(study.config.money.cap_usd), _cap(account.cap_usd)
        self._purse = Purse(study.layout.purse, cell.name, account.id, lambda: held_by_cell(study), clock=clock)
        self._ledger = study.layout.ledger(cell.experiment.id, cell.model.id, cell.dataset.id)
        self._apart = {entry.id for entry in study.config.accounts} - {account.id}
        self._elsewhere = self._strangers = 0

    def __enter__(self) -> Self:
        # What this cell was charged while its model had another account is none of this one's, unless the study no
        # longer names that account: it may be this one, renamed.
        paid = held_by_account(self._ledger)
        self._elsewhere = sum(held for account, held in paid.items() if account in self._apart)
        self._strangers = sum(paid.values()) - paid.get(self._account.id, 0) - self._elsewhere
        self._purse.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._purse.__exit__(kind, error, trace)

    def worst(self, bounds: TokenBounds) -> int:
        """Return the most one sending of a call can cost, in nano-USD."""
        return self._tariff.worst(bounds)

    def charge(self, reply: Reply, bounds: TokenBounds) -> int:
        """Return what a reply cost, in nano-USD: by its usage, or the worst case where that is missing."""
        return self._tariff.charge(reply, bounds)

    def admit(self, wanted: Sequence[TokenBounds], *, held: int, in_flight: int) -> Admission:
        """Reserve as many calls as caps and pace allow; see `Allowance`.

        Raises
        ------
        BudgetError
            If a cap has no room for the first wanted call, and nothing under way anywhere could make room.
        """
        costs = [self._tariff.worst(bounds) for bounds in wanted]
        with self._purse.transaction() as page:
            # Not before the purse was free: other processes have written later times meanwhile.
            now = self._clock()
            others = page.others(self._cell, self._account.id, self._apart, now)
            fitting = self._fitting(costs, held, others)
            granted, wait, paused = self._paced(page, wanted[:fitting], now)
            # The accounts that paid before have rows of their own.
            here = held - self._elsewhere - self._strangers + sum(costs[:granted])
            page.put(self._cell, self._account.id, here, now=now, live_s=self._live_s(in_flight, granted))
        if granted == len(wanted) or granted < fitting:
            return Admission(granted, wait, self._too_long(wait) if paused else None)
        if not fitting and not in_flight and not others.live:
            raise BudgetError(self._no_room(costs[0], held, others))
        return Admission(granted, _LOOK_S if others.live else None)

    def pause(self, seconds: float) -> None:
        """Let no process send on this account for that long, a day at most; a longer pause already set stays."""
        seconds = min(seconds, _LONGEST_PAUSE_S)
        with self._purse.transaction() as page:
            now = self._clock()
            level = self._limits.fill(page.level(self._payer), now)
            if seconds > level.pause_left(now):
                page.put_level(self._payer, level.paused(now, seconds))

    def _fitting(self, costs: Sequence[int], held: int, others: Others) -> int:
        study, account = held + others.study, held - self._elsewhere + others.account
        for count, cost in enumerate(costs):
            study, account = study + cost, account + cost
            # What costs nothing is never held up by a cap.
            if cost and (_over(study, self._study_cap) or _over(account, self._account_cap)):
                return count
        return len(costs)

    def _live_s(self, in_flight: int, granted: int) -> float:
        """Return for how long the sum here is more to be trusted than the one in the ledger (seconds)."""
        if self._account.mode == "live":
            return self._account.timeout_s + _GRACE_S if in_flight + granted else 0.0
        # A batch gives nothing back for a day, but what is granted here reaches the ledger a moment later.
        return _GRACE_S if granted else 0.0

    def _too_long(self, wait_s: float | None) -> str | None:
        deadline = self._account.deadline_s
        if wait_s is None or wait_s <= deadline:
            return None
        return (
            f"the vendor asked account {self._account.id!r} to wait, and {wait_s:.0f} s of it are left, longer than "
            f"its deadline_s: {deadline:.0f}; run again after that, or delete {self._purse.path} to ask sooner"
        )

    def _paced(self, page: Page, wanted: Sequence[TokenBounds], now: float) -> tuple[int, float | None, bool]:
        """Return how many calls the pace lets out, the wait for the others, and whether that is a server's pause."""
        if not wanted:
            return 0, None, False
        stored = page.level(self._payer)
        level = self._limits.fill(stored, now)
        pause = level.pause_left(now)
        if pause > 0.0:
            return 0, pause, True
        granted, after, wait = self._limits.take(level, wanted)
        if granted and not self._limits.none:
            page.put_level(self._payer, after)
        return granted, wait, False

    def _no_room(self, cost: int, held: int, others: Others) -> str:
        study_full = _over(held + others.study + cost, self._study_cap)
        key = "money.cap_usd" if study_full else f"accounts.{self._account.id}.cap_usd"
        cap = self._study_cap if study_full else self._account_cap
        spent = held + others.study if study_full else held - self._elsewhere + others.account
        lost, hint = self._strangers + others.strangers, ""
        if lost and not study_full:
            hint = (
                f" ({show_usd(lost)} of it by accounts that the study no longer names, `counterbalance plan` says "
                "which; if that was another key, put the account back under `accounts`)"
            )
        return (
            f"{self._path}: {key} is {show_usd(cap or 0)}, of which {show_usd(spent)} is spent or reserved{hint}, and "
            f"the next call of {self._cell} can cost up to {show_usd(cost)}; raise that cap, or ask less"
        )


def open_allowance(study: Study, cell: Cell, *, live: bool = False) -> CellAllowance | None:
    """Return a cell's allowance, to be opened as a context manager; None for a model that no account pays.

    Parameters
    ----------
    live
        Charge and pace calls as live ones although the account's mode is batch (the preflight's are).
    """
    return CellAllowance(study, cell, cell.model, live=live) if isinstance(cell.model, ApiModel) else None


def _cap(usd: float | None) -> int | None:
    return None if usd is None else nano_usd(usd)


def _over(amount: int, cap: int | None) -> bool:
    return cap is not None and amount > cap
