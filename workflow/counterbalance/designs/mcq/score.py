"""Replies to outcomes: which option was chosen, or why none was."""

import math
from collections.abc import Sequence

import pyarrow as pa

from counterbalance.config.models import CellsRead, DecideRead, Experiment, GenerateRead, LogprobRead, OptionTextRead
from counterbalance.designs.outcomes import Found, Reader, Row, listed_tokens, read_outcomes, read_text
from counterbalance.errors import ConfigError
from counterbalance.reading import LabelReading, read_label_logprobs

# A vendor's probabilities are rounded; further from 1 than this they are not those of one choice.
_ROUNDED = 0.05
# What a vendor writes as 0 is below this.
_WRITTEN_AS_ZERO = math.log(0.01)


def score(experiment: Experiment, trials: pa.Table, replies: pa.Table) -> pa.Table:
    """Read every reply's answer.

    Parameters
    ----------
    experiment
        Its `read` says which part of a reply is the answer.
    trials, replies
        Tables of the declared schemas; each trial has exactly one reply.

    Returns
    -------
    pyarrow.Table
        One outcome per trial, in the trials' order.

    Raises
    ------
    InputError
        If a trial has no reply or two.
    """
    return read_outcomes(trials, replies, _reader(experiment), repeats=experiment.repeats)


def _reader(experiment: Experiment) -> Reader:
    match experiment.read:
        case GenerateRead():
            return read_text
        case LogprobRead(min_label_mass=min_mass):
            return lambda trial, reply: _read_labels(trial, reply, min_mass)
        case OptionTextRead(length=length):
            return lambda trial, reply: _read_option_texts(trial, reply, length)
        case DecideRead():
            return _read_choice
        case CellsRead():
            raise ConfigError(f"experiment {experiment.id!r}: cells are those of a crossing; write `design: crossing`")


def _read_labels(trial: Row, reply: Row, min_mass: float) -> Found:
    return _from_reading(read_label_logprobs(listed_tokens(reply), trial["labels"], min_mass=min_mass))


def _read_choice(trial: Row, reply: Row) -> Found:
    """Read a vendor's own choice probabilities: a whole distribution over the labels, in which 0 is left out."""
    listed = listed_tokens(reply) or []
    total = math.fsum(math.exp(value) for _, value in listed)
    if listed and abs(total - 1) > _ROUNDED:
        return {"outcome": "unusable", "rule": "choice_probability", "label_mass": min(total, 1.0)}
    whole = [(token, min(0.0, value - math.log(total))) for token, value in listed]
    bound = min([_WRITTEN_AS_ZERO, *(value for _, value in whole)])
    reading = read_label_logprobs(whole, trial["labels"], min_mass=1 - _ROUNDED, censor_bound=bound)
    return _from_reading(reading) | {"rule": "choice_probability"}


def _from_reading(reading: LabelReading) -> Found:
    decided = reading.slot is not None and not reading.may_be_overturned
    measured = reading.status != "unavailable"
    return {
        "outcome": reading.status if decided or reading.status != "ok" else "ambiguous",
        "slot": reading.slot if decided else None,
        "tie": reading.tie,
        "slot_logprobs": list(reading.logprobs) if measured else None,
        "slot_censored": list(reading.censored) if measured else None,
        "label_mass": reading.label_mass,
        "rule": "label_logprob",
    }


def _read_option_texts(trial: Row, reply: Row, length: str) -> Found:
    sums: Sequence[float] | None = reply["option_logprobs"]
    if sums is None or len(sums) != len(trial["arrangement"]):
        return {"outcome": "unavailable", "rule": "option_text"}
    match length:
        case "per_token":
            sizes = [max(count, 1) for count in reply["option_tokens"]]
        case "per_character":
            sizes = [len(text) for text in trial["option_texts"]]
        case _:
            sizes = [1] * len(sums)
    values = [total / size for total, size in zip(sums, sizes, strict=True)]
    best = [slot for slot, value in enumerate(values) if value == max(values)]
    return {
        "outcome": "ok" if len(best) == 1 else "ambiguous",
        "slot": best[0] if len(best) == 1 else None,
        "tie": len(best) > 1,
        "slot_logprobs": values,
        "slot_censored": [False] * len(values),
        "rule": f"option_text_{length}",
    }
