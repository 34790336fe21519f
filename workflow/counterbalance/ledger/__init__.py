"""Where bought replies are kept: one file per cell, written by one process, outside what any rule may delete."""

from counterbalance.ledger.money import Session, Spent, held_by_account, held_nano_usd, read_sessions, read_spent
from counterbalance.ledger.observed import Observed, count_observed, observed_calls
from counterbalance.ledger.read import AnsweredCall, answered_keys, read_answered
from counterbalance.ledger.write import Attempt, Ledger, Sending

__all__ = [
    "AnsweredCall",
    "Attempt",
    "Ledger",
    "Observed",
    "Sending",
    "Session",
    "Spent",
    "answered_keys",
    "count_observed",
    "held_by_account",
    "held_nano_usd",
    "observed_calls",
    "read_answered",
    "read_sessions",
    "read_spent",
]
