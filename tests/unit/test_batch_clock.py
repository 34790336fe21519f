"""A clock that was put back, or was wrong when a batch was handed in, keeps nobody waiting and buys nothing twice."""

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from batch_cases import Depot, DepotVendor, call, replies, run_session, session
from batch_wire_cases import VENDORS, make, on_loopback, work_done
from loopback import Loopback

from counterbalance import batch
from counterbalance.ledger import Ledger
from counterbalance.vendors.batch_ids import BatchGoneError, RunId

N = 3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cell.sqlite"


def handed_in_later_than_now(path: Path, days: float = 365.0) -> None:
    """Let what stands in the ledger come from a clock that was that far ahead."""
    later = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    with Ledger(path, study="s", cell="c") as ledger:
        ledger.save(
            [],
            [],
            frozen_sha256="none",
            also=lambda connection: connection.execute("UPDATE batches SET intended_at = ?", (later,)),
        )


def intended_only(path: Path, depot: Depot) -> None:
    vendor = DepotVendor(depot)
    vendor.submit_errors = [RuntimeError("killed")]
    with pytest.raises(RuntimeError):
        session(path, vendor, N)
    handed_in_later_than_now(path)


@pytest.mark.parametrize("settle_s", [0.0, 0.2])
def test_an_intention_from_the_future_is_given_up_after_the_plain_time(path: Path, settle_s: float) -> None:
    depot = Depot()
    intended_only(path, depot)
    began = time.monotonic()
    tally = session(path, DepotVendor(depot), N, settle_s=settle_s, batch_wait_s=60.0)
    assert tally.answered == N
    assert settle_s <= time.monotonic() - began < 50.0
    assert set(depot.bought.values()) == {1}


def test_the_clock_is_put_back_while_a_session_waits_for_a_batch_to_show_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PutBack(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=400)

    def lost(step: str) -> None:
        if step == "-submit" and vendor.lost_answer:
            # The vendor never kept it, and the clock goes back just now.
            depot.batches.clear()
            monkeypatch.setattr("counterbalance.batch_ages.datetime", PutBack)

    depot = Depot()
    vendor = DepotVendor(depot, on=lost)
    vendor.lost_answer = True
    tally = session(path, vendor, N, settle_s=0.1, batch_wait_s=60.0)
    assert (tally.answered, tally.sent) == (N, 2 * N)


def test_a_batch_of_the_future_that_is_gone_counts_as_gone_two_days_from_now(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    depot = Depot()
    vendor = DepotVendor(depot)
    session(path, DepotVendor(Depot(looks=1)), N, batch_wait_s=0.0)
    handed_in_later_than_now(path)
    vendor.depot.batches["batch-0"] = {"run_id": "", "lines": [], "looks": 0}
    vendor.result_errors = [BatchGoneError("batch-0 is not there")]
    with pytest.raises(BatchGoneError, match="UTC on it counts as gone") as caught:
        session(path, vendor, N)
    found = re.search(r"from (\d{4}-\d\d-\d\d \d\d:\d\d) UTC on it counts as gone", str(caught.value))
    assert found is not None
    until = datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    assert abs(until - datetime.now(UTC) - timedelta(days=2)) < timedelta(hours=1)
    with Ledger(path, study="s", cell="c") as ledger:
        [(detail,)] = ledger.select("SELECT detail FROM batches")
    assert "by a clock that was put back since" in detail
    monkeypatch.setattr(batch, "_KEPT", timedelta(0))
    vendor.result_errors = [BatchGoneError("batch-0 is not there")]
    with pytest.raises(BatchGoneError, match="buys them anew"):
        session(path, vendor, N)
    assert session(path, DepotVendor(Depot()), N).answered == N
    assert len(replies(path, N)) == N


@pytest.mark.parametrize("name", list(VENDORS))
@pytest.mark.parametrize("ahead_h", [20.0, 24.0 * 400])
def test_a_batch_handed_in_by_a_clock_that_was_ahead_is_found_at_the_vendor(
    monkeypatch: pytest.MonkeyPatch, name: str, ahead_h: float
) -> None:
    monkeypatch.setenv("CANARY_KEY", "canary-key-0123456789abcdef")

    async def scenario(_server: Loopback, url: str) -> None:
        vendor = make(name, url)
        async with vendor:
            now = datetime.now(UTC).replace(microsecond=0)
            run = RunId(now + timedelta(hours=ahead_h), 1, "0123456789ab")
            batch_id = await vendor.submit(str(run), [(run.custom_id("ab" * 32), call(vendor, 0).request)])
            assert await vendor.find(str(run)) == batch_id

    on_loopback(scenario)


def test_a_session_after_the_clock_was_put_right_collects_and_buys_nothing_twice(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_KEY", "canary-key-0123456789abcdef")

    async def scenario(server: Loopback, url: str) -> None:
        await run_session(path, make("anthropic", url), N, batch_wait_s=0.0)
        handed_in_later_than_now(path)
        next(iter(server.batches.batches.values())).ready = 0.0
        assert (await run_session(path, make("anthropic", url), N, batch_wait_s=0.0)).answered == N
        assert work_done(server, "anthropic") == [1] * N

    on_loopback(scenario, batch={"delay_s": 1000})
