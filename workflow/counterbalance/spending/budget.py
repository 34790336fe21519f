"""What was spent by now and what the caps leave, for the study and for each account."""

from collections.abc import Mapping
from dataclasses import dataclass

from counterbalance.config import Study
from counterbalance.spending.prices import nano_usd
from counterbalance.spending.spent import Paid, paid_by_account


@dataclass(frozen=True)
class Budget:
    """Money of a study or an account over all sessions; nano-USD.

    Attributes
    ----------
    spent, at_worst, sendings_at_worst, maybe_billed
        See `Paid`.
    cap
        What the study file allows; None: no cap.
    strangers
        For an account: what was paid by accounts that the study no longer names. Nobody can tell whether one of them
        is this one under an older name, so it counts to this cap too.
    """

    spent: int
    at_worst: int
    sendings_at_worst: int
    maybe_billed: int
    cap: int | None
    strangers: int = 0

    @property
    def left(self) -> int | None:
        """What the cap leaves; negative if the cap was lowered below what is spent."""
        return None if self.cap is None else self.cap - self.spent - self.strangers


def read_budgets(study: Study) -> tuple[Budget, dict[str, Budget]]:
    """Return the budget of the study, and those of its accounts by id."""
    paid = paid_by_account(study)
    lost = sum(strangers(study, paid).values())
    accounts = {
        account.id: _budget(paid.get(account.id, Paid()), account.cap_usd, lost) for account in study.config.accounts
    }
    return _budget(sum(paid.values(), Paid()), study.config.money.cap_usd), accounts


def strangers(study: Study, paid: Mapping[str, Paid] | None = None) -> dict[str, int]:
    """Return what accounts have paid (nano-USD) that the study no longer names, by their ids then."""
    named = {account.id for account in study.config.accounts}
    paid = paid_by_account(study) if paid is None else paid
    return {account: found.spent for account, found in paid.items() if account not in named and found.spent}


def _budget(paid: Paid, cap_usd: float | None, lost: int = 0) -> Budget:
    cap = None if cap_usd is None else nano_usd(cap_usd)
    return Budget(paid.spent, paid.at_worst, paid.sendings_at_worst, paid.maybe_billed, cap, lost)
