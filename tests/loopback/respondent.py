"""Who answers: a letter that is a function of the prompt, and the probabilities behind it."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass

from .settings import Json, Settings, Usage, count_tokens, draw

_OPTION = re.compile(r"^[ \t]*\(?([A-Z])[.):][ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_FILLERS = ("the", "**", "\n", "The", "Answer", " ", "(", "I", "None", "Option", "It", "So", "1", ":", "-", "#")


@dataclass(frozen=True)
class Ask:
    """A request that was understood.

    Attributes
    ----------
    text
        All words the model is given, as one text.
    most_tokens
        The output limit; None if there is none.
    top
        How many alternatives are asked for; None if no log-probabilities are.
    choices
        For decisions: what can be chosen.
    question
        For decisions: the question's name.
    """

    vendor: str
    endpoint: str
    model: str
    text: str
    most_tokens: int | None = None
    top: int | None = None
    choices: tuple[str, ...] = ()
    question: str | None = None


@dataclass(frozen=True)
class Answer:
    """What the respondent says. `odds` are tokens or choices with their probabilities, the most likely first."""

    text: str
    odds: tuple[tuple[str, float], ...]
    usage: Usage
    cut: bool

    def top(self, count: int, *, without_labels: bool = False) -> list[tuple[str, float]]:
        """Return the most likely tokens and their natural log-probabilities."""
        listed = [(token, math.log(share)) for token, share in self.odds[:count]]
        if without_labels:
            return [(name, share) for name, (_, share) in zip(_FILLERS * 2, listed, strict=False)]
        return listed


def answer(ask: Ask, settings: Settings, serial: int) -> Answer:
    """Answer a request; the same text gives the same answer unless noise is set."""
    labels = ask.choices or tuple(match[1] for match in _OPTION.finditer(ask.text)) or ("A", "B", "C", "D")
    kind: dict[str, Json] = settings.respondent
    if kind.get("noise") and draw("noise", serial) < kind["noise"]:
        label = labels[int(draw("noisy letter", serial) * len(labels))]
    else:
        label = _pick(ask, labels, kind)
    text = kind.get("text", "{label}").format(label=label)
    output = count_tokens(text)
    cut = ask.most_tokens is not None and output > ask.most_tokens
    if cut and ask.most_tokens is not None:
        text, output = text.encode()[: 4 * ask.most_tokens].decode("utf-8", "ignore"), ask.most_tokens
    entered = count_tokens(ask.text)
    usage = Usage(entered, int(entered * settings.cached_share), output, settings.reasoning_tokens)
    if ask.choices:
        # Decisions charge no output.
        usage = Usage(usage.input, usage.cached, 0, 0)
    odds = _odds(label, labels, ask.top) if ask.top is not None or ask.choices else ()
    return Answer(text, odds, usage, cut)


def _pick(ask: Ask, labels: tuple[str, ...], kind: dict[str, Json]) -> str:
    name = kind.get("kind", "hash")
    if name == "fixed":
        return str(kind["letter"])
    if name == "first":
        return labels[0]
    if name == "hash":
        return labels[hashlib.sha256(ask.text.encode()).digest()[0] % len(labels)]
    if name != "content":
        raise ValueError(f"no such respondent: {name!r}")
    # The option whose own words draw the lowest number wins in whatever order; now and then the first slot does.
    if draw("first", ask.text) < kind.get("first_share", 0.0):
        return labels[0]
    options = {match[1]: match[2] for match in _OPTION.finditer(ask.text)}
    return min(labels, key=lambda label: draw("content", options.get(label, label)))


def _odds(label: str, labels: tuple[str, ...], top: int | None) -> tuple[tuple[str, float], ...]:
    others = [other for other in labels if other != label]
    weights = [(label, 70.0), *((other, 20.0 / 2**rank) for rank, other in enumerate(others, 1))]
    if top is not None:
        missing = max(0, top - len(weights))
        named = [*_FILLERS, *(f"token{index}" for index in range(missing))]
        weights += [(token, 2.0 / 2 ** (rank / 2)) for rank, token in enumerate(named[:missing], 1)]
    total = sum(weight for _, weight in weights)
    return tuple(sorted(((token, weight / total) for token, weight in weights), key=lambda pair: -pair[1]))
