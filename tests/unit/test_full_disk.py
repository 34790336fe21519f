"""SQLite is told that a ledger may not grow any more; freeing the space kept back lets it grow again."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest
from query_cases import FROZEN, ScriptedVendor, make_study, trial_rows

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.calls import plan_calls, unanswered_calls
from counterbalance.engine import Engine
from counterbalance.errors import InputError, NoSpaceError
from counterbalance.ledger import Ledger, Sending, answered_keys
from counterbalance.ledger.spare import Spare
from counterbalance.progress import SilentProgress
from counterbalance.vendors.base import Reply

LONG = "a long reply " * 1000


class SmallDisk:
    """A disk that is full from a moment on, until somebody frees what was kept back."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, *, freed: int = 10_000) -> None:
        self._connection, self._freed = ledger._connection, freed
        give = Spare.give

        def and_grow(spare: Spare) -> bool:
            given = give(spare)
            if given:
                self._allow(self._freed)
            return given

        monkeypatch.setattr(Spare, "give", and_grow)

    def fill(self) -> None:
        self._allow(0)

    def _allow(self, more: int) -> None:
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        self._connection.execute(f"PRAGMA max_page_count={pages + more}")


class FillingVendor(ScriptedVendor):
    """The disk is full when its tenth answer comes."""

    disk: SmallDisk
    answers = 0

    async def ask(self, request, trial) -> Reply:
        reply = await super().ask(request, trial)
        self.answers += 1
        if self.answers == 10:
            self.disk.fill()
        return Reply("ok", text=LONG, finish_reason=reply.finish_reason)


@pytest.fixture
def bought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run a session into a full disk; returns what it raised, its vendor and the ledger's path."""

    def run(*, freed: int) -> tuple[InputError, FillingVendor, Path]:
        cell = next(iter(make_study(tmp_path).cells()))
        trials = table_from_rows(trial_rows(20), SCHEMAS["trials"])
        path = tmp_path / "ledger.sqlite"
        vendor = FillingVendor(max_in_flight=8)
        with Ledger(path, study="tiny", cell=cell.name) as ledger:
            vendor.disk = SmallDisk(ledger, monkeypatch, freed=freed)
            plan = plan_calls(vendor, cell, trials, ledger.answered, seed=7)
            engine = Engine(vendor, ledger, frozen_sha256=FROZEN, progress=SilentProgress(), guard=lambda status: None)
            with pytest.raises(InputError) as caught:
                asyncio.run(engine.run(unanswered_calls(vendor, cell, trials, plan)))
        return caught.value, vendor, path

    return run


def test_every_reply_is_kept_although_the_disk_is_full(bought) -> None:
    error, vendor, path = bought(freed=10_000)
    assert isinstance(error, NoSpaceError)
    assert "see that the disk has space" in str(error)
    assert 10 <= len(vendor.asked) < 120
    assert len(answered_keys(path)) == len(vendor.asked)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM attempts WHERE outcome = 'unknown'").fetchone() == (0,)


def test_where_even_the_space_kept_back_does_not_help_it_says_so(bought) -> None:
    error, vendor, path = bought(freed=0)
    assert not isinstance(error, NoSpaceError)
    assert len(answered_keys(path)) < len(vendor.asked)


CALL = Sending("sha256:" + "0" * 64, "{}")


def test_nothing_is_sent_on_a_disk_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("counterbalance.ledger.spare.os.posix_fallocate", full, raising=False)
    with Ledger(tmp_path / "a.sqlite", study="s", cell="c") as ledger:
        with pytest.raises(InputError, match="No space left"):
            ledger.save([], [CALL], frozen_sha256=FROZEN)
        assert ledger.held == 0
    assert [path.name for path in tmp_path.iterdir() if "spare" in path.name] == []


def test_the_space_is_real_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    spare = path.with_name("a.sqlite.spare")
    with Ledger(path, study="s", cell="c") as ledger:
        # A cell that has all its replies needs none.
        assert not spare.exists()
        ledger.save([], [CALL], frozen_sha256=FROZEN)
        found = spare.stat()
        assert found.st_size == 16 * 2**20 <= found.st_blocks * 512
    assert not spare.exists()
