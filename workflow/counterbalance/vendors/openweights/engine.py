"""Reading a model with open weights: float32, evaluation mode, no gradients, the whole vocabulary.

A value is a function of the weights, the token ids, the number of threads and the libraries' versions, as long as a
pass holds one prompt. Passes of several prompts hold only prompts of equally many tokens, so nothing is padded; but a
matrix product may add in another order when it has more rows. With one thread that was seen only where one of the two
had fewer than 16 rows, so shorter prompts go alone, and 16 places at least are multiplied with the vocabulary.
"""

import inspect
import platform
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from counterbalance.errors import VendorError
from counterbalance.vendors.local import Generation, Prompt, Usage
from counterbalance.vendors.openweights.libraries import Libraries, load_libraries
from counterbalance.vendors.openweights.tokens import Tokens

Logprobs = NDArray[np.float32]

_ROWS = 16


@dataclass(frozen=True)
class Span:
    """Token ids to run the model on, and after how many of the last of them the next token is looked at."""

    ids: tuple[int, ...]
    places: int = 1


class TorchEngine:
    """A model, open for reading; use it with ``with``, and all of it in one thread.

    Parameters
    ----------
    folder
        Configuration, tokenizer and weights.
    context_tokens
        Longest prompt and reply together, in tokens.
    threads
        Processor threads.
    batch_size
        Most prompts in one pass.
    """

    def __init__(self, folder: Path, *, context_tokens: int = 2048, threads: int = 1, batch_size: int = 1) -> None:
        self._folder, self._context_tokens = folder, context_tokens
        self._threads, self._batch_size = threads, batch_size
        self._libraries: Libraries | None = None
        self._model: Any = None
        self._tokens: Tokens | None = None
        self._ends: frozenset[int] = frozenset()
        self._before: tuple[int, bool] = (threads, False)
        self._keeps_last = False

    def __enter__(self) -> Self:
        self._libraries = libraries = load_libraries()
        torch = libraries.torch
        self._before = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())
        torch.set_num_threads(self._threads)
        torch.use_deterministic_algorithms(True)
        try:
            self._tokens = Tokens(libraries.transformers, self._folder)
            self._model = _load(libraries, self._folder, self._context_tokens)
        except BaseException:
            self._restore()
            raise
        self._keeps_last = "logits_to_keep" in inspect.signature(self._model.forward).parameters
        self._ends = _ends(self._model, self._tokens)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._model is not None:
            self._restore()

    @property
    def tokens(self) -> Tokens:
        """The model's tokenizer."""
        if self._tokens is None:
            raise VendorError("the model is not open; use it inside a with block")
        return self._tokens

    @property
    def fingerprint(self) -> str:
        """What the last bits of a value depend on beside weights and prompt."""
        if self._libraries is None:
            raise VendorError("the model is not open; use it inside a with block")
        threads = f"{self._threads} thread{'' if self._threads == 1 else 's'}"
        return (
            f"{self._libraries.versions}, float32, {threads}, at most {self._batch_size} a pass, {platform.machine()}"
        )

    def encode(self, prompt: Prompt, *, room: int = 0) -> tuple[list[int], str, bool]:
        """Return a prompt's token ids, its text, and whether control tokens are written out in it.

        Raises
        ------
        VendorError
            If it has no tokens, or too many when `room` more are to follow it.
        """
        text, specials = self.tokens.render(prompt)
        ids = self.tokens.encode(text, specials=specials)
        if not ids:
            raise VendorError("the prompt has no tokens; correct the template")
        self.check_length(len(ids) + room)
        return ids, text, specials

    def check_length(self, tokens: int) -> None:
        """Refuse a prompt that is too long with what follows it."""
        if tokens > self._context_tokens:
            raise VendorError(
                f"a prompt and what follows it have {tokens} tokens, but context_tokens is {self._context_tokens}: "
                "raise it, as far as the model has positions, or shorten the prompt"
            )

    def logprobs(self, spans: Sequence[Span]) -> list[Logprobs]:
        """Return, for each span, the log-probabilities (nats) of every token of the vocabulary at its places.

        Returns
        -------
        list of ndarray
            float32, shape (places, vocabulary), log-softmax over the whole vocabulary.
        """
        alike: dict[tuple[int, int], list[Span]] = defaultdict(list)
        for span in dict.fromkeys(spans):
            alike[len(span.ids), span.places].append(span)
        found: dict[Span, Logprobs] = {}
        for (length, _), group in alike.items():
            size = self._batch_size if length >= _ROWS else 1
            for start in range(0, len(group), size):
                batch = group[start : start + size]
                found |= zip(batch, self._pass(batch), strict=True)
        return [found[span] for span in spans]

    def generate(
        self, prompt: Prompt, max_tokens: int, temperature: float = 0.0, seed: int = 0, stop: Sequence[str] = ()
    ) -> Generation:
        """Let the model write: by itself, from its whole distribution, whatever its own generation settings say.

        Parameters
        ----------
        prompt
            Text or chat messages.
        max_tokens
            Most tokens to write, at least 1.
        temperature
            0 takes the likeliest token each time; above, tokens are drawn.
        seed
            Seed of those draws.
        stop
            Texts at which the output ends; they are not part of it.

        Raises
        ------
        VendorError
            If the prompt does not fit.
        """
        ids, _, _ = self.encode(prompt, room=max_tokens)
        draws = np.random.default_rng(seed)
        written: list[int] = []
        text, past = "", None
        while len(written) < max_tokens:
            row, past = self._step(ids if past is None else written[-1:], past)
            token = int(row.argmax()) if temperature == 0 else _draw(row, temperature, draws)
            if token in self._ends:
                return Generation(text, "stop", Usage(len(ids), 0, len(written) + 1))
            written.append(token)
            text = self.tokens.written(written)
            cuts = [place for words in stop if (place := text.find(words)) >= 0]
            if cuts:
                return Generation(text[: min(cuts)], "stop", Usage(len(ids), 0, len(written)))
        return Generation(text, "length", Usage(len(ids), 0, len(written)))

    def _pass(self, batch: Sequence[Span]) -> list[Logprobs]:
        torch, places = self._torch(), batch[0].places
        with torch.inference_mode():
            ids = torch.tensor([span.ids for span in batch], dtype=torch.long)
            kept = {"logits_to_keep": max(places, _ROWS)} if self._keeps_last else {}
            logits = self._model(input_ids=ids, use_cache=False, **kept).logits[:, -places:]
            return list(self._normalised(logits))

    def _step(self, ids: Sequence[int], past: Any) -> tuple[Logprobs, Any]:
        torch = self._torch()
        with torch.inference_mode():
            kept = {"logits_to_keep": 1} if self._keeps_last else {}
            out = self._model(input_ids=torch.tensor([list(ids)]), cache=past, use_cache=True, **kept)
            return self._normalised(out.logits[0, -1]), out.cache

    def _normalised(self, logits: Any) -> Logprobs:
        torch = self._torch()
        values: Logprobs = torch.log_softmax(logits.to(torch.float32), dim=-1).numpy()
        if not np.isfinite(values.max(axis=-1)).all():
            raise VendorError(f"{self._folder}: the model gives no numbers for a prompt; its weights are damaged")
        return values

    def _torch(self) -> Any:
        if self._libraries is None or self._model is None:
            raise VendorError("the model is not open; use it inside a with block")
        return self._libraries.torch

    def _restore(self) -> None:
        if self._libraries is not None:
            threads, deterministic = self._before
            self._libraries.torch.set_num_threads(threads)
            self._libraries.torch.use_deterministic_algorithms(deterministic)
        self._model = self._tokens = None


def best(row: Logprobs, k: int) -> list[tuple[int, float]]:
    """Return the `k` likeliest tokens of a row and their log-probabilities, best first, equal ones by their ids."""
    order = np.argsort(-row, kind="stable")[:k]
    return [(int(token), float(row[token])) for token in order]


def _load(libraries: Libraries, folder: Path, context_tokens: int) -> Any:
    try:
        model, notes = libraries.transformers.AutoModelForCausalLM.from_pretrained(
            str(folder),
            dtype=libraries.torch.float32,
            attn_implementation="eager",
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except Exception as error:
        raise VendorError(f"{folder}: the model cannot be loaded: {type(error).__name__}: {error}") from error
    if lacking := sorted(map(str, [*notes["missing_keys"], *notes["mismatched_keys"]])):
        raise VendorError(
            f"{folder}: the weights lack {len(lacking)} tensors of the model (first: {lacking[0]}), which would be "
            "drawn at random; use the complete weights of this model"
        )
    kinds = {str(value.dtype) for value in model.parameters()}
    if kinds != {"torch.float32"}:
        raise VendorError(
            f"{folder}: the weights are {', '.join(sorted(kinds))} and not float32 alone; use weights that are not "
            "quantised"
        )
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if most is not None and most < context_tokens:
        raise VendorError(
            f"{folder}: context_tokens is {context_tokens}, but the model has {most} positions; write "
            f"`context_tokens: {most}` or less"
        )
    return model.eval()


def _ends(model: Any, tokens: Tokens) -> frozenset[int]:
    """Return every token at which writing ends, by the model's settings and by its tokenizer."""
    named = [tokens.end]
    for settings in (model.config.get_text_config(), model.generation_config):
        value = getattr(settings, "eos_token_id", None)
        named += value if isinstance(value, list) else [value]
    return frozenset(int(token) for token in named if token is not None)


def _draw(row: Logprobs, temperature: float, draws: np.random.Generator) -> int:
    scaled = row.astype(np.float64) / temperature
    sums = np.cumsum(np.exp(scaled - scaled.max()))
    return int(np.searchsorted(sums, draws.random() * sums[-1], side="right"))
