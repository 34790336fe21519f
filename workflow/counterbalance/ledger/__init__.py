"""Where bought replies are kept: one file per cell, written by one process, outside what any rule may delete."""

from counterbalance.ledger.observed import Observed, count_observed, observed_calls
from counterbalance.ledger.read import AnsweredCall, answered_keys, read_answered
from counterbalance.ledger.write import Attempt, Ledger

__all__ = [
    "AnsweredCall",
    "Attempt",
    "Ledger",
    "Observed",
    "answered_keys",
    "count_observed",
    "observed_calls",
    "read_answered",
]
