"""The calls of a batch run: split into what fits one batch, and matched with what came back."""

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from counterbalance.canonical import parse_json
from counterbalance.errors import CounterbalanceError
from counterbalance.exchange import Call
from counterbalance.vendors.base import Reply, Request, TransportError
from counterbalance.vendors.batch_ids import HopelessError

# What a vendor's line has beyond the text of the request: custom id, method, address, names of fields.
ENVELOPE_BYTES = 512
# Custom ids that a message names.
_NAMED = 5


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


@dataclass
class Results:
    """What a batch brought, by call.

    Attributes
    ----------
    found
        What became of the calls that came back once.
    doubled
        Custom ids that came more than once.
    unknown
        Custom ids that were not handed in.
    stop
        Why no further call of this kind can succeed, if the vendor said so of some.
    """

    found: dict[str, Reply | TransportError] = field(default_factory=dict)
    doubled: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    stop: CounterbalanceError | None = None

    @property
    def complaint(self) -> str | None:
        """What is wrong with the ids; None if nothing is."""
        wrong = [("came more than once", sorted(self.doubled)), ("were never handed in", sorted(self.unknown))]
        said = [f"{len(ids)} custom ids {what} ({', '.join(ids[:_NAMED])})" for what, ids in wrong if ids]
        return "; ".join(said) or None


async def match_results(results: AsyncIterator[tuple[str, Reply | TransportError]], ids: Mapping[str, str]) -> Results:
    """Match results with the calls that were handed in, in whatever order they come.

    Parameters
    ----------
    results
        Custom ids and what became of them.
    ids
        Call hash of each custom id that was handed in.

    Raises
    ------
    TransportError, CounterbalanceError
        If the results could not be read to their end; nothing of them counts then.
    """
    matched = Results()
    async for custom_id, outcome in results:
        key = ids.get(custom_id)
        if key is None:
            matched.unknown.append(custom_id)
        elif key in matched.found or custom_id in matched.doubled:
            matched.doubled.add(custom_id)
            matched.found.pop(key, None)
        else:
            matched.found[key] = outcome
        if isinstance(outcome, HopelessError):
            matched.stop = matched.stop or outcome.stop
    return matched


def request_of(text: str) -> Request:
    """Build a request from its stored canonical text."""
    body = parse_json(text, source="request of a stored call")
    del body["schema"]
    return Request(**body)
