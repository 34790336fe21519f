import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from counterbalance.canonical import canonical_json, sha256_bytes
from counterbalance.errors import InputError, LedgerBusyError, VerificationError
from counterbalance.ledger import (
    Attempt,
    Ledger,
    Sending,
    Session,
    Spent,
    answered_keys,
    held_nano_usd,
    read_answered,
    read_sessions,
    read_spent,
)
from counterbalance.ledger.lock import refuse_network_disk

FROZEN = "sha256:" + "f" * 64
REPLY = canonical_json({"status": "ok", "text": "B\u2028\u0085 und \x00 Ende"}).decode()


def request(number: int, worst: int | None = None) -> Sending:
    text = canonical_json({"model": "m1", "number": number})
    return Sending(sha256_bytes(text), text.decode(), worst)


def open_ledger(path: Path) -> Ledger:
    return Ledger(path, study="tiny", cell="letters/m1/sums")


def buy(path: Path, numbers: range) -> list[str]:
    calls = [request(number) for number in numbers]
    with open_ledger(path) as ledger:
        ledger.save([], calls, frozen_sha256=FROZEN)
        ledger.save([Attempt(key, "answered", reply=REPLY) for key, *_ in calls], [], frozen_sha256=FROZEN)
    return [key for key, *_ in calls]


def edit(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a ledger é" / "sums.sqlite"


def test_what_was_bought_comes_back_as_it_was(path: Path) -> None:
    keys = buy(path, range(3))
    found = read_answered(path, [*keys, request(99)[0]])
    assert set(found) == set(keys) == answered_keys(path)
    assert found[keys[1]].reply == {"status": "ok", "text": "B\u2028\u0085 und \x00 Ende"}
    assert [found[key].call_order for key in keys] == [0, 1, 2]
    assert found[keys[0]].frozen_sha256 == FROZEN
    assert (found[keys[0]].attempts, found[keys[0]].transport_errors, found[keys[0]].unknown) == (1, 0, 0)


def test_it_is_synced_and_uses_a_write_ahead_log(path: Path) -> None:
    with open_ledger(path) as ledger:
        settings = ledger._connection.execute("PRAGMA journal_mode").fetchone()
        synchronous = ledger._connection.execute("PRAGMA synchronous").fetchone()
    full = 2
    assert (settings[0], synchronous[0]) == ("wal", full)


def test_an_intent_is_on_disk_before_anything_comes_back(path: Path) -> None:
    key, text, _ = request(1)
    with open_ledger(path) as ledger:
        ledger.save([], [request(1)], frozen_sha256=FROZEN)
        with contextlib.closing(sqlite3.connect(path)) as other:
            assert other.execute("SELECT call_sha256, request, state, reply FROM calls").fetchall() == [
                (key, text, "intended", None)
            ]
            assert other.execute("SELECT attempt, outcome, ended_at FROM attempts").fetchall() == [(1, "unknown", None)]
    assert answered_keys(path) == set()


def test_attempts_of_all_sessions_are_told_apart(path: Path) -> None:
    key = request(1).call_sha256
    with open_ledger(path) as ledger:
        ledger.save([], [request(1)], frozen_sha256="sha256:" + "1" * 64)
    with open_ledger(path) as ledger:
        assert ledger.attempts(key) == 1
        ledger.save([], [request(1)], frozen_sha256=FROZEN)
        ledger.save([Attempt(key, "transport_error", detail="reset")], [request(1)], frozen_sha256=FROZEN)
        assert ledger.attempts(key) == 3
        ledger.save([Attempt(key, "answered", reply=REPLY)], [], frozen_sha256=FROZEN)
        assert ledger.answered == {key}
    call = read_answered(path, [key])[key]
    assert (call.attempts, call.transport_errors, call.unknown) == (3, 1, 1)
    assert call.session == 2
    assert call.frozen_sha256 == FROZEN
    assert call.call_order == 0


def test_a_failed_save_keeps_nothing_of_it(path: Path) -> None:
    key = request(1).call_sha256
    with open_ledger(path) as ledger:
        with pytest.raises(InputError, match="ledger"):
            ledger.save([], [request(1), request(1)], frozen_sha256=FROZEN)
        assert ledger.attempts(key) == 0
        ledger.save([], [request(1)], frozen_sha256=FROZEN)
        assert ledger.attempts(key) == 1


def test_a_ledger_deleted_while_it_is_written_is_put_back(path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.save([], [request(1), request(2)], frozen_sha256=FROZEN)
        for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
            file.unlink()
        with pytest.raises(InputError, match=r"deleted or replaced.*is back in its place"):
            ledger.save([Attempt(request(1).call_sha256, "answered", reply=REPLY)], [], frozen_sha256=FROZEN)
    with open_ledger(path) as ledger:
        assert ledger.answered == {request(1).call_sha256}
        assert ledger.attempts(request(2).call_sha256) == 1


def test_a_ledger_replaced_while_it_is_written_is_saved_beside(path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.save([], [request(1)], frozen_sha256=FROZEN)
        path.unlink()
        path.write_bytes(b"")
        with pytest.raises(InputError, match=r"deleted or replaced.*was saved to"):
            ledger.save([Attempt(request(1).call_sha256, "answered", reply=REPLY)], [], frozen_sha256=FROZEN)
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    (saved,) = path.parent.glob("*.rescued-*")
    saved.rename(path)
    with open_ledger(path) as ledger:
        assert ledger.answered == {request(1).call_sha256}


def test_text_that_no_utf8_file_can_hold_does_not_cost_the_replies_beside_it(path: Path) -> None:
    good, bad = request(1), request(2)
    with open_ledger(path) as ledger:
        ledger.save([], [good, bad], frozen_sha256=FROZEN)
        ended = [
            Attempt(good.call_sha256, "answered", reply=REPLY),
            Attempt(bad.call_sha256, "transport_error", detail="HTTP 500: \ud83d"),
        ]
        ledger.save(ended, [], frozen_sha256=FROZEN)
        assert ledger.answered == {good.call_sha256}
        assert ("HTTP 500: \ufffd",) in ledger.select("SELECT detail FROM attempts")


def test_the_first_statuses_follow_the_order_of_sending(path: Path) -> None:
    calls = [request(number) for number in range(4)]
    with open_ledger(path) as ledger:
        ledger.save([], calls, frozen_sha256=FROZEN)
        for index, status in ((3, "ok"), (0, "truncated"), (2, "empty")):
            reply = canonical_json({"status": status}).decode()
            ledger.save([Attempt(calls[index][0], "answered", reply=reply)], [], frozen_sha256=FROZEN)
        everything = {call.call_sha256 for call in calls}
        assert ledger.first_statuses(2, everything) == ["truncated", "empty"]
        assert ledger.first_statuses(2, everything - {calls[0].call_sha256}) == ["empty", "ok"]


def test_what_was_written_down_but_not_sent_leaves_no_trace(path: Path) -> None:
    first, second = request(1, 30), request(2, 30)
    with open_ledger(path) as ledger:
        ledger.save([], [first], frozen_sha256=FROZEN)
        ledger.save([Attempt(first.call_sha256, "transport_error", charged_nano_usd=0)], [], frozen_sha256=FROZEN)
        ledger.save([], [first, second], frozen_sha256=FROZEN)
        assert ledger.held == 60
        stayed = [Attempt(call.call_sha256, "not_sent") for call in (first, second)]
        ledger.save(stayed, [], frozen_sha256=FROZEN)
        assert [ledger.attempts(call.call_sha256) for call in (first, second)] == [1, 0]
        assert ledger.held == 0
        assert ledger.select("SELECT call_sha256, attempt FROM calls JOIN attempts USING (call_order)") == [
            (first.call_sha256, 1)
        ]
        ledger.save([], [second, first], frozen_sha256=FROZEN)
        assert [ledger.attempts(call.call_sha256) for call in (first, second)] == [2, 1]


def test_money_is_held_at_the_worst_case_until_the_charge_is_known(path: Path) -> None:
    calls = [request(number, 30_000_000) for number in range(4)]
    keys = [call.call_sha256 for call in calls]
    with open_ledger(path) as ledger:
        ledger.save([], calls, frozen_sha256=FROZEN)
        assert ledger.held == 120_000_000
        ended = [
            Attempt(keys[0], "answered", reply=REPLY, charged_nano_usd=12_000_000),
            Attempt(keys[1], "transport_error", detail="reset", charged_nano_usd=30_000_000, maybe_billed=True),
            Attempt(keys[2], "transport_error", detail="429", charged_nano_usd=0),
        ]
        ledger.save(ended, [], frozen_sha256=FROZEN)
        assert ledger.held == 72_000_000
    with open_ledger(path) as ledger:
        assert ledger.held == held_nano_usd(path) == 72_000_000
        ledger.save([], calls[1:2], frozen_sha256=FROZEN)
        assert ledger.held == 102_000_000
    assert read_spent(path) == Spent(102_000_000, at_worst=3, maybe_billed=1)


def test_without_prices_nothing_is_said_of_money(path: Path) -> None:
    buy(path, range(2))
    assert read_spent(path) == Spent(None, 0, 0)
    assert held_nano_usd(path) == 0
    assert held_nano_usd(path.with_name("absent.sqlite")) == 0


def test_sessions_say_why_they_ended_and_a_killed_one_does_not(path: Path) -> None:
    for number, because in ((0, "done"), (1, None), (2, "OutOfFundsError")):
        with open_ledger(path) as ledger:
            assert ledger.session == number + 1
            ledger.save([], [request(number)], frozen_sha256=FROZEN)
            if because:
                ledger.end_session(because)
    with open_ledger(path) as ledger:
        ledger.end_session("sent nothing")
    assert read_sessions(path) == [Session(1, "done"), Session(2, None), Session(3, "OutOfFundsError")]


def test_more_can_be_written_in_the_same_transaction(path: Path) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO meta VALUES ('note', 'x')")
        raise sqlite3.IntegrityError("no")

    with open_ledger(path) as ledger:
        with pytest.raises(InputError):
            ledger.save([], [request(1)], frozen_sha256=FROZEN, also=fail)
        assert ledger.select("SELECT count(*) FROM calls") == ledger.select("SELECT count(*) FROM sessions") == [(0,)]
        ledger.save(
            [], [request(1)], frozen_sha256=FROZEN, also=lambda c: c.execute("INSERT INTO meta VALUES ('note', 'x')")
        )
        assert ledger.select("SELECT value FROM meta WHERE key = 'note'") == [("x",)]
        assert ledger.select("SELECT count(*) FROM sessions") == [(1,)]


@pytest.mark.parametrize("column", ["request", "reply"])
def test_a_changed_request_or_reply_is_noticed(path: Path, column: str) -> None:
    keys = buy(path, range(2))
    edit(path, f"UPDATE calls SET {column} = replace({column}, '\"m', '\"n') WHERE call_order = 1")
    edit(path, f"UPDATE calls SET {column} = replace({column}, 'ok', 'no') WHERE call_order = 1")
    assert set(read_answered(path, keys[:1])) == {keys[0]}
    with pytest.raises(VerificationError, match=f"its {column} hashes to .* expected sha256:") as caught:
        read_answered(path, keys)
    assert keys[1] in str(caught.value)


def test_a_second_writer_is_told_who_the_first_is(path: Path) -> None:
    with open_ledger(path), pytest.raises(LedgerBusyError, match=f"process {os.getpid()} is writing"):
        open_ledger(path).__enter__()
    with open_ledger(path):
        pass


def test_kill_9_frees_the_lock(path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from counterbalance.ledger import Ledger\n"
        "with Ledger(Path(sys.argv[1]), study='tiny', cell='letters/m1/sums'):\n"
        "    print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(LedgerBusyError, match=f"process {holder.pid} "):
            open_ledger(path).__enter__()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with open_ledger(path) as ledger:
        assert ledger.answered == set()


@pytest.mark.parametrize("content", [b"", b"not a database at all", b"SQLite format 3\x00 and then nonsense" * 50])
def test_a_damaged_ledger_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"sums\.sqlite: the ledger is damaged.*restore it from a backup"):
        open_ledger(path).__enter__()
    with pytest.raises(InputError, match="damaged"):
        answered_keys(path)
    assert path.read_bytes() == content


def test_a_damaged_page_is_noticed_at_opening(path: Path) -> None:
    buy(path, range(200))
    data = bytearray(path.read_bytes())
    page = 4096
    for start in range(3 * page, len(data), 5 * page):
        data[start : start + 16] = b"\xff" * 16
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        open_ledger(path).__enter__()
    assert path.read_bytes() == bytes(data)


def test_a_cut_ledger_is_noticed(path: Path) -> None:
    buy(path, range(200))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="damaged"):
        open_ledger(path).__enter__()


def test_a_torn_last_transaction_costs_only_itself(path: Path, tmp_path: Path) -> None:
    first, second = [request(number) for number in range(2)]
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    with open_ledger(path) as ledger:
        for call in (first, second):
            ledger.save([], [call], frozen_sha256=FROZEN)
            ledger.save([Attempt(call.call_sha256, "answered", reply=REPLY)], [], frozen_sha256=FROZEN)
        for suffix in ("", "-wal"):
            shutil.copy(path.with_name(path.name + suffix), copy.with_name(copy.name + suffix))
    wal = copy.with_name(copy.name + "-wal")
    wal.write_bytes(wal.read_bytes()[:-100])
    with open_ledger(copy) as ledger:
        assert ledger.answered == {first[0]}
        assert ledger.attempts(second[0]) == 1


def test_a_log_without_its_ledger_is_not_taken_for_a_new_one(path: Path) -> None:
    buy(path, range(1))
    path.with_name(path.name + "-wal").write_bytes(b"left behind")
    path.unlink()
    with pytest.raises(InputError, match="the ledger is gone"):
        open_ledger(path).__enter__()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"sums\.sqlite: the ledger cannot be used now .*see that the disk has space"):
        open_ledger(tmp_path / "ledger" / "sums.sqlite").__enter__()


def test_another_cells_ledger_is_refused(path: Path) -> None:
    buy(path, range(1))
    with pytest.raises(InputError, match=r"belongs to cell 'letters/m1/sums', expected 'letters/m2/sums'"):
        Ledger(path, study="tiny", cell="letters/m2/sums").__enter__()


def test_a_ledger_of_another_schema_is_refused(path: Path) -> None:
    buy(path, range(1))
    edit(path, "UPDATE meta SET value = 'counterbalance/ledger/9' WHERE key = 'schema'")
    with pytest.raises(InputError, match="counterbalance/ledger/9"):
        open_ledger(path).__enter__()


def test_reading_never_makes_a_ledger(path: Path) -> None:
    assert answered_keys(path) == set()
    assert not path.parent.exists()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "lustre"])
def test_network_disks_are_refused(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "net home"
    home.mkdir()
    mounts = tmp_path / "mounts"
    escaped = str(home).replace(" ", "\\040")
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {escaped} {kind} rw 0 0\nproc /proc proc rw 0 0\n")
    with pytest.raises(InputError, match=rf"network file system \({kind}\).*symbolic link"):
        refuse_network_disk(home / "ledger", mounts)
    refuse_network_disk(tmp_path / "elsewhere", mounts)
    mounts.write_text(mounts.read_text() + f"/dev/vdb {escaped} ext4 rw 0 0\n")
    refuse_network_disk(home / "ledger", mounts)


def test_a_link_to_a_local_disk_is_followed(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "local").mkdir()
    (tmp_path / "net" / "ledger").symlink_to(tmp_path / "local")
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path}/net nfs rw 0 0\n")
    refuse_network_disk(tmp_path / "net" / "ledger", mounts)
