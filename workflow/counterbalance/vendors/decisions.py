"""The decision endpoints of OpenAI and Google: a closed set of choices, and a probability for each."""

import math
from collections.abc import Iterable
from typing import Any

from counterbalance.canonical import Json
from counterbalance.vendors.base import Reply, Trial
from counterbalance.vendors.fields import as_text, dig, rank_tokens

DECISION = "decisions"
"""Value of the request's `endpoint` where a probability per choice is asked."""


def choices_of(trial: Trial) -> list[list[str]]:
    """Return label and text of each option in slot order: a list, because the order is what is measured."""
    return [[label, text] for label, text in zip(trial.labels, trial.option_texts, strict=True)]


def decided(answer: Json, pairs: Iterable[tuple[Json, Json]], common: dict[str, Any]) -> Reply:
    """Return the reply of a decision endpoint: labels for tokens, and natural logarithms of their probabilities.

    Parameters
    ----------
    answer
        The vendor's answer to the one question.
    pairs
        Choices and probabilities.
    common
        Fields of the reply that are known already.
    """
    kind = as_text(dig(answer, "type"))
    common = {**common, "finish_reason": kind, "text": as_text(dig(answer, "choice"))}
    if not isinstance(answer, dict):
        return Reply("empty", reason="no answers came back", **common)
    if kind == "refusal":
        return Reply("refused", reason="the vendor declined the question", **common)
    if kind != "choice":
        return Reply("unknown", reason=f"an answer of type {kind}", **common)
    ranked = rank_choices(pairs)
    if ranked is None:
        return Reply("unavailable", reason="no usable probabilities came back", **common)
    return Reply("ok", top_tokens=ranked[0], top_logprobs=ranked[1], **common)


def rank_choices(entries: Iterable[tuple[Json, Json]]) -> tuple[list[str], list[float]] | None:
    """Return choices and natural logarithms of their probabilities, likeliest first.

    A choice of probability 0 is left out: the vendor rounded it away, and its logarithm is not a number. None if a
    value is no probability, or if no choice is left.
    """
    pairs = list(entries)
    for choice, share in pairs:
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not isinstance(choice, str) or not number or not 0 <= share <= 1:
            return None
    chosen, logs = rank_tokens((choice, math.log(share)) for choice, share in pairs if share > 0)
    return (chosen, logs) if chosen else None
