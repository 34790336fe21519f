"""Lines of results that cannot be read: named, counted, kept, and bought again once; the others are untouched."""

import asyncio
import re
from datetime import timedelta
from pathlib import Path

import pytest
from batch_cases import Depot, DepotVendor, Purse, call, replies, run_session, session
from batch_wire_cases import VENDORS, make, on_loopback, work_done
from loopback import Loopback

from counterbalance import batch
from counterbalance.batch_results import match_results
from counterbalance.errors import VerificationError
from counterbalance.ledger import Ledger, read_answered
from counterbalance.vendors.base import Reply, TransportError
from counterbalance.vendors.batch_ids import Line

N = 5
ALL = pytest.mark.parametrize("name", list(VENDORS))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", "canary-key-0123456789abcdef")
    monkeypatch.setattr(batch, "_REREAD_S", 0.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cell.sqlite"


def rows(path: Path, query: str) -> list[tuple]:
    with Ledger(path, study="s", cell="c") as ledger:
        return ledger.select(query)


WRONG = {
    "cut": "no JSON object",
    "noise": "no JSON object",
    "not_utf8": "no JSON object",
    "no_id": "no '(custom_id|key)'",
    "no_outcome": "(neither 'response' nor 'error'|a result of type None)",
}


@ALL
@pytest.mark.parametrize("how", list(WRONG))
def test_a_broken_line_is_named_kept_and_its_call_alone_is_bought_again(path: Path, name: str, how: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        purse, vendor = Purse(), make(name, url)
        tally = await run_session(path, vendor, N, allowance=purse)
        assert (tally.answered, tally.transport_errors, tally.sent, tally.given_up) == (N, 1, N + 1, 0)
        assert sorted(work_done(server, name)) == [1] * (N - 1) + [2]
        assert len(read_answered(path, [call(vendor, i).key for i in range(N)])) == N
        # What the broken line cost is not known.
        assert purse.helds[-1] == 7 * N + 100

    on_loopback(scenario, batch={"spoil": {"3": how}, "spoiled_batches": 1})
    [(said,)] = rows(path, "SELECT detail FROM batches WHERE detail IS NOT NULL")
    assert "1 line of its results cannot be read (line 4 of " in said
    [(detail, billed)] = rows(path, "SELECT detail, maybe_billed FROM attempts WHERE outcome = 'transport_error'")
    assert billed == 1
    assert re.search(WRONG[how], said)
    # The line itself: with its call, if it says which that is, else with the batch.
    kept = detail if how in ("cut", "not_utf8", "no_outcome") else said
    assert {"noise": "<<< upstream connect error >>>", "not_utf8": "\\udcff"}.get(how, '": "') in kept


@ALL
def test_a_line_that_stays_broken_is_bought_once_more_and_then_left_with_its_batch_and_line_named(
    path: Path, name: str
) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        tally = await run_session(path, make(name, url), N, tries=6)
        assert (tally.answered, tally.given_up, tally.sent) == (N - 1, 1, N + 1)
        assert "line 1 of" in (tally.last_error or "")
        assert any(name in (tally.last_error or "") for name in server.batches.batches)

    # It is the only line of the second batch.
    on_loopback(scenario, batch={"spoil": {"0": "cut"}})


@ALL
@pytest.mark.parametrize(("how", "what"), [("other_id", "never handed in"), ("twice", "came more than once")])
def test_ids_that_are_unknown_or_come_twice_are_named_with_their_lines_and_kept(
    path: Path, name: str, how: str, what: str
) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        with pytest.raises(
            VerificationError, match=rf"1 custom ids (were )?{what} \(.*line 4 of .*The other 4 results"
        ):
            await run_session(path, make(name, url), N)
        server.settings.batch = {}
        assert (await run_session(path, make(name, url), N)).answered == 1

    on_loopback(scenario, batch={"spoil": {"3": how}})
    [(state, said)] = rows(path, "SELECT state, detail FROM batches WHERE detail IS NOT NULL")
    assert state == "disputed"
    lines = [line for line in said.splitlines() if line.startswith("line ")]
    assert len(lines) == (2 if how == "twice" else 1)


def page(text: str) -> list[Line]:
    """What is read where something else came in place of a file of results."""
    broken = TransportError("no JSON object", kind="garbled", maybe_billed=True)
    return [Line(None, broken, f"line {n} of f", line) for n, line in enumerate(text.split("\n"), 1)]


class Spoilt(DepotVendor):
    """Yields something else than the results, so many times; or only their beginning."""

    def __init__(self, depot: Depot, lines: list[Line], times: int, keep: int = 0) -> None:
        super().__init__(depot)
        self.lines, self.times, self.keep = lines, times, keep

    async def results(self, batch_id, example):
        good = [line async for line in super().results(batch_id, example)]
        if self.times > 0:
            self.times -= 1
            good = good[: self.keep] + self.lines
        for line in good:
            yield line


@pytest.mark.parametrize("keep", [0, 2])
def test_a_page_in_place_of_the_results_and_a_cut_file_are_read_again_and_nothing_is_bought(
    path: Path, keep: int
) -> None:
    # Six broken lines would be more than enough for five calls; one is too little for the three that are cut off.
    depot, lines = Depot(), page("<html>\n1\n2\n3\n4\n</html>") if keep == 0 else page('{"custom_')
    vendor = Spoilt(depot, lines, times=7, keep=keep)
    assert session(path, vendor, N, batch_poll_s=0.001).answered == N
    assert set(depot.bought.values()) == {1}


def test_a_page_that_stays_leaves_the_batch_to_the_next_session_and_says_what_is_there(path: Path) -> None:
    depot = Depot()
    # The one look of a session that does not wait, for on a busy machine a short wait may end before any.
    vendor = Spoilt(depot, page("<html>"), times=10**6)
    session(path, vendor, N, batch_wait_s=0.0)
    tally = session(path, vendor, N, batch_wait_s=0.0)
    assert "what came as results of batch batch-0 is cut or something else" in (tally.stopped or "")
    assert "line 1 of f: no JSON object: '<html>'" in (tally.stopped or "")
    assert session(path, DepotVendor(depot), N).answered == N
    assert set(depot.bought.values()) == {1}


def test_a_page_that_is_still_there_after_two_days_ends_the_waiting(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "_KEPT", timedelta(0))
    depot = Depot()
    tally = session(path, Spoilt(depot, page("<html>"), times=3), N)
    assert tally.answered == N
    assert set(depot.bought.values()) == {2}
    assert replies(path, N) == {f"prompt {i}": f"re prompt {i}" for i in range(N)}


def test_what_may_have_been_paid_is_handed_in_twice_in_one_session_at_most(path: Path) -> None:
    depot = Depot(lambda _text, _nth: None)
    assert session(path, DepotVendor(depot), 1, tries=20).given_up == 1
    assert depot.bought["prompt 0"] == 2


def test_a_broken_line_that_names_two_calls_belongs_to_neither() -> None:
    ids = {f"{n:051x}-{'a' * 12}": f"call {n}" for n in range(3)}
    first, second, third = ids
    broken = TransportError("no JSON object", kind="garbled", maybe_billed=True)
    lines = [
        Line(None, broken, "line 1", f"{first}{second}"),
        Line(None, broken, "line 2", f"...{third}"),
        Line(first, Reply("ok"), "line 3", "{}"),
    ]

    async def given():
        for line in lines:
            yield line

    found = asyncio.run(match_results(given(), ids))
    assert found.raw == {"call 2": f"...{third}"}
    assert found.spare == [f"line 1: {first}{second}"]
    assert set(found.found) == {"call 0", "call 2"}
    assert found.looks_whole(3)
    assert not found.looks_whole(4)
