"""What vendors say of batches and of single calls in them that the loopback server does not say."""

import asyncio
import json
from typing import Any

import pytest
from batch_wire_cases import EXAMPLE, make

from counterbalance.errors import KeyRefusedError, OutOfFundsError, VendorError
from counterbalance.vendors.base import Reply, TransportError
from counterbalance.vendors.batch_ids import HopelessError


def openai_state(view: dict) -> Any:
    vendor = make("openai", "http://127.0.0.1:1")

    async def _view(_batch_id: str) -> dict:
        return view

    vendor._view = _view
    return asyncio.run(vendor.state("b"))


def failed(code: str, message: str = "some words") -> dict:
    return {"status": "failed", "errors": {"data": [{"code": code, "message": message, "line": 3}]}}


def test_openai_states() -> None:
    assert openai_state(failed("token_limit_exceeded")).status == "queue_full"
    state = openai_state(failed("invalid_json_line"))
    assert (state.done, state.failed) == (True, "line 3: some words")
    with pytest.raises(HopelessError) as caught:
        openai_state(failed("billing_hard_limit_reached", "Billing hard limit has been reached."))
    assert isinstance(caught.value.stop, OutOfFundsError)
    for status, done in [("validating", False), ("finalizing", False), ("expired", True), ("cancelled", True)]:
        assert openai_state({"status": status}).done is done
    assert openai_state({}).done is False


def google(job: dict) -> Any:
    vendor = make("google", "http://127.0.0.1:1")

    async def _view(_batch_id: str) -> dict:
        return job

    vendor._view = _view
    return vendor


def google_job(state: str, **more: Any) -> dict:
    return {"name": "batches/1", "metadata": {"state": state, "batchStats": {"successfulRequestCount": "2"}}, **more}


def test_google_states() -> None:
    def state(job: dict) -> Any:
        return asyncio.run(google(job).state("batches/1"))

    assert state(google_job("JOB_STATE_PARTIALLY_SUCCEEDED")).status == "completed"
    assert state(google_job("BATCH_STATE_EXPIRED")).status == "expired"
    assert state(google_job("BATCH_STATE_RUNNING")).counts["completed"] == 2
    assert state(google_job("JOB_STATE_PAUSED")).done is False
    assert state(google_job("JOB_STATE_FAILED", error={"code": 8, "message": "quota"})).status == "queue_full"
    assert state(google_job("JOB_STATE_FAILED", error={"code": 3, "message": "bad line"})).failed == "bad line"
    with pytest.raises(HopelessError) as caught:
        state(google_job("JOB_STATE_FAILED", error={"code": 7, "message": "no permission"}))
    assert isinstance(caught.value.stop, KeyRefusedError)


def test_google_results_within_the_job_and_the_numbers_of_their_errors() -> None:
    good = {"candidates": [{"content": {"parts": [{"text": "B"}]}, "finishReason": "STOP"}], "modelVersion": "m"}
    entries = [
        {"metadata": {"key": "a"}, "response": good},
        {"metadata": {"key": "b"}, "error": {"code": 14, "message": "try later"}},
        {"metadata": {"key": "c"}, "error": {"code": 16, "message": "who are you"}},
        {"metadata": {"key": "d"}},
    ]
    job = google_job("JOB_STATE_SUCCEEDED", response={"inlinedResponses": {"inlinedResponses": entries}})

    async def read() -> dict:
        return {line.custom_id: line.outcome async for line in google(job).results("batches/1", EXAMPLE)}

    found = asyncio.run(read())
    assert isinstance(found["a"], Reply)
    assert (found["a"].status, found["a"].text) == ("ok", "B")
    assert (type(found["b"]), found["b"].kind) == (TransportError, "overload")
    assert isinstance(found["c"].stop, KeyRefusedError)
    assert (found["d"].kind, found["d"].maybe_billed) == ("garbled", True)


def test_anthropic_errors_of_single_calls() -> None:
    vendor = make("anthropic", "http://127.0.0.1:1")

    def outcome(kind: str, message: str = "words") -> Any:
        error = {"type": "error", "error": {"type": kind, "message": message}}
        line = {"custom_id": "a", "result": {"type": "errored", "error": error}}
        return vendor._line(json.loads(json.dumps(line)), EXAMPLE)

    assert outcome("overloaded_error").kind == "overload"
    assert outcome("api_error").kind == "server"
    assert outcome("something_new").kind == "server"
    assert isinstance(outcome("billing_error").stop, OutOfFundsError)
    assert isinstance(outcome("invalid_request_error", "top_k: Extra inputs are not permitted").stop, VendorError)
    assert outcome("invalid_request_error", "prompt is too long: 300000 tokens").status == "unavailable"
