"""The vendor `transformers`: the study's words for a model with open weights that PyTorch runs in this process."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from counterbalance.canonical import Json
from counterbalance.config import Experiment, Study
from counterbalance.config.models import GenerateRead, LogprobRead, OptionTextRead, TransformersModel
from counterbalance.errors import VendorError
from counterbalance.vendors.base import Reply, Request, Trial
from counterbalance.vendors.in_process import as_prompt, readable, told, what_is_read, write
from counterbalance.vendors.local import Usage
from counterbalance.vendors.openweights import Span, TorchEngine, check_files, find_folder, read_files
from counterbalance.vendors.openweights.engine import Logprobs, best
from counterbalance.vendors.openweights.libraries import load_libraries

_Outcome = Reply | VendorError


@dataclass(frozen=True)
class _Reading:
    """What the model has to be run on for one call, and how the reply is made of its numbers."""

    spans: Sequence[Span]
    finish: Callable[[Sequence[Logprobs]], Reply]


class TransformersVendor:
    """An open-weights model on the CPU. Calls that are under way together share passes where their tokens are as many.

    Everything that touches the model runs in one thread, for PyTorch keeps the number of its threads by thread.
    """

    def __init__(self, model: TransformersModel, experiment: Experiment, study: Study) -> None:
        self.max_in_flight = model.batch_size
        # Prompts of one item come together then, and have as many tokens more often than others.
        self.shares_prefixes = model.batch_size > 1
        self._model, self._study = model, study
        self._read = readable(experiment, model)
        self._name = model.hub_id or model.id
        self._identity: dict[str, Json] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._engine: TorchEngine | None = None
        self._returned = ""
        self._waiting: list[tuple[Request, asyncio.Future[Reply]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="transformers")
        try:
            await asyncio.get_running_loop().run_in_executor(self._pool, self._open)
        except BaseException:
            self._pool.shutdown()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.cancel()
        if self._pool is not None and self._engine is not None:
            # Waits for the pass that is under way.
            await asyncio.get_running_loop().run_in_executor(self._pool, self._engine.__exit__, kind, error, trace)
            self._pool.shutdown()

    def request(self, trial: Trial) -> Request:
        """Build what identifies a call: the weights, and all that can change a bit of the reply.

        Raises
        ------
        VendorError
            If the model is not pinned and its files are not here.
        """
        parameters, continuations = what_is_read(self._read, trial, self._study.config.seed)
        parameters |= {
            **self._weights(),
            "dtype": "float32",
            "threads": self._model.threads,
            "batch_size": self._model.batch_size,
        }
        return Request("transformers", None, self._name, parameters, trial.prompt, continuations, trial.repeat)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        """Read the model, in a pass with the other calls that are waiting."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append((request, answer))
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        while self._waiting:
            # Calls that are launched together have all come after one turn of the loop.
            await asyncio.sleep(0)
            jobs, self._waiting = self._waiting, []
            requests = [request for request, _ in jobs]
            try:
                found: Sequence[Reply | Exception] = await asyncio.get_running_loop().run_in_executor(
                    self._pool, self._read_all, requests
                )
            except Exception as error:
                found = [error] * len(jobs)
            for (_, answer), outcome in zip(jobs, found, strict=True):
                if answer.done():
                    continue
                if isinstance(outcome, Exception):
                    answer.set_exception(outcome)
                else:
                    answer.set_result(outcome)

    def _open(self) -> None:
        model = self._model
        # Before gigabytes are hashed for nothing.
        load_libraries()
        files = read_files(find_folder(model, self._study.root, download=model.download))
        check_files(files, model)
        engine = TorchEngine(
            files.folder, context_tokens=model.context_tokens, threads=model.threads, batch_size=model.batch_size
        )
        self._engine = engine.__enter__()
        self._returned = f"{self._name}@{files.sha256}"

    def _weights(self) -> dict[str, Json]:
        """Return what pins the weights; the files are looked at only where the plan does not say it."""
        if not self._identity:
            if self._model.files_sha256 is not None:
                self._identity = {"files_sha256": self._model.files_sha256}
            elif self._model.revision is not None:
                self._identity = {"revision": self._model.revision}
            else:
                self._identity = {"files_sha256": read_files(find_folder(self._model, self._study.root)).sha256}
        return self._identity

    def _read_all(self, requests: Sequence[Request]) -> list[_Outcome]:
        """Answer calls; one that cannot be read does not keep the others from it."""
        readings: list[_Reading | VendorError] = []
        for request in requests:
            try:
                readings.append(self._reading(request))
            except VendorError as error:
                readings.append(error)
        spans = [span for entry in readings if isinstance(entry, _Reading) for span in entry.spans]
        values = iter(self._opened.logprobs(spans))
        return [
            _finish(entry, [next(values) for _ in entry.spans]) if isinstance(entry, _Reading) else entry
            for entry in readings
        ]

    @property
    def _opened(self) -> TorchEngine:
        if self._engine is None:
            raise VendorError("the model is not open; use the vendor inside an async with block")
        return self._engine

    def _reading(self, request: Request) -> _Reading:
        match self._read:
            case GenerateRead():
                return _Reading((), lambda _: write(self._opened.generate, request, self._origin()))
            case LogprobRead():
                return self._next_token(request)
            case OptionTextRead():
                return self._words(request)

    def _next_token(self, request: Request) -> _Reading:
        engine = self._opened
        ids, _, _ = engine.encode(as_prompt(request.prompt))

        def finish(values: Sequence[Logprobs]) -> Reply:
            listed = best(values[0][-1], request.parameters["top"])
            return Reply(
                "ok",
                top_tokens=[engine.tokens.text(token) for token, _ in listed],
                top_logprobs=[value for _, value in listed],
                **told(self._origin(), Usage(len(ids), 0, 0)),
            )

        return _Reading([Span(tuple(ids))], finish)

    def _words(self, request: Request) -> _Reading:
        engine = self._opened
        ids, text, specials = engine.encode(as_prompt(request.prompt))
        tails = [engine.tokens.tail(text, specials, ids, words) for words in request.continuations or ()]
        engine.check_length(len(ids) + max(map(len, tails), default=0))

        def finish(values: Sequence[Logprobs]) -> Reply:
            sums = [
                sum(float(row[token]) for row, token in zip(rows, tail, strict=True))
                for rows, tail in zip(values, tails, strict=True)
            ]
            counts, usage = [len(tail) for tail in tails], Usage(len(ids), 0, 0)
            return Reply("ok", option_logprobs=sums, option_tokens=counts, **told(self._origin(), usage))

        return _Reading([Span((*ids, *tail[:-1]), len(tail)) for tail in tails], finish)

    def _origin(self) -> dict[str, str]:
        return {"model_returned": self._returned, "fingerprint": self._opened.fingerprint}


def _finish(reading: _Reading, values: Sequence[Logprobs]) -> _Outcome:
    try:
        return reading.finish(values)
    except VendorError as error:
        return error
