"""One trial as the report shows it: the prompt as sent, and what each model replied."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.canonical import parse_json
from counterbalance.report.sources import Example, Row
from counterbalance.report.text import MISSING, nats, percent, shorten

_REPLY_LENGTH = 600


@dataclass(frozen=True)
class ReplyView:
    """A model's reply and how it was read."""

    model: str
    text: str
    is_text: bool
    reading: str


@dataclass(frozen=True)
class ExampleView:
    """A rendered prompt: its parts with their roles (an empty role for bare text), where the answer stood, replies."""

    trial_id: str
    parts: Sequence[tuple[str, str]]
    gold: str
    replies: Sequence[ReplyView]


def view_example(example: Example) -> ExampleView:
    """Format an experiment's first trial."""
    trial = example.trial
    prompt = parse_json(trial["prompt"], source=f"trial {trial['trial_id']}")
    if "messages" in prompt:
        parts = [(message["role"], message["content"]) for message in prompt["messages"]]
    else:
        parts = [("", prompt["text"])]
    gold = trial["gold_slot"]
    return ExampleView(
        trial_id=trial["trial_id"],
        parts=parts,
        gold=MISSING if gold is None else trial["labels"][gold],
        replies=[_reply(model, trial, reply, outcome) for model, reply, outcome in example.replies],
    )


def _reply(model: str, trial: Row, reply: Row, outcome: Row) -> ReplyView:
    values = outcome["slot_logprobs"]
    if reply["text"] is not None or values is None:
        text = shorten(reply["text"] or "", _REPLY_LENGTH)
        return ReplyView(model, text or "(nothing)", bool(text), _reading(trial, outcome))
    if outcome["rule"] == "choice_probability":
        shares = zip(trial["labels"], values, outcome["slot_censored"], strict=False)
        listed = ", ".join(f"{label} {percent(0.0 if zero else math.exp(value))}" for label, value, zero in shares)
        return ReplyView(model, f"the vendor's choice probabilities: {listed}", False, _reading(trial, outcome))
    pairs = zip(trial["labels"], values, strict=False)
    listed = ", ".join(f"{label} {MISSING if value is None else nats(value)}" for label, value in pairs)
    return ReplyView(model, f"log-probabilities: {listed}", False, _reading(trial, outcome))


def _reading(trial: Row, outcome: Row) -> str:
    if outcome["slot"] is None:
        return str(outcome["outcome"]).replace("_", " ")
    verdict = {True: ", correct", False: ", wrong", None: ""}[outcome["correct"]]
    return f"read as {trial['labels'][outcome['slot']]}{verdict}"
