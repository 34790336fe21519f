"""What servers do to a run: rate limits, overload, silence, refusals, and the money behind each of them."""

import asyncio
import contextlib
import sqlite3
import time
from pathlib import Path

import pytest
from query_cases import FROZEN, ScriptedVendor, make_study, trial_rows

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.calls import plan_calls, unanswered_calls
from counterbalance.engine import Engine, RetryPolicy
from counterbalance.errors import BudgetError, InputError, KeyRefusedError, OutOfFundsError
from counterbalance.exchange import Tally
from counterbalance.ledger import Ledger, read_spent
from counterbalance.progress import SilentProgress
from counterbalance.spending import Admission
from counterbalance.vendors.base import Reply, TransportError

AT_ONCE = RetryPolicy(tries=6, pause_s=0.0)
WORST = 30
CHARGE = 12


class Purse:
    """An allowance that keeps a cap and notes what it was told."""

    def __init__(self, cap: int | None = None) -> None:
        self.cap = cap
        self.pauses: list[float] = []
        self.held: list[int] = []

    def worst(self, bounds) -> int:
        return WORST

    def charge(self, reply, bounds) -> int:
        return CHARGE if reply.output_tokens is not None else WORST

    def admit(self, wanted, *, held, in_flight) -> Admission:
        granted = len(wanted)
        if self.cap is not None:
            granted = max(0, min(granted, (self.cap - held) // WORST))
            if wanted and not granted and not in_flight:
                raise BudgetError("the cap is too low")
        self.held.append(held + granted * WORST)
        return Admission(granted)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


class Timed(ScriptedVendor):
    """Notes when each call was sent; a call takes `latency` seconds."""

    def __init__(self, *arguments, latency: float = 0.0, **settings) -> None:
        super().__init__(*arguments, **settings)
        self.latency = latency
        self.times: list[float] = []
        self.began = time.monotonic()

    async def ask(self, request, trial):
        self.times.append(time.monotonic() - self.began)
        if self.latency:
            await asyncio.sleep(self.latency)
        return await super().ask(request, trial)


class Run:
    def __init__(self, root: Path, items: int) -> None:
        self.cell = next(iter(make_study(root).cells()))
        self.trials = table_from_rows(trial_rows(items), SCHEMAS["trials"])
        self.path = root / "ledger.sqlite"
        self.engine: Engine | None = None

    def __call__(self, vendor, *, retry: RetryPolicy = AT_ONCE, allowance=None) -> Tally:
        with Ledger(self.path, study="tiny", cell=self.cell.name) as ledger:
            plan = plan_calls(vendor, self.cell, self.trials, ledger.answered, seed=7)
            engine = self.engine = Engine(
                vendor,
                ledger,
                frozen_sha256=FROZEN,
                progress=SilentProgress(),
                guard=lambda status: None,
                retry=retry,
                allowance=allowance,
            )
            return asyncio.run(engine.run(unanswered_calls(vendor, self.cell, self.trials, plan)))

    def rows(self, what: str, where: str = "1") -> list[tuple]:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(
                f"SELECT {what} FROM attempts JOIN calls USING (call_order) WHERE {where}"
            ).fetchall()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path, 5)


def answer() -> Reply:
    return Reply("ok", text="A", input_tokens=80, output_tokens=2)


@pytest.mark.parametrize("kind", ["rate_limit", "overload"])
def test_a_rate_limit_holds_back_the_whole_lane_and_all_processes(run: Run, kind) -> None:
    limited = TransportError("slow down", kind=kind, wait_s=0.25)
    vendor, purse = Timed({"i001": [limited, "A"]}, max_in_flight=1), Purse()
    tally = run(vendor, allowance=purse)
    assert (tally.answered, tally.transport_errors) == (30, 6)
    limited_at = [n for n, trial in enumerate(vendor.asked) if trial[:4] == "i001" and trial not in vendor.asked[:n]]
    assert len(limited_at) == len(purse.pauses) == 6
    assert all(vendor.times[n + 1] - vendor.times[n] >= 0.25 for n in limited_at)
    assert all(0.25 <= pause < 4.0 for pause in purse.pauses)


def test_another_trouble_holds_back_one_call_only(run: Run) -> None:
    # Long enough for all others to be sent meanwhile on a busy machine.
    reset = TransportError("reset", kind="connection", wait_s=2.5)
    vendor, purse = Timed({"i000": [reset, "A"]}, max_in_flight=4), Purse()
    assert run(vendor, allowance=purse).answered == 30
    assert purse.pauses == []
    assert len(set(vendor.asked[:30])) == 30
    assert sum(at >= 2.5 for at in vendor.times) >= 6


def test_overload_beyond_all_tries_leaves_calls_pending(run: Run) -> None:
    overloaded = TransportError("overloaded", kind="overload", wait_s=0.0)
    vendor = ScriptedVendor({"i001": [overloaded] * 12 + ["A"]})
    first = run(vendor, retry=RetryPolicy(tries=5, pause_s=0.0, longest_pause_s=0.001))
    assert (first.answered, first.given_up) == (24, 6)
    assert run.rows("count(*)", "outcome = 'transport_error' AND charged_nano_usd IS NULL") == [(30,)]


def test_no_call_is_sent_again_after_its_deadline(run: Run) -> None:
    late = TransportError("later", kind="server", wait_s=0.7)
    vendor = Timed({"i001": [late]}, max_in_flight=30)
    tally = run(vendor, retry=RetryPolicy(tries=20, pause_s=0.0, deadline_s=2.0))
    assert (tally.answered, tally.given_up) == (24, 6)
    sendings = [vendor.asked.count(trial) for trial in set(vendor.asked) if trial.startswith("i001")]
    assert all(2 <= count <= 3 for count in sendings)


def test_a_wait_beyond_the_deadline_ends_the_session_at_once(run: Run) -> None:
    closed = TransportError("come back tomorrow", kind="rate_limit", wait_s=3600.0)
    vendor = Timed({"i001": [closed]}, max_in_flight=2)
    tally = run(vendor, retry=RetryPolicy(tries=6, deadline_s=900.0))
    assert "asks to wait 3600 s" in str(tally.stopped)
    assert vendor.times[-1] < 60.0
    assert len(vendor.asked) == 6 + tally.transport_errors == len(run.rows("1"))


def test_a_server_that_asked_for_nothing_is_not_said_to_have_asked(run: Run) -> None:
    vendor = ScriptedVendor({f"i00{n}": [TransportError("HTTP 429", kind="rate_limit")] for n in range(5)})
    tally = run(vendor, retry=RetryPolicy(tries=20, pause_s=0.0, deadline_s=1e-9))
    assert "without a hint, mean to wait" in str(tally.stopped)


def test_a_pause_that_an_earlier_session_was_told_ends_this_one_at_once(run: Run) -> None:
    class Paused(Purse):
        def admit(self, wanted, *, held, in_flight) -> Admission:
            return Admission(0, 86_000.0, "the vendor asked to wait a day") if wanted else Admission(0)

    vendor = ScriptedVendor()
    assert run(vendor, allowance=Paused()).stopped == "the vendor asked to wait a day"
    assert vendor.asked == []


def test_a_sending_ends_after_its_time_however_the_server_drips(run: Run) -> None:
    class Dripping(ScriptedVendor):
        async def ask(self, request, trial):
            while trial.item_id == "i001" and not self.asked.count(trial.trial_id):
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    self.asked.append(trial.trial_id)
                    raise
            return await super().ask(request, trial)

    vendor = Dripping({"i001": [answer()] * 2}, max_in_flight=30)
    tally = run(vendor, retry=RetryPolicy(tries=2, pause_s=0.0, timeout_s=2.0), allowance=Purse())
    assert (tally.answered, tally.transport_errors) == (30, 6)
    timed_out = run.rows("detail, maybe_billed, charged_nano_usd", "outcome = 'transport_error'")
    assert timed_out == [("no reply within 2 s (timeout_s)", 1, WORST)] * 6


def test_a_call_is_sent_three_times_at_most_if_each_may_have_been_billed(run: Run) -> None:
    late = TransportError("no reply", kind="timeout", maybe_billed=True)
    vendor = ScriptedVendor({"i001": [late]})
    tally = run(vendor, retry=RetryPolicy(tries=6, pause_s=0.0), allowance=Purse())
    assert (tally.given_up, tally.transport_errors) == (6, 18)
    assert read_spent(run.path).maybe_billed == 18


def test_a_purse_that_cannot_be_used_costs_no_reply(run: Run) -> None:
    class Broken(Purse):
        def admit(self, wanted, *, held, in_flight) -> Admission:
            if wanted and len(self.held) == 3:
                raise InputError("purse.sqlite: disk full")
            return super().admit(wanted, held=held, in_flight=in_flight)

    vendor = ScriptedVendor(max_in_flight=2)
    with pytest.raises(InputError, match="disk full"):
        run(vendor, allowance=Broken())
    assert len(run.rows("1", "outcome = 'answered'")) == len(run.rows("1")) == len(vendor.asked) > 0


def test_it_backs_off_until_the_server_can_bear_it_and_recovers(tmp_path: Path) -> None:
    class Frail(Timed):
        most = 6
        turned_down = 0

        async def ask(self, request, trial):
            if self.under_way >= self.most:
                self.turned_down += 1
                raise TransportError("overloaded", kind="overload")
            self.under_way += 1
            await asyncio.sleep(0.002)
            self.under_way -= 1
            return await super().ask(request, trial)

    run = Run(tmp_path, 100)
    vendor = Frail(max_in_flight=64)
    retry = RetryPolicy(tries=20, pause_s=0.001, longest_pause_s=0.002)
    assert run(vendor, retry=retry).answered == 600
    assert vendor.turned_down < 200
    assert run.engine is not None
    assert 1 <= run.engine._lane.limit <= 12
    vendor.most = 1000
    vendor.model = "m2"
    assert run(vendor, retry=retry).answered == 600
    assert run.engine._lane.limit == 64


@pytest.mark.parametrize("kind", [KeyRefusedError, OutOfFundsError])
def test_a_dead_key_or_an_empty_account_costs_few_calls(tmp_path: Path, kind) -> None:
    run = Run(tmp_path, 40)
    vendor = ScriptedVendor({f"i{item:03d}": [kind("no")] for item in range(40)}, max_in_flight=100)
    with pytest.raises(kind, match="no"):
        run(vendor, allowance=Purse())
    assert len(vendor.asked) <= 4
    assert run.rows("outcome, charged_nano_usd") == [("transport_error", 0)] * len(vendor.asked)


def test_what_was_under_way_when_the_money_ended_is_saved(tmp_path: Path) -> None:
    class Emptied(Timed):
        async def ask(self, request, trial):
            if len(self.times) == 40:
                self.times.append(0.0)
                raise OutOfFundsError("no credit left")
            return await super().ask(request, trial)

    run = Run(tmp_path, 40)
    vendor, purse = Emptied({f"i{item:03d}": [answer()] for item in range(40)}, max_in_flight=16, latency=0.01), Purse()
    with pytest.raises(OutOfFundsError):
        run(vendor, allowance=purse)
    assert len(vendor.times) < 41 + 16
    assert len(run.rows("1", "outcome = 'answered'")) == len(vendor.asked)
    assert len(run.rows("1")) == len(vendor.asked) + 1
    assert read_spent(run.path).nano_usd == purse.held[-1] == CHARGE * len(vendor.asked)


def test_a_fault_of_the_code_leaves_the_attempt_unknown_and_its_money_held(run: Run) -> None:
    vendor, purse = ScriptedVendor({"i001": [ValueError("boom")]}, max_in_flight=1), Purse()
    with pytest.raises(ValueError, match="boom"):
        run(vendor, allowance=purse)
    assert run.rows("outcome, charged_nano_usd, worst_nano_usd", "detail IS NOT NULL") == [("unknown", None, WORST)]
    assert purse.held[-1] == 6 * WORST + WORST


@pytest.mark.parametrize("in_flight", [1, 4, 16])
def test_a_cap_is_never_exceeded_and_all_of_it_is_used(run: Run, in_flight: int) -> None:
    cap = 100
    vendor = Timed({f"i{item:03d}": [answer()] for item in range(5)}, max_in_flight=in_flight, latency=0.003)
    purse = Purse(cap)
    with pytest.raises(BudgetError):
        run(vendor, allowance=purse)
    assert max(purse.held) <= cap
    assert vendor.most_under_way <= cap // WORST
    # At 12 a call and 30 at worst: after six calls 72 are spent, which leaves no room for a seventh.
    assert len(vendor.asked) == 6
    assert read_spent(run.path).nano_usd == purse.held[-1] == 72
    purse.cap = 1000
    assert run(vendor, allowance=purse).answered == 24


def test_charges_follow_usage_and_are_the_worst_case_without_it(run: Run) -> None:
    vendor = ScriptedVendor({"i001": [Reply("ok", text="A")]} | {f"i{n:03d}": [answer()] for n in (0, 2, 3, 4)})
    run(vendor, allowance=Purse())
    assert read_spent(run.path).nano_usd == 24 * CHARGE + 6 * WORST
    assert read_spent(run.path).at_worst == 6


def test_a_failed_request_is_rolled_again_and_a_refusal_is_not(run: Run) -> None:
    failed = TransportError("HTTP 500", kind="server")
    vendor = ScriptedVendor({"i001": [failed, "B"], "i002": [Reply("refused", text="no"), "B"]})
    assert run(vendor).answered == 30
    texts = set(run.rows("json_extract(reply, '$.text')", "outcome = 'answered'"))
    assert texts == {("A",), ("B",), ("no",)}
    assert run.rows("count(*)", "json_extract(reply, '$.text') = 'no'") == [(6,)]
    assert run(vendor).sent == 0
