"""A batch that the vendor took and nobody heard of is found again, wherever it stands in the vendor's list."""

import sys
from pathlib import Path
from typing import Any

import pytest
from batch_cases import Killed, call, run_session
from batch_wire_cases import VENDORS, make, on_loopback, work_done
from loopback import Loopback

from counterbalance.ledger import read_answered
from counterbalance.ledger.batches import Batches
from counterbalance.vendors import batch_talk
from counterbalance.vendors.base import TransportError
from counterbalance.vendors.batch_ids import RunId

N = 3
ALL = pytest.mark.parametrize("name", list(VENDORS))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", "canary-key-0123456789abcdef")


async def others(vendor: Any, count: int, size: int) -> None:
    """Hand in batches of somebody else."""
    async with vendor:
        for _ in range(count):
            run = RunId.new(size)
            pairs = [(run.custom_id(f"{n:051x}"), call(vendor, 1000 + n).request) for n in range(size)]
            await vendor.submit(str(run), pairs)


async def killed_before_the_id_is_saved(path: Path, vendor: Any, patch: pytest.MonkeyPatch) -> None:
    def die(*_values: object) -> None:
        raise Killed

    with patch.context() as within:
        within.setattr(Batches, "submitted", die)
        with pytest.raises(Killed):
            await run_session(path, vendor, N)


@ALL
@pytest.mark.parametrize(("newer", "per_page"), [(0, 2), (1, 2), (2, 2), (7, 2), (120, 100)])
def test_a_batch_whose_id_was_not_saved_is_found_on_any_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, newer: int, per_page: int
) -> None:
    monkeypatch.setattr(sys.modules[VENDORS[name][1].__module__], "PER_PAGE", per_page)
    path = tmp_path / "cell.sqlite"

    async def scenario(server: Loopback, url: str) -> None:
        await killed_before_the_id_is_saved(path, make(name, url), monkeypatch)
        # Some of the same size, which Anthropic's list alone does not tell from ours.
        await others(make(name, url), min(newer, 2), N)
        await others(make(name, url), newer - min(newer, 2), 1)
        # An intention that is old enough to be given up, if the vendor did not list it.
        tally = await run_session(path, make(name, url), N, settle_s=0.0)
        assert (tally.sent, tally.answered) == (0, N)
        assert len(read_answered(path, [call(make(name, url), i).key for i in range(N)])) == N
        assert len(server.batches.batches) == newer + 1
        if per_page == 2:
            assert server.counts.endpoints[LIST[name]] == newer // 2 + 1

    on_loopback(scenario)


LIST = {"openai": "openai GET batches", "anthropic": "anthropic GET messages/batches", "google": "google GET batches"}


@ALL
def test_a_batch_whose_answer_was_lost_on_the_way_is_found_within_the_session(tmp_path: Path, name: str) -> None:
    path = tmp_path / "cell.sqlite"

    async def scenario(server: Loopback, url: str) -> None:
        tally = await run_session(path, make(name, url), N, settle_s=30.0)
        assert (tally.sent, tally.answered) == (N, N)
        assert len(server.batches.batches) == 1
        assert work_done(server, name) == [1] * N

    on_loopback(scenario, batch={"lose_answer": 1})


@ALL
def test_a_list_too_long_to_look_through_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for module in (batch_talk, sys.modules[VENDORS[name][1].__module__]):
        monkeypatch.setattr(module, "PER_PAGE", 1)
        monkeypatch.setattr(module, "MOST_PAGES", 2)
    path = tmp_path / "cell.sqlite"

    async def scenario(server: Loopback, url: str) -> None:
        await killed_before_the_id_is_saved(path, make(name, url), monkeypatch)
        await others(make(name, url), 2, 1)
        tally = await run_session(path, make(name, url), N, settle_s=0.0, batch_wait_s=0.0)
        assert (tally.sent, tally.answered) == (0, 0)
        assert "lists more than 2 batches" in (tally.stopped or "")
        assert len(server.batches.batches) == 3

    on_loopback(scenario)


@ALL
def test_pages_are_served_as_the_vendors_serve_them(name: str) -> None:
    async def scenario(_server: Loopback, url: str) -> None:
        vendor = make(name, url)
        await others(vendor, 25, 1)
        get = {"openai": "/batches", "anthropic": "/v1/messages/batches", "google": "batches"}[name]

        async def page(question: str) -> dict:
            async with vendor:
                if name == "google":
                    return await vendor._look(vendor._call("get", get + question))
                return await vendor._look(vendor._get(get + question))

        entries = "operations" if name == "google" else "data"
        first = await page("")
        assert len(first[entries]) == 20
        if name == "google":
            rest = await page(f"?pageToken={first['nextPageToken']}")
            assert "nextPageToken" not in rest
        else:
            assert first["has_more"] is True
            rest = await page(f"?{'after' if name == 'openai' else 'after_id'}={first['last_id']}")
            assert rest["has_more"] is False
        assert len(rest[entries]) == 5
        made = [made_at(name, entry) for entry in first[entries] + rest[entries]]
        assert made == sorted(made, reverse=True)
        with pytest.raises(Exception, match="1 to"):
            await page({"google": "?pageSize=5000"}.get(name, "?limit=5000"))

    on_loopback(scenario)


def made_at(name: str, entry: dict) -> Any:
    if name == "google":
        return entry["metadata"]["createTime"]
    return entry["created_at"]


def test_a_list_that_could_not_be_had_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cell.sqlite"

    async def scenario(server: Loopback, url: str) -> None:
        vendor = make("openai", url)
        await killed_before_the_id_is_saved(path, vendor, monkeypatch)
        seen = vendor._get

        async def unwell(_path: str) -> Any:
            vendor._get = seen
            raise TransportError("HTTP 503", kind="overload")

        vendor._get = unwell
        tally = await run_session(path, vendor, N, settle_s=0.0)
        assert (tally.sent, tally.answered) == (0, N)
        assert len(server.batches.batches) == 1

    on_loopback(scenario)
