"""What goes wrong between us and a vendor, on the wire: the real SDKs, the pipeline's engine, ledger and purse.

Numbers in the names are rows of the project's collection of field cases.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Remote, subprocess_server
from loopback.studies import KEYS, key_env
from vendor_cases import VENDORS, Case, make_case

from counterbalance.errors import BudgetError, KeyRefusedError, OutOfFundsError, PendingError, VendorError
from counterbalance.exchange import MOST_REFUSED

every_vendor = pytest.mark.parametrize("vendor", VENDORS)


@pytest.fixture(scope="module")
def running() -> Iterator[Remote]:
    with subprocess_server() as server:
        yield server


@pytest.fixture
def server(running: Remote, monkeypatch: pytest.MonkeyPatch) -> Remote:
    for vendor, key in KEYS.items():
        monkeypatch.setenv(key_env(vendor), key)
    defaults = {"faults": [], "funds_nano_usd": {}, "keys": KEYS, "models": {}, "refuses": {}, "model_changes": []}
    running.set(**defaults, respondent={"kind": "hash"}, reasoning_tokens=0, cached_share=0.0, batch={}, latency_ms=0)
    running.reset()
    return running


def fault(kind: str, **more: Any) -> dict[str, Any]:
    conditions: dict[str, Any] = {name: more.pop(name) for name in ("at", "sending", "text") if name in more}
    return {**conditions, "fault": {"kind": kind, **more}}


def check_money(case: Case) -> None:
    """The ledger's settled total is the bill for delivered replies; the whole charge is never below the whole bill."""
    counts = case.counts()
    assert case.settled() == counts["delivered_nano_usd"]
    assert case.held() >= counts["bill_nano_usd"]


@every_vendor
def test_what_is_billed_is_what_is_charged(server: Remote, tmp_path: Path, vendor: str) -> None:
    server.set(cached_share=0.3, reasoning_tokens=5)
    case = make_case(server, tmp_path, vendor, money={"prices": {vendor: {"input": 0.15, "output": 0.6}}})
    server.set(prices={vendor: {"input": 0.15, "output": 0.6}})
    case.buy()
    server.set(prices={name: {"input": 1.0, "output": 4.0} for name in VENDORS})
    assert case.counts()["delivered"] == 6
    assert case.held() == case.settled() == case.counts()["bill_nano_usd"] > 0
    assert {row["status"] for row in case.replies()} == {"ok"}
    assert {row["reasoning_tokens"] for row in case.replies()} == {5}


@every_vendor
@pytest.mark.parametrize("kind", ["out_of_funds", "no_credit"])
def test_24_out_of_funds_stops_the_vendor_and_is_no_result(
    server: Remote, tmp_path: Path, vendor: str, kind: str
) -> None:
    case = make_case(server, tmp_path, vendor, items=20)
    server.set(faults=[fault(kind, at=list(range(10, 1000)))])
    with pytest.raises(OutOfFundsError, match=r"10 of 40 calls are answered .* counterbalance query"):
        case.buy()
    refused = case.counts()["requests"] - 10
    assert 1 <= refused <= 4
    assert case.rows("SELECT count(reply) FROM calls") == [(10,)]
    assert case.held() == case.counts()["bill_nano_usd"]
    server.set(faults=[])
    assert case.buy().new == 30
    assert case.counts()["bodies_delivered"] == case.counts()["delivered"] == 40
    assert case.counts()["repeats"] == refused
    check_money(case)


@every_vendor
@pytest.mark.parametrize("kind", ["unauthorized", "forbidden"])
def test_a_refused_key_stops_at_once_and_is_never_shown(server: Remote, tmp_path: Path, vendor: str, kind: str) -> None:
    server.set(faults=[fault(kind, key=KEYS[vendor], quote_key=True)])
    case = make_case(server, tmp_path, vendor)
    with pytest.raises(KeyRefusedError):
        case.buy()
    assert case.counts()["requests"] <= 4
    server.set(faults=[])
    assert case.buy().new == 6


@every_vendor
def test_a_missing_key_is_told_before_anything_is_sent(
    server: Remote, tmp_path: Path, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case(server, tmp_path, vendor)
    monkeypatch.delenv(key_env(vendor))
    with pytest.raises(KeyRefusedError, match=key_env(vendor)):
        case.buy()
    assert case.counts()["requests"] == 0


def _hints(vendor: str) -> list[str]:
    return ["seconds", "date", "ms", *(["google"] if vendor == "google" else [])]


@pytest.mark.parametrize(("vendor", "hint"), [(vendor, hint) for vendor in VENDORS for hint in _hints(vendor)])
def test_25_a_stated_wait_is_a_floor_for_the_whole_account(
    server: Remote, tmp_path: Path, vendor: str, hint: str
) -> None:
    wait = 1.0 if hint == "date" else 0.7
    server.set(faults=[fault("rate_limit", at=[5], hint=hint, wait_s=wait)])
    case = make_case(server, tmp_path, vendor, items=15)
    assert case.buy().new == 30
    lines = server.requests()
    [refusal] = [line for line in lines if line["outcome"] == "refused 429"]
    later = [line["arrived_s"] - refusal["ended_s"] for line in lines if line["arrived_s"] > refusal["ended_s"]]
    # What was sent before the refusal was heard may still come: four at a time, and four more on a busy machine. Then
    # nothing until the wait is over.
    assert sum(since < wait - 0.02 for since in later) <= 8
    assert len(later) >= 30 - 5 - 3
    assert [entry.outcome for entry in case.attempts()].count("transport_error") == 1
    check_money(case)


@every_vendor
@pytest.mark.parametrize("hint", [None, "garbage"])
def test_25_a_rate_limit_without_a_hint_is_waited_out(
    server: Remote, tmp_path: Path, vendor: str, hint: str | None
) -> None:
    server.set(faults=[fault("rate_limit", at=[2, 3], hint=hint)])
    case = make_case(server, tmp_path, vendor)
    assert case.buy().new == 6
    assert case.counts()["outcomes"] == {"ok": 6, "refused 429": 2}


@every_vendor
def test_25_overload_that_outlasts_the_tries_leaves_calls_pending(server: Remote, tmp_path: Path, vendor: str) -> None:
    server.set(faults=[fault("overload")])
    case = make_case(server, tmp_path, vendor, items=1, account={"tries": 3})
    with pytest.raises(PendingError, match="2 of 2 calls are still unanswered"):
        case.buy()
    assert case.counts()["requests"] == 6
    assert [entry.outcome for entry in case.attempts()] == ["transport_error"] * 6
    assert case.held() == 0
    server.set(faults=[])
    assert case.buy().new == 2
    assert [row["attempts"] for row in case.replies()] == [4, 4]


@every_vendor
def test_25_a_wait_beyond_the_deadline_is_not_waited_for(server: Remote, tmp_path: Path, vendor: str) -> None:
    server.set(faults=[fault("rate_limit", hint="seconds", wait_s=900)])
    case = make_case(server, tmp_path, vendor, items=1)
    began = time.monotonic()
    with pytest.raises(PendingError, match="deadline_s"):
        case.buy()
    assert time.monotonic() - began < 300


# Whether the vendor worked and charged, and what the ledger holds of an attempt that ended so.
_LOST = {
    "reset": (False, True),
    "html_error": (False, False),
    "server": (False, False),
    "overload": (False, False),
    "reset_after": (True, True),
    "html_200": (True, True),
    "empty_200": (True, True),
    "cut_body": (True, True),
    "broken_json": (True, True),
}


@every_vendor
@pytest.mark.parametrize("kind", list(_LOST))
def test_26_and_39_what_is_lost_is_sent_again_once_and_its_price_is_kept(
    server: Remote, tmp_path: Path, vendor: str, kind: str
) -> None:
    billed, maybe_billed = _LOST[kind]
    server.set(faults=[fault(kind, sending=[1])])
    case = make_case(server, tmp_path, vendor, items=2)
    counts = case.buy()
    assert (counts.new, counts.bought.transport_errors) == (4, 4)
    seen = case.counts()
    # One request an attempt: no SDK sent anything again behind the ledger's back.
    assert (seen["requests"], seen["repeats"], seen["delivered"]) == (8, 4, 4)
    assert len(case.attempts()) == 8
    lost = [entry for entry in case.attempts() if entry.outcome == "transport_error"]
    assert {entry.maybe_billed for entry in lost} == {maybe_billed}
    assert {entry.charged for entry in lost} == ({entry.worst for entry in lost} if maybe_billed else {0})
    assert (seen["undelivered_nano_usd"] > 0) == billed
    assert {row["status"] for row in case.replies()} == {"ok"}
    check_money(case)


@every_vendor
def test_26_a_time_out_is_billed_and_counted_each_time(server: Remote, tmp_path: Path, vendor: str) -> None:
    server.set(faults=[fault("timeout", sending=[1, 2], sleep_s=2.0)])
    case = make_case(server, tmp_path, vendor, items=1, account={"timeout_s": 1.0})
    counts = case.buy()
    assert counts.bought.spent.maybe_billed == 4
    deadline = time.monotonic() + 60
    while case.counts()["in_flight"] and time.monotonic() < deadline:
        time.sleep(0.05)
    seen = case.counts()
    assert (seen["requests"], seen["most_sendings"], seen["billed"]) == (6, 3, 6)
    assert "4 attempts without reply perhaps billed" in str(counts)
    assert case.facts()["charged_at_worst"] == 4
    check_money(case)


@every_vendor
def test_27_missing_usage_is_charged_at_the_worst_case(server: Remote, tmp_path: Path, vendor: str) -> None:
    server.set(faults=[fault("no_usage", at=[1])])
    case = make_case(server, tmp_path, vendor, items=2)
    case.buy()
    at_worst = [entry for entry in case.attempts() if entry.charged == entry.worst]
    assert len(at_worst) == 1 == case.facts()["charged_at_worst"]
    assert case.held() > case.counts()["bill_nano_usd"]


@every_vendor
def test_27_a_cap_is_never_exceeded_and_survives_resuming(server: Remote, tmp_path: Path, vendor: str) -> None:
    case = make_case(server, tmp_path, vendor, items=20, money={"cap_usd": 0.001})
    for _ in range(2):
        with pytest.raises(BudgetError, match=r"money.cap_usd is \$0.001"):
            case.buy()
        assert case.held() <= 1_000_000
        assert case.held() == case.counts()["bill_nano_usd"]
    assert 0 < case.counts()["delivered"] < 40


@every_vendor
def test_28_a_parameter_that_the_model_refuses_stops_before_the_money_is_gone(
    server: Remote, tmp_path: Path, vendor: str
) -> None:
    asked: dict[str, Any] = {"read": {"kind": "generate", "temperature": 0.0}}
    model = {"api_version": "2023-06-01"} if vendor == "anthropic" else {}
    server.set(refuses={f"{vendor}-2026-01-01": ["temperature"]})
    case = make_case(server, tmp_path / "asked", vendor, model=model, **asked)
    with pytest.raises(VendorError, match="temperature"):
        case.buy()
    assert (case.counts()["requests"] <= MOST_REFUSED, case.counts()["bill_nano_usd"]) == (True, 0)
    listed = make_case(
        server, tmp_path / "listed", vendor, model={**model, "does_not_accept": ["temperature"]}, **asked
    )
    assert listed.buy().new == 6
    [sent] = listed.facts()["parameters_sent"]
    assert "temperature" not in sent


@every_vendor
def test_28_what_is_sent_is_on_record(server: Remote, tmp_path: Path, vendor: str) -> None:
    model = {"api_version": "2023-06-01"} if vendor == "anthropic" else {"seed": 3}
    read = {"kind": "generate", "temperature": 0.5, "max_tokens": 9, "stop": ["END"]}
    case = make_case(server, tmp_path, vendor, model=model, read=read)
    assert case.buy().new == 6
    [sent] = case.facts()["parameters_sent"]
    limit = {"openai": "max_completion_tokens", "anthropic": "max_tokens", "google": "maxOutputTokens"}[vendor]
    assert (sent["temperature"], sent[limit]) == (0.5, 9)
    assert ["END"] in sent.values()


@pytest.mark.parametrize(
    ("vendor", "kind", "status"),
    [
        ("openai", "refusal", "refused"),
        ("openai", "filtered", "blocked"),
        ("openai", "filter", "blocked"),
        ("openai", "empty_text", "empty"),
        ("openai", "no_text", "truncated"),
        ("openai", "no_choices", "empty"),
        ("openai", "unknown_finish", "unknown"),
        ("openai", "too_long", "unavailable"),
        ("anthropic", "refusal", "refused"),
        ("anthropic", "filter", "blocked"),
        ("anthropic", "empty_text", "empty"),
        ("anthropic", "no_text", "truncated"),
        ("anthropic", "unknown_finish", "unknown"),
        ("anthropic", "too_long", "unavailable"),
        ("google", "prompt_block", "blocked"),
        ("google", "filtered", "blocked"),
        ("google", "empty_text", "empty"),
        ("google", "no_text", "truncated"),
        ("google", "no_choices", "empty"),
        ("google", "unknown_finish", "unknown"),
        ("google", "too_long", "unavailable"),
    ],
)
def test_29_30_and_39_every_ending_has_its_status_and_is_not_asked_again(
    server: Remote, tmp_path: Path, vendor: str, kind: str, status: str
) -> None:
    server.set(faults=[fault(kind, text="What is 1 + 1")], reasoning_tokens=7)
    case = make_case(server, tmp_path, vendor)
    assert case.buy().new == 6
    found = sorted((row["status"], row["reason"] is not None) for row in case.replies())
    assert found == sorted([(status, True)] * 2 + [("ok", False)] * 4)
    server.set(faults=[])
    assert case.buy().new == 0
    assert case.counts()["requests"] == 6
    if kind == "filter":
        # The refusal names no usage, so the worst case stands.
        assert case.held() > case.counts()["bill_nano_usd"]
    else:
        assert case.held() == case.counts()["bill_nano_usd"]


@pytest.mark.parametrize("vendor", ["openai", "google"])
def test_32_no_log_probabilities_is_unavailable_and_falls_back_to_nothing(
    server: Remote, tmp_path: Path, vendor: str
) -> None:
    server.set(faults=[fault("null_logprobs", text="What is 1 + 1")])
    case = make_case(server, tmp_path, vendor, read={"kind": "logprob", "top": 5})
    case.buy()
    found = [(row["status"], row["top_tokens"] is None) for row in case.replies()]
    assert sorted(found) == [("ok", False)] * 4 + [("unavailable", True)] * 2
    assert {len(row["top_tokens"]) for row in case.replies() if row["top_tokens"]} == {5}


@pytest.mark.parametrize("vendor", ["openai", "google"])
def test_32_labels_outside_the_list_are_censored_not_zero(server: Remote, tmp_path: Path, vendor: str) -> None:
    from counterbalance.artifacts import SCHEMAS, read_table
    from counterbalance.config import load_study
    from counterbalance.stages.score import score_replies

    server.set(faults=[fault("labels_absent", text="What is 1 + 1")])
    case = make_case(server, tmp_path, vendor, read={"kind": "logprob", "top": 5})
    case.buy()
    study = load_study(case.path)
    score_replies(study, "letters", vendor, "sums")
    rows = read_table(study.layout.outcomes("letters", vendor, "sums"), SCHEMAS["outcomes"]).to_pylist()
    absent = [row for row in rows if row["item_id"].endswith("00001")]
    assert [row["outcome"] for row in absent] == ["unusable", "unusable"]
    assert all(row["label_mass"] in (None, 0.0) for row in absent)
    assert {row["outcome"] for row in rows if row not in absent} == {"ok"}


@every_vendor
def test_34_a_model_that_is_gone_stops_the_study(server: Remote, tmp_path: Path, vendor: str) -> None:
    server.set(models={vendor: ["another"]})
    case = make_case(server, tmp_path, vendor)
    with pytest.raises(VendorError, match="`model`"):
        case.buy()
    assert case.counts()["requests"] <= 4


@every_vendor
def test_34_a_model_that_changes_midway_is_on_record(server: Remote, tmp_path: Path, vendor: str) -> None:
    server.set(model_changes=[{"vendor": vendor, "after": 4, "model": "successor"}])
    case = make_case(server, tmp_path, vendor)
    case.buy()
    assert case.facts()["models_returned"] == {f"{vendor}-2026-01-01": 4, "successor": 2}
    assert [row["model_returned"] for row in case.replies()].count("successor") == 2


@every_vendor
def test_36_repeats_are_calls_of_their_own(server: Remote, tmp_path: Path, vendor: str) -> None:
    server.set(respondent={"kind": "content", "noise": 0.9})
    case = make_case(server, tmp_path, vendor, items=6, experiment={"repeats": 3})
    assert case.buy().new == 36
    assert (case.counts()["bodies"], case.counts()["repeats"]) == (12, 24)
    rows = case.replies()
    assert len({row["call_sha256"] for row in rows}) == 36
    by_prompt = [{row["text"] for row in rows if row["trial_id"][:-3] == name} for name in trials_of(rows)]
    # The model disagrees with itself where nothing changed.
    assert any(len(texts) > 1 for texts in by_prompt)


def trials_of(rows: list[dict[str, Any]]) -> set[str]:
    """Return the trials' ids without the number of the repeat."""
    return {row["trial_id"][:-3] for row in rows}


@every_vendor
def test_37_two_models_share_no_reply(server: Remote, tmp_path: Path, vendor: str) -> None:
    from loopback.studies import freeze_study, study_body, write_study

    datasets = {"sums": 2}
    body = study_body({vendor: server.base_url(vendor)}, datasets=datasets, arrangement={"scheme": "identity_reverse"})
    body["models"].append({**body["models"][0], "id": "other", "model": "other-2026-01-01"})
    body["money"]["prices"]["other"] = {"input": 1.0, "output": 4.0}
    body["experiments"][0]["models"].append("other")
    path = write_study(tmp_path, body, datasets)
    freeze_study(path)
    case = Case(server, vendor, path)
    assert (case.buy().new, case.buy(model="other").new) == (4, 4)
    assert (case.counts()["bodies"], case.counts()["repeats"]) == (8, 0)


@every_vendor
def test_40_unusual_characters_come_back_as_they_were(server: Remote, tmp_path: Path, vendor: str) -> None:
    text = "{label}\u2028next\u0085line \U0001f600 e\u0301\tend"
    server.set(respondent={"kind": "fixed", "letter": "A", "text": text})
    case = make_case(server, tmp_path, vendor)
    case.buy()
    assert {row["text"] for row in case.replies()} == {text.format(label="A")}


@pytest.mark.parametrize("vendor", ["openai", "google"])
def test_decisions_give_a_probability_for_each_label(server: Remote, tmp_path: Path, vendor: str) -> None:
    case = make_case(server, tmp_path, vendor, read={"kind": "decide"})
    assert case.buy().new == 6
    assert {row["status"] for row in case.replies()} == {"ok"}
    assert all(set(row["top_tokens"]) == {"A", "B", "C"} for row in case.replies())
    check_money(case)


@every_vendor
def test_35_a_batch_buys_the_same_replies_as_live_calls(server: Remote, tmp_path: Path, vendor: str) -> None:
    live = make_case(server, tmp_path / "live", vendor, items=4)
    live.buy()
    server.reset()
    server.set(batch={"order": "reverse"})
    batch = make_case(
        server, tmp_path / "batch", vendor, items=4, account={"mode": "batch", "batch_poll_s": 0.05, "batch_wait_s": 99}
    )
    assert batch.buy().new == 8
    volatile = {"request_id", "cached_tokens", "attempts", "latency_ms", "call_order", "session", "started_at"}
    tables = [
        [{name: value for name, value in row.items() if name not in volatile} for row in case.replies()]
        for case in (live, batch)
    ]
    assert tables[0] == tables[1]
    endpoints = server.state()["endpoints"]
    assert not any(name.endswith(("chat.completions", " messages", "generateContent")) for name in endpoints)
    check_money(batch)


@every_vendor
def test_35_what_a_batch_did_not_answer_is_bought_again_and_nothing_else(
    server: Remote, tmp_path: Path, vendor: str
) -> None:
    server.set(batch={"expired": [0, 3], "errored": [1]})
    account = {"mode": "batch", "batch_poll_s": 0.05, "batch_wait_s": 120, "tries": 1}
    case = make_case(server, tmp_path, vendor, items=4, account=account)
    with pytest.raises(PendingError):
        case.buy()
    answered = case.rows("SELECT count(reply) FROM calls")[0][0]
    assert answered == 5
    server.set(batch={})
    assert case.buy().new == 3
    assert case.counts()["bodies_delivered"] == case.counts()["delivered"] == 8
    check_money(case)
