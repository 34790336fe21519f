import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from money_cases import PaidVendor, paid_study, write_trials

from counterbalance.artifacts import read_record
from counterbalance.calls import order_key
from counterbalance.cli import main
from counterbalance.config import Study
from counterbalance.errors import KeyRefusedError, OutOfFundsError, VendorError
from counterbalance.ledger import answered_keys, held_nano_usd
from counterbalance.progress import SilentProgress
from counterbalance.stages.query import query_replies
from counterbalance.vendors.base import Reply, TransportError

LOGPROBS = {"kind": "logprob", "top": 3}


@dataclass(frozen=True)
class Frozen:
    path: Path
    sha256: str = "sha256:" + "f" * 64


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Make a study behind an open gate whose paid model is the given vendor."""

    def make(vendor: PaidVendor, **settings) -> Study:
        study = paid_study(tmp_path, **settings)
        for dataset in study.config.datasets:
            write_trials(study, dataset.id)
        record = tmp_path / "preregistration" / "frozen" / "paid-1.json"
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text("{}\n", encoding="utf-8")
        monkeypatch.setattr("counterbalance.prereg.gate.check_gate", lambda _study, **_kind: Frozen(record))
        monkeypatch.setattr("counterbalance.stages.query.get_vendor", lambda *_: vendor)
        return study

    return make


def preflight(study: Study, model: str = "bought"):
    command = ["preflight", "--study", str(study.path), "--experiment", "letters", "--model", model]
    return CliRunner().invoke(main, command, catch_exceptions=False)


def ledger(study: Study) -> Path:
    return study.layout.ledger("letters", "bought", "sums")


def test_one_call_is_bought_and_the_record_says_what_it_showed(world) -> None:
    vendor = PaidVendor()
    study = world(vendor)
    done = preflight(study)
    assert done.exit_code == 0
    assert "letters/bought/sums: m-2026-01-01: ok; cost $0.000088" in done.output
    path = study.layout.preflight("letters", "bought")
    body = json.loads(path.read_text(encoding="utf-8"))
    assert body["sent"] == {
        "vendor": "openai",
        "base_url": None,
        "model": "m-2026-01-01",
        "parameters": {"max_completion_tokens": 10, "temperature": 0},
    }
    assert body["model"] == {"asked": "m-2026-01-01", "returned": "m-2026-01-01", "dated": True, "fingerprint": None}
    assert body["usage"] == {"input_tokens": 80, "cached_tokens": None, "output_tokens": 2, "reasoning_tokens": None}
    # 80 tokens at 1 USD a million and 2 at 4.
    assert body["nano_usd"] == held_nano_usd(ledger(study)) == 88_000
    assert body["status"] == "ok"
    assert read_record(path).stage == "preflight"


def test_it_is_the_first_call_in_asking_order_and_the_sweep_does_not_buy_it_again(world) -> None:
    vendor = PaidVendor()
    study = world(vendor)
    preflight(study)
    ids = [f"i{item:03d}.mcq.{index:04d}.00" for item in range(2) for index in range(6)]
    first = min(ids, key=lambda name: order_key(7, name))
    assert vendor.asked == [first]
    query_replies(study, "letters", "bought", "sums", SilentProgress())
    assert sorted(vendor.asked) == ids


def test_a_rerun_asks_nothing_and_writes_the_same_bytes(world) -> None:
    vendor = PaidVendor()
    study = world(vendor)
    preflight(study)
    path = study.layout.preflight("letters", "bought")
    before = path.read_bytes()
    path.unlink()
    done = preflight(study)
    assert "bought before, nothing was asked" in done.output
    assert path.read_bytes() == before
    assert len(vendor.asked) == 1


def test_the_call_is_live_and_at_the_full_price_also_where_the_account_hands_in_batches(world) -> None:
    prices = {"input": 1.0, "output": 4.0, "batch_discount": 0.5}
    study = world(PaidVendor(), prices=prices, account={"mode": "batch"})
    assert preflight(study).exit_code == 0
    assert held_nano_usd(ledger(study)) == 88_000


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply("unavailable", reason="logprobs: null"), r"does not give what `logprob` reads (logprobs: null)"),
        (Reply("ok", top_tokens=["A", "B"], top_logprobs=[-1.0, -2.0]), "lists 2 log-probabilities where 3 are"),
        (Reply("ok", text="A"), "lists 0 log-probabilities where 3 are asked for"),
    ],
)
def test_missing_log_probabilities_stop_before_anything_else_is_spent(world, reply, expected) -> None:
    vendor = PaidVendor(reply)
    study = world(vendor, read=LOGPROBS)
    for _ in range(2):
        done = preflight(study)
        assert done.exit_code == VendorError.exit_code
        assert expected in done.output
        assert "paid.yaml key experiments.letters.read" in done.output
    assert not study.layout.preflight("letters", "bought").exists()
    # The second run knows it from the kept reply.
    assert len(vendor.asked) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply("ok", top_tokens=["A", "B", "C"], top_logprobs=[-1.0, -2.0, -3.0]),
        Reply("blocked", reason="content_filter"),
        Reply("refused", reason="refusal"),
    ],
)
def test_enough_log_probabilities_pass_and_a_blocked_item_shows_nothing_against_the_model(world, reply) -> None:
    study = world(PaidVendor(reply), read=LOGPROBS)
    assert preflight(study).exit_code == 0
    body = json.loads(study.layout.preflight("letters", "bought").read_text(encoding="utf-8"))
    assert body["log_probabilities"] == {"asked": 3, "listed": 3 if reply.status == "ok" else 0}
    assert body["status"] == reply.status


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (VendorError("openai 404 model_not_found: no such model"), 8),
        (OutOfFundsError("openai 429 insufficient_quota"), 10),
        (KeyRefusedError("openai 401 invalid_api_key"), 11),
    ],
)
def test_what_the_vendor_refuses_stops_with_its_own_code_and_the_command_to_go_on(world, error, code) -> None:
    study = world(PaidVendor(error))
    done = preflight(study)
    assert done.exit_code == code
    assert str(error) in done.output
    assert "counterbalance preflight --study" in done.output
    assert not study.layout.preflight("letters", "bought").exists()


def test_no_reply_is_pending_and_another_run_goes_on(world) -> None:
    vendor = PaidVendor(TransportError("connection reset", kind="connection", maybe_billed=True))
    study = world(vendor, account={"tries": 1})
    assert preflight(study).exit_code == 6
    assert answered_keys(ledger(study)) == set()
    vendor.answer = Reply("ok", text="A", input_tokens=80, output_tokens=2)
    assert preflight(study).exit_code == 0
    body = json.loads(study.layout.preflight("letters", "bought").read_text(encoding="utf-8"))
    # The sending that may have been billed is charged at its worst case.
    assert (body["attempts"], body["nano_usd"]) == (2, 140_000 + 88_000)


def test_a_cap_holds_for_the_preflight_too(world) -> None:
    vendor = PaidVendor()
    study = world(vendor, study_cap=0.0001)
    done = preflight(study)
    assert done.exit_code == 12
    assert "money.cap_usd is $0.0001" in done.output
    assert vendor.asked == []


def test_a_model_without_an_account_needs_none(world) -> None:
    done = preflight(world(PaidVendor()), model="planted")
    assert done.exit_code == 2
    assert "needs no preflight" in done.output


def test_every_experiment_with_every_paid_model_is_tried(tmp_path) -> None:
    study = paid_study(tmp_path, datasets=("sums", "words"))
    assert [(experiment.id, model.id) for experiment, model in study.preflights()] == [("letters", "bought")]
