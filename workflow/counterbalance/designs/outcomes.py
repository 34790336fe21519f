"""From trials, replies and a way of reading to a table of outcomes: the same for every design."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.artifacts import SCHEMAS
from counterbalance.errors import InputError
from counterbalance.reading import READER_VERSION, Reading, read_answer

_OUTCOMES = SCHEMAS["outcomes"]
_COPIED = ("trial_id", "item_id", "group_id", "condition", "arrangement_index", "repeat")
_TRIAL_COLUMNS = (*_COPIED, "arrangement", "labels", "option_texts", "gold_slot")
_REPLY_COLUMNS = (
    "status",
    "text",
    "top_tokens",
    "top_logprobs",
    "option_logprobs",
    "option_tokens",
    "finish_reason",
    "model_returned",
)

Row = Mapping[str, Any]
"""A row of a table, by column."""

Found = dict[str, Any]
"""Fields of an outcome that a reader has found."""

Reader = Callable[[Row, Row], Found]
"""Reads the answer of one trial from its reply."""


def read_outcomes(trials: pa.Table, replies: pa.Table, read: Reader, *, repeats: int) -> pa.Table:
    """Read every reply.

    Parameters
    ----------
    trials, replies
        Tables of the declared schemas; each trial has exactly one reply.
    read
        Asked only where a reply may hold an answer; the status of the others is their outcome.
    repeats
        Further repeats of a call are marked as extra.

    Returns
    -------
    pyarrow.Table
        One outcome per trial, in the trials' order.

    Raises
    ------
    InputError
        If a trial has no reply or two.
    """
    positions = pc.index_in(trials.column("trial_id"), value_set=replies.column("trial_id").combine_chunks())
    if positions.null_count or pc.count_distinct(replies.column("trial_id")).as_py() != replies.num_rows:
        raise InputError(
            f"replies do not match trials one to one ({trials.num_rows} trials, {replies.num_rows} replies, "
            f"{positions.null_count} trials without a reply); run query again"
        )
    matched = replies.select(list(_REPLY_COLUMNS)).take(positions)
    asked = zip(*(trials.column(name).to_pylist() for name in _TRIAL_COLUMNS), strict=True)
    replied = zip(*(matched.column(name).to_pylist() for name in _REPLY_COLUMNS), strict=True)
    rows = [
        _outcome(
            dict(zip(_TRIAL_COLUMNS, trial, strict=True)), dict(zip(_REPLY_COLUMNS, reply, strict=True)), read, repeats
        )
        for trial, reply in zip(asked, replied, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=_OUTCOMES.arrow)


def read_text(trial: Row, reply: Row) -> Found:
    """Read the answer from what the model wrote."""
    finish = "length" if reply["status"] == "truncated" else reply["finish_reason"]
    reading = _read_cached(reply["text"], tuple(trial["labels"]), tuple(trial["option_texts"]), finish)
    return {
        "outcome": reading.status,
        "slot": reading.slot,
        "candidates": list(reading.candidates),
        "rule": reading.rule,
    }


def listed_tokens(reply: Row) -> list[tuple[str, float]] | None:
    """Return the likeliest next tokens with their log-probabilities, None where the reply lists none."""
    tokens, values = reply["top_tokens"], reply["top_logprobs"]
    return None if tokens is None or values is None else list(zip(tokens, values, strict=True))


# Many replies are one letter, the same in thousands of trials.
@lru_cache(maxsize=4096)
def _read_cached(
    text: str | None, labels: tuple[str, ...], option_texts: tuple[str, ...], finish: str | None
) -> Reading:
    return read_answer(text, labels=labels, option_texts=option_texts, finish_reason=finish)


def _outcome(trial: Row, reply: Row, read: Reader, repeats: int) -> Row:
    found: Found = {"slot": None, "tie": None, "slot_logprobs": None, "slot_censored": None, "label_mass": None}
    found |= {"candidates": [], "rule": "vendor_status", "outcome": reply["status"]}
    # A cut reply may still hold a finished answer; a reply of unknown ending is read like any other text.
    if reply["status"] in ("ok", "truncated", "unknown"):
        found |= read(trial, reply)
    slot, gold = found["slot"], trial["gold_slot"]
    return {
        **{name: trial[name] for name in _COPIED},
        "extra": trial["repeat"] >= repeats,
        "n_options": len(trial["arrangement"]),
        "arrangement": trial["arrangement"],
        "gold_slot": gold,
        "option_id": None if slot is None else trial["arrangement"][slot],
        "correct": None if slot is None or gold is None else slot == gold,
        "parser": READER_VERSION,
        "model_returned": reply["model_returned"],
        **found,
    }
