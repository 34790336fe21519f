"""Sending calls: bounded, resumable, each one written down before it goes out and after it comes back.

The engine runs in rounds. A round takes what has come back, chooses what goes out next, has the money for it reserved
and commits both to the ledger in one synced transaction. Commits run beside the event loop: further replies wait for
the next round meanwhile, so the number of transactions falls by itself where replies come fast. Only what is on disk
is sent; where replies come faster than commits, some calls are written down ahead, so that no place stays empty while
the disk is busy, and what of them is not sent in the end is taken out of the ledger again.
"""

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from counterbalance.errors import (
    BudgetError,
    CounterbalanceError,
    KeyRefusedError,
    NoSpaceError,
    OutOfFundsError,
    VendorError,
)
from counterbalance.exchange import MOST_REFUSED, Call, Guard, Tally, reply_text
from counterbalance.ledger import Attempt, Ledger, Sending
from counterbalance.pacing import Lane, RetryPolicy
from counterbalance.progress import Progress
from counterbalance.signals import stopping_kindly
from counterbalance.spending import Admission, Allowance
from counterbalance.vendors.base import CallRefusedError, PaidVendor, Reply, TokenBounds, TransportError, Vendor

__all__ = ["Engine", "RetryPolicy"]

# This many calls in a row that failed at every try, without one reply between them: the vendor is down.
_HOPELESS = 20
# Replies are gathered this long (seconds) for one commit, or until they fill this part of the places; so many calls at
# most are written down ahead.
_GATHER_S = 0.01
_PART = 4
# The vendor said no to this call and would to every other one; it charged nothing.
_STOPS = (OutOfFundsError, KeyRefusedError, BudgetError, VendorError)


@dataclass(slots=True)
class _Job:
    """A call on its way through this session; `worst` is in nano-USD, `began` the first sending on our clock."""

    call: Call
    bounds: TokenBounds | None
    worst: int | None
    tries: int = 0
    timeouts: int = 0
    began: float = 0.0
    number: int = 0


@dataclass(slots=True)
class _Finished:
    job: _Job
    attempt: Attempt
    status: str | None = None
    trouble: TransportError | None = None
    refused: CallRefusedError | None = None


@dataclass(order=True, slots=True)
class _Retry:
    ready: float
    number: int
    job: _Job = field(compare=False)


class Engine:
    """Asks one vendor the calls of one cell.

    Parameters
    ----------
    vendor
        Open for asking; one that knows the bounds of a call if there is an allowance.
    ledger
        The cell's ledger, open for writing.
    frozen_sha256
        The frozen record under which calls are sent.
    progress
        Started by the caller.
    guard
        Called with each reply's status.
    retry
        What happens after a transport error, and how long a sending may take.
    allowance
        Open; None where calls cost nothing.
    """

    def __init__(
        self,
        vendor: Vendor,
        ledger: Ledger,
        *,
        frozen_sha256: str,
        progress: Progress,
        guard: Guard,
        retry: RetryPolicy | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self._vendor, self._ledger, self._frozen = vendor, ledger, frozen_sha256
        self._progress, self._guard, self._retry = progress, guard, retry or RetryPolicy()
        self._allowance = allowance
        self._lane = Lane(vendor.max_in_flight, self._retry)
        self._tally = Tally()
        self._tasks: set[asyncio.Task[None]] = set()
        # Counted apart from the tasks: a task is dropped only some time after it has handed over what it brought.
        self._in_flight = 0
        self._finished: list[_Finished] = []
        # Chosen but not admitted yet, and on disk but not sent yet.
        self._next: list[_Job] = []
        self._ready: deque[_Job] = deque()
        self._ahead = 0
        self._retries: list[_Retry] = []
        self._numbers = itertools.count()
        self._failed_in_a_row = self._refused_in_a_row = 0
        # Turned down, and not known yet whether the vendor turns down every other call too.
        self._undecided: list[_Finished] = []
        self._error: Exception | None = None
        self._exhausted = False
        self._ask_again_at = 0.0
        self._credited = False
        self._pause_all: float | None = None
        self._wake = asyncio.Event()
        self._gathering: asyncio.TimerHandle | None = None

    async def run(self, calls: Iterator[Call]) -> Tally:
        """Send calls, in their order, until all are answered or given up, or the session is stopped.

        SIGINT and SIGTERM stop it kindly: what is under way is waited for and saved. A second signal ends it at once.

        Raises
        ------
        OutOfFundsError, KeyRefusedError, BudgetError, VendorError
            If nothing more can be bought; what was under way has been saved.
        CounterbalanceError
            What a guard raised, after what was under way has been saved.
        """
        # Leaving the pool waits for a commit that is under way, also when everything is to end at once.
        with ThreadPoolExecutor(1, thread_name_prefix="ledger") as pool:
            try:
                with stopping_kindly(self._stop):
                    while not self._is_over:
                        await self._round(calls, pool)
                        await self._wait()
                await self._hand_back(pool)
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
    def _has_more(self) -> bool:
        """Whether replies may still come."""
        coming = self._in_flight or self._finished or self._ready
        return bool(coming or not (self._halted or (self._exhausted and not self._retries and not self._next)))

    @property
    def _is_over(self) -> bool:
        return not self._has_more and not self._undecided

    async def _round(self, calls: Iterator[Call], pool: ThreadPoolExecutor) -> None:
        self._wake.clear()
        finished, self._finished = self._finished, []
        finished = self._judge_refusals(finished)
        for entry in finished:
            self._take_in(entry)
        self._ahead = max(0, min(self._lane.limit // _PART, max(len(finished) - 1, self._ahead - 1)))
        free = self._lane.limit - self._in_flight + self._ahead - len(self._ready)
        if self._undecided:
            # One by one, until it is known whether all are turned down.
            free = min(free, 1 - self._in_flight - len(self._ready))
        self._choose(calls, free)
        # The lane may have become narrower since they were chosen.
        wanted = self._next[: max(0, free)] if self._may_choose else []
        ended = [entry.attempt for entry in finished] + self._withdrawn()
        admission = await self._in_pool(pool, wanted, ended)
        self._next = self._next[admission.granted :]
        # What came back in this round is in the ledger only now, so its money was not counted as free yet.
        self._credited = bool(ended)
        self._ask_again_at = time.monotonic() + (admission.wait_s or 0.0)
        if admission.paused is not None:
            self._stop(admission.paused)
        answered = sum(entry.status is not None for entry in finished)
        if answered:
            if self._allowance is not None:
                self._progress.spend(self._ledger.held)
            self._progress.advance(answered)
        self._ready.extend(wanted[: admission.granted])
        self._launch()

    def _withdrawn(self) -> list[Attempt]:
        """Give up what is on disk but will not be sent any more."""
        if not self._halted:
            return []
        withdrawn = [Attempt(job.call.key, "not_sent") for job in self._ready]
        self._ready.clear()
        return withdrawn

    async def _in_pool(self, pool: ThreadPoolExecutor, wanted: Sequence[_Job], ended: Sequence[Attempt]) -> Admission:
        pause, self._pause_all = self._pause_all, None
        if not wanted and not ended and pause is None:
            return Admission(0, max(0.0, self._ask_again_at - time.monotonic()))
        under_way = self._in_flight + len(self._ready) + len(ended)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool, self._commit, ended, wanted, under_way, pause)

    def _commit(
        self, ended: Sequence[Attempt], wanted: Sequence[_Job], under_way: int, pause: float | None
    ) -> Admission:
        """Reserve the money and write to the ledger; runs beside the event loop, one at a time."""
        admission = Admission(len(wanted), max(0.0, self._ask_again_at - time.monotonic()))
        try:
            admission = self._admit(wanted, under_way, pause) or admission
        except Exception as error:
            # What has come back must be saved all the same.
            self._error, admission = self._error or error, Admission(0)
        starting = [Sending(job.call.key, job.call.text, job.worst) for job in wanted[: admission.granted]]
        try:
            self._ledger.save(ended, starting, frozen_sha256=self._frozen)
        except NoSpaceError as error:
            # What is under way is waited for: there is room kept back for it.
            self._error, admission = self._error or error, Admission(0)
        return admission

    def _admit(self, wanted: Sequence[_Job], under_way: int, pause: float | None) -> Admission | None:
        if self._allowance is None:
            return None
        if pause is not None:
            self._allowance.pause(pause)
        if not wanted:
            return None
        bounds = [cast(TokenBounds, job.bounds) for job in wanted]
        # By what is on disk: a cap holds also if this process is killed before the ledger is written.
        return self._allowance.admit(bounds, held=self._ledger.held, in_flight=under_way)

    async def _hand_back(self, pool: ThreadPoolExecutor) -> None:
        """Tell the other processes what this cell really holds, now that nothing is under way."""
        if self._allowance is None:
            return
        admit = partial(self._allowance.admit, [], held=self._ledger.held, in_flight=0)
        try:
            await asyncio.get_running_loop().run_in_executor(pool, admit)
        except CounterbalanceError as error:
            self._error = self._error or error

    def _judge_refusals(self, finished: list[_Finished]) -> list[_Finished]:
        """Let a refusal be the call's reply if the vendor answers other calls of this session, or stop.

        Returns
        -------
        list of _Finished
            What is to be saved now; refusals that cannot be judged yet are kept back.
        """
        new = [entry for entry in finished if entry.refused is not None]
        refused, self._undecided = [*self._undecided, *new], []
        answers = any(entry.status not in (None, "unavailable") for entry in finished)
        self._refused_in_a_row = len(new) + (0 if answers else self._refused_in_a_row)
        if not refused or self._halted:
            return [*finished, *refused[: len(refused) - len(new)]]
        others = [entry for entry in finished if entry.refused is None]
        # Between two commits nothing else uses the ledger.
        proven = answers or self._ledger.has_answered(refused[0].job.call.request.parameters)
        if self._refused_in_a_row >= MOST_REFUSED or not (proven or self._has_more):
            self._error = refused[-1].refused
        elif proven:
            for entry in refused:
                self._accept(entry)
        else:
            self._undecided = refused
            return others
        return [*others, *refused]

    def _accept(self, entry: _Finished) -> None:
        """Take a refusal for the reply to its call."""
        if entry.refused is None:
            return
        reply = entry.refused.reply
        charged = None if entry.job.bounds is None else self._charge(entry.job, reply)
        entry.attempt = Attempt(entry.attempt.call_sha256, "answered", reply_text(reply), None, charged)
        entry.status = reply.status

    def _take_in(self, entry: _Finished) -> None:
        if entry.status is not None:
            self._tally.answered += 1
            self._failed_in_a_row = 0
            self._lane.succeeded(entry.job.number)
            try:
                self._guard(entry.status)
            except Exception as error:
                self._error = self._error or error
        elif entry.trouble is not None:
            self._tally.transport_errors += 1
            self._tally.last_error = str(entry.trouble)
            self._again_or_give_up(entry.job, entry.trouble)

    def _again_or_give_up(self, job: _Job, trouble: TransportError) -> None:
        floor = trouble.wait_s or 0.0
        if trouble.kind in ("rate_limit", "overload"):
            pause = self._lane.troubled(job.number, trouble.wait_s)
            if pause is not None:
                self._pause_lane(pause, hinted=trouble.wait_s is not None)
            floor = max(floor, self._lane.opens_in())
        job.timeouts += trouble.kind == "timeout"
        ready = time.monotonic() + floor + self._retry.pause(job.tries)
        if self._retry.allows(job.tries, job.timeouts, ready - job.began):
            heapq.heappush(self._retries, _Retry(ready, next(self._numbers), job))
            return
        self._tally.given_up += 1
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= _HOPELESS:
            self._stop(f"{_HOPELESS} calls in a row failed at every try")

    def _pause_lane(self, seconds: float, *, hinted: bool) -> None:
        self._pause_all = max(seconds, self._pause_all or 0.0)
        deadline = self._retry.deadline_s
        if deadline is not None and seconds > deadline:
            who = "the server asks to wait" if hinted else "rate limits or overload, without a hint, mean to wait"
            self._stop(f"{who} {seconds:.0f} s, longer than the account's deadline_s: {deadline:.0f}")

    def _stop(self, why: str) -> None:
        self._tally.stopped = self._tally.stopped or why
        self._wake.set()

    @property
    def _may_choose(self) -> bool:
        return not self._halted and not self._lane.opens_in() and time.monotonic() >= self._ask_again_at

    def _choose(self, calls: Iterator[Call], free: int) -> None:
        """Fill the free places, if anything may be sent now at all."""
        try:
            while len(self._next) < free and self._may_choose:
                if self._retries and self._retries[0].ready <= time.monotonic():
                    self._next.append(heapq.heappop(self._retries).job)
                elif self._exhausted or (call := next(calls, None)) is None:
                    self._exhausted = True
                    break
                else:
                    self._next.append(self._job(call))
        except Exception as error:
            # What has come back meanwhile must still be saved.
            self._error = error

    def _job(self, call: Call) -> _Job:
        if self._allowance is None:
            return _Job(call, None, None)
        bounds = cast(PaidVendor, self._vendor).bounds(call.request)
        return _Job(call, bounds, self._allowance.worst(bounds))

    def _launch(self) -> None:
        """Send what is on disk, as far as there are places and the lane is open."""
        ready = self._ready
        while ready and self._in_flight < self._lane.limit and not self._halted and not self._lane.opens_in():
            job = ready.popleft()
            if job.tries == 0:
                job.began = time.monotonic()
            job.tries += 1
            job.number = self._lane.launch()
            self._tally.sent += 1
            self._in_flight += 1
            task = asyncio.get_running_loop().create_task(self._send(job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, job: _Job) -> None:
        key = job.call.key
        began = time.perf_counter()
        try:
            reply = await self._ask(job)
            text = reply_text(reply, latency_ms=(time.perf_counter() - began) * 1000)
            charged = None if job.bounds is None else self._charge(job, reply)
            finished = _Finished(job, Attempt(key, "answered", text, None, charged), reply.status)
        except TransportError as error:
            charged = None if job.worst is None else job.worst * error.maybe_billed
            finished = _Finished(
                job,
                Attempt(key, "transport_error", None, str(error), charged, error.maybe_billed),
                trouble=error,
            )
        except CallRefusedError as error:
            detail, charged = f"{type(error).__name__}: {error}", None if job.worst is None else 0
            finished = _Finished(job, Attempt(key, "transport_error", None, detail, charged), refused=error)
        except Exception as error:
            self._error = self._error or error
            detail = f"{type(error).__name__}: {error}"
            if isinstance(error, _STOPS):
                attempt = Attempt(key, "transport_error", None, detail, None if job.worst is None else 0)
            else:
                attempt = Attempt(key, "unknown", None, detail)
            finished = _Finished(job, attempt)
        self._in_flight -= 1
        self._finished.append(finished)
        self._launch()
        if self._in_flight and len(self._finished) < self._lane.limit // _PART:
            if self._gathering is None:
                self._gathering = asyncio.get_running_loop().call_later(_GATHER_S, self._gathered)
        else:
            self._wake.set()

    def _gathered(self) -> None:
        self._gathering = None
        self._wake.set()

    async def _ask(self, job: _Job) -> Reply:
        trial, attempt = job.call.trial, self._ledger.attempts(job.call.key)
        if attempt > 1:
            trial = replace(trial, facts={**trial.facts, "attempt": attempt})
        limit = self._retry.timeout_s
        try:
            async with asyncio.timeout(limit):
                return await self._vendor.ask(job.call.request, trial)
        except TimeoutError:
            text = "the vendor gave up waiting" if limit is None else f"no reply within {limit:g} s (timeout_s)"
            raise TransportError(text, kind="timeout", maybe_billed=True) from None

    def _charge(self, job: _Job, reply: Reply) -> int | None:
        if self._allowance is None or job.bounds is None:
            return None
        return self._allowance.charge(reply, job.bounds)

    async def _wait(self) -> None:
        """Wait for replies, for a retry, for the lane or for the allowance, whatever comes first."""
        pause = self._next_sending_in()
        if self._is_over or pause == 0.0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._wake.wait()

    def _next_sending_in(self) -> float | None:
        """Return in how many seconds something can be sent, chosen or decided; None if it takes a reply first."""
        if self._undecided:
            if not self._has_more:
                return 0.0
            if self._in_flight:
                return None
        if self._halted:
            return 0.0 if self._ready else None
        opens = self._lane.opens_in()
        if self._ready and opens:
            return opens
        if self._in_flight + len(self._finished) >= self._lane.limit:
            return None
        now = time.monotonic()
        pause = max(opens, self._ask_again_at - now, 0.0)
        if self._next:
            # Nothing was admitted and no time was given: the room comes from what is under way, or from nowhere.
            return None if pause == 0.0 and self._in_flight and not self._credited else pause
        if not self._exhausted:
            return pause
        return max(pause, self._retries[0].ready - now) if self._retries else None
