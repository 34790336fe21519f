"""A cell behind an account: what it costs, where it stops, and how it goes on."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from batch_cases import Depot, DepotVendor
from money_cases import PaidVendor, paid_study, write_trials
from query_cases import FROZEN, open_gate

from counterbalance.artifacts import read_record
from counterbalance.config import Study
from counterbalance.errors import (
    BudgetError,
    ConfigError,
    KeyRefusedError,
    OutOfFundsError,
    PendingError,
    VendorError,
)
from counterbalance.exchange import reply_text
from counterbalance.ledger import Attempt, Ledger, held_nano_usd, read_sessions
from counterbalance.ledger.batches import Batches
from counterbalance.prereg import gate
from counterbalance.progress import make_progress
from counterbalance.stages import query
from counterbalance.stages.query import QueryCounts, ask_calls, query_replies
from counterbalance.vendors.base import Reply, Request, TransportError

CELL = ("letters", "bought", "sums")
COMMAND = "counterbalance query --study paid.yaml --experiment letters --model bought --dataset sums"
# 80 tokens at 1 USD and 2 at 4 USD per million; at most 100 and 10.
CHARGE, WORST = 88_000, 140_000
CALLS = 12


class Vendor(PaidVendor):
    """Answers from a list of what happens at each sending, then as its base does; notes how many are under way."""

    def __init__(self, steps: list[Reply | Exception] | None = None, *, max_in_flight: int = 4) -> None:
        super().__init__()
        self.steps = steps or []
        self.max_in_flight = max_in_flight
        self.under_way = self.most_under_way = 0

    async def ask(self, request, trial):
        step = self.steps[len(self.asked)] if len(self.asked) < len(self.steps) else self.answer
        self.asked.append(trial.trial_id)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0.001)
        self.under_way -= 1
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    def use(vendor: Vendor) -> Vendor:
        monkeypatch.setattr(query, "get_vendor", lambda *_settings: vendor)
        return vendor

    return use


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def make(**settings) -> Study:
        study = paid_study(tmp_path, **settings)
        write_trials(study)
        monkeypatch.setattr(gate, "check_gate", open_gate(study))
        return study

    return make


def run(study: Study, kind: str = "none") -> QueryCounts:
    return query_replies(study, *CELL, make_progress(kind))


def held(study: Study) -> int:
    return held_nano_usd(study.layout.ledger(*CELL))


def facts(study: Study) -> dict:
    return dict(read_record(study.layout.replies(*CELL)).facts)


def test_charges_are_what_the_usage_says(make, use, capsys) -> None:
    study = make()
    use(Vendor())
    counts = run(study, "plain")
    assert held(study) == CALLS * CHARGE == 1_056_000
    assert (facts(study)["spent_nano_usd"], facts(study)["charged_at_worst"]) == (1_056_000, 0)
    assert facts(study)["parameters_sent"] == [{"max_completion_tokens": 10, "temperature": 0}]
    assert str(counts).endswith("; $0.001056 spent")
    assert "$0.001056 spent" in capsys.readouterr().err.splitlines()[-1]


def test_unknown_usage_is_charged_at_the_worst_case(make, use) -> None:
    study = make()
    use(Vendor([Reply("ok", text="A")] * 5))
    counts = run(study)
    assert held(study) == 7 * CHARGE + 5 * WORST
    assert facts(study)["charged_at_worst"] == 5
    assert "5 attempts of it at the worst case" in str(counts)


def test_a_timeout_may_have_been_billed_and_a_rate_limit_not(make, use) -> None:
    study = make()
    late = TransportError("no reply", kind="timeout", maybe_billed=True, wait_s=0.0)
    limited = TransportError("HTTP 429", kind="rate_limit", wait_s=0.0)
    use(Vendor([late, limited, late], max_in_flight=1))
    counts = run(study)
    assert held(study) == CALLS * CHARGE + 2 * WORST
    assert (facts(study)["maybe_billed"], facts(study)["transport_errors"]) == (2, 3)
    assert "2 attempts without reply perhaps billed" in str(counts)


def test_ten_cents_are_never_exceeded_by_calls_of_three(make, use) -> None:
    # 300 USD per million input tokens: at most 100 tokens, 3 cents; 80 of them are used, 2.4 cents.
    prices = {"input": 300.0, "output": 0.0}
    study = make(study_cap=0.10, prices=prices)
    vendor = use(Vendor())
    with pytest.raises(BudgetError) as caught:
        run(study)
    # Three fit at once; when they have settled at 7.2 cents, three more cents do not fit.
    assert (vendor.most_under_way, len(vendor.asked), held(study)) == (3, 3, 72_000_000)
    text = str(caught.value)
    assert f"{'/'.join(CELL)}: 3 of 12 calls are answered for $0.072, " in text
    assert text.endswith(
        f"9 are left. Nothing that was bought is lost or bought again. To go on, start the same run "
        f"again, or type: {COMMAND}"
    )
    with pytest.raises(BudgetError):
        run(study)
    assert len(vendor.asked) == 3
    assert run(make(study_cap=0.40, prices=prices)).new == 9
    assert held(study) == CALLS * 24_000_000


def test_an_empty_account_stops_the_cell_and_topping_up_goes_on(make, use) -> None:
    study = make(account={"max_in_flight": 1})
    answers: list[Reply | Exception] = [PaidVendor().answer] * 7
    vendor = use(Vendor([*answers, OutOfFundsError("purse: no credit is left")], max_in_flight=1))
    with pytest.raises(
        OutOfFundsError, match=r"^purse: no credit is left\. letters/bought/sums: 7 of 12 calls "
    ) as caught:
        run(study)
    assert str(caught.value).endswith(f"type: {COMMAND}")
    assert (caught.value.exit_code, len(vendor.asked), held(study)) == (10, 8, 7 * CHARGE)
    assert not study.layout.replies(*CELL).exists()
    assert run(study).new == 5
    assert len(vendor.asked) == 8 + 5
    assert facts(study)["sessions"] == [
        {"session": 1, "ended_because": "OutOfFundsError", "calls": 7},
        {"session": 2, "ended_because": "done", "calls": 5},
    ]
    assert (facts(study)["attempts"], facts(study)["transport_errors"]) == (13, 1)


def test_a_refused_key_costs_nothing_and_few_calls(make, use) -> None:
    study = make()
    vendor = use(Vendor([KeyRefusedError("key in SOME_KEY: HTTP 401")] * CALLS, max_in_flight=100))
    with pytest.raises(KeyRefusedError, match=r"SOME_KEY: HTTP 401.*0 of 12 calls are answered for"):
        run(study)
    assert len(vendor.asked) <= 4
    assert held(study) == 0


def test_calls_that_stay_pending_are_counted_and_the_exit_says_so(make, use) -> None:
    study = make(account={"tries": 2})
    use(Vendor([TransportError("HTTP 500", kind="server")] * 2 * CALLS))
    with pytest.raises(PendingError, match=r"12 of 12 calls are still unanswered \(12 failed at every try"):
        run(study)
    assert read_sessions(study.layout.ledger(*CELL))[0].ended_because == "pending"
    assert run(study).new == CALLS


def test_one_call_can_be_bought_ahead_and_is_not_bought_again(make, use) -> None:
    study = make()
    vendor = use(Vendor())
    cell = study.cell(*CELL)
    first = ask_calls(study, cell, limit=1, progress=make_progress("none"), live=True)
    again = ask_calls(study, cell, limit=1, progress=make_progress("none"), live=True)
    assert first == again
    assert (len(first), len(vendor.asked), vendor.opened) == (1, 1, 1)
    assert run(study).new == CALLS - 1
    assert vendor.asked[0] not in vendor.asked[1:]


SCRIPT = """\
import os, signal, sys
sys.path[:0] = sys.argv[2:]
from counterbalance.config import load_study
from counterbalance.ledger import Ledger
from counterbalance.prereg import gate
from counterbalance.progress import make_progress
from counterbalance.stages import query
from query_cases import FROZEN, open_gate
from money_cases import PaidVendor
study = load_study(sys.argv[1])
gate.check_gate = open_gate(study)
query.get_vendor = lambda *_settings: PaidVendor()
save = Ledger.save
def killed(self, ended, starting, **more):
    if len(ended) + len(self.answered) >= 6:
        os.kill(os.getpid(), signal.SIGKILL)
    save(self, ended, starting, **more)
Ledger.save = killed
query.query_replies(study, "letters", "bought", "sums", make_progress("none"))
"""


def test_killed_between_purse_and_ledger_nothing_stays_held_for_ever(make, use) -> None:
    # Room for all calls, for what the kill leaves unknown (four under way, one written down ahead), and for one call
    # at its worst case.
    lost = 5
    cap = (CALLS * CHARGE + lost * WORST + WORST) / 1e9
    study = make(study_cap=cap)
    here = Path(__file__).parent
    arguments = [sys.executable, "-c", SCRIPT, str(study.path), str(here), str(here.parent)]
    done = subprocess.run(arguments, env=os.environ, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    before = held(study)
    use(Vendor(max_in_flight=1))
    counts = run(study)
    unknown = counts.bought.possibly_sent_twice
    assert 1 <= unknown <= lost
    assert before <= 5 * CHARGE + lost * WORST
    assert held(study) == CALLS * CHARGE + unknown * WORST <= cap * 1e9


class ChatDepot(DepotVendor):
    """A depot that takes chats."""

    def request(self, trial):
        return Request(
            "depot", None, self.model, {"max_tokens": 16}, {"text": json.dumps(trial.prompt)}, None, trial.repeat
        )


def test_a_live_session_does_not_buy_what_is_in_a_batch(make, use) -> None:
    depot = ChatDepot(Depot(looks=1))
    use(depot)
    with pytest.raises(PendingError):
        run(make(account={"mode": "batch", "batch_poll_s": 0.01, "batch_wait_s": 0.0}))
    with pytest.raises(ConfigError, match=r"12 of the calls.*mode: batch.*collect them first: "):
        run(make())
    study = make(account={"mode": "batch", "batch_poll_s": 0.01, "batch_wait_s": 10.0})
    run(study)
    assert set(depot.depot.bought.values()) == {1}
    # Nothing is open any more, so live sessions go on as ever.
    assert run(make()).new == 0


def test_a_call_that_is_in_no_batch_may_be_asked_live_beside_one(make, use) -> None:
    depot = ChatDepot(Depot(looks=2))
    use(depot)
    account = {"mode": "batch", "batch_poll_s": 0.01, "batch_wait_s": 0.0}
    study = make(account=account)
    with pytest.raises(PendingError):
        run(study)
    cell = study.cell(*CELL)
    # What a preflight of the same study would be told.
    with pytest.raises(ConfigError, match=r"would be bought again; collect them first: counterbalance query"):
        ask_calls(study, cell, limit=1, live=True, progress=make_progress("none"))
    # The study was changed since, so its calls are others.
    depot.model = "m2"
    assert len(ask_calls(study, cell, limit=1, live=True, progress=make_progress("none"))) == 1


def test_replies_cut_at_a_lower_limit_say_nothing_of_a_higher_one(tmp_path: Path, monkeypatch, use) -> None:
    study = paid_study(tmp_path)
    write_trials(study, items=12)
    monkeypatch.setattr(gate, "check_gate", open_gate(study))
    short = use(Vendor())
    short.answer = Reply("truncated", reason="length", text="The", input_tokens=80, output_tokens=10)
    with pytest.raises(VendorError, match="50 of the first 50 replies were cut"):
        run(study)

    class Longer(Vendor):
        def request(self, trial):
            return replace(super().request(trial), parameters={"max_completion_tokens": 64})

    use(Longer())
    assert run(study).new == 72


@pytest.mark.parametrize("status", ["empty", "unknown", "unavailable"])
def test_a_paid_cell_in_whose_replies_there_is_nothing_to_read_stops_as_soon_as_that_is_sure(
    tmp_path: Path, monkeypatch, use, status
) -> None:
    study = paid_study(tmp_path)
    write_trials(study, items=6)
    monkeypatch.setattr(gate, "check_gate", open_gate(study))
    vendor = use(Vendor())
    vendor.answer = Reply(status, input_tokens=80, output_tokens=2)
    for _ in range(2):
        # A fifth of 50 may be so, and 4 are under way.
        with pytest.raises(VendorError, match=rf"in 1[1-4] of the first 1[1-4] replies .*\(1[1-4] {status};.* amend"):
            run(study)
        assert 11 <= len(vendor.asked) <= 14


def test_a_few_replies_with_nothing_to_read_do_not_stop_a_cell(tmp_path: Path, monkeypatch, use) -> None:
    study = paid_study(tmp_path)
    write_trials(study, items=12)
    monkeypatch.setattr(gate, "check_gate", open_gate(study))
    use(Vendor([Reply("empty", input_tokens=80, output_tokens=2)] * 10))
    assert run(study).bought.statuses == {"empty": 10, "ok": 62}


def test_a_batch_is_closed_although_nothing_is_pending_any_more(make, use) -> None:
    depot = ChatDepot(Depot(looks=1))
    use(depot)
    study = make(account={"mode": "batch", "batch_poll_s": 0.01, "batch_wait_s": 0.0})
    with pytest.raises(PendingError):
        run(study)
    # Answered otherwise: by the same request under an earlier release, say.
    cell = study.cell(*CELL)
    with Ledger(study.layout.ledger(*CELL), study=study.config.id, cell=cell.name) as ledger:
        keys = [key for (key,) in ledger.select("SELECT call_sha256 FROM calls")]
        text = reply_text(Reply("ok", text="A", input_tokens=1, output_tokens=1), latency_ms=1.0)
        ledger.save([Attempt(key, "answered", text, None, 5) for key in keys], [], frozen_sha256=FROZEN)
    run(make(account={"mode": "batch", "batch_poll_s": 0.01, "batch_wait_s": 10.0}))
    with Ledger(study.layout.ledger(*CELL), study=study.config.id, cell=cell.name) as ledger:
        assert Batches(ledger, frozen_sha256=FROZEN).open() == []
