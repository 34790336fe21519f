"""What whoever sends calls asks of the room for money: how much to reserve, how much was spent, whether to go on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from counterbalance.vendors.base import Reply, TokenBounds


@dataclass(frozen=True)
class Admission:
    """How many of the wanted calls may be sent now.

    Attributes
    ----------
    granted
        That many from the front of `wanted`; they are reserved.
    wait_s
        In how many seconds to ask again for the others; None if none are left, or if it is one of the caller's own
        calls under way that must come back first.
    paused
        Why nothing can be sent for longer than the account lets a call wait (`deadline_s`); None if that is not so.
    """

    granted: int
    wait_s: float | None = None
    paused: str | None = None


class Allowance(Protocol):
    """The money and the pace of one cell. Amounts are whole nano-USD: 1 USD is 1,000,000,000.

    `counterbalance.spending.allowance.open_allowance` gives a cell its own, to be opened as a context manager.

    The truth is in the cell's ledger. The order is: `admit`, save the attempts with their `worst`, send, save the
    attempts with their `charge`, and hand the new sum to the next `admit`.
    """

    def worst(self, bounds: TokenBounds) -> int:
        """Return the most one sending of a call can cost."""

    def charge(self, reply: Reply, bounds: TokenBounds) -> int:
        """Return what a reply cost by its usage; where the usage is missing or contradicts itself, `worst`."""

    def admit(self, wanted: Sequence[TokenBounds], *, held: int, in_flight: int) -> Admission:
        """Reserve as many calls as the caps and the pace allow, in one short transaction of all processes.

        Parameters
        ----------
        wanted
            What would be sent next, in order. Empty: only hand in `held`, which frees what came back cheaper; to be
            done at the end of a session.
        held
            Everything this cell's ledger has charged so far plus the `worst` of every attempt that is not charged
            yet (under way, or of unknown outcome), over all sessions, without `wanted`.
        in_flight
            Attempts of this process that are under way. While there are some, a full purse is not an error.

        Raises
        ------
        BudgetError
            If a cap has no room for the first wanted call, and nothing under way anywhere could make room.
        """

    def pause(self, seconds: float) -> None:
        """Let no process send anything on this account for that long, because the server asked for it."""
