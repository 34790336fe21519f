"""The three ways to read a local model: what it writes, which token comes next, how likely given words are."""

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from counterbalance.canonical import Json
from counterbalance.errors import VendorError
from counterbalance.vendors.local.server import LlamaServer
from counterbalance.vendors.local.weights import ensure_f32, find_weights

Prompt = str | Sequence[Mapping[str, str]]
"""Bare text to continue, or chat messages with ``role`` and ``content``."""

MAX_LISTED = 1000
"""Most tokens that one reply lists."""

_LISTED_FIRST = 200
"""An option's words are among so many as a rule; listing all tokens costs several times as much."""

ALL_TOKENS = 2**20
"""More than any vocabulary; listing everything costs most of a second, so only what is not among the best needs it."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one read: of the prompt, reused from the read before (it depends on the order of calls), written."""

    prompt_tokens: int
    cached_tokens: int
    written_tokens: int


@dataclass(frozen=True)
class Generation:
    """What the model wrote, and whether it ended by itself (``stop``) or at the limit (``length``)."""

    text: str
    finish_reason: str
    usage: Usage


@dataclass(frozen=True)
class NextToken:
    """The likeliest next tokens, best first.

    Attributes
    ----------
    tokens
        Texts; bytes that are not UTF-8 by themselves are written as ``\\xNN``, control tokens by name.
    ids
        Token ids.
    logprobs
        Natural logarithms of the probabilities.
    """

    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    usage: Usage


@dataclass(frozen=True)
class OptionLogprobs:
    """Log-probability (nats) of each continuation's words after the prompt, and their number of tokens."""

    logprobs: tuple[float, ...]
    n_tokens: tuple[int, ...]
    usage: Usage


class LocalEngine:
    """A packaged model, open for reading; use it with ``with``.

    Every reply is a pure function of the model's weights, the request and the binding's version: not of the calls
    before it, nor of where an interrupted run was taken up again.

    Parameters
    ----------
    model
        Name among `KNOWN_WEIGHTS`.
    context_tokens
        Longest prompt and reply together, in tokens.
    accept_terms
        Name of the terms that the user accepts, for models that have some.
    folder
        Where dequantised weights are kept; the cache folder by default.
    """

    def __init__(
        self,
        model: str = "smollm2-135m-instruct",
        *,
        context_tokens: int = 2048,
        accept_terms: str | None = None,
        folder: Path | None = None,
    ) -> None:
        self.weights = find_weights(model, accept_terms)
        self.context_tokens = context_tokens
        self._folder = folder
        self._server: LlamaServer | None = None
        self._filler = 0
        self._names: dict[int, str] = {}

    def __enter__(self) -> Self:
        server = LlamaServer(ensure_f32(self.weights, self._folder), self.context_tokens).__enter__()
        self._server = server
        # Forcing a token that is whole UTF-8: at a token that is part of a character the server lists nothing.
        self._filler = server.tokenize("A", specials=False)[-1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.__exit__(kind, error, trace)
            self._server = None

    def generate(
        self, prompt: Prompt, max_tokens: int, temperature: float = 0.0, seed: int = 0, stop: Sequence[str] = ()
    ) -> Generation:
        """Let the model write.

        Parameters
        ----------
        prompt
            Text or chat messages.
        max_tokens
            Most tokens to write, at least 1.
        temperature
            0 takes the likeliest token each time; above, tokens are drawn from the whole distribution.
        seed
            Seed of those draws.
        stop
            Texts at which the output ends; they are not part of it.

        Raises
        ------
        VendorError
            If the prompt does not fit the model.
        """
        if max_tokens < 1 or temperature < 0:
            raise VendorError(
                f"max_tokens is {max_tokens} and temperature {temperature}; expected at least 1 and at least 0"
            )
        ids = self._encode(prompt)
        options: dict[str, Json] = {
            "max_tokens": max_tokens,
            "temperature": temperature,
            "seed": seed,
            "stop": list(stop),
            # No other sampler: the server's defaults would cut the distribution.
            "samplers": ["temperature"],
        }
        answer = self._open().complete(ids, options)
        choice = answer["choices"][0]
        return Generation(str(choice["text"]), str(choice["finish_reason"]), _usage(answer))

    def top_logprobs(self, prompt: Prompt, k: int) -> NextToken:
        """List the `k` likeliest tokens at the answer's place, 1 to 1,000.

        Raises
        ------
        VendorError
            If the prompt does not fit the model or `k` is out of range.
        """
        if not 1 <= k <= MAX_LISTED:
            raise VendorError(f"top_logprobs was asked for {k} tokens; expected 1 to {MAX_LISTED}")
        answer, listed = self._list_next(self._encode(prompt), k)
        best = sorted(listed, key=lambda token: (-listed[token], token))
        raw = {int(entry["id"]): bytes(entry["bytes"]) for entry in _first_place(answer)}
        return NextToken(
            tokens=tuple(self._token_text(token, raw[token]) for token in best),
            ids=tuple(best),
            logprobs=tuple(listed[token] for token in best),
            usage=_usage(answer),
        )

    def option_logprobs(self, prompt: Prompt, continuations: Sequence[str]) -> OptionLogprobs:
        """Log-probability of each continuation's own words after the prompt, exact for every token.

        A continuation's tokens are those that follow the prompt's in the joint text; the sum over them is
        log p(t1 | prompt) + log p(t2 | prompt, t1) + ...

        Raises
        ------
        VendorError
            If a continuation is empty, or the joint text splits a token across the prompt's end.
        """
        text, specials = self._text(prompt)
        context = self._open().tokenize(text, specials=specials)
        tails = [
            own_tokens(self._open().tokenize(text + words, specials=specials), context, text, words)
            for words in continuations
        ]
        answer, first = self._list_next(context, _LISTED_FIRST)
        listed: dict[tuple[int, ...], dict[int, float]] = {(): first}
        sums = []
        for tail in tails:
            total = 0.0
            for index, token in enumerate(tail):
                before = tuple(tail[:index])
                if before not in listed:
                    listed[before] = self._list_next([*context, *before], _LISTED_FIRST)[1]
                if token not in listed[before]:
                    listed[before] = self._list_next([*context, *before], ALL_TOKENS)[1]
                total += listed[before][token]
            sums.append(total)
        return OptionLogprobs(tuple(sums), tuple(len(tail) for tail in tails), _usage(answer))

    @property
    def model_id(self) -> str:
        """The model's name with the hash of the weights that are read."""
        return f"{self.weights.name}@f32-{self.weights.f32_sha256}"

    @cached_property
    def fingerprint(self) -> str:
        """The binding that computes, with its version; another one may give other last bits."""
        return "xllamacpp " + importlib.metadata.version("xllamacpp")

    def _open(self) -> LlamaServer:
        if self._server is None:
            raise VendorError("the local model is not open; use it inside a with block")
        return self._server

    def _encode(self, prompt: Prompt) -> list[int]:
        text, specials = self._text(prompt)
        return self._open().tokenize(text, specials=specials)

    def _text(self, prompt: Prompt) -> tuple[str, bool]:
        """Return what the model is shown, and whether control tokens are written out in it."""
        if isinstance(prompt, str):
            return prompt, False
        if not self.weights.chat:
            raise VendorError(f"{self.weights.name} is a base model without a chat template; use `style: plain`")
        return self._open().render_chat(prompt), True

    def _list_next(self, ids: Sequence[int], k: int) -> tuple[Json, dict[int, float]]:
        options: dict[str, Json] = {"max_tokens": 1, "temperature": 0, "logprobs": k}
        answer = self._open().complete(ids, options, force=self._filler)
        return answer, {int(entry["id"]): float(entry["logprob"]) for entry in _first_place(answer)}

    def _token_text(self, token: int, raw: bytes) -> str:
        if raw:
            return raw.decode("utf-8", "backslashreplace")
        if token not in self._names:
            self._names[token] = self._open().detokenize(token)
        return self._names[token]


def own_tokens(joint: Sequence[int], context: Sequence[int], text: str, words: str) -> list[int]:
    """Return the tokens of `words` in the joint text, which has those of the text before it first.

    Raises
    ------
    VendorError
        If there are none, or the joint text splits a token across that text's end.
    """
    if list(joint[: len(context)]) != list(context) or len(joint) == len(context):
        raise VendorError(
            f"continuation {words!r} does not start a token of its own after the prompt's end {text[-20:]!r}; "
            "end the prompt without a space and begin the continuation with one"
        )
    return list(joint[len(context) :])


def _first_place(answer: Json) -> list[Json]:
    logprobs = answer["choices"][0]["logprobs"]
    if not logprobs or not logprobs["content"]:
        raise VendorError("the local model listed no log-probabilities; install the pinned version of xllamacpp")
    listed: list[Json] = logprobs["content"][0]["top_logprobs"]
    return listed


def _usage(answer: Json) -> Usage:
    timings = answer["timings"]
    reused = int(timings["cache_n"])
    return Usage(reused + int(timings["prompt_n"]), reused, int(answer["usage"]["completion_tokens"]))
