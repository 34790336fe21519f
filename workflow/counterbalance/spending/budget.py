"""What was spent by now and what the caps leave, for the study and for each account."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from counterbalance.config import Study
from counterbalance.ledger import read_spent
from counterbalance.spending.prices import nano_usd
from counterbalance.spending.spent import at_worst_nano_usd, ledger_paths


@dataclass(frozen=True)
class Budget:
    """Money of a study or an account over all sessions; nano-USD.

    Attributes
    ----------
    spent
        Everything charged, and everything of unknown outcome at its worst case.
    at_worst, sendings_at_worst
        The part of it that is no known cost but a worst case, and the sendings behind it.
    maybe_billed
        Sendings without a reply that the vendor may have charged.
    cap
        What the study file allows; None: no cap.
    """

    spent: int
    at_worst: int
    sendings_at_worst: int
    maybe_billed: int
    cap: int | None

    @property
    def left(self) -> int | None:
        """What the cap leaves; negative if the cap was lowered below what is spent."""
        return None if self.cap is None else self.cap - self.spent


def read_budgets(study: Study) -> tuple[Budget, dict[str, Budget]]:
    """Return the budget of the study, and those of its accounts by id."""
    paths = [path for _, path in ledger_paths(study)]
    accounts = {account.id: _budget(paths, account.cap_usd, account.id) for account in study.config.accounts}
    return _budget(paths, study.config.money.cap_usd), accounts


def _budget(paths: Iterable[Path], cap_usd: float | None, account: str | None = None) -> Budget:
    spent = at_worst = sendings = maybe = 0
    for path in paths:
        found = read_spent(path, account)
        spent += found.nano_usd or 0
        at_worst += at_worst_nano_usd(path, account)
        sendings += found.at_worst
        maybe += found.maybe_billed
    return Budget(spent, at_worst, sendings, maybe, None if cap_usd is None else nano_usd(cap_usd))
