"""The protocol that every vendor is spoken to through, and the identity of a call."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

from counterbalance.canonical import Json, sha256_json
from counterbalance.errors import VendorError

if TYPE_CHECKING:
    from counterbalance.vendors.batch_ids import Line

CALL_SCHEMA = "counterbalance/call/1"


@dataclass(frozen=True)
class Request:
    """Everything that is really sent, and nothing else: two requests that are equal may share one reply.

    Attributes
    ----------
    vendor, base_url, model
        Who is asked.
    parameters
        Every parameter sent, JSON values.
    prompt
        ``{"text": ...}`` or ``{"messages": [{"role", "content"}, ...]}``.
    continuations
        For reads of option texts: the words whose log-probability is asked, in slot order.
    repeat
        Which of the repeated, otherwise equal, calls.
    """

    vendor: str
    base_url: str | None
    model: str
    parameters: Mapping[str, Json]
    prompt: Json
    continuations: Sequence[str] | None
    repeat: int

    def body(self) -> Json:
        """Return the request as JSON values, with the version of this schema."""
        return {
            "schema": CALL_SCHEMA,
            "vendor": self.vendor,
            "base_url": self.base_url,
            "model": self.model,
            "parameters": dict(self.parameters),
            "prompt": self.prompt,
            "continuations": None if self.continuations is None else list(self.continuations),
            "repeat": self.repeat,
        }

    @property
    def sha256(self) -> str:
        """Identity of the call."""
        return sha256_json(self.body())


ReplyStatus = Literal["ok", "refused", "blocked", "empty", "truncated", "unknown", "unavailable"]


@dataclass(frozen=True)
class Reply:
    """What came back: a fact, kept as it is. Log-probabilities are natural logarithms (nats)."""

    status: ReplyStatus
    reason: str | None = None
    text: str | None = None
    top_tokens: Sequence[str] | None = None
    top_logprobs: Sequence[float] | None = None
    option_logprobs: Sequence[float] | None = None
    option_tokens: Sequence[int] | None = None
    finish_reason: str | None = None
    model_returned: str | None = None
    fingerprint: str | None = None
    request_id: str | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_ms: float | None = None

    def body(self) -> Json:
        """Return the reply as JSON values."""
        return asdict(self)


Trouble = Literal["rate_limit", "overload", "server", "connection", "timeout", "garbled"]


class TransportError(Exception):
    """No reply came back; the call stays pending and may be sent again.

    Parameters
    ----------
    message
        For the ledger and the user; free of keys.
    kind
        What went wrong. `rate_limit` and `overload` concern all calls of the account, the others this one.
    wait_s
        What the server asked to wait, in seconds: a floor.
    maybe_billed
        Whether the vendor may have answered, and charged, all the same.
    """

    def __init__(
        self, message: str, *, kind: Trouble = "server", wait_s: float | None = None, maybe_billed: bool = False
    ) -> None:
        super().__init__(message)
        self.kind, self.wait_s, self.maybe_billed = kind, wait_s, maybe_billed


class CallRefusedError(VendorError):
    """A vendor turned a call down as malformed: all calls of this kind, or this one alone if others are answered.

    Parameters
    ----------
    message
        If it is all of them: what to change.
    reply
        If it is this one alone: what counts as its reply.
    """

    def __init__(self, message: str, reply: Reply) -> None:
        super().__init__(message)
        self.reply = reply


@dataclass(frozen=True)
class Trial:
    """What a vendor may know of a trial. The gold answer is here for simulated respondents only."""

    trial_id: str
    experiment: str
    subset: str
    item_id: str
    arrangement: Sequence[str]
    labels: Sequence[str]
    option_texts: Sequence[str]
    gold_slot: int | None
    repeat: int
    prompt: Json
    prompt_sha256: str
    facts: Mapping[str, Json] = field(default_factory=dict)


class Vendor(Protocol):
    """One vendor and model, open for asking.

    A vendor is an async context manager: opening loads a model or makes a client, closing frees it.
    """

    max_in_flight: int
    """Calls that may be under way at once."""

    shares_prefixes: bool
    """Whether asking in trial order saves work; other vendors are asked in an order drawn by the seed."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def request(self, trial: Trial) -> Request:
        """Build what will be sent for a trial; pure, and possible without opening the vendor."""

    async def ask(self, request: Request, trial: Trial) -> Reply:
        """Send one request.

        Raises
        ------
        TransportError
            If no reply came back.
        OutOfFundsError, KeyRefusedError
            If the account cannot be used any more; the call stays pending.
        VendorError
            If no call of this kind can succeed: unknown model, parameter refused.
        CallRefusedError
            If the vendor turned this call down, for what is in it or in all of its kind.
        """


@dataclass(frozen=True)
class TokenBounds:
    """What a call can use, in tokens, known before it is sent.

    Attributes
    ----------
    input_about, input_most
        Input as estimated, for plans and rate limits; and a number it cannot exceed, for reservations.
    output_most
        The output limit, reasoning included.
    """

    input_about: int
    input_most: int
    output_most: int


class PaidVendor(Vendor, Protocol):
    """A vendor behind an account."""

    def bounds(self, request: Request) -> TokenBounds:
        """Return what a request can use; pure."""


@dataclass(frozen=True)
class BatchState:
    """How far a batch is. `failed` says why the vendor took none of it; such a batch has no results."""

    done: bool
    status: str
    counts: Mapping[str, int]
    failed: str | None = None


class BatchVendor(PaidVendor, Protocol):
    """A vendor that takes many requests at once and answers within a day."""

    most_requests: int
    most_bytes: int

    async def submit(self, run_id: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Hand in requests under custom ids of 1 to 64 characters of ``[A-Za-z0-9_-]``; return the batch's id.

        `run_id` is stored with the batch at the vendor, so that `find` can tell whether a killed process got through.
        """

    async def find(self, run_id: str) -> str | None:
        """Return the id of the batch handed in under `run_id`, if the vendor has it."""

    async def state(self, batch_id: str) -> BatchState:
        """Look at a batch."""

    def results(self, batch_id: str, example: Request) -> AsyncIterator["Line"]:
        """Yield the lines of a batch's results, in any order; calls without one were not answered.

        `example` is any request of the batch: replies are read as it asks, whatever the study says by now.
        """
