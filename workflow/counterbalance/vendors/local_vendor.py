"""The vendor `local`: the study's words for a model that runs in this process."""

import asyncio
from types import TracebackType
from typing import Any, Self

from counterbalance.canonical import Json, sha256_json
from counterbalance.config import Experiment, Study
from counterbalance.config.models import CellsRead, DecideRead, GenerateRead, LocalModel, LogprobRead, OptionTextRead
from counterbalance.errors import ConfigError
from counterbalance.vendors.base import Reply, Request, Trial
from counterbalance.vendors.local import LocalEngine, Usage


class LocalVendor:
    """A packaged model on the CPU, asked one prompt at a time and in trial order, so that prefixes are shared."""

    max_in_flight = 1
    shares_prefixes = True

    def __init__(self, model: LocalModel, experiment: Experiment, study: Study) -> None:
        self._model, self._seed = model, study.config.seed
        self._read = _readable(experiment, model)
        self._engine = LocalEngine(model.model, context_tokens=model.context_tokens, accept_terms=model.accept_terms)
        self._facts: dict[str, Json] = {}

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._engine.__enter__)
        self._facts = self._engine.describe()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._engine.__exit__, kind, error, trace)

    def request(self, trial: Trial) -> Request:
        """Build what the engine is given: the weights' hash and context length belong to it."""
        parameters: dict[str, Json] = {
            "read": self._read.kind,
            "weights_sha256": self._engine.weights.f32_sha256,
            "context_tokens": self._model.context_tokens,
        }
        continuations = None
        match self._read:
            case GenerateRead(max_tokens=max_tokens, temperature=temperature, stop=stop):
                parameters |= {"max_tokens": max_tokens, "temperature": temperature, "stop": list(stop)}
                if temperature:
                    parameters["seed"] = self._draw_seed(trial)
            case LogprobRead(top=top):
                parameters["top"] = top
            case OptionTextRead(prefix=prefix):
                continuations = [prefix + text for text in trial.option_texts]
        return Request("local", None, self._model.model, parameters, trial.prompt, continuations, trial.repeat)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        """Read the model in a thread of its own, so that a stop is heard meanwhile."""
        return await asyncio.to_thread(self._ask, request)

    def _ask(self, request: Request) -> Reply:
        prompt = request.prompt["text"] if "text" in request.prompt else request.prompt["messages"]
        sent = request.parameters
        match self._read:
            case GenerateRead():
                made = self._engine.generate(
                    prompt,
                    max_tokens=sent["max_tokens"],
                    temperature=sent["temperature"],
                    seed=sent.get("seed", 0),
                    stop=sent["stop"],
                )
                cut, blank = made.finish_reason == "length", not made.text.strip()
                return Reply(
                    "truncated" if cut else "empty" if blank else "ok",
                    text=made.text,
                    finish_reason=made.finish_reason,
                    **self._common(made.usage),
                )
            case LogprobRead():
                listed = self._engine.top_logprobs(prompt, sent["top"])
                return Reply(
                    "ok",
                    top_tokens=listed.tokens,
                    top_logprobs=listed.logprobs,
                    **self._common(listed.usage),
                )
            case OptionTextRead():
                found = self._engine.option_logprobs(prompt, request.continuations or ())
                return Reply(
                    "ok",
                    option_logprobs=found.logprobs,
                    option_tokens=found.n_tokens,
                    **self._common(found.usage),
                )

    def _draw_seed(self, trial: Trial) -> int:
        digest = sha256_json([self._seed, trial.prompt_sha256, trial.repeat])
        return int(digest.removeprefix("sha256:")[:8], 16) >> 1

    def _common(self, usage: Usage) -> dict[str, Any]:
        return {
            "model_returned": self._facts["model_id"],
            "fingerprint": self._facts["fingerprint"],
            "input_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "output_tokens": usage.written_tokens,
        }


def _readable(experiment: Experiment, model: LocalModel) -> GenerateRead | LogprobRead | OptionTextRead:
    """Return the read if a model in this process can be read so."""
    read, where = experiment.read, f"experiment {experiment.id!r}, model {model.id!r}"
    if isinstance(read, DecideRead):
        raise ConfigError(
            f"{where}: read `decide` needs a vendor's decision endpoint, and a local model has none; "
            "use `kind: logprob` for local models, in an experiment of their own"
        )
    if isinstance(read, CellsRead):
        raise ConfigError(f"{where}: a model answers prompts; cells are read from a file, with `vendor: cells`")
    if isinstance(read, GenerateRead) and read.temperature is None:
        raise ConfigError(
            f"{where}: read.temperature is null, and a local model has no default of its own; "
            "write a number (0.0 takes the likeliest token), in an experiment of its own if other models need null"
        )
    return read
