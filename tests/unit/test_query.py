import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from query_cases import FROZEN, ScriptedVendor, make_study, no_reply, open_gate, trial_rows, write_trials

from counterbalance.artifacts import SCHEMAS, read_record, read_table
from counterbalance.config import Study
from counterbalance.engine import RetryPolicy
from counterbalance.errors import ConfigError, GateError, LedgerBusyError, PendingError, VendorError
from counterbalance.ledger import Ledger, count_observed
from counterbalance.prereg import gate
from counterbalance.progress import make_progress
from counterbalance.stages import query
from counterbalance.stages.query import QueryCounts, pending_calls, query_replies
from counterbalance.vendors.base import Reply

CELL = ("letters", "planted", "sums")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    study = make_study(tmp_path / "a study é")
    write_trials(study, trial_rows(5))
    monkeypatch.setattr(gate, "check_gate", open_gate(study))
    return study


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    def use(vendor: ScriptedVendor) -> ScriptedVendor:
        monkeypatch.setattr(query, "get_vendor", lambda *_settings: vendor)
        return vendor

    return use


def run(study: Study) -> QueryCounts:
    return query_replies(study, *CELL, make_progress("none"))


def replies(study: Study) -> list[dict]:
    return read_table(study.layout.replies(*CELL), SCHEMAS["replies"]).to_pylist()


def test_one_reply_per_trial_in_key_order_with_its_record(study: Study) -> None:
    counts = run(study)
    rows = replies(study)
    assert [row["trial_id"] for row in rows] == sorted(row["trial_id"] for row in trial_rows(5))
    assert {row["status"] for row in rows} == {"ok"}
    assert sorted(row["call_order"] for row in rows) == list(range(30))
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["started_at"]) for row in rows)
    record = read_record(study.layout.replies(*CELL))
    assert (record.stage, record.rows, record.frozen_sha256) == ("query", 30, FROZEN)
    parameters = record.facts.pop("parameters_sent")
    assert [set(entry) for entry in parameters] == [{"respondent", "read"}]
    assert record.facts == {
        "calls": 30,
        "attempts": 30,
        "transport_errors": 0,
        "possibly_sent_twice": 0,
        "maybe_billed": 0,
        "statuses": {"ok": 30},
        "frozen": {FROZEN: 30},
        "models_returned": {"planted": 30},
        "sessions": [{"session": 1, "ended_because": "done", "calls": 30}],
        "spent_nano_usd": None,
        "charged_at_worst": 0,
        "call_order": "interleaved",
    }
    assert {row["session"] for row in rows} == {1}
    assert [entry.path for entry in record.materials] == [
        "results/tiny/trials/letters/sums.parquet",
        "preregistration/frozen/tiny-1.json",
    ]
    assert str(counts) == (
        "letters/planted/sums: 30 trials, 30 calls (30 new), replies: 30 ok; "
        "30 attempts, 0 transport errors, 0 possibly sent twice"
    )


def test_the_order_of_asking_can_be_set_and_is_kept(tmp_path: Path, use, monkeypatch) -> None:
    for kind, expected in (("prefix", "prefix"), ("interleaved", "interleaved"), ("auto", "prefix")):
        study = make_study(tmp_path / kind, experiment={"call_order": kind})
        write_trials(study, trial_rows(5))
        monkeypatch.setattr(gate, "check_gate", open_gate(study))
        vendor = use(ScriptedVendor(max_in_flight=1))
        run(study)
        assert read_record(study.layout.replies(*CELL)).facts["call_order"] == expected
        assert (vendor.asked == sorted(vendor.asked)) == (expected == "prefix")


def test_the_record_says_what_was_sent_and_who_answered(study: Study, use) -> None:
    use(ScriptedVendor({"i001": [Reply("ok", text="A", model_returned="m1-new")]}))
    run(study)
    facts = read_record(study.layout.replies(*CELL)).facts
    assert facts["parameters_sent"] == [{"max_tokens": 16}]
    assert facts["models_returned"] == {"m1-new": 6}


def test_a_parameter_that_differs_from_call_to_call_is_not_listed(study: Study, use) -> None:
    class Seeded(ScriptedVendor):
        def request(self, trial):
            plain = super().request(trial)
            drawn = {"seed": int(trial.item_id[1:]), "style": trial.repeat, "item": trial.item_id}
            return replace(plain, parameters={**plain.parameters, **drawn})

    write_trials(study, trial_rows(12))
    use(Seeded())
    run(study)
    assert read_record(study.layout.replies(*CELL)).facts["parameters_sent"] == [{"max_tokens": 16, "style": 0}]


def test_rows_are_sorted_by_trial_id_where_item_ids_sort_otherwise(study: Study, use) -> None:
    rows = trial_rows(2)
    for row in rows:
        name = "a-1" if row["item_id"] == "i001" else "a"
        row["trial_id"] = row["trial_id"].replace(row["item_id"], name)
        row["item_id"] = row["group_id"] = name
    write_trials(study, rows)
    use(ScriptedVendor({"a": ["A"], "a-1": ["B"]}))
    run(study)
    found = [(row["trial_id"], row["text"]) for row in replies(study)]
    assert found == sorted(found)
    assert all((text == "B") == trial.startswith("a-1") for trial, text in found)


def test_a_second_run_asks_nothing_opens_nothing_and_writes_the_same_bytes(study: Study, use) -> None:
    vendor = use(ScriptedVendor())
    assert run(study).new == 30
    path = study.layout.replies(*CELL)
    before = path.read_bytes(), path.with_name(path.name + ".record.json").read_bytes()
    path.unlink()
    assert run(study).new == 0
    assert (path.read_bytes(), path.with_name(path.name + ".record.json").read_bytes()) == before
    assert (vendor.opened, len(vendor.asked)) == (1, 30)


def test_nothing_is_asked_before_the_gate_agrees(study: Study, use, monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(_study: Study, **_kind: object) -> None:
        raise GateError("nothing is frozen")

    vendor = use(ScriptedVendor())
    monkeypatch.setattr(gate, "check_gate", shut)
    with pytest.raises(GateError, match="nothing is frozen"):
        run(study)
    assert vendor.asked == []
    assert not study.layout.ledger(*CELL).exists()


def test_unanswered_calls_leave_no_table_and_say_what_to_type(study: Study, use, monkeypatch) -> None:
    vendor = use(ScriptedVendor({"i001": [no_reply()] * 3 + ["B"]}))
    monkeypatch.setattr(query.Engine, "__init__", impatient(query.Engine.__init__))
    with pytest.raises(PendingError) as caught:
        run(study)
    text = str(caught.value)
    assert text.startswith("letters/planted/sums: 6 of 30 calls are still unanswered (6 failed at every try")
    assert "connection reset after 150 ms" in text
    assert text.endswith("counterbalance query --study tiny.yaml --experiment letters --model planted --dataset sums")
    assert not study.layout.replies(*CELL).exists()
    assert pending_calls(study, study.cell(*CELL)) == (30, 24, 6)
    assert run(study).new == 6
    assert len(vendor.asked) == 24 + 6 * 3 + 6


def impatient(make):
    def make_impatient(self, *arguments, **settings):
        make(self, *arguments, **settings | {"retry": query_retry})

    query_retry = RetryPolicy(pause_s=0.0)
    return make_impatient


def test_planned_calls_are_counted_without_opening_the_vendor(study: Study, use) -> None:
    vendor = use(ScriptedVendor())
    assert pending_calls(study, study.cell(*CELL)) == (30, 0, 30)
    assert (vendor.opened, vendor.asked) == (0, [])
    assert not (study.root / "ledger").exists()
    run(study)
    assert pending_calls(study, study.cell(*CELL)) == (30, 30, 0)
    assert count_observed(study) == {"letters/planted/sums": 30}


def test_trials_with_one_prompt_share_one_call_and_each_gets_its_row(study: Study, use) -> None:
    write_trials(study, trial_rows(4, repeats=2, same_prompt=True))
    vendor = use(ScriptedVendor())
    counts = run(study)
    assert (counts.trials, counts.bought.calls, len(vendor.asked)) == (48, 12, 12)
    rows = replies(study)
    assert len({row["call_sha256"] for row in rows}) == 12
    assert counts.bought.statuses == {"ok": 48}


def test_a_study_over_its_limit_of_calls_is_stopped(tmp_path: Path, use, monkeypatch) -> None:
    models = [{"id": name, "vendor": "simulated"} for name in ("planted", "second")]
    study = make_study(tmp_path, models, limits={"max_calls": 59})
    write_trials(study, trial_rows(5))
    monkeypatch.setattr(gate, "check_gate", open_gate(study))
    vendor = use(ScriptedVendor())
    with pytest.raises(ConfigError, match=r"need 60 calls, more than limits\.max_calls: 59"):
        run(study)
    assert vendor.asked == []


def cut(share_cut: int) -> dict[str, list]:
    reply = Reply("truncated", text="Let me think", finish_reason="length")
    return {f"i{item:03d}": [reply if item < share_cut else "A"] for item in range(12)}


def test_a_cell_whose_replies_are_cut_is_stopped_early_and_stays_stopped(study: Study, use) -> None:
    write_trials(study, trial_rows(12))
    vendor = use(ScriptedVendor(cut(2), max_in_flight=2))
    for _ in range(2):
        with pytest.raises(VendorError, match=r"12 of the first 50 replies .*\.max_tokens .* amend"):
            run(study)
        assert 50 <= len(vendor.asked) <= 51
    assert not study.layout.replies(*CELL).exists()


def test_a_few_cut_replies_do_not_stop_a_cell(study: Study, use) -> None:
    write_trials(study, trial_rows(12))
    use(ScriptedVendor(cut(1), max_in_flight=2))
    counts = run(study)
    assert counts.bought.statuses == {"truncated": 6, "ok": 66}


def test_the_cell_of_a_running_process_is_left_alone(study: Study, use) -> None:
    vendor = use(ScriptedVendor())
    with (
        Ledger(study.layout.ledger(*CELL), study="tiny", cell="letters/planted/sums"),
        pytest.raises(LedgerBusyError, match=f"process {os.getpid()} "),
    ):
        run(study)
    assert vendor.asked == []


def test_progress_counts_what_was_there_before(study: Study, use, capsys: pytest.CaptureFixture[str]) -> None:
    use(ScriptedVendor({"i004": [VendorError("out of order")]}, max_in_flight=1))
    with pytest.raises(VendorError):
        run(study)
    use(ScriptedVendor())
    query_replies(study, *CELL, make_progress("plain"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "letters/planted/sums  24/30 calls  (24 from before)"
    assert err.splitlines()[-1].startswith("letters/planted/sums  30/30 calls  ")


SCRIPT = """\
import sys
sys.path[:0] = sys.argv[2:]
from counterbalance.config import load_study
from counterbalance.prereg import gate
from counterbalance.progress import make_progress
from counterbalance.stages.query import query_replies
from query_cases import open_gate
study = load_study(sys.argv[1])
gate.check_gate = open_gate(study)
print("ready", flush=True)
query_replies(study, "letters", "planted", "sums", make_progress("none"))
"""
# Slow enough for a signal to come in time on a busy machine.
RESPONDENT = {"id": "planted", "vendor": "simulated", "latency_ms": 60.0, "error_rate": 0.03, "call_noise": 1.0}


def start(study: Study) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    command = [sys.executable, "-c", SCRIPT, str(study.path), str(here), str(here.parent)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def wait_for(study: Study, process: subprocess.Popen[str], answered: int) -> None:
    deadline = time.monotonic() + 120
    while count_observed(study).get("letters/planted/sums", 0) < answered:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_kill_9_at_any_moment_loses_nothing_and_buys_nothing_unreported(tmp_path: Path, monkeypatch) -> None:
    undisturbed = make_study(tmp_path / "undisturbed", [RESPONDENT | {"latency_ms": 0.0}])
    study = make_study(tmp_path / "killed é", [RESPONDENT])
    for each in (undisturbed, study):
        write_trials(each, trial_rows(150))
    moments = random.Random(3)
    before = 0
    for _ in range(3):
        with start(study) as process:
            wait_for(study, process, before + moments.randrange(1, 150))
            time.sleep(moments.uniform(0, 0.02))
            process.send_signal(signal.SIGKILL)
            process.wait()
        after = count_observed(study)["letters/planted/sums"]
        assert before < after < 900
        before = after
    monkeypatch.setattr(gate, "check_gate", open_gate(study))
    counts = run(study)
    bought = counts.bought
    assert counts.new == 900 - before
    assert bought.calls == 900 == count_observed(study)["letters/planted/sums"]
    assert bought.attempts == bought.calls + bought.transport_errors + bought.possibly_sent_twice
    # 32 under way, and up to a quarter of that written down ahead.
    assert 0 < bought.possibly_sent_twice <= 3 * (32 + 8)
    assert [entry.ended_because for entry in bought.sessions] == [None, None, None, "done"]
    assert sum(bought.by_session.values()) == 900
    assert bought.transport_errors > 0
    monkeypatch.setattr(gate, "check_gate", open_gate(undisturbed))
    assert run(undisturbed).bought.calls == 900
    killed, whole = (read_record(each.layout.replies(*CELL)) for each in (study, undisturbed))
    assert killed.stable_digest == whole.stable_digest


def test_sigterm_saves_what_is_under_way(tmp_path: Path) -> None:
    study = make_study(tmp_path, [RESPONDENT | {"error_rate": 0.0}])
    write_trials(study, trial_rows(400))
    with start(study) as process:
        wait_for(study, process, 20)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert "PendingError" in err
    assert "stopped by SIGTERM" in err
    path = study.layout.ledger(*CELL)
    with Ledger(path, study="tiny", cell="letters/planted/sums") as ledger:
        assert ledger.select("SELECT count(*) FROM calls WHERE reply IS NULL") == [(0,)]
        assert ledger.select("SELECT ended_because FROM sessions") == [("stopped by SIGTERM",)]
        assert 20 <= len(ledger.answered) < 2400
