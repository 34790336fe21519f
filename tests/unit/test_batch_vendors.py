"""The three vendors' batches through their own SDKs, against a server that speaks their wire formats."""

import asyncio
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from batch_cases import Killed, Purse, call, fuse, run_session
from batch_wire_cases import VENDORS, make, on_loopback, work_done
from loopback import Loopback
from loopback.faults import REFUSED
from loopback.server import WIRES

from counterbalance import batch
from counterbalance.batch_parts import ENVELOPE_BYTES
from counterbalance.canonical import canonical_json
from counterbalance.engine import Engine
from counterbalance.errors import CounterbalanceError, KeyRefusedError, OutOfFundsError, VendorError
from counterbalance.ledger import Ledger, read_answered
from counterbalance.progress import SilentProgress
from counterbalance.replies import derive_replies
from counterbalance.vendors.anthropic_vendor import wire_body as anthropic_body
from counterbalance.vendors.base import TransportError
from counterbalance.vendors.batch_ids import BatchGoneError, RunId
from counterbalance.vendors.batch_talk import read_lines, write_lines
from counterbalance.vendors.google_vendor import wire_body as google_body
from counterbalance.vendors.openai_vendor import wire_body as openai_body
from counterbalance.vendors.wire import Received

N = 5
KEY = "canary-key-0123456789abcdef"
ALL = pytest.mark.parametrize("name", list(VENDORS))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", KEY)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cell.sqlite"


def refuse_within_batches(server: Loopback) -> None:
    """Have the server's scripted refusals hold for the calls of a batch too."""
    real = server.script.pick

    def pick(ask: Any, *numbers: int) -> Any:
        fault = real(ask, *numbers)
        if fault["kind"] in REFUSED:
            raise WIRES[ask.vendor].failure(fault["kind"], fault, ask.model)
        return fault

    server.script.pick = pick


def keys_of(vendor: Any, n: int = N) -> list[str]:
    return [call(vendor, i).key for i in range(n)]


def test_an_answer_that_is_nested_too_deeply_is_no_answer() -> None:
    async def deep() -> Received:
        return Received(200, {}, "[" * 100_000)

    with pytest.raises(TransportError, match="no JSON object"):
        asyncio.run(make("openai", "http://127.0.0.1:1")._look(deep()))


@ALL
@pytest.mark.parametrize("read", [{"kind": "generate", "temperature": None}, {"kind": "logprob", "top": 5}])
def test_live_and_batch_give_the_same_table(tmp_path: Path, name: str, read: dict) -> None:
    if name == "anthropic" and read["kind"] == "logprob":
        return
    digests = []

    async def scenario(_server: Loopback, url: str) -> None:
        for mode in ("live", "batch"):
            path, vendor = tmp_path / f"{mode}.sqlite", make(name, url, read)
            if mode == "batch":
                await run_session(path, vendor, N)
            else:
                await ask_live(path, vendor)
            ids = [f"t{i}" for i in range(N)]
            written, bought = derive_replies(path, ids, keys_of(vendor), tmp_path / f"{mode}.parquet")
            assert bought.statuses == Counter({"ok": N})
            digests.append(written.stable_digest)

    on_loopback(scenario, batch={"order": "reverse"}, reasoning_tokens=3, cached_share=0.5)
    assert digests[0] == digests[1]


async def ask_live(path: Path, vendor: Any) -> None:
    with Ledger(path, study="s", cell="c") as ledger:
        async with vendor:
            engine = Engine(
                vendor, ledger, frozen_sha256="sha256:x", progress=SilentProgress(), guard=lambda _status: None
            )
            await engine.run(call(vendor, i) for i in range(N))


@ALL
def test_hand_in_leave_collect_later(path: Path, name: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        first = await run_session(path, make(name, url), N, batch_wait_s=0.0)
        assert (first.sent, first.answered) == (N, 0)
        server.batches.batches[next(iter(server.batches.batches))].ready = 0.0
        second = await run_session(path, make(name, url), N, batch_wait_s=0.0)
        assert (second.sent, second.answered, second.stopped) == (0, N, None)
        assert work_done(server, name) == [1] * N

    on_loopback(scenario, batch={"delay_s": 1000})


@ALL
def test_expired_and_failed_calls_are_bought_again_and_only_those(path: Path, name: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        purse = Purse()
        await run_session(path, make(name, url), N, batch_wait_s=0.0)
        server.settings.batch = {"expired": [0], "errored": [1, 3], "order": "reverse"}
        server.batches.end(next(iter(server.batches.batches)))
        server.settings.batch = {}
        tally = await run_session(path, make(name, url), N, allowance=purse)
        assert (tally.answered, tally.sent, tally.transport_errors) == (N, 3, 3)
        sizes = [len(batch.asked) for batch in server.batches.batches.values()]
        assert sizes == [N, 3]
        # Two calls reached a model, and failed there, before they were answered.
        assert sorted(work_done(server, name)) == [1, 1, 1, 2, 2]
        assert purse.helds[-1] == 7 * N

    on_loopback(scenario, batch={"delay_s": 1000})


@ALL
def test_a_batch_of_nothing_but_errors_is_read(path: Path, name: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        tally = await run_session(path, make(name, url), N, tries=1)
        assert (tally.answered, tally.given_up) == (0, N)
        assert "500" in (tally.last_error or "")
        if name == "openai":
            batch = server.batches.batches[next(iter(server.batches.batches))]
            assert set(batch.made) == {"error"}

    on_loopback(scenario, batch={"errored": list(range(N))})


@ALL
def test_a_parameter_that_the_model_refuses_stops_the_study(path: Path, name: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        refuse_within_batches(server)
        with pytest.raises(VendorError, match="400"):
            await run_session(path, make(name, url), N)
        server.apply({"faults": []})
        assert (await run_session(path, make(name, url), N)).answered == N

    on_loopback(scenario, faults=[{"fault": {"kind": "unsupported", "parameter": "temperature"}, "text": "prompt"}])


@ALL
def test_no_credit_for_single_calls_is_out_of_funds_after_the_others_are_saved(path: Path, name: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        refuse_within_batches(server)
        with pytest.raises(OutOfFundsError):
            await run_session(path, make(name, url), N)
        server.apply({"faults": []})
        tally = await run_session(path, make(name, url), N)
        assert 0 < tally.sent < N
        assert len(read_answered(path, keys_of(make(name, url)))) == N

    # Of Google's details, which tell a used-up day from a busy minute, nothing is left in a file of results.
    kind = "no_credit" if name == "google" else "out_of_funds"
    on_loopback(scenario, faults=[{"fault": {"kind": kind}, "text": "prompt 3"}])


@ALL
def test_a_refusal_is_a_reply_and_is_not_asked_again(path: Path, name: str) -> None:
    async def scenario(_server: Loopback, url: str) -> None:
        vendor = make(name, url)
        assert (await run_session(path, vendor, N)).answered == N
        found = read_answered(path, keys_of(vendor))
        expected = "blocked" if name == "google" else "refused"
        assert [found[key].reply["status"] for key in keys_of(vendor)] == ["ok", "ok", expected, "ok", "ok"]

    kind = {"kind": "refusal"}
    on_loopback(scenario, faults=[{"fault": kind, "text": "prompt 2"}])


@ALL
def test_a_prompt_that_is_too_long_is_final_for_that_call(path: Path, name: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        refuse_within_batches(server)
        vendor = make(name, url)
        assert (await run_session(path, vendor, N)).answered == N
        found = read_answered(path, keys_of(vendor))
        assert found[keys_of(vendor)[2]].reply["status"] == "unavailable"

    on_loopback(scenario, faults=[{"fault": {"kind": "too_long"}, "text": "prompt 2"}])


@pytest.mark.parametrize("name", ["openai", "google"])
def test_a_batch_that_fails_validation_stops_with_its_reason(path: Path, name: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        with pytest.raises(VendorError, match="the third line has no model"):
            await run_session(path, make(name, url), N)
        server.settings.batch = {}
        assert (await run_session(path, make(name, url), N)).answered == N

    on_loopback(scenario, batch={"fail": "the third line has no model"})


@ALL
def test_killed_at_any_step_nothing_is_bought_twice(tmp_path: Path, name: str) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        async with make(name, url) as opened:
            for n in range(1, 50):
                server.reset()
                path = tmp_path / f"{n}.sqlite"
                try:
                    await run_session(path, Doomed(opened, fuse(n)), N)
                    survived = True
                except Killed:
                    survived = False
                tally = await run_session(path, Doomed(opened, lambda _step: None), N)
                assert tally.stopped is None, n
                assert len(read_answered(path, keys_of(opened))) == N, n
                assert work_done(server, name) == [1] * N, n
                if survived:
                    # Handing in, a look, results: each before and after.
                    assert n > 6
                    return

    on_loopback(scenario)


class Doomed:
    """An open vendor that calls `on` before and after each request about a batch, and is not opened again."""

    def __init__(self, vendor: Any, on: Callable[[str], None]) -> None:
        self._vendor, real = vendor, type(vendor)._try

        async def step(sending: Any, seconds: float) -> Any:
            try:
                on("+")
            except Killed:
                sending.close()
                raise
            found = await real(vendor, sending, seconds)
            on("-")
            return found

        vendor._try = step

    async def __aenter__(self) -> "Doomed":
        return self

    async def __aexit__(self, *_error: object) -> None:
        return

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vendor, name)


@ALL
def test_a_name_that_the_vendor_does_not_have_is_not_found(path: Path, name: str) -> None:
    async def scenario(_server: Loopback, url: str) -> None:
        vendor = make(name, url)
        await run_session(path, vendor, N)
        async with vendor:
            assert await vendor.find(str(RunId.new(N))) is None

    on_loopback(scenario)


@ALL
def test_an_old_batch_is_found_behind_newer_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[VENDORS[name][1].__module__]
    monkeypatch.setattr(module, "PER_PAGE", 2)

    async def scenario(_server: Loopback, url: str) -> None:
        vendor = make(name, url)
        async with vendor:
            run = RunId.new(1)
            batch_id = await vendor.submit(str(run), [(run.custom_id("ab" * 32), call(vendor, 0).request)])
            for _ in range(5):
                other = RunId.new(2)
                pair = [(other.custom_id(sign * 64), call(vendor, 1).request) for sign in "ab"]
                await vendor.submit(str(other), pair)
            assert await vendor.find(str(run)) == batch_id

    on_loopback(scenario)


def test_anthropic_cannot_tell_whose_a_batch_is_before_it_has_ended() -> None:
    async def scenario(server: Loopback, url: str) -> None:
        vendor = make("anthropic", url)
        async with vendor:
            run = RunId.new(1)
            asked = call(vendor, 0)
            batch_id = await vendor.submit(str(run), [(run.custom_id(asked.key), asked.request)])
            assert await vendor.find(str(RunId.new(2))) is None
            with pytest.raises(TransportError, match="when it has ended"):
                await vendor.find(str(run))
            with pytest.raises(TransportError, match="when it has ended"):
                await vendor.find(str(RunId.new(1)))
            server.batches.batches[batch_id].ready = 0.0
            assert await vendor.find(str(run)) == batch_id
            assert await vendor.find(str(RunId.new(1))) is None

    on_loopback(scenario, batch={"delay_s": 1000})


@ALL
def test_a_batch_that_is_gone_says_so(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        vendor = make(name, url)
        await run_session(path, vendor, N, batch_wait_s=0.0)
        server.batches.batches.clear()
        with pytest.raises(BatchGoneError, match=r"is not there.*another organisation"):
            await run_session(path, vendor, N)
        monkeypatch.setattr(batch, "_KEPT", timedelta(0))
        with pytest.raises(BatchGoneError, match=r"is not there.*buys them anew"):
            await run_session(path, vendor, N)
        assert (await run_session(path, vendor, N)).answered == N

    on_loopback(scenario, batch={"delay_s": 0.0})


def test_the_replies_are_saved_also_where_the_list_of_failures_is_gone(path: Path) -> None:
    async def scenario(server: Loopback, url: str) -> None:
        vendor = make("openai", url)
        await run_session(path, vendor, N, batch_wait_s=0.0)
        batch_at_vendor = next(iter(server.batches.batches.values()))
        batch_at_vendor.ready = 0.0
        async with vendor:
            assert (await vendor.state(batch_at_vendor.id)).done
        del server.batches.files[batch_at_vendor.made["error"]]
        server.settings.batch = {}
        assert (await run_session(path, vendor, N)).answered == N
        assert sorted(work_done(server, "openai")) == [1] * (N - 1) + [2]

    on_loopback(scenario, batch={"delay_s": 1000, "errored": [2]})


@ALL
def test_a_wrong_key_stops_and_is_written_nowhere(path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(_server: Loopback, url: str) -> None:
        with pytest.raises(KeyRefusedError) as caught:
            await run_session(path, make(name, url), N)
        shown = "".join(traceback.format_exception(caught.value))
        assert KEY not in shown + repr(caught.value) + caplog.text
        assert "site-packages" not in shown

    on_loopback(scenario, keys={name: "another-key-entirely"})
    assert all(KEY.encode() not in file.read_bytes() for file in path.parent.rglob("*") if file.is_file())


@ALL
def test_lines_are_no_longer_than_the_splitting_assumes(name: str) -> None:
    body = {"openai": openai_body, "anthropic": anthropic_body, "google": google_body}[name]
    vendor = make(name, "http://127.0.0.1:1")
    for number in (0, 10**6):
        asked = call(vendor, number)
        for text in ("plain", '日本語 ü \u2028 " \\ \n', "\x01\x7f"):
            request = type(asked.request)(**{**vars(asked.request), "prompt": {"text": text * 50}})
            line = {"custom_id": "c" * 64, "method": "POST", "url": "/v1/chat/completions", "body": body(request)}
            assert len(write_lines([line])) <= len(canonical_json(request.body())) + ENVELOPE_BYTES


def test_a_line_separator_in_a_text_ends_no_line_and_a_cut_line_spoils_no_other() -> None:
    entries = [{"text": "a\u2028b\u0085c"}, {"text": "d"}]
    text = write_lines(entries).decode()
    assert [line.entry for line in read_lines(text)] == entries
    assert [line.entry for line in read_lines("\ufeff" + text.replace("\n", "\r\n"))] == entries
    assert [(line.number, line.entry) for line in read_lines("\n" + text[:-4])] == [(2, entries[0]), (3, None)]


@ALL
def test_a_batch_that_was_created_is_not_taken_for_refused(name: str) -> None:
    async def scenario(_server: Loopback, url: str) -> None:
        vendor = make(name, url)

        async def created(sending: Any, _seconds: float) -> Any:
            sending.close()
            return Received.of(201, {}, '{"id": "new-1", "name": "new-1"}')

        async with vendor:
            vendor._try = created
            assert await vendor.submit(str(RunId.new(1)), [("a", call(vendor, 0).request)]) == "new-1"

    on_loopback(scenario)


@ALL
def test_a_server_that_answers_with_something_else_leaves_it_open_whether_it_took_the_batch(name: str) -> None:
    async def scenario(_server: Loopback, url: str) -> None:
        vendor = make(name, url)

        async def nonsense(sending: Any, _seconds: float) -> Any:
            sending.close()
            return Received.of(200, {}, "<html>hello</html>")

        async with vendor:
            vendor._try = nonsense
            asked = call(vendor, 0)
            with pytest.raises(TransportError) as caught:
                await vendor.submit(str(RunId.new(1)), [("a", asked.request)])
            assert caught.value.maybe_billed
            assert not isinstance(caught.value, CounterbalanceError)

    on_loopback(scenario)
