"""Sending calls: bounded, resumable, each one written down before it goes out and after it comes back.

The engine runs in rounds. A round takes what has come back, chooses what fills the free places, commits both to the
ledger in one synced transaction, and only then sends. While a commit runs, further replies wait for the next round,
so the number of transactions falls by itself where replies come fast, and a reply is never older than one commit
before it is on disk, whatever it cost.
"""

import asyncio
import heapq
import itertools
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from counterbalance.canonical import Json, canonical_json
from counterbalance.errors import InputError
from counterbalance.ledger import Attempt
from counterbalance.progress import Progress
from counterbalance.vendors.base import Reply, Request, TransportError, Trial, Vendor

# This many calls in a row that failed at every try, without one reply between them: the vendor is down.
_HOPELESS = 20


@dataclass(frozen=True)
class Call:
    """A call that has no reply yet: its identity, the canonical text of its request, and what the vendor needs."""

    key: str
    text: str
    request: Request
    trial: Trial


@dataclass(frozen=True)
class RetryPolicy:
    """How often one session sends a call, and how long it waits (seconds) before the second sending.

    The wait doubles with each further try, up to `longest_pause_s`, and is stretched or shortened by up to a half at
    random, so that calls which failed together do not come back together.
    """

    tries: int = 3
    pause_s: float = 0.5
    longest_pause_s: float = 30.0

    def pause(self, tries: int) -> float:
        """Return the wait after that many tries."""
        return min(self.pause_s * 2.0 ** (tries - 1), self.longest_pause_s) * random.uniform(0.5, 1.5)


class Store(Protocol):
    """What the engine needs of a ledger."""

    def attempts(self, call_sha256: str) -> int: ...

    def save(self, ended: list[Attempt], starting: list[tuple[str, str]], *, frozen_sha256: str) -> None: ...


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
        Calls that failed at every try of this session and stay pending.
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


@dataclass(frozen=True)
class _Finished:
    call: Call
    attempt: Attempt
    status: str | None


@dataclass(order=True)
class _Retry:
    ready: float
    number: int
    call: Call = field(compare=False)


class Engine:
    """Asks one vendor the calls of one cell.

    Parameters
    ----------
    vendor
        Open for asking.
    ledger
        The cell's ledger, open for writing.
    frozen_sha256
        The frozen record under which calls are sent.
    progress
        Started by the caller.
    guard
        Called with each reply's status.
    retry
        What happens after a transport error.
    """

    def __init__(
        self,
        vendor: Vendor,
        ledger: Store,
        *,
        frozen_sha256: str,
        progress: Progress,
        guard: Guard,
        retry: RetryPolicy | None = None,
    ) -> None:
        self._vendor, self._ledger, self._frozen = vendor, ledger, frozen_sha256
        self._progress, self._guard, self._retry = progress, guard, retry or RetryPolicy()
        self._tally = Tally()
        self._tasks: set[asyncio.Task[None]] = set()
        # Counted apart from the tasks: a task is dropped only some time after it has handed over what it brought.
        self._in_flight = 0
        self._finished: list[_Finished] = []
        self._retries: list[_Retry] = []
        self._tries: dict[str, int] = {}
        self._numbers = itertools.count()
        self._failed_in_a_row = 0
        self._error: Exception | None = None
        self._exhausted = False
        self._wake = asyncio.Event()

    async def run(self, calls: Iterator[Call]) -> Tally:
        """Send calls, in their order, until all are answered or given up, or the session is stopped.

        SIGINT and SIGTERM stop it kindly: what is under way is waited for and saved. A second signal ends it at once.

        Raises
        ------
        CounterbalanceError
            What a guard or the vendor raised, after what was under way has been saved.
        """
        try:
            with self._signals():
                while not self._is_over:
                    self._round(calls)
                    await self._wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._error is not None:
            raise self._error
        return self._tally

    @property
    def _halted(self) -> bool:
        return self._error is not None or self._tally.stopped is not None

    @property
    def _is_over(self) -> bool:
        idle = not self._in_flight and not self._finished
        return idle and (self._halted or (self._exhausted and not self._retries))

    def _round(self, calls: Iterator[Call]) -> None:
        finished, self._finished = self._finished, []
        for entry in finished:
            self._take_in(entry)
        starting = self._choose(calls)
        self._ledger.save(
            [entry.attempt for entry in finished],
            [(call.key, call.text) for call in starting],
            frozen_sha256=self._frozen,
        )
        answered = sum(entry.status is not None for entry in finished)
        if answered:
            self._progress.advance(answered)
        for call in starting:
            self._launch(call)

    def _take_in(self, entry: _Finished) -> None:
        tries = self._tries.pop(entry.call.key)
        if entry.status is not None:
            self._tally.answered += 1
            self._failed_in_a_row = 0
            try:
                self._guard(entry.status)
            except Exception as error:
                self._error = self._error or error
        elif entry.attempt.outcome == "transport_error":
            self._tally.transport_errors += 1
            self._tally.last_error = entry.attempt.detail
            self._again_or_give_up(entry.call, tries)

    def _again_or_give_up(self, call: Call, tries: int) -> None:
        if tries < self._retry.tries:
            self._tries[call.key] = tries
            ready = time.monotonic() + self._retry.pause(tries)
            heapq.heappush(self._retries, _Retry(ready, next(self._numbers), call))
            return
        self._tally.given_up += 1
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= _HOPELESS:
            self._tally.stopped = f"{_HOPELESS} calls in a row failed at every try"

    def _choose(self, calls: Iterator[Call]) -> list[Call]:
        chosen: list[Call] = []
        free = self._vendor.max_in_flight - self._in_flight
        try:
            while len(chosen) < free and not self._halted:
                if self._retries and self._retries[0].ready <= time.monotonic():
                    chosen.append(heapq.heappop(self._retries).call)
                elif self._exhausted or (call := next(calls, None)) is None:
                    self._exhausted = True
                    break
                else:
                    chosen.append(call)
        except Exception as error:
            # What has come back meanwhile must still be saved.
            self._error = error
        return chosen

    def _launch(self, call: Call) -> None:
        self._tries[call.key] = self._tries.get(call.key, 0) + 1
        self._tally.sent += 1
        self._in_flight += 1
        task = asyncio.get_running_loop().create_task(self._send(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, call: Call) -> None:
        attempt = self._ledger.attempts(call.key)
        trial = call.trial if attempt == 1 else replace(call.trial, facts={**call.trial.facts, "attempt": attempt})
        began = time.perf_counter()
        status = None
        try:
            reply = await self._vendor.ask(call.request, trial)
            if reply.latency_ms is None:
                reply = replace(reply, latency_ms=(time.perf_counter() - began) * 1000)
            ended = Attempt(call.key, "answered", reply=reply_text(reply))
            status = reply.status
        except TransportError as error:
            ended = Attempt(call.key, "transport_error", detail=str(error))
        except Exception as error:
            self._error = self._error or error
            ended = Attempt(call.key, "unknown", detail=f"{type(error).__name__}: {error}")
        self._in_flight -= 1
        self._finished.append(_Finished(call, ended, status))
        self._wake.set()

    async def _wait(self) -> None:
        if self._is_over:
            return
        limit = None
        if self._retries and not self._halted and self._in_flight < self._vendor.max_in_flight:
            limit = max(0.0, self._retries[0].ready - time.monotonic())
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._wake.wait()
        self._wake.clear()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        caught = (signal.SIGINT, signal.SIGTERM)

        def stop(number: signal.Signals) -> None:
            self._tally.stopped = f"stopped by {number.name}"
            self._wake.set()
            for entry in caught:
                loop.remove_signal_handler(entry)

        # Only the main thread of a process can take signals.
        with suppress(ValueError, RuntimeError, NotImplementedError):
            for number in caught:
                loop.add_signal_handler(number, stop, number)
        try:
            yield
        finally:
            with suppress(ValueError, RuntimeError, NotImplementedError):
                for number in caught:
                    loop.remove_signal_handler(number)


def reply_text(reply: Reply) -> str:
    """Return a reply's canonical text; what no UTF-8 file can hold is replaced by U+FFFD, and the reply says so.

    Raises
    ------
    InputError
        If the vendor gave a number that is not finite.
    """
    body = dict(vars(reply))
    try:
        return canonical_json(body).decode()
    except InputError:
        mended = {name: _mend(value) for name, value in body.items()}
        mended["reason"] = "; ".join(filter(None, [mended["reason"], "lone surrogates written as U+FFFD"]))
        return canonical_json(mended).decode()


def _mend(value: Json) -> Json:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list | tuple):
        return [_mend(entry) for entry in value]
    return value
