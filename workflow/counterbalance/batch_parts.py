"""The calls of a batch run, split into what fits one batch."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from counterbalance.canonical import parse_json
from counterbalance.exchange import Call
from counterbalance.vendors.base import Request

# What a vendor's line has beyond the text of the request: custom id, method, address, names of fields.
ENVELOPE_BYTES = 512


@dataclass(frozen=True)
class Ready:
    """A call that can be handed in: its identity, the canonical text of its request, and the request."""

    key: str
    text: str
    request: Request


class Parts:
    """Calls that are not handed in yet, taken in parts; those to be handed in again come first.

    Parameters
    ----------
    calls
        In the order of asking.
    skip
        Calls that are in a batch already.
    text_of
        Finds the stored text of a call that was handed in before.
    """

    def __init__(self, calls: Iterator[Call], skip: Iterable[str], text_of: Callable[[str], str]) -> None:
        self._calls, self._skip, self._text_of = calls, set(skip), text_of
        self._passed: set[str] = set()
        self._back: deque[Ready] = deque()
        self._again: deque[str] = deque()

    def take(self, most: int, most_bytes: int) -> list[Ready]:
        """Return the next calls, at most so many of at most so many bytes in all; a larger one goes alone."""
        part: list[Ready] = []
        size = 0
        while len(part) < most and (ready := self._next()) is not None:
            size += len(ready.text.encode()) + ENVELOPE_BYTES
            if part and size > most_bytes:
                self._back.appendleft(ready)
                break
            part.append(ready)
        return part

    def give_back(self, part: Sequence[Ready]) -> None:
        """Put calls back to the front."""
        self._back.extendleft(reversed(part))

    def again(self, keys: Sequence[str]) -> None:
        """Queue calls that were handed in before and did not come back, if they are still wanted.

        A batch of an earlier session may hold calls that the study, changed since, no longer asks.
        """
        self._again.extend(key for key in keys if key in self._passed)
        self._skip.difference_update(keys)

    def is_empty(self) -> bool:
        """Tell whether nothing is left to hand in."""
        if (ready := self._next()) is not None:
            self._back.appendleft(ready)
        return ready is None

    def _next(self) -> Ready | None:
        if self._back:
            return self._back.popleft()
        if self._again:
            key = self._again.popleft()
            text = self._text_of(key)
            return Ready(key, text, request_of(text))
        for call in self._calls:
            self._passed.add(call.key)
            if call.key not in self._skip:
                return Ready(call.key, call.text, call.request)
        return None


def request_of(text: str) -> Request:
    """Build a request from its stored canonical text."""
    body = parse_json(text, source="request of a stored call")
    del body["schema"]
    return Request(**body)
