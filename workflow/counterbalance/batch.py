"""Asking in batches: handed in, left alone for up to a day, and collected by whatever session comes next.

Each step is on disk before the next one: first that a batch is about to be handed in, with our name for it; then the
vendor's name; then the replies; then that they are all there. A process killed between two steps leaves a batch that
the next session looks up at the vendor by our name, so nothing is bought twice.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from counterbalance.batch_ages import Ages, date_anew
from counterbalance.batch_parts import Parts, Ready, request_of
from counterbalance.batch_results import Results, match_results
from counterbalance.batch_words import come_back, in_all, still_out
from counterbalance.config.vendors import Account
from counterbalance.errors import ConfigError, CounterbalanceError, InputError, VendorError, VerificationError
from counterbalance.exchange import MOST_REFUSED, Call, Guard, Tally, reply_text
from counterbalance.ledger import Attempt, Ledger, Sending
from counterbalance.ledger.batches import Batches, Closed, OpenBatch
from counterbalance.progress import Progress
from counterbalance.signals import stopping_kindly
from counterbalance.spending import Allowance
from counterbalance.vendors.base import BatchState, BatchVendor, Reply, TransportError
from counterbalance.vendors.batch_ids import BatchGoneError, HopelessError, RunId

# A vendor may list a batch only some time after taking it; until then its absence proves nothing.
_SETTLE_S = 60.0
_LONGEST_PAUSE_S = 3600.0
# Every vendor keeps a batch and its results for this long.
_KEPT = timedelta(days=2)
# Results with unreadable lines are fetched so often in all, this long apart (seconds), before the lines are believed.
_READS, _REREAD_S = 3, 1.0
# A call that came back in such a way that it may be charged is handed in at most so often in one session.
_PAID_TRIES = 2


async def run_batches(
    vendor: BatchVendor,
    ledger: Ledger,
    calls: Iterator[Call],
    *,
    frozen_sha256: str,
    progress: Progress,
    guard: Guard,
    allowance: Allowance | None,
    account: Account,
    cell: str,
    place: str,
    settle_s: float = _SETTLE_S,
) -> Tally:
    """Collect what earlier sessions handed in, hand in the rest, and wait for it as long as the account says.

    Parameters
    ----------
    vendor
        Open for asking.
    ledger
        The cell's ledger, open for writing.
    calls
        The cell's calls without a reply, in the order of asking; those that are in a batch already are left out.
    frozen_sha256
        The frozen record under which calls are handed in.
    progress
        Started by the caller; follows the vendor's counts, where it gives any before the end.
    guard
        Called with each reply's status.
    allowance
        Reserves money before a batch is handed in; None where nothing has a price.
    account
        How often to look (`batch_poll_s`), how long to wait (`batch_wait_s`; 0 hands in and leaves), and how often a
        call is handed in in one session (`tries`).
    cell
        Name of the cell, for messages.
    place
        Where batches are handed in, and with which key, in words.
    settle_s
        How old an intention must be before a vendor that does not list the batch is believed (seconds).

    Returns
    -------
    Tally
        `stopped` says when to come back, if batches are still with the vendor.

    Raises
    ------
    ConfigError
        If a batch of an earlier session was handed in elsewhere or with another key.
    VerificationError
        If results came back under ids that were not handed in, or twice under one id.
    VendorError, OutOfFundsError, KeyRefusedError, BudgetError
        If nothing more can be handed in; what the vendor has already is collected by the next session.
    """
    session = _Session(vendor, ledger, frozen_sha256, progress, guard, allowance, account, cell, place, settle_s)
    return await session.run(calls)


@dataclass
class _Session:
    vendor: BatchVendor
    ledger: Ledger
    frozen_sha256: str
    progress: Progress
    guard: Guard
    allowance: Allowance | None
    account: Account
    cell: str
    place: str
    settle_s: float
    tally: Tally = field(default_factory=Tally)
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.batches = Batches(self.ledger, frozen_sha256=self.frozen_sha256)
        self.open = {batch.run_id: batch for batch in self.batches.open()}
        self.counted: dict[str, int] = {}
        self.tries: dict[str, int] = {}
        self.paid: dict[str, int] = {}
        self.ages = Ages()
        self.most = self.vendor.most_requests
        self.refusals, self.not_before = 0, 0.0
        self.stop = asyncio.Event()
        self.deadline = time.monotonic() + self.account.batch_wait_s

    async def run(self, calls: Iterator[Call]) -> Tally:
        for batch in list(self.open.values()):
            if batch.place != self.place:
                raise ConfigError(
                    f"{self.cell}: {batch.calls} calls are in batch {batch.batch_id or batch.run_id}, which was handed "
                    f"in to {batch.place}; the study now says {self.place}, where it cannot be found. Change that back "
                    "and run the same command again to collect it first"
                )
            self.open[batch.run_id] = date_anew(batch, self.ledger, frozen_sha256=self.frozen_sha256)
        held = {key for run_id in self.open for key in self.batches.calls(run_id)}
        self.parts = Parts(calls, held, self.batches.request_text)
        try:
            with stopping_kindly(self._leave):
                while True:
                    await self._look_at_all()
                    await self._hand_in_all()
                    if self._is_over():
                        break
                    await self._pause()
        except CounterbalanceError as error:
            self.error = self.error or error
        if self.allowance is not None:
            self.allowance.admit([], held=self.ledger.held, in_flight=self._in_flight)
        if self.error is not None:
            raise self._explained(self.error)
        if self.tally.stopped is not None:
            self.tally.stopped = "; ".join(filter(None, [self.tally.stopped, *self._left()]))
        return self.tally

    @property
    def _in_flight(self) -> int:
        return in_all(self.open.values())

    @property
    def _halted(self) -> bool:
        return self.error is not None or self.tally.stopped is not None

    def _is_over(self) -> bool:
        """Tell whether to leave."""
        if self._halted or (not self.open and self.parts.is_empty()):
            return True
        # Whether the vendor has a batch at all is worth waiting for, also for who would only hand in and leave.
        doubtful = any(batch.batch_id is None for batch in self.open.values())
        if time.monotonic() < self.deadline + (2 * self.settle_s if doubtful else 0.0):
            return False
        self.tally.stopped = ""
        return True

    async def _look_at_all(self) -> None:
        for batch in list(self.open.values()):
            if self._halted:
                return
            try:
                await self._look(batch)
            except HopelessError as error:
                self._settle(batch, "failed", Results(), error)
                raise error.stop from None
            except TransportError as error:
                self._note(error)
            except BatchGoneError as error:
                raise self._missed(batch, error) from None

    def _missed(self, batch: OpenBatch, error: BatchGoneError) -> BatchGoneError:
        """Give up a batch that the vendor no longer has, but only when it is old enough for that."""
        until = batch.intended_at + _KEPT
        if datetime.now(UTC) < until:
            return BatchGoneError(
                f"{self.cell}: {error}. It was handed in to {self.place} less than two days ago, and vendors keep "
                "batches longer than that: a key of another organisation or project does not see it. Set the right "
                f"key and run the same command again; from {until:%Y-%m-%d %H:%M} UTC on it counts as gone"
            )
        self._close(batch, "gone", [], str(error))
        return BatchGoneError(
            f"{self.cell}: {error}. Its calls may have been paid for and stay charged at their worst case; running the "
            "same command again buys them anew"
        )

    async def _look(self, batch: OpenBatch) -> None:
        batch_id = batch.batch_id or await self._find(batch)
        if batch_id is None:
            return
        state = await self.vendor.state(batch_id)
        self._show(batch, state)
        if state.failed is not None:
            why = TransportError(f"the vendor did not take the batch: {state.failed}")
            self._settle(batch, "failed", Results(), why)
            raise VendorError(
                f"{self.cell}: the vendor did not take batch {batch_id} of {batch.calls} calls: {state.failed}. "
                "Nothing of it was charged; correct what it complains of and run the same command again"
            )
        if state.status == "queue_full":
            full = TransportError("the vendor's queue was full", kind="rate_limit")
            self.parts.again(self._settle(batch, "failed", Results(), full))
            self._put_off(batch.calls, 0.0)
        elif state.done:
            await self._collect(batch, batch_id, state)

    async def _find(self, batch: OpenBatch) -> str | None:
        """Ask the vendor for a batch of which only the intention is on disk; give it up if the vendor has none."""
        batch_id = await self.vendor.find(batch.run_id)
        if batch_id is not None:
            self.open[batch.run_id] = self.batches.submitted(batch, batch_id)
        elif self.ages.of(batch) >= self.settle_s:
            why = TransportError("the vendor has no batch of that name")
            self._again(self._settle(batch, "absent", Results(), why))
        return batch_id

    async def _results(self, batch: OpenBatch, batch_id: str) -> Results:
        """Fetch what a batch brought, a few times if lines of it cannot be read."""
        run = RunId.parse(batch.run_id)
        ids = {run.custom_id(key): key for key in self.batches.calls(batch.run_id)}
        example = request_of(self.batches.request_text(next(iter(ids.values()))))
        for left in reversed(range(_READS)):
            results = await match_results(self.vendor.results(batch_id, example), ids)
            if left and results.unreadable is not None:
                await asyncio.sleep(min(_REREAD_S, self.account.batch_poll_s))
                continue
            break
        if not results.looks_whole(len(ids)) and self.ages.of(batch) < _KEPT.total_seconds():
            raise TransportError(
                f"what came as results of batch {batch_id} is cut or something else: {results.unreadable}; it is read "
                "again at the next look"
            )
        return results

    async def _collect(self, batch: OpenBatch, batch_id: str, state: BatchState) -> None:
        results = await self._results(batch, batch_id)
        self._judge_refusals(results)
        # What a vendor did not get to is not charged; what it lost without a word, or behind a line that says nothing,
        # may be.
        lost = state.status not in ("expired", "cancelled") or len(results.broken) > len(results.raw)
        absent = TransportError(f"the batch ended ({state.status}) without this call", maybe_billed=lost)
        state_after: Closed = "collected" if results.complaint is None else "disputed"
        missing = self._settle(batch, state_after, results, absent)
        said = "; ".join(filter(None, [results.complaint, results.unreadable]))
        if results.complaint is not None:
            raise VerificationError(
                f"{self.cell}: batch {batch_id} came back wrong: {said}. The other {len(results.found)} results are "
                "saved, and the lines in question are in the ledger; ask the vendor what happened. Running the same "
                "command again buys the others anew"
            )
        if said:
            self.tally.last_error = f"batch {batch_id}: {said}"
        self.refusals = 0
        if results.stop is not None:
            raise results.stop
        if state.status == "cancelled":
            self.tally.stopped = f"batch {batch_id} was cancelled at the vendor; what it had answered is saved"
        self._again(missing)

    def _judge_refusals(self, results: Results) -> None:
        """Let a refusal be the call's reply if the vendor answers other calls with these parameters."""
        refused = results.refused
        if not refused or MOST_REFUSED <= len(refused) > results.answers:
            return
        parameters = request_of(self.batches.request_text(next(iter(refused)))).parameters
        if results.answers or self.ledger.has_answered(parameters):
            results.found.update({key: stop.reply for key, stop in refused.items()})

    def _settle(self, batch: OpenBatch, state: Closed, results: Results, absent: TransportError) -> list[str]:
        """Save what became of a batch and its calls, in one transaction; return the calls that are still unanswered."""
        ended: list[Attempt] = []
        statuses: list[str] = []
        missing: list[str] = []
        for key, attempt in self.batches.calls(batch.run_id).items():
            if key in self.ledger.answered:
                continue
            outcome = results.found.get(key, absent)
            end = self._end(key, outcome, results.raw.get(key))
            if isinstance(outcome, Reply) and end.reply is not None:
                ended.append(end)
                statuses.append(outcome.status)
                continue
            missing.append(key)
            self.paid[key] = self.paid.get(key, 0) + end.maybe_billed
            self.tally.last_error = str(outcome)
            # Who has asked for it live since then has a newer attempt, which is not this batch's to end.
            if self.ledger.attempts(key) == attempt:
                ended.append(end)
        said = results.account_of_lines or (str(absent) if missing else None)
        self._close(batch, state, ended, said)
        self.tally.answered += len(statuses)
        self.tally.transport_errors += len(missing)
        ahead = self.counted.pop(batch.run_id, 0)
        self.progress.advance(max(0, len(statuses) - ahead))
        if self.allowance is not None:
            self.progress.spend(self.ledger.held)
        try:
            for status in statuses:
                self.guard(status)
        except CounterbalanceError as error:
            self.error = self.error or error
        return missing

    def _close(self, batch: OpenBatch, state: Closed, ended: Sequence[Attempt], detail: str | None) -> None:
        self.batches.close(batch, state, ended, detail)
        del self.open[batch.run_id]
        # Its place in the vendor's queue is free.
        self.not_before = 0.0

    def _end(self, key: str, outcome: Reply | TransportError, raw: str | None) -> Attempt:
        bounds = self.vendor.bounds(request_of(self.batches.request_text(key)))
        if isinstance(outcome, Reply):
            try:
                text = reply_text(outcome)
            except InputError as error:
                outcome = TransportError(str(error), kind="garbled", maybe_billed=True)
            else:
                charged = None if self.allowance is None else self.allowance.charge(outcome, bounds)
                return Attempt(key, "answered", reply=text, charged_nano_usd=charged)
        billed = outcome.maybe_billed
        charged = None if self.allowance is None else self.allowance.worst(bounds) if billed else 0
        detail = str(outcome) if raw is None else f"{outcome}; the line: {raw}"
        return Attempt(key, "transport_error", detail=detail, charged_nano_usd=charged, maybe_billed=billed)

    def _again(self, missing: Sequence[str]) -> None:
        again = []
        for key in missing:
            self.tries[key] = self.tries.get(key, 0) + 1
            if self.tries[key] < self.account.tries and self.paid.get(key, 0) < _PAID_TRIES:
                again.append(key)
        self.tally.given_up += len(missing) - len(again)
        self.parts.again(again)

    async def _hand_in_all(self) -> None:
        while not self._halted and time.monotonic() >= self.not_before:
            part = self._admitted(self.parts.take(min(self.most, self.vendor.most_requests), self.vendor.most_bytes))
            if not part:
                return
            await self._hand_in(part)
            # Signals are heard only while nothing runs.
            await asyncio.sleep(0)

    def _admitted(self, part: Sequence[Ready]) -> Sequence[Ready]:
        """Return as many calls as there is money for now; the others go back."""
        if self.allowance is None or not part:
            return part
        wanted = [self.vendor.bounds(ready.request) for ready in part]
        held = self.ledger.held
        admission = self.allowance.admit(wanted, held=held, in_flight=self._in_flight)
        self.tally.last_error = admission.paused or self.tally.last_error
        self.parts.give_back(part[admission.granted :])
        return part[: admission.granted]

    async def _hand_in(self, part: Sequence[Ready]) -> None:
        run = RunId.new(len(part))
        allowance = self.allowance
        batch = self.batches.intend(
            str(run),
            [
                Sending(
                    ready.key,
                    ready.text,
                    None if allowance is None else allowance.worst(self.vendor.bounds(ready.request)),
                )
                for ready in part
            ],
            place=self.place,
        )
        self.open[batch.run_id] = batch
        self.tally.sent += len(part)
        try:
            batch_id = await self.vendor.submit(
                batch.run_id, [(run.custom_id(ready.key), ready.request) for ready in part]
            )
        except TransportError as error:
            self._note(error)
            # Otherwise nobody knows whether the vendor has it; that is found out at the next look.
            if error.kind == "rate_limit":
                self.parts.again(self._settle(batch, "failed", Results(), error))
                self._put_off(len(part), error.wait_s or 0.0)
        except CounterbalanceError as error:
            self._settle(batch, "failed", Results(), TransportError(str(error)))
            raise
        else:
            self.open[batch.run_id] = self.batches.submitted(batch, batch_id)

    def _put_off(self, calls: int, wait_s: float) -> None:
        """Wait until the vendor's queue has room again, and make batches smaller if even one alone does not fit."""
        if not self.open:
            self.most = max(1, calls // 2)
        self.refusals += 1
        pause = min(self.account.batch_poll_s * 2.0 ** (self.refusals - 1), _LONGEST_PAUSE_S)
        self.not_before = time.monotonic() + max(wait_s, pause)

    def _note(self, error: TransportError) -> None:
        self.tally.last_error = str(error)
        if error.wait_s is not None and self.allowance is not None:
            self.allowance.pause(error.wait_s)

    def _show(self, batch: OpenBatch, state: BatchState) -> None:
        """Let the progress follow the vendor's count of what is done."""
        known = self.counted.get(batch.run_id, 0)
        done = state.counts.get("completed", 0)
        if done > known:
            self.counted[batch.run_id] = done
            self.progress.advance(done - known)

    async def _pause(self) -> None:
        seconds = self.account.batch_poll_s * random.uniform(0.8, 1.2)
        left = self.deadline - time.monotonic()
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, left) if left > 0 else seconds):
                await self.stop.wait()

    def _left(self) -> list[str]:
        """Say what is at the vendor, and what is not handed in yet."""
        said = [come_back(list(self.open.values()), self.tally.last_error)] if self.open else []
        if not self.parts.is_empty():
            said.append(f"some calls are not handed in yet ({self.tally.last_error or 'no room under the cap'})")
        return said

    def _explained(self, error: Exception) -> Exception:
        if not self.open or not isinstance(error, CounterbalanceError):
            return error
        return type(error)(still_out(str(error), list(self.open.values())))

    def _leave(self, why: str) -> None:
        self.tally.stopped = why
        self.stop.set()
