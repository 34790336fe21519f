"""The vendor `local`: the study's words for a model that runs in this process."""

import asyncio
from types import TracebackType
from typing import Self

from counterbalance.config import Experiment, Study
from counterbalance.config.models import GenerateRead, LocalModel, LogprobRead, OptionTextRead
from counterbalance.vendors.base import Reply, Request, Trial
from counterbalance.vendors.in_process import as_prompt, readable, told, what_is_read, write
from counterbalance.vendors.local import LocalEngine


class LocalVendor:
    """A packaged model on the CPU, asked one prompt at a time and in trial order, so that prefixes are shared."""

    max_in_flight = 1
    shares_prefixes = True

    def __init__(self, model: LocalModel, experiment: Experiment, study: Study) -> None:
        self._model, self._seed = model, study.config.seed
        self._read = readable(experiment, model)
        self._engine = LocalEngine(model.model, context_tokens=model.context_tokens, accept_terms=model.accept_terms)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._engine.__enter__)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._engine.__exit__, kind, error, trace)

    def request(self, trial: Trial) -> Request:
        """Build what the engine is given: the weights' hash and context length belong to it."""
        parameters, continuations = what_is_read(self._read, trial, self._seed)
        parameters |= {
            "weights_sha256": self._engine.weights.f32_sha256,
            "context_tokens": self._model.context_tokens,
        }
        return Request("local", None, self._model.model, parameters, trial.prompt, continuations, trial.repeat)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        """Read the model in a thread of its own, so that a stop is heard meanwhile."""
        return await asyncio.to_thread(self._ask, request)

    def _ask(self, request: Request) -> Reply:
        engine, prompt = self._engine, as_prompt(request.prompt)
        origin = {"model_returned": engine.model_id, "fingerprint": engine.fingerprint}
        match self._read:
            case GenerateRead():
                return write(engine.generate, request, origin)
            case LogprobRead():
                listed = engine.top_logprobs(prompt, request.parameters["top"])
                return Reply("ok", top_tokens=listed.tokens, top_logprobs=listed.logprobs, **told(origin, listed.usage))
            case OptionTextRead():
                found = engine.option_logprobs(prompt, request.continuations or ())
                return Reply(
                    "ok", option_logprobs=found.logprobs, option_tokens=found.n_tokens, **told(origin, found.usage)
                )
