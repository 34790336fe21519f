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
from counterbalance.vendors.base import CallRefusedError, Reply, Request, TransportError, Trial

LOGPROBS = {"kind": "logprob", "top": 3}
DECIDE = {"kind": "decide", "instructions": "Choose."}
LISTED = Reply("ok", text="A", top_tokens=["A", "B", "C"], top_logprobs=[-1.0, -2.0, -3.0])


@dataclass(frozen=True)
class Frozen:
    path: Path
    sha256: str = "sha256:" + "f" * 64


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Make a study behind an open gate whose paid model is the given vendor."""

    def make(vendor: PaidVendor, *, items: int = 2, **settings) -> Study:
        study = paid_study(tmp_path, **settings)
        for dataset in study.config.datasets:
            write_trials(study, dataset.id, items)
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


def test_enough_log_probabilities_pass(world) -> None:
    study = world(PaidVendor(LISTED), read=LOGPROBS)
    assert preflight(study).exit_code == 0
    body = json.loads(study.layout.preflight("letters", "bought").read_text(encoding="utf-8"))
    assert body["log_probabilities"] == {"asked": 3, "listed": 3}


class FirstItemsFail(PaidVendor):
    """Gives a reply that shows nothing for the first items, and the usual one for the others."""

    def __init__(self, failed: list[Reply], answer: Reply) -> None:
        super().__init__(answer)
        self.failed = failed

    async def ask(self, request: Request, trial: Trial) -> Reply:
        usual = await super().ask(request, trial)
        return self.failed[len(self.asked) - 1] if len(self.asked) <= len(self.failed) else usual


GENERATE = {"kind": "generate", "temperature": None}
NO_TEXT = Reply("truncated", reason="length", text="")
ODD = Reply("unknown", reason="finish_reason eos", text="A")
LONG = Reply("unavailable", reason="the prompt is too long for the model")
BLOCKED = Reply("blocked", reason="content_filter")
REFUSED = Reply("refused", reason="refusal")
EMPTY = Reply("empty", reason="no choices came back")


@pytest.mark.parametrize("read", [LOGPROBS, DECIDE, GENERATE])
@pytest.mark.parametrize("failed", [LONG, BLOCKED, REFUSED, EMPTY, ODD, NO_TEXT])
def test_an_item_that_shows_nothing_is_followed_by_the_next_and_all_belong_to_the_sweep(world, read, failed) -> None:
    vendor = FirstItemsFail([failed, failed], LISTED)
    study = world(vendor, read=read, items=4)
    done = preflight(study)
    assert done.exit_code == 0, done.output
    assert f"ok after 2 {failed.status} ({failed.reason})" in done.output
    body = json.loads(study.layout.preflight("letters", "bought").read_text(encoding="utf-8"))
    assert [call["status"] for call in body["calls"]] == [failed.status, failed.status, "ok"]
    assert body["calls"][2]["call_sha256"] == body["call_sha256"]
    assert body["nano_usd"] == held_nano_usd(ledger(study))
    assert len({name.partition(".")[0] for name in vendor.asked}) == 3
    path = study.layout.preflight("letters", "bought")
    before = path.read_bytes()
    path.unlink()
    assert "nothing was asked" in preflight(study).output
    assert path.read_bytes() == before
    query_replies(study, "letters", "bought", "sums", SilentProgress())
    assert len(vendor.asked) == len(set(vendor.asked)) == 4 * 6


@pytest.mark.parametrize(
    ("read", "failed", "advice"),
    [
        (LOGPROBS, LONG, "shorter prompts"),
        (LOGPROBS, BLOCKED, "take other items"),
        (LOGPROBS, Reply("unavailable", reason="no log-probabilities came back"), "use another read"),
        (DECIDE, EMPTY, "look at the model's settings"),
        (DECIDE, REFUSED, "take other items"),
        (GENERATE, ODD, "look at the settings of the model and of its server"),
        (GENERATE, NO_TEXT, "raise `max_tokens`"),
        (GENERATE, LONG, "a lower `max_tokens`"),
    ],
)
def test_nothing_to_read_from_five_items_stops_and_says_what_came_and_what_to_do(world, read, failed, advice) -> None:
    vendor = PaidVendor(failed)
    study = world(vendor, read=read, items=7)
    for _ in range(2):
        done = preflight(study)
        assert done.exit_code == VendorError.exit_code
        assert f"gives nothing that `{read['kind']}` reads" in done.output
        assert f"5 {failed.status} ({failed.reason})" in done.output
        assert advice in done.output
        assert "paid.yaml key experiments.letters.read" in done.output
    assert not study.layout.preflight("letters", "bought").exists()
    # The second run knows it from the kept replies.
    assert len({name.partition(".")[0] for name in vendor.asked}) == len(vendor.asked) == 5


@pytest.mark.parametrize("all_of_them", [False, True])
def test_a_call_that_is_turned_down_is_that_item_s_fault_if_the_next_is_answered(world, all_of_them) -> None:
    fault = CallRefusedError("HTTP 400: invalid", Reply("unavailable", reason="invalid", input_tokens=0))

    class Picky(PaidVendor):
        async def ask(self, request: Request, trial: Trial) -> Reply:
            reply = await super().ask(request, trial)
            if all_of_them or trial.trial_id == self.asked[0]:
                raise fault
            return reply

    study = world(Picky(), read=GENERATE, items=7)
    done = preflight(study)
    assert done.exit_code == (VendorError.exit_code if all_of_them else 0)
    assert ("HTTP 400: invalid" if all_of_them else "ok after 1 unavailable (invalid)") in done.output
    assert len(answered_keys(ledger(study))) == (0 if all_of_them else 2)


def test_items_all_refused_pass_where_words_are_read_for_a_study_may_be_about_that(world) -> None:
    study = world(FirstItemsFail([BLOCKED], REFUSED), read=GENERATE, items=7)
    done = preflight(study)
    assert done.exit_code == 0
    assert "refused after 1 blocked (content_filter), 3 refused (refusal)" in done.output


def test_an_id_without_a_date_is_warned_of(world) -> None:
    study = world(PaidVendor())
    assert "warning" not in preflight(study).output
    text = study.path.read_text(encoding="utf-8")
    study.path.write_text(text.replace("m-2026-01-01", "m-latest"), encoding="utf-8")
    assert "warning: this id names no dated version" in preflight(study).output


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
