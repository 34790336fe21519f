"""Money: what a call may cost, what it did cost, and whether the next one may go out."""

from counterbalance.spending.base import Admission, Allowance

__all__ = ["Admission", "Allowance"]
