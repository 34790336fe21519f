"""Read answers: the option that a reply chooses, and the log-probabilities of the option labels."""

from counterbalance.reading.answer import CUT_REASONS, read_answer
from counterbalance.reading.labels import LabelReading, read_label_logprobs
from counterbalance.reading.model import READER_VERSION, ReaderOptions, Reading, Status

__all__ = [
    "CUT_REASONS",
    "READER_VERSION",
    "LabelReading",
    "ReaderOptions",
    "Reading",
    "Status",
    "read_answer",
    "read_label_logprobs",
]
