"""What the vendors behind an account have in common: keys, checks, bounds, and that nothing raw leaves `ask`."""

import asyncio
import json
from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Generic, Self, TypeVar

from counterbalance.canonical import Json
from counterbalance.config import Experiment, Study
from counterbalance.config.checks import read_problems
from counterbalance.config.models import Account, AnthropicModel, DecideRead, GoogleModel, OpenAIModel
from counterbalance.errors import ConfigError, VendorError
from counterbalance.keys import check_base_url, protect_logs, read_key, redact, refuse_environment
from counterbalance.vendors.base import Reply, Request, TokenBounds, Trial
from counterbalance.vendors.decisions import choices_of
from counterbalance.vendors.wire import Received, Verdict, explain_breakdown, judge, open_body

# A byte is at most one token. What a chat template adds is not sent as text: marks around each message, and in some
# open-weights templates a system message of their own, of which the longest known have some hundred tokens.
_TEMPLATE_MOST = 256
_MESSAGE_MOST = 16
# The decision endpoints take no output limit: a number and a name per choice.
_DECISION_MOST, _CHOICE_MOST = 64, 16
_BYTES_PER_TOKEN = 4

ModelT = TypeVar("ModelT", OpenAIModel, AnthropicModel, GoogleModel)


class ApiVendor(ABC, Generic[ModelT]):
    """A model behind an account; what differs between vendors is in the subclasses.

    Parameters
    ----------
    model, account
        Who is asked, and who pays.
    experiment, study
        What for.

    Raises
    ------
    ConfigError
        If the vendor's interface cannot give what the experiment reads.
    """

    name: ClassVar[str]
    shares_prefixes = False

    def __init__(self, model: ModelT, account: Account, experiment: Experiment, study: Study) -> None:
        check_base_url(f"{study.path}: models.{model.id}.base_url", model.base_url)
        for key, problem in read_problems(model, experiment, batch=account.mode == "batch"):
            raise ConfigError(f"{study.path}: experiments.{experiment.id}.{'.'.join(map(str, key))}: {problem}")
        self._model: ModelT = model
        self._account, self._read = account, experiment.read
        self.max_in_flight = account.max_in_flight
        self._fixed = self._parameters()

    async def __aenter__(self) -> Self:
        refuse_environment()
        protect_logs()
        key = read_key(self._account)
        try:
            await self._open(key)
        except Exception as error:
            trouble = redact(f"{type(error).__name__}: {error}")
        else:
            return self
        # Not raised above: the frames there hold the key.
        del key
        raise VendorError(f"models.{self._model.id}: the client of {self.name} could not be made: {trouble}")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def request(self, trial: Trial) -> Request:
        """Build what will be sent for a trial; pure, needs no key and no SDK."""
        parameters = dict(self._fixed)
        if isinstance(self._read, DecideRead):
            parameters["choices"] = choices_of(trial)
        model = self._model
        return Request(self.name, model.base_url, model.model, parameters, trial.prompt, None, trial.repeat)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        """Send one request, once.

        Raises
        ------
        TransportError
            If no reply came back.
        OutOfFundsError, KeyRefusedError
            If the account cannot be used any more.
        VendorError
            If no call of this kind can succeed.
        """
        verdict = await self._verdict(request)
        if isinstance(verdict, Reply):
            return verdict
        raise verdict

    def bounds(self, request: Request) -> TokenBounds:
        """Return what a request can use; pure."""
        sent = request.parameters
        messages = messages_of(request.prompt)
        size = sum(len(message["content"].encode()) for message in messages)
        size += len(json.dumps(dict(sent), ensure_ascii=False).encode())
        output = self._output_most(request)
        if output is None:
            output = _DECISION_MOST + _CHOICE_MOST * len(sent["choices"])
        extra = _TEMPLATE_MOST + _MESSAGE_MOST * len(messages)
        return TokenBounds(input_about=-(-size // _BYTES_PER_TOKEN), input_most=size + extra, output_most=output)

    async def _verdict(self, request: Request) -> Verdict:
        try:
            received = await self._send(request)
        except asyncio.CancelledError as stopped:
            # Whoever shows this one shall not see the SDK's frames, which hold the key.
            stopped.__context__ = stopped.__cause__ = None
            raise stopped.with_traceback(None) from None
        except Exception as error:
            return explain_breakdown(self.name, error)
        if not received.succeeded:
            return judge(self.name, received)
        body = open_body(self.name, received, self._shape(request))
        return self._reply(body, request, received.request_id) if isinstance(body, dict) else body

    @abstractmethod
    def _parameters(self) -> dict[str, Json]:
        """Return the parameters that are the same in every call."""

    @abstractmethod
    async def _open(self, key: str) -> None:
        """Make the client."""

    @abstractmethod
    async def _close(self) -> None:
        """Close the client."""

    @abstractmethod
    async def _send(self, request: Request) -> Received:
        """Send a request through the SDK, once; may raise anything."""

    @abstractmethod
    def _shape(self, request: Request) -> frozenset[str]:
        """Fields of which an answer has at least one."""

    @abstractmethod
    def _reply(self, body: Json, request: Request, request_id: str | None) -> Reply:
        """Read an answer."""

    @abstractmethod
    def _output_most(self, request: Request) -> int | None:
        """Return the output limit that a request sends; None if the endpoint takes none."""


def messages_of(prompt: Json) -> list[dict[str, str]]:
    """Return a prompt as messages; bare text is one user message."""
    if "messages" in prompt:
        return list(prompt["messages"])
    return [{"role": "user", "content": prompt["text"]}]


def split_system(prompt: Json) -> tuple[str | None, list[dict[str, str]]]:
    """Return a prompt's system text, if it has one, and its other messages."""
    messages = messages_of(prompt)
    system = [message["content"] for message in messages if message["role"] == "system"]
    return "\n\n".join(system) or None, [message for message in messages if message["role"] != "system"]


def wire_bytes(body: Json) -> bytes:
    """Return the bytes of a request's body."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
