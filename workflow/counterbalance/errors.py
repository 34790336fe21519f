"""The ways in which a run can stop, one class each, with the exit code that scripts may rely on."""


class CounterbalanceError(Exception):
    """Base of every error that this package raises on purpose."""

    exit_code = 1


class ConfigError(CounterbalanceError):
    """The study file is wrong: names file, key, what was expected and what to do."""

    exit_code = 2


class InputError(CounterbalanceError):
    """A data file, table or argument is malformed: names file, row and field."""

    exit_code = 3


class NoSpaceError(InputError):
    """The disk is full; what had been bought was saved in space kept back for that."""


class GateError(CounterbalanceError):
    """The frozen record is missing, or the plan is no longer the one that was frozen."""

    exit_code = 4


class VerificationError(CounterbalanceError):
    """A published artifact does not match its hashes or cannot be re-derived."""

    exit_code = 5


class PendingError(CounterbalanceError):
    """Some calls are still unanswered; nothing is lost and the same command goes on."""

    exit_code = 6


class LedgerBusyError(CounterbalanceError):
    """Another process is writing to this ledger."""

    exit_code = 7


class VendorError(CounterbalanceError):
    """A model or its server cannot be used as the study asks."""

    exit_code = 8


class DegenerateDataError(CounterbalanceError):
    """The data do not determine the quantity that was asked for."""

    exit_code = 9


class OutOfFundsError(CounterbalanceError):
    """The vendor says that the account has no credit left or has met its spending limit."""

    exit_code = 10


class KeyRefusedError(CounterbalanceError):
    """The key is missing, or the vendor does not take it."""

    exit_code = 11


class BudgetError(CounterbalanceError):
    """The next call could cost more than what is left of a cap in the study file."""

    exit_code = 12
