"""What goes into a session of asking and what comes out of it, whichever way the calls are sent."""

from dataclasses import dataclass
from typing import Protocol

from counterbalance.canonical import Json, canonical_json, utf8_text
from counterbalance.errors import InputError
from counterbalance.keys import redact
from counterbalance.vendors.base import Reply, Request, Trial

MOST_REFUSED = 5
"""A vendor that turns down so many calls, and answers fewer among them, finds fault with more than these calls."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that has no reply yet: its identity, the canonical text of its request, and what the vendor needs."""

    key: str
    text: str
    request: Request
    trial: Trial


class Guard(Protocol):
    """Looks at each reply's status and may raise to stop the cell; what is under way is still saved."""

    def __call__(self, status: str) -> None: ...


@dataclass
class Tally:
    """What one session did.

    Attributes
    ----------
    sent, answered, transport_errors
        Attempts, and how they ended.
    given_up
        Calls that failed at every try of this session, or until their deadline, and stay pending.
    stopped
        Why the session ended before all calls were sent; None if it did not.
    last_error
        Text of the last transport error.
    """

    sent: int = 0
    answered: int = 0
    transport_errors: int = 0
    given_up: int = 0
    stopped: str | None = None
    last_error: str | None = None


def reply_text(reply: Reply, *, latency_ms: float | None = None) -> str:
    """Return a reply's canonical text; what no UTF-8 file can hold is replaced by U+FFFD, and the reply says so.

    Parameters
    ----------
    reply
        As it came back.
    latency_ms
        How long it took (milliseconds), for a reply that does not say so itself.

    Raises
    ------
    InputError
        If the vendor gave a number that is not finite.
    """
    # Raw answers had none any more, but within JSON a key can be written in escapes.
    body = {name: _without_keys(value) for name, value in vars(reply).items()}
    if reply.latency_ms is None:
        body["latency_ms"] = latency_ms
    try:
        return canonical_json(body).decode()
    except InputError:
        mended = {name: _mend(value) for name, value in body.items()}
        mended["reason"] = "; ".join(filter(None, [mended["reason"], "lone surrogates written as U+FFFD"]))
        return canonical_json(mended).decode()


def _without_keys(value: Json) -> Json:
    if isinstance(value, str):
        return redact.take_out(value)
    if isinstance(value, list | tuple):
        return [_without_keys(entry) for entry in value]
    return value


def _mend(value: Json) -> Json:
    if isinstance(value, str):
        return utf8_text(value)
    if isinstance(value, list | tuple):
        return [_mend(entry) for entry in value]
    return value
