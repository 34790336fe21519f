"""What all vendors' batches have in common: asking about them, and reading one line of their results."""

import asyncio
import json
from abc import abstractmethod
from collections.abc import Awaitable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from counterbalance.canonical import Json
from counterbalance.config.models import AnthropicModel, GoogleModel, OpenAIModel
from counterbalance.errors import CounterbalanceError, VendorError
from counterbalance.vendors.api import ApiVendor, wire_bytes
from counterbalance.vendors.base import Reply, Request, TransportError
from counterbalance.vendors.batch_ids import MOST_BYTES, MOST_REQUESTS, BatchGoneError, HopelessError, Line
from counterbalance.vendors.fields import as_text, dig
from counterbalance.vendors.wire import Received, Verdict, explain_breakdown, judge, open_body

TRANSFER_S = 900.0
"""Longest that handing in or fetching a whole file may take in all, where the account allows a call less."""

# Batches that are looked through for one of ours: pages of a list, newest first.
MOST_PAGES, PER_PAGE = 100, 100

_GONE = (404, 410)

ModelT = TypeVar("ModelT", OpenAIModel, AnthropicModel, GoogleModel)


class BatchTalker(ApiVendor[ModelT]):
    """A vendor that also takes batches; put before the vendor's own class."""

    most_requests = MOST_REQUESTS
    most_bytes = MOST_BYTES

    def _gone(self, what: str) -> str:
        return f"{self.name}: {what} is not there"

    async def _look(
        self, sending: Awaitable[Received], *, gone: str | None = None, transfer: bool = False
    ) -> dict[str, Json]:
        """Send a request about a batch as `_fetch` does; return the JSON object of the answer."""
        received = await self._fetch(sending, gone=gone, transfer=transfer)
        try:
            body = json.loads(received.text)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise TransportError(
                f"{self.name}: an answer about a batch is no JSON object", kind="garbled", maybe_billed=True
            )
        return body

    async def _fetch(
        self, sending: Awaitable[Received], *, gone: str | None = None, transfer: bool = False
    ) -> Received:
        """Send a request about a batch, once and within a total time; return its answer.

        Parameters
        ----------
        gone
            What to say if the vendor no longer has what is asked for.
        transfer
            Whether a whole file goes over the line.

        Raises
        ------
        TransportError
            If there is no answer, or one that may be different next time.
        CounterbalanceError
            If the vendor refuses.
        """
        seconds = max(self._account.timeout_s, TRANSFER_S) if transfer else self._account.timeout_s
        outcome = await self._try(sending, seconds)
        if isinstance(outcome, Received) and outcome.status in _GONE and gone is not None:
            raise BatchGoneError(gone)
        if isinstance(outcome, Received):
            if outcome.succeeded:
                return outcome
            outcome = self._refusal(outcome)
        # Raised here, where no frame of an SDK is part of the traceback.
        raise outcome

    async def _try(
        self, sending: Awaitable[Received], seconds: float
    ) -> Received | TransportError | CounterbalanceError:
        try:
            async with asyncio.timeout(seconds):
                return await sending
        except asyncio.CancelledError as stopped:
            stopped.__context__ = stopped.__cause__ = None
            raise stopped.with_traceback(None) from None
        except Exception as error:
            found = explain_breakdown(self.name, error)
            # Whatever broke, the vendor may have taken the batch; nobody may conclude that it did not.
            known = isinstance(found, TransportError)
            return found if known else TransportError(str(found), kind="garbled", maybe_billed=True)

    def _refusal(self, received: Received) -> TransportError | CounterbalanceError:
        verdict = judge(self.name, received)
        return VendorError(verdict.reason or verdict.status) if isinstance(verdict, Reply) else verdict

    def _read_lines(self, text: str, where: str, name: str, example: Request) -> Iterator[Line]:
        """Yield what the lines of a file of results say; a line that cannot be read spoils no other.

        Parameters
        ----------
        where
            Which file it is, in words.
        name
            Field of the custom id.
        """
        for line in read_lines(text):
            custom_id = as_text(dig(line.entry, name))
            if line.entry is None:
                outcome: Reply | TransportError = unreadable("no JSON object in UTF-8")
            elif not custom_id:
                outcome = unreadable(f"no {name!r}")
            else:
                outcome = self._line(line.entry, example)
            yield Line(custom_id or None, outcome, f"line {line.number} of {where}", line.raw)

    @abstractmethod
    def _line(self, line: dict[str, Json], example: Request) -> Reply | TransportError:
        """Return what became of the call of one line."""

    def _outcome(self, status: int, body: Json, request_id: str | None, example: Request) -> Reply | TransportError:
        """Read what became of one call, as if it had been a live answer of that status."""
        received = Received.of(status, {"request-id": request_id} if request_id else {}, json.dumps(body))
        verdict = self._opened(received, example) if received.succeeded else judge(self.name, received)
        return HopelessError(verdict) if isinstance(verdict, CounterbalanceError) else verdict

    def _opened(self, received: Received, example: Request) -> Verdict:
        body = open_body(self.name, received, self._shape(example))
        return self._reply(body, example, received.request_id) if isinstance(body, dict) else body


def unreached(vendor: str, how: str) -> TransportError:
    """Return what became of a call that its batch did not get to; vendors do not charge those."""
    return TransportError(f"{vendor}: the batch {how} before this call was reached")


def id_of(vendor: str, body: Json, field: str) -> str:
    """Return the name of a batch or file that the vendor has made.

    Raises
    ------
    TransportError
        If the answer has none; the vendor may have made it all the same.
    """
    name = body.get(field)
    if not isinstance(name, str) or not name:
        raise TransportError(f"{vendor}: an answer without {field!r}", kind="garbled", maybe_billed=True)
    return name


def write_lines(entries: Iterable[Json]) -> bytes:
    """Write one JSON value a line."""
    return b"".join(wire_bytes(entry) + b"\n" for entry in entries)


class RawLine(NamedTuple):
    """A line of a file, what is not UTF-8 written as escapes, and the JSON object in it, if it is one."""

    number: int
    raw: str
    entry: dict[str, Json] | None


def text_of(content: bytes) -> str:
    """Decode a file of lines; a byte that is not UTF-8 spoils its own line only, which `read_lines` notices."""
    return content.decode("utf-8", "surrogateescape")


def read_lines(text: str) -> Iterator[RawLine]:
    """Yield the lines of a file that are not blank, counted from 1; a U+2028 within a text ends no line."""
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        raw = line.encode("utf-8", "backslashreplace").decode()
        try:
            entry = json.loads(line) if raw == line else None
        except (ValueError, RecursionError):
            entry = None
        yield RawLine(number, raw, entry if isinstance(entry, dict) else None)


def unreadable(why: str) -> TransportError:
    """Return what became of a call whose line makes no sense: the vendor did something, and may charge it."""
    return TransportError(why, kind="garbled", maybe_billed=True)


def not_listed(vendor: str, run_id: str) -> TransportError:
    """Return what to say if a list of batches is too long to be looked through."""
    return TransportError(
        f"{vendor}: the vendor lists more than {MOST_PAGES * PER_PAGE:,} batches; whether {run_id} is one of them is "
        "not known"
    )
