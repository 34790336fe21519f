"""Replies to outcomes: the log-probability of either answer as the next token, or which answer was written."""

import math
from collections.abc import Sequence

import pyarrow as pa

from counterbalance.config.models import CellsRead, Experiment, LogprobRead, OptionTextRead
from counterbalance.designs.crossing.published import read_cell
from counterbalance.designs.outcomes import Found, Reader, Row, listed_tokens, read_outcomes, read_text
from counterbalance.reading import read_label_logprobs


def score(experiment: Experiment, trials: pa.Table, replies: pa.Table) -> pa.Table:
    """Read every reply.

    Parameters
    ----------
    experiment
        Its `read` says which part of a reply is looked at.
    trials, replies
        Tables of the declared schemas; each trial has exactly one reply.

    Returns
    -------
    pyarrow.Table
        One outcome per trial, in the trials' order. Slots are the places of the blocks. Outcomes of our own beside
        those of a text: ``unlisted`` where an answer is not among the listed tokens, so that only a bound is known;
        ``several_tokens`` where an answer is not one token for this model.

    Raises
    ------
    InputError
        If a trial has no reply or two.
    """
    return read_outcomes(trials, replies, _reader(experiment), repeats=experiment.repeats)


def _reader(experiment: Experiment) -> Reader:
    match experiment.read:
        case LogprobRead(min_label_mass=min_mass):
            return lambda trial, reply: _read_listed(trial, reply, min_mass)
        case OptionTextRead():
            return _read_words
        case CellsRead():
            return read_cell
        case _:
            return read_text


def _read_listed(trial: Row, reply: Row, min_mass: float) -> Found:
    reading = read_label_logprobs(listed_tokens(reply), trial["labels"], min_mass=min_mass)
    found: Found = {"outcome": reading.status, "label_mass": reading.label_mass, "rule": "first_token"}
    if reading.status == "unavailable":
        return found
    # A bound is no measurement: half-effects of it would be wrong by an unknown amount.
    outcome = "unlisted" if any(reading.censored) else reading.status
    return found | {
        "outcome": outcome,
        "slot": reading.slot if outcome == "ok" else None,
        "tie": reading.tie,
        "slot_logprobs": list(reading.logprobs),
        "slot_censored": list(reading.censored),
    }


def _read_words(trial: Row, reply: Row) -> Found:
    values: Sequence[float] | None = reply["option_logprobs"]
    if values is None or len(values) != len(trial["arrangement"]):
        return {"outcome": "unavailable", "rule": "answer_token"}
    if any(count != 1 for count in reply["option_tokens"]):
        return {"outcome": "several_tokens", "rule": "answer_token"}
    best = [slot for slot, value in enumerate(values) if value == max(values)]
    return {
        "outcome": "ok",
        "slot": best[0] if len(best) == 1 else None,
        "tie": len(best) > 1,
        "slot_logprobs": list(values),
        "slot_censored": [False] * len(values),
        "label_mass": min(1.0, math.fsum(map(math.exp, values))),
        "rule": "answer_token",
    }
