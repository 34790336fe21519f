import asyncio
import contextlib
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from query_cases import FROZEN, ScriptedVendor, make_study, no_reply, trial_rows

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.calls import order_key, plan_calls, unanswered_calls
from counterbalance.engine import Engine, RetryPolicy
from counterbalance.errors import InputError, VendorError
from counterbalance.exchange import Tally, reply_text
from counterbalance.keys import redact
from counterbalance.ledger import Ledger, answered_keys, read_answered
from counterbalance.progress import SilentProgress
from counterbalance.vendors.base import Reply, TransportError

AT_ONCE = RetryPolicy(pause_s=0.0)
SENDINGS = "(SELECT count(*) FROM attempts WHERE attempts.call_order = calls.call_order)"


def no_guard(status: str) -> None:
    return


class Session:
    """One ledger, asked as often as a test likes."""

    def __init__(self, root: Path, rows: list[dict]) -> None:
        self.cell = next(iter(make_study(root).cells()))
        self.trials = table_from_rows(rows, SCHEMAS["trials"])
        self.path = root / "ledger.sqlite"

    def run(self, vendor: ScriptedVendor, guard=no_guard, retry: RetryPolicy = AT_ONCE, allowance=None) -> Tally:
        with Ledger(self.path, study="tiny", cell=self.cell.name) as ledger:
            plan = plan_calls(vendor, self.cell, self.trials, ledger.answered, seed=7)
            engine = Engine(
                vendor,
                ledger,
                frozen_sha256=FROZEN,
                progress=SilentProgress(),
                guard=guard,
                retry=retry,
                allowance=allowance,
            )
            return asyncio.run(engine.run(unanswered_calls(vendor, self.cell, self.trials, plan)))

    def count(self, table: str, where: str = "1") -> int:
        with contextlib.closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(f"SELECT count(*) FROM {table} WHERE {where}").fetchone()[0]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path, trial_rows(5))


def test_every_call_is_sent_once_and_saved(session: Session) -> None:
    vendor = ScriptedVendor(max_in_flight=4)
    tally = session.run(vendor)
    assert (tally.sent, tally.answered, tally.transport_errors) == (30, 30, 0)
    assert sorted(vendor.asked) == session.trials.column("trial_id").to_pylist()
    assert session.count("calls", "reply IS NOT NULL") == session.count("attempts", "outcome = 'answered'") == 30
    assert session.run(vendor).sent == 0


@pytest.mark.parametrize("limit", [1, 3, 16])
def test_no_more_calls_are_under_way_than_the_vendor_allows(session: Session, limit: int) -> None:
    vendor = ScriptedVendor(max_in_flight=limit)
    session.run(vendor)
    assert vendor.most_under_way == limit


def test_calls_are_taken_as_they_are_needed(session: Session) -> None:
    vendor = ScriptedVendor(max_in_flight=2)
    taken = []

    def watched(calls):
        for call in calls:
            taken.append(len(vendor.asked))
            yield call

    with Ledger(session.path, study="tiny", cell=session.cell.name) as ledger:
        plan = plan_calls(vendor, session.cell, session.trials, ledger.answered, seed=7)
        engine = Engine(vendor, ledger, frozen_sha256=FROZEN, progress=SilentProgress(), guard=no_guard)
        calls = watched(unanswered_calls(vendor, session.cell, session.trials, plan))
        asyncio.run(engine.run(calls))
    assert all(index - asked <= 2 for index, asked in enumerate(taken))


def test_trial_order_where_prefixes_are_shared_and_mixed_order_elsewhere(session: Session) -> None:
    ids = session.trials.column("trial_id").to_pylist()
    ordered, mixed, again = (ScriptedVendor(max_in_flight=1, ordered=kind) for kind in (True, False, False))
    session.run(ordered)
    assert ordered.asked == ids
    for vendor, name in ((mixed, "mixed"), (again, "again")):
        session.path = session.path.with_name(f"{name}.sqlite")
        session.run(vendor)
    assert mixed.asked == again.asked == sorted(ids, key=lambda trial: order_key(7, trial))
    assert mixed.asked != ids
    assert sorted(ids, key=lambda trial: order_key(8, trial)) != mixed.asked
    items = [trial[:4] for trial in mixed.asked]
    assert len(set(items[:10])) >= 3


def test_the_order_of_sending_is_kept(session: Session) -> None:
    vendor = ScriptedVendor(max_in_flight=1, ordered=False)
    session.run(vendor)
    keys = {vendor.request(call.trial).sha256: call.trial.trial_id for call in pending(session, vendor)}
    found = read_answered(session.path, list(keys))
    by_order = sorted(found.values(), key=lambda call: call.call_order)
    assert [keys[call.call_sha256] for call in by_order] == vendor.asked
    assert [call.call_order for call in by_order] == list(range(30))


def pending(session: Session, vendor: ScriptedVendor):
    plan = plan_calls(vendor, session.cell, session.trials, set(), seed=7)
    return unanswered_calls(vendor, session.cell, session.trials, plan)


def test_a_transport_error_is_tried_again_and_never_kept_as_an_answer(session: Session) -> None:
    vendor = ScriptedVendor({"i001": [no_reply(), no_reply(), "B"]})
    tally = session.run(vendor)
    assert (tally.answered, tally.transport_errors, tally.given_up, tally.sent) == (30, 12, 0, 42)
    assert session.count("attempts") == 42
    assert session.count("attempts", "outcome = 'transport_error' AND detail LIKE 'connection reset%'") == 12
    assert session.count("calls", f"{SENDINGS} = 3 AND json_extract(reply, '$.text') = 'B'") == 6


def test_after_three_tries_a_call_stays_pending_until_the_next_session(session: Session) -> None:
    vendor = ScriptedVendor({"i001": [no_reply()] * 4 + ["B"]})
    tally = session.run(vendor)
    assert (tally.answered, tally.given_up, tally.transport_errors) == (24, 6, 18)
    assert tally.last_error == "connection reset after 150 ms"
    assert len(answered_keys(session.path)) == 24
    again = session.run(vendor)
    assert (again.sent, again.answered, again.given_up) == (12, 6, 0)
    assert session.count("calls", f"{SENDINGS} = 5") == 6


def test_later_attempts_are_numbered_over_all_sessions(session: Session) -> None:
    seen: list[int] = []

    class Counting(ScriptedVendor):
        async def ask(self, request, trial):
            if trial.item_id == "i001":
                seen.append(trial.facts.get("attempt", 1))
            return await super().ask(request, trial)

    vendor = Counting({"i001": [no_reply()] * 4 + ["B"]}, max_in_flight=1)
    session.run(vendor)
    session.run(vendor)
    assert sorted(seen) == sorted([1, 2, 3, 4, 5] * 6)


@pytest.mark.parametrize(
    "reply",
    [
        Reply("refused", text="I can't help with that."),
        Reply("blocked", reason="content_filter"),
        Reply("empty", text=""),
        Reply("truncated", text="B because", finish_reason="length"),
    ],
    ids=lambda reply: reply.status,
)
def test_refused_blocked_empty_and_cut_replies_are_final(session: Session, reply: Reply) -> None:
    vendor = ScriptedVendor({"i001": [reply, "B"]})
    assert session.run(vendor).answered == 30
    assert session.run(vendor).sent == 0
    assert session.count("calls", f"json_extract(reply, '$.status') = '{reply.status}'") == 6


def test_two_models_with_one_prompt_are_two_calls(session: Session) -> None:
    vendor = ScriptedVendor()
    session.run(vendor)
    vendor.model = "m2"
    assert session.run(vendor).sent == 30
    assert session.count("calls", "json_extract(request, '$.model') = 'm2'") == 30


def test_equal_requests_share_one_call_and_repeats_do_not(tmp_path: Path) -> None:
    session = Session(tmp_path, trial_rows(4, repeats=2, same_prompt=True))
    vendor = ScriptedVendor()
    plan = plan_calls(vendor, session.cell, session.trials, set(), seed=7)
    assert (len(plan.keys), plan.calls, len(plan.pending)) == (48, 12, 12)
    assert session.run(vendor).sent == 12
    assert session.run(vendor).sent == 0


def test_what_the_vendor_cannot_do_stops_the_rest_but_keeps_what_came_back(session: Session) -> None:
    vendor = ScriptedVendor({"i002": [VendorError("model m1 is gone; choose another")]}, max_in_flight=4)
    with pytest.raises(VendorError, match="m1 is gone"):
        session.run(vendor)
    answered = session.count("calls", "reply IS NOT NULL")
    assert 12 <= answered < 30
    assert answered == sum(trial[:4] != "i002" for trial in vendor.asked)
    assert session.count("attempts", "outcome = 'transport_error' AND detail LIKE 'VendorError: model m1%'") >= 1
    assert session.count("attempts", "outcome = 'unknown'") == 0
    assert session.count("attempts") == len(vendor.asked)


def test_a_guard_stops_the_cell_after_saving_what_was_under_way(session: Session) -> None:
    seen: list[str] = []

    def guard(status: str) -> None:
        seen.append(status)
        if len(seen) == 10:
            raise VendorError("enough")

    vendor = ScriptedVendor(max_in_flight=4)
    with pytest.raises(VendorError, match="enough"):
        session.run(vendor, guard=guard)
    assert session.count("calls", "reply IS NOT NULL") == len(vendor.asked) < 30


def test_a_vendor_that_is_down_is_not_hammered(tmp_path: Path) -> None:
    session = Session(tmp_path, trial_rows(40))
    vendor = ScriptedVendor({f"i{item:03d}": [no_reply()] for item in range(40)}, max_in_flight=2)
    tally = session.run(vendor)
    assert tally.stopped == "20 calls in a row failed at every try"
    assert len(vendor.asked) < 240 == session.trials.num_rows


def test_a_call_waits_before_it_is_sent_again_while_others_go_on(session: Session) -> None:
    vendor = ScriptedVendor({"i000": [TransportError("later", kind="server", wait_s=1.0), "A"]}, max_in_flight=2)
    began = time.monotonic()
    tally = session.run(vendor)
    assert tally.answered == 30
    assert time.monotonic() - began >= 1.0
    assert vendor.asked[6].startswith("i001")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_kindly(session: Session, number: signal.Signals) -> None:
    class Interrupted(ScriptedVendor):
        async def ask(self, request, trial):
            if len(self.asked) == 8:
                os.kill(os.getpid(), number)
            return await super().ask(request, trial)

    vendor = Interrupted(max_in_flight=3)
    before = signal.getsignal(number)
    tally = session.run(vendor)
    assert tally.stopped == f"stopped by {number.name}"
    assert signal.getsignal(number) == before
    assert 9 <= len(vendor.asked) < 30
    assert session.count("calls", "reply IS NOT NULL") == len(vendor.asked) == tally.answered
    assert session.count("attempts") == len(vendor.asked)
    assert session.run(ScriptedVendor()).answered == 30 - tally.answered


def test_a_broken_list_of_calls_loses_no_reply(session: Session) -> None:
    vendor = ScriptedVendor(max_in_flight=2)

    def broken(calls):
        for index, call in enumerate(calls):
            if index == 7:
                raise InputError("row 7 is odd")
            yield call

    with Ledger(session.path, study="tiny", cell=session.cell.name) as ledger:
        engine = Engine(vendor, ledger, frozen_sha256=FROZEN, progress=SilentProgress(), guard=no_guard)
        with pytest.raises(InputError, match="row 7"):
            asyncio.run(engine.run(broken(pending(session, vendor))))
    assert session.count("calls", "reply IS NOT NULL") == session.count("attempts") == len(vendor.asked) > 3


def test_a_lone_surrogate_does_not_cost_the_reply() -> None:
    text = reply_text(Reply("ok", text="B \ud83d", top_tokens=["\udc00", "\U0001f600"], reason=None))
    assert '"text":"B \ufffd"' in text
    assert '"top_tokens":["\ufffd","\U0001f600"]' in text
    assert '"reason":"lone surrogates written as U+FFFD"' in text


def test_a_key_that_was_written_in_escapes_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redact, "_secrets", ["canary/key=0123456789"])
    text = reply_text(Reply("ok", text="It is canary/key=0123456789.", top_tokens=["canary/key=0123456789"]))
    assert "canary" not in text
    assert '"text":"It is [key]."' in text


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError):
        reply_text(Reply("ok", top_tokens=["A"], top_logprobs=[float("-inf")]))
