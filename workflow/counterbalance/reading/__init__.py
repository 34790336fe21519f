"""Read answers: the option that a reply chooses, and the log-probabilities of the option labels."""

from counterbalance.reading.answer import CUT_REASONS, read_answer
from counterbalance.reading.model import READER_VERSION, Reading, ReaderOptions, Status

__all__ = ["CUT_REASONS", "READER_VERSION", "ReaderOptions", "Reading", "Status", "read_answer"]
