"""Batches: everything is bought once, whatever happens on the way; what is missing, and only that, is bought again."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from batch_cases import USAGE, Depot, DepotVendor, Killed, Purse, call, echo, fuse, replies, session

import counterbalance
from counterbalance import batch
from counterbalance.batch_parts import ENVELOPE_BYTES
from counterbalance.errors import (
    BudgetError,
    ConfigError,
    InputError,
    KeyRefusedError,
    OutOfFundsError,
    VendorError,
    VerificationError,
)
from counterbalance.ledger import Ledger
from counterbalance.ledger.batches import Batches
from counterbalance.vendors.base import Reply, TransportError
from counterbalance.vendors.batch_ids import BatchGoneError, HopelessError, RunId

N = 5


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cell.sqlite"


def complete(n: int = N) -> dict[str, str]:
    return {f"prompt {i}": f"re prompt {i}" for i in range(n)}


def rows(path: Path, query: str) -> list[tuple]:
    with Ledger(path, study="s", cell="c") as ledger:
        return ledger.select(query)


def test_a_session_buys_everything_once(path: Path) -> None:
    depot = Depot(looks=2)
    tally = session(path, DepotVendor(depot), N)
    assert (tally.sent, tally.answered, tally.stopped, tally.given_up) == (N, N, None, 0)
    assert replies(path, N) == complete()
    assert set(depot.bought.values()) == {1}
    assert rows(path, "SELECT state, batch_id, calls FROM batches") == [("collected", "batch-0", N)]


def test_results_in_any_order_reach_their_own_calls(path: Path) -> None:
    session(path, DepotVendor(Depot(shuffled=True)), 20)
    assert replies(path, 20) == complete(20)


def test_hand_in_and_leave_then_collect(path: Path) -> None:
    depot = Depot(looks=1)
    tally = session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    assert (tally.sent, tally.answered) == (N, 0)
    assert tally.stopped is not None
    assert "batch-0" in tally.stopped
    assert "come back" in tally.stopped
    tally = session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    assert tally.answered == 0
    tally = session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    assert (tally.sent, tally.answered, tally.stopped) == (0, N, None)
    assert set(depot.bought.values()) == {1}


def test_calls_added_while_a_batch_is_out_go_in_one_of_their_own(path: Path) -> None:
    depot = Depot(looks=1)
    session(path, DepotVendor(depot), 3, batch_wait_s=0.0)
    session(path, DepotVendor(depot), N)
    assert [len(batch["lines"]) for batch in depot.batches.values()] == [3, 2]
    assert replies(path, N) == complete()


def test_split_by_count_and_by_bytes(path: Path) -> None:
    depot = Depot()
    vendor = DepotVendor(depot)
    vendor.most_requests = 2
    session(path, vendor, N)
    assert [len(batch["lines"]) for batch in depot.batches.values()] == [2, 2, 1]
    vendor.most_requests = 100
    vendor.most_bytes = 3 * (len(call(vendor, 5).text) + ENVELOPE_BYTES)
    session(path, vendor, N + 4)
    assert [len(batch["lines"]) for batch in depot.batches.values()][3:] == [3, 1]
    assert replies(path, N + 4) == complete(N + 4)


def test_a_request_larger_than_a_batch_goes_alone(path: Path) -> None:
    depot = Depot()
    vendor = DepotVendor(depot)
    vendor.most_bytes = 10
    session(path, vendor, 3)
    assert [len(batch["lines"]) for batch in depot.batches.values()] == [1, 1, 1]


def _with_steps(monkeypatch: pytest.MonkeyPatch, vendor: DepotVendor) -> None:
    """Count the ledger's own steps too: before and after each transaction."""
    for name in ("intend", "submitted", "close"):
        real = getattr(Batches, name)

        def step(self, *args, _real=real, _name=name, **kwargs):
            vendor.on("+" + _name)
            result = _real(self, *args, **kwargs)
            vendor.on("-" + _name)
            return result

        monkeypatch.setattr(Batches, name, step)


def test_killed_at_any_step_nothing_is_bought_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(1, 100):
        path, depot = tmp_path / f"{n}.sqlite", Depot(looks=1)
        doomed = DepotVendor(depot, on=fuse(n))
        doomed.most_requests = 3
        with monkeypatch.context() as patch:
            _with_steps(patch, doomed)
            try:
                session(path, doomed, N)
                survived = True
            except Killed:
                survived = False
        session(path, DepotVendor(depot), N)
        assert replies(path, N) == complete(), n
        assert set(depot.bought.values()) == {1}, n
        assert rows(path, "SELECT count(*) FROM attempts WHERE outcome = 'unknown'") == [(0,)], n
        if survived:
            break
    # Two batches: intend, submit, submitted each; then looks, results, close.
    assert n > 20


def test_killed_again_and_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    depot, draw = Depot(looks=3), random.Random(1)
    for _ in range(30):
        doomed = DepotVendor(depot, on=fuse(draw.randrange(1, 12)))
        doomed.most_requests = 2
        with monkeypatch.context() as patch:
            _with_steps(patch, doomed)
            try:
                session(path, doomed, N)
                break
            except Killed:
                continue
    assert replies(path, N) == complete()
    assert set(depot.bought.values()) == {1}


@pytest.mark.parametrize("step", ["+submit", "-submit", "+results"])
def test_kill_9_of_a_real_process(tmp_path: Path, step: str) -> None:
    store = tmp_path / "depot.json"
    command = [sys.executable, str(Path(__file__).with_name("batch_cases.py")), str(tmp_path / "l.sqlite"), str(store)]
    environment = {**os.environ, "PYTHONPATH": str(Path(counterbalance.__file__).parents[1])}
    killed = subprocess.run([*command, step], env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    again = subprocess.run([*command, "never"], env=environment, check=True, capture_output=True)
    assert json.loads(again.stdout)["stopped"] is None
    assert Depot.load(store).bought == Counter({f"prompt {i}": 1 for i in range(N)})
    assert replies(tmp_path / "l.sqlite", N) == complete()


def test_a_batch_that_appears_late_in_the_list_is_waited_for(path: Path) -> None:
    depot = Depot()
    vendor = DepotVendor(depot)
    vendor.lost_answer, vendor.unlisted = True, 2
    tally = session(path, vendor, N, settle_s=5.0, batch_wait_s=0.0)
    assert tally.answered == N
    assert set(depot.bought.values()) == {1}


def test_a_batch_that_never_arrived_is_handed_in_again(path: Path) -> None:
    depot, purse = Depot(), Purse()
    vendor = DepotVendor(depot)
    vendor.submit_errors = [TransportError("connection reset", kind="connection", maybe_billed=True)]
    tally = session(path, vendor, N, allowance=purse)
    assert (tally.sent, tally.answered, tally.transport_errors) == (2 * N, N, N)
    assert sorted(rows(path, "SELECT state FROM batches")) == [("absent",), ("collected",)]
    assert purse.helds[-1] == 7 * N


def test_only_what_is_missing_of_an_expired_batch_is_bought_again(path: Path) -> None:
    def outcome(text: str, nth: int):
        if nth > 1 or text == "prompt 2":
            return Reply("ok", text=f"re {text}", **USAGE)
        return TransportError("expired") if text in ("prompt 0", "prompt 1") else None

    depot, purse = Depot(outcome, status="expired"), Purse()
    tally = session(path, DepotVendor(depot), N, allowance=purse)
    assert replies(path, N) == complete()
    assert depot.bought == Counter({f"prompt {i}": 1 + (i != 2) for i in range(N)})
    assert (tally.answered, tally.transport_errors) == (N, N - 1)
    assert purse.helds[-1] == 7 * N


def test_a_line_lost_without_a_word_counts_at_its_worst(path: Path) -> None:
    purse = Purse()
    depot = Depot(lambda text, nth: None if (text, nth) == ("prompt 0", 1) else Reply("ok", text="A", **USAGE))
    session(path, DepotVendor(depot), N, allowance=purse)
    assert purse.helds[-1] == 100 + 7 * N


def test_rounds_are_bounded_and_what_is_left_stays_pending(path: Path) -> None:
    def outcome(text: str, _nth: int):
        return TransportError("overloaded", kind="overload") if text == "prompt 3" else Reply("ok", text=f"re {text}")

    depot = Depot(outcome)
    tally = session(path, DepotVendor(depot), N, tries=2)
    assert (tally.given_up, tally.answered, tally.last_error) == (1, N - 1, "overloaded")
    assert depot.bought["prompt 3"] == 2
    session(path, DepotVendor(depot), N, tries=1)
    assert depot.bought == Counter({f"prompt {i}": 3 if i == 3 else 1 for i in range(N)})


def test_a_duplicate_id_is_an_error_that_keeps_the_others(path: Path) -> None:
    depot = Depot(looks=1)
    session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    lines = depot.batches["batch-0"]["lines"]
    lines.append(lines[0])
    with pytest.raises(VerificationError, match=lines[0][0]):
        session(path, DepotVendor(depot), N)
    assert replies(path, N) == {f"prompt {i}": f"re prompt {i}" for i in range(1, N)}
    assert rows(path, "SELECT state FROM batches") == [("disputed",)]
    session(path, DepotVendor(depot), N)
    assert replies(path, N) == complete()
    assert depot.bought == Counter({f"prompt {i}": 1 + (i == 0) for i in range(N)})


def test_an_unknown_id_is_an_error(path: Path) -> None:
    depot = Depot(looks=1)
    session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    depot.batches["batch-0"]["lines"].append(("somebody-elses", "prompt 9", 1))
    with pytest.raises(VerificationError, match="somebody-elses"):
        session(path, DepotVendor(depot), N)
    assert replies(path, N) == complete()


def test_a_batch_that_the_vendor_turns_down_is_a_stop(path: Path) -> None:
    depot, purse = Depot(looks=1), Purse()
    session(path, DepotVendor(depot), N, batch_wait_s=0.0, allowance=purse)
    depot.batches["batch-0"]["failed"] = "line 1: model not found"
    with pytest.raises(VendorError, match="line 1: model not found"):
        session(path, DepotVendor(depot), N, allowance=purse)
    assert purse.helds[-1] == 0
    assert rows(path, "SELECT state, detail FROM batches")[0][0] == "failed"


@pytest.mark.parametrize("error", [OutOfFundsError("no credit"), VendorError("unknown parameter")])
def test_what_keeps_a_batch_from_being_handed_in_is_raised_and_costs_nothing(path: Path, error: Exception) -> None:
    depot, purse = Depot(), Purse()
    vendor = DepotVendor(depot)
    vendor.submit_errors = [error]
    with pytest.raises(type(error), match=str(error)):
        session(path, vendor, N, allowance=purse)
    assert purse.helds[-1] == 0
    assert session(path, vendor, N).answered == N


def test_out_of_funds_after_a_first_batch_says_what_is_still_out(path: Path) -> None:
    depot = Depot(looks=1)
    vendor = DepotVendor(depot)
    vendor.most_requests = 3
    taken = vendor.submit

    async def submit(run_id, requests):
        vendor.submit_errors = [OutOfFundsError("no credit")] if depot.batches else []
        return await taken(run_id, requests)

    vendor.submit = submit
    with pytest.raises(OutOfFundsError, match=r"3 calls are still at the vendor in 1 batch"):
        session(path, vendor, N)
    session(path, DepotVendor(depot), N)
    assert set(depot.bought.values()) == {1}
    assert replies(path, N) == complete()


def test_a_stop_among_the_results_comes_after_the_paid_replies_are_saved(path: Path) -> None:
    stop = HopelessError(VendorError("temperature is not supported"))
    depot = Depot(lambda text, _nth: stop if text == "prompt 1" else Reply("ok", text=f"re {text}"))
    with pytest.raises(VendorError, match="temperature"):
        session(path, DepotVendor(depot), N)
    assert len(replies(path, N)) == N - 1
    assert rows(path, "SELECT state FROM batches") == [("collected",)]


def test_a_key_refused_while_reading_results_leaves_the_batch_to_be_collected(path: Path) -> None:
    depot = Depot()
    vendor = DepotVendor(depot)
    vendor.result_errors = [KeyRefusedError("401")]
    with pytest.raises(KeyRefusedError):
        session(path, vendor, N)
    assert session(path, vendor, N).answered == N
    assert set(depot.bought.values()) == {1}


def test_results_cut_on_the_way_are_read_again_and_nothing_is_bought_again(path: Path) -> None:
    depot = Depot()
    vendor = DepotVendor(depot)
    vendor.result_errors = [TransportError("body cut short", kind="garbled")]
    assert session(path, vendor, N).answered == N
    assert set(depot.bought.values()) == {1}


def test_results_that_are_gone_count_at_their_worst_and_are_not_bought_again_unasked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    depot, purse = Depot(), Purse()
    vendor = DepotVendor(depot)
    vendor.result_errors = [BatchGoneError("batch-0 is gone")]
    monkeypatch.setattr(batch, "_KEPT", timedelta(0))
    with pytest.raises(BatchGoneError, match="stay charged at their worst case"):
        session(path, vendor, N, allowance=purse)
    assert purse.helds[-1] == 100 * N
    assert session(path, vendor, N, allowance=purse).answered == N
    assert purse.helds[-1] == 107 * N


def test_a_batch_that_a_wrong_key_cannot_see_is_not_bought_again(path: Path) -> None:
    depot = Depot()
    vendor = DepotVendor(depot)
    vendor.result_errors = [BatchGoneError("batch-0 is not there")]
    with pytest.raises(BatchGoneError, match=r"less than two days ago.*Set the right key"):
        session(path, vendor, N)
    # With the right key again.
    assert session(path, vendor, N).answered == N
    assert set(depot.bought.values()) == {1}


def test_a_batch_is_not_looked_for_elsewhere_than_where_it_was_handed_in(path: Path) -> None:
    depot = Depot(looks=1)
    session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    with pytest.raises(
        ConfigError, match=r"5 calls are in batch batch-0.*no key; the study now says depot at http://b"
    ):
        session(path, DepotVendor(Depot()), N, place="depot at http://b with no key")
    assert session(path, DepotVendor(depot), N).answered == N
    assert set(depot.bought.values()) == {1}


def test_what_the_study_no_longer_asks_is_collected_but_not_handed_in_again(path: Path) -> None:
    depot = Depot(lambda text, nth: None if nth == 1 and text != "prompt 0" else echo(text, nth), looks=1)
    depot.status = "expired"
    session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    assert session(path, DepotVendor(depot), 2).answered == 2
    assert depot.bought == Counter({"prompt 0": 1, "prompt 1": 2, "prompt 2": 1, "prompt 3": 1, "prompt 4": 1})
    assert replies(path, N) == complete(2)


def test_replies_are_read_by_what_was_asked_whatever_the_study_says_by_now(path: Path) -> None:
    depot = Depot(looks=1)
    session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    changed = DepotVendor(depot)
    changed.model = "m2"
    session(path, changed, N)
    assert [example.model for example in changed.examples] == ["m1", "m2"]


def test_a_full_queue_makes_batches_smaller(path: Path) -> None:
    depot = Depot()
    vendor = DepotVendor(depot)
    full = TransportError("enqueued token limit", kind="rate_limit", wait_s=0.01)
    vendor.submit_errors = [full, full]
    tally = session(path, vendor, N, tries=1, batch_poll_s=0.001)
    assert (tally.answered, tally.given_up) == (N, 0)
    assert [len(batch["lines"]) for batch in depot.batches.values()] == [1] * N


def test_a_queue_full_of_our_own_is_waited_for_and_batches_keep_their_size(path: Path) -> None:
    depot = Depot(looks=2)
    vendor = DepotVendor(depot)
    vendor.most_requests = 2
    taken = vendor.submit

    async def submit(run_id, requests):
        if any(batch["looks"] > 0 for batch in depot.batches.values()):
            raise TransportError("enqueued token limit", kind="rate_limit")
        return await taken(run_id, requests)

    vendor.submit = submit
    assert session(path, vendor, N, batch_poll_s=0.001).answered == N
    assert [len(batch["lines"]) for batch in depot.batches.values()] == [2, 2, 1]


def test_a_batch_failed_for_a_full_queue_is_handed_in_again(path: Path) -> None:
    depot = Depot(looks=1)
    session(path, DepotVendor(depot), N, batch_wait_s=0.0)
    depot.batches["batch-0"] |= {"status": "queue_full", "lines": []}
    assert session(path, DepotVendor(depot), N, tries=1, batch_poll_s=0.001).answered == N


def test_a_cancelled_batch_keeps_what_was_done_and_buys_nothing_more(path: Path) -> None:
    depot = Depot(lambda text, _nth: Reply("ok", text=f"re {text}") if text == "prompt 0" else None)
    depot.status = "cancelled"
    tally = session(path, DepotVendor(depot), N)
    assert tally.answered == 1
    assert "cancelled" in (tally.stopped or "")
    assert len(depot.batches) == 1


def test_a_cap_hands_in_what_it_covers_and_the_rest_after_the_first_is_settled(path: Path) -> None:
    depot, purse = Depot(), Purse(cap=250)
    assert session(path, DepotVendor(depot), N, allowance=purse).answered == N
    assert [len(batch["lines"]) for batch in depot.batches.values()] == [2, 2, 1]
    assert purse.helds[-1] == 7 * N


def test_a_cap_that_is_spent_stops(path: Path) -> None:
    depot, purse = Depot(lambda text, _nth: Reply("ok", text=f"re {text}")), Purse(cap=250)
    with pytest.raises(BudgetError):
        session(path, DepotVendor(depot), N, allowance=purse)
    assert replies(path, N) == complete(2)


def test_a_guard_stops_after_the_batch_is_saved(path: Path) -> None:
    def guard(status: str) -> None:
        raise VendorError(f"too many {status}")

    with pytest.raises(VendorError, match="too many ok"):
        session(path, DepotVendor(Depot()), N, guard=guard)
    assert replies(path, N) == complete()


def test_a_reply_that_cannot_be_written_is_asked_again_and_spoils_no_other(path: Path) -> None:
    def outcome(text: str, nth: int) -> Reply:
        bad = (text, nth) == ("prompt 1", 1)
        return Reply("ok", text=f"re {text}", top_tokens=["A"], top_logprobs=[float("nan") if bad else -0.5])

    session(path, DepotVendor(Depot(outcome)), N)
    assert replies(path, N) == complete()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_handing_in_leaves_with_the_batch_on_disk(path: Path, number: signal.Signals) -> None:
    depot = Depot(looks=100)
    vendor = DepotVendor(depot, on=lambda step: os.kill(os.getpid(), number) if step == "+submit" else None)
    tally = session(path, vendor, N)
    assert number.name in (tally.stopped or "")
    assert rows(path, "SELECT state FROM batches") == [("submitted",)]
    depot.batches["batch-0"]["looks"] = 0
    assert session(path, DepotVendor(depot), N).answered == N
    assert set(depot.bought.values()) == {1}


def test_progress_follows_the_vendor_and_ends_at_the_number_of_calls(path: Path) -> None:
    class Counting:
        steps: tuple[int, ...] = ()

        def advance(self, count: int) -> None:
            self.steps += (count,)

    class Slow(DepotVendor):
        async def state(self, batch_id):
            found = await super().state(batch_id)
            return found if found.done else type(found)(False, "running", {"completed": N - self.depot.looks + 1})

    progress = Counting()
    session(path, Slow(Depot(looks=3)), N, progress=progress)
    assert sum(progress.steps) == N
    assert progress.steps[0] == 3


def test_names_of_batches_and_calls_keep_the_vendors_rules() -> None:
    run = RunId.new(250)
    assert RunId.parse(str(run)) == run
    custom_id = run.custom_id("sha256:" + "ab" * 32)
    assert len(custom_id) == 64
    assert custom_id.endswith(run.tag)
    assert set(custom_id) <= set("0123456789abcdef-")
    with pytest.raises(InputError, match="not the name of a batch"):
        RunId.parse("batch_123")
