import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.errors import CounterbalanceError, KeyRefusedError, OutOfFundsError, VendorError
from counterbalance.vendors.base import CallRefusedError, Reply, TransportError
from counterbalance.vendors.fields import rank_tokens
from counterbalance.vendors.waiting import google_delay, wait_hint
from counterbalance.vendors.wire import Received, explain_breakdown, judge, open_body


def received(status: int, body: object, **headers: str) -> Received:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Received(status, named, body if isinstance(body, str) else json.dumps(body))


def openai_error(message: str, code: str | None = None, kind: str = "invalid_request_error", param: str | None = None):
    return {"error": {"message": message, "type": kind, "code": code, "param": param}}


def anthropic_error(kind: str, message: str, code: str | None = None):
    details = {"details": {"error_code": code}} if code else {}
    return {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": "req_1"}


def google_error(status: str, message: str = "said", *details: dict):
    return {"error": {"code": 0, "message": message, "status": status, "details": list(details)}}


def quota(name: str, value: str = "10") -> dict:
    return {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": name, "quotaValue": value}],
    }


def delay(text: str) -> dict:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": text}


PER_MINUTE = quota("GenerateRequestsPerMinutePerProjectPerModel")

OUT_OF_FUNDS = [
    ("openai", 429, openai_error("You exceeded your current quota", "insufficient_quota", "insufficient_quota")),
    ("openai", 429, openai_error("no credit", "credit_balance_exhausted")),
    ("openai", 429, openai_error("limit", "organization_spend_limit_exceeded")),
    ("openai", 429, openai_error("limit", "project_spend_limit_exceeded")),
    ("openai", 429, openai_error("limit", "organization_usage_limit_exceeded")),
    ("openai", 400, openai_error("Billing hard limit has been reached", "billing_hard_limit_reached")),
    ("openai", 402, {"error": {"message": "Insufficient Balance"}}),
    ("openai", 403, {"code": "forbidden", "error": "Your team has used all available credits or reached its limit."}),
    ("openai", 429, {"code": "x", "error": "Your team has either used all available credits."}),
    ("anthropic", 400, anthropic_error("invalid_request_error", "Your credit balance is too low to access the API.")),
    ("anthropic", 400, anthropic_error("invalid_request_error", "You have reached your specified API usage limits.")),
    ("anthropic", 402, anthropic_error("billing_error", "pay", "linked_organization_billing_unavailable")),
    ("anthropic", 429, anthropic_error("rate_limit_error", "limit", "enforced_spend_limit_reached")),
    ("anthropic", 429, anthropic_error("rate_limit_error", "limit", "contract_spend_limit_reached")),
    ("google", 402, google_error("FAILED_PRECONDITION")),
    ("google", 403, google_error("PERMISSION_DENIED", "said", {"reason": "BILLING_DISABLED"})),
    ("google", 429, google_error("RESOURCE_EXHAUSTED", "said", quota("GenerateRequestsPerDayPerProjectPerModel"))),
    ("google", 429, google_error("RESOURCE_EXHAUSTED", "said", quota("PerMinute", "0"))),
    ("google", 429, google_error("RESOURCE_EXHAUSTED", "Quota exceeded for metric: x, limit: 0, model: y")),
    ("google", 429, google_error("RESOURCE_EXHAUSTED", "said", PER_MINUTE, delay("7200s"))),
]


@pytest.mark.parametrize(("vendor", "status", "body"), OUT_OF_FUNDS)
def test_no_money_left_is_one_class_however_it_is_said(vendor, status, body):
    assert type(judge(vendor, received(status, body))) is OutOfFundsError


KEY_REFUSED = [
    ("openai", 401, openai_error("Incorrect API key provided", "invalid_api_key")),
    ("openai", 401, "<html>no</html>"),
    ("openai", 403, openai_error("Country, region, or territory not supported", "unsupported_country")),
    ("anthropic", 401, anthropic_error("authentication_error", "invalid x-api-key")),
    ("anthropic", 403, anthropic_error("permission_error", "no")),
    ("anthropic", 400, anthropic_error("invalid_request_error", "on hold", "organization_on_hold")),
    ("anthropic", 400, anthropic_error("invalid_request_error", "This organization has been disabled.")),
    ("google", 400, google_error("INVALID_ARGUMENT", "API key not valid.", {"reason": "API_KEY_INVALID"})),
    ("google", 403, google_error("PERMISSION_DENIED")),
]


@pytest.mark.parametrize(("vendor", "status", "body"), KEY_REFUSED)
def test_a_bad_key_stops_the_vendor(vendor, status, body):
    assert type(judge(vendor, received(status, body))) is KeyRefusedError


CONFIGURATION = [
    ("openai", 400, openai_error("Unsupported value: 'temperature'", "unsupported_value", param="temperature")),
    ("openai", 400, openai_error("max_tokens is too large; context window is 5", "invalid_value", param="max_tokens")),
    ("openai", 403, openai_error("no access to model", "model_not_found")),
    ("openai", 404, openai_error("The model does not exist", "model_not_found")),
    ("openai", 404, "404 page not found"),
    ("openai", 405, ""),
    ("openai", 422, {"detail": [{"loc": ["body", "seed"], "msg": "extra fields not permitted"}]}),
    ("openai", 302, ""),
    ("anthropic", 400, anthropic_error("invalid_request_error", "temperature: Extra inputs are not permitted")),
    ("anthropic", 404, anthropic_error("not_found_error", "model: claude-x")),
    ("google", 400, google_error("INVALID_ARGUMENT", "Logprobs is not supported for the current model.")),
    ("google", 404, google_error("NOT_FOUND", "models/x is not found")),
]


@pytest.mark.parametrize(("vendor", "status", "body"), CONFIGURATION)
def test_what_would_fail_for_every_call_stops_the_study_and_says_what_to_do(vendor, status, body):
    verdict = judge(vendor, received(status, body))
    assert isinstance(verdict, VendorError)
    assert f"{vendor}: HTTP {status}" in str(verdict)
    assert "`" in str(verdict)


@pytest.mark.parametrize(
    ("vendor", "status", "body", "alone"),
    [
        (
            "openai",
            400,
            openai_error("Invalid 'messages[0].content'", "invalid_value", param="messages[0].content"),
            True,
        ),
        ("openai", 400, openai_error("Unsupported value", "unsupported_value", param="temperature"), False),
        ("openai", 404, openai_error("no such model", "model_not_found"), False),
        ("anthropic", 400, anthropic_error("invalid_request_error", "final assistant content cannot end so"), True),
        ("google", 400, google_error("INVALID_ARGUMENT", "Unable to process input text"), True),
        ("google", 404, google_error("NOT_FOUND", "models/x is not found"), False),
    ],
)
def test_what_may_be_the_fault_of_one_text_can_be_that_calls_reply(vendor, status, body, alone):
    verdict = judge(vendor, received(status, body))
    assert isinstance(verdict, CallRefusedError) == alone
    if isinstance(verdict, CallRefusedError):
        reply = verdict.reply
        assert (reply.status, reply.input_tokens, reply.output_tokens) == ("unavailable", 0, 0)
        assert f"{vendor}: HTTP {status}" in str(reply.reason)


@pytest.mark.parametrize(
    ("vendor", "status", "body", "kind"),
    [
        (
            "openai",
            403,
            openai_error("Your newly created team doesn't have any credits or licenses yet"),
            OutOfFundsError,
        ),
        ("google", 400, google_error("FAILED_PRECONDITION", "Please enable billing on project x"), OutOfFundsError),
        ("google", 429, google_error("RESOURCE_EXHAUSTED", "exceeded its monthly spending cap"), OutOfFundsError),
    ],
)
def test_words_of_an_account_without_money(vendor, status, body, kind):
    assert isinstance(judge(vendor, received(status, body)), kind)


def test_a_place_that_is_not_served_is_said_so():
    body = google_error("FAILED_PRECONDITION", "User location is not supported for the API use.")
    assert "ask from another" in str(judge("google", received(400, body)))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"code": "insufficient_quota", "message": "x"}}, OutOfFundsError),
        ({"error": {"code": "invalid_api_key", "message": "x"}}, KeyRefusedError),
        ({"error": {"code": "content_filter", "message": "x"}}, Reply),
        ({"error": {"code": "strange", "message": "x"}}, TransportError),
        ({"object": "error", "message": "CUDA out of memory"}, TransportError),
    ],
)
def test_a_failure_that_comes_as_a_success_is_judged_by_its_words(body, kind):
    verdict = open_body("openai", received(200, body), frozenset({"choices", "object"}))
    assert isinstance(verdict, kind)
    if isinstance(verdict, TransportError):
        assert (verdict.kind, verdict.maybe_billed) == ("server", True)


AGAIN = [
    ("openai", 429, openai_error("Rate limit reached for gpt-x", "rate_limit_exceeded", "requests"), "rate_limit"),
    ("openai", 503, openai_error("Slow down", "slow_down"), "overload"),
    ("openai", 503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, "overload"),
    ("openai", 500, openai_error("The server had an error", None, "server_error"), "server"),
    ("openai", 502, "<html>bad gateway</html>", "server"),
    ("openai", 504, "", "server"),
    ("openai", 408, "", "server"),
    ("openai", 409, "", "server"),
    ("anthropic", 429, anthropic_error("rate_limit_error", "This would exceed your rate limit"), "rate_limit"),
    ("anthropic", 429, anthropic_error("rate_limit_error", "ramp", "ramp_limit_exceeded"), "rate_limit"),
    ("anthropic", 529, anthropic_error("overloaded_error", "Overloaded"), "overload"),
    ("anthropic", 500, anthropic_error("api_error", "Internal server error"), "server"),
    (
        "google",
        429,
        google_error("RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan", PER_MINUTE),
        "rate_limit",
    ),
    ("google", 503, google_error("UNAVAILABLE", "The model is overloaded."), "overload"),
    ("google", 500, google_error("INTERNAL"), "server"),
]


@pytest.mark.parametrize(("vendor", "status", "body", "kind"), AGAIN)
def test_what_passes_is_sent_again_and_was_not_billed(vendor, status, body, kind):
    verdict = judge(vendor, received(status, body))
    assert isinstance(verdict, TransportError)
    assert (verdict.kind, verdict.wait_s, verdict.maybe_billed) == (kind, None, False)


def test_the_wait_comes_with_the_error():
    verdict = judge("google", received(429, google_error("RESOURCE_EXHAUSTED", "x", PER_MINUTE, delay("12.5s"))))
    assert isinstance(verdict, TransportError)
    assert verdict.wait_s == 12.5


FILTERED = [
    ("openai", 400, openai_error("The response was filtered", "content_filter")),
    ("openai", 400, openai_error("Invalid prompt: your prompt was flagged as potentially violating", "invalid_prompt")),
    ("openai", 403, {"code": "x", "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_X"}),
    ("anthropic", 400, anthropic_error("invalid_request_error", "Output blocked by content filtering policy")),
]


@pytest.mark.parametrize(("vendor", "status", "body"), FILTERED)
def test_a_content_filter_is_the_answer_to_this_call(vendor, status, body):
    verdict = judge(vendor, received(status, body, x_request_id="req_5"))
    assert isinstance(verdict, Reply)
    assert (verdict.status, verdict.text, verdict.request_id) == ("blocked", None, "req_5")
    assert "HTTP" in (verdict.reason or "")
    # What a filter costs is not known.
    assert verdict.input_tokens is None


TOO_LONG = [
    ("openai", 400, openai_error("This model's maximum context length is 8 tokens.", "context_length_exceeded")),
    ("openai", 400, {"object": "error", "message": "This model's maximum context length is 8192 tokens.", "code": 400}),
    ("openai", 400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too big"}}),
    ("anthropic", 400, anthropic_error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum")),
    ("anthropic", 413, anthropic_error("request_too_large", "Request exceeds the maximum size")),
    ("google", 400, google_error("INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens")),
]


@pytest.mark.parametrize(("vendor", "status", "body"), TOO_LONG)
def test_a_prompt_that_is_too_long_is_unavailable_for_this_call(vendor, status, body):
    verdict = judge(vendor, received(status, body))
    assert isinstance(verdict, Reply)
    assert (verdict.status, verdict.input_tokens, verdict.output_tokens) == ("unavailable", 0, 0)
    assert (verdict.reason or "").startswith("the prompt is too long")


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_messages_can_be_written_to_a_file_whatever_the_server_sends(status):
    verdict = judge("openai", received(status, '{"error": {"message": "\\ud83d", "code": "\\ud800"}}'))
    str(verdict).encode()


def test_numbers_beyond_any_float_are_no_log_probabilities():
    assert rank_tokens([("A", 10**400), ("B", -(10**400)), ("C", -1), ("D", True), ("E", 0.5)]) == (
        ["E", "C"],
        [0.5, -1.0],
    )


def test_messages_are_short_and_of_one_line_and_without_keys():
    verdict = judge("openai", received(400, openai_error("no\n" * 400 + " sk-abcdefgh12345678")))
    assert len(str(verdict)) <= 500
    assert "does_not_accept" in str(verdict)
    assert "\n" not in str(verdict)
    assert "sk-abc" not in str(judge("openai", received(500, openai_error("key sk-abcdefgh12345678"))))


SHAPE = frozenset({"choices"})


@pytest.mark.parametrize("text", ["<html>busy</html>", "", "{}", '{"choices"', "[]", "null", '"text"', '{"other": 1}'])
def test_a_200_without_an_answer_in_it_is_garbled_and_maybe_billed(text):
    found = open_body("openai", received(200, text), SHAPE)
    assert isinstance(found, TransportError)
    assert (found.kind, found.maybe_billed) == ("garbled", True)


def test_deeply_nested_json_is_garbled():
    found = open_body("openai", received(200, "[" * 100_000), SHAPE)
    assert isinstance(found, TransportError)
    assert found.kind == "garbled"


def test_an_error_in_a_200_is_read_as_an_error_that_was_maybe_billed():
    found = open_body("openai", received(200, {"error": {"code": 429, "message": "slow"}, "choices": []}), SHAPE)
    assert isinstance(found, TransportError)
    assert (found.kind, found.maybe_billed) == ("rate_limit", True)
    other = open_body("openai", received(200, {"error": "something broke"}), SHAPE)
    assert isinstance(other, TransportError)
    assert (other.kind, other.maybe_billed) == ("server", True)


def test_the_shape_is_enough_for_an_answer():
    assert open_body("openai", received(200, {"choices": [], "error": None}), SHAPE) == {"choices": [], "error": None}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "code", "message", "type", "details", "reason", "violations", "quotaId", "detail"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(
    vendor=st.sampled_from(["openai", "anthropic", "google"]),
    status=st.sampled_from([302, 400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 529, 599]),
    body=json_values | st.text(max_size=30),
)
def test_every_status_and_body_has_a_verdict(vendor, status, body):
    verdict = judge(vendor, received(status, body if isinstance(body, str) else json.dumps(body)))
    assert isinstance(verdict, Reply | TransportError | CounterbalanceError)
    if isinstance(verdict, Reply):
        assert verdict.status in ("blocked", "unavailable")


NOW = datetime(2026, 10, 21, 7, 27, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "x", "retry-after": "3"}, 3.0),
        ({}, None),
    ],
)
def test_hints_in_headers(headers, seconds):
    assert wait_hint(headers, now=NOW) == seconds


def test_a_date_is_compared_with_the_servers_own_clock():
    headers = {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:27:15 GMT"}
    assert wait_hint(headers) == 45.0


def test_googles_delay_is_a_floor_beside_the_header():
    assert wait_hint({"retry-after": "3"}, [PER_MINUTE, delay("7s")]) == 7.0
    assert google_delay([PER_MINUTE, {"retryDelay": "3m"}, {"retryDelay": None}, "text"]) is None


class APIConnectionError(Exception):
    """Named like the SDKs' own."""


def caused(outer: Exception, *causes: BaseException) -> Exception:
    error: BaseException = outer
    for cause in causes:
        error.__cause__ = cause
        error = cause
    return outer


def breakdowns():
    import aiohttp
    import httpx2

    class ConnectionKey:
        host, port, ssl, is_ssl = "h", 1, True, False

    refused = aiohttp.ClientConnectorError(ConnectionKey(), OSError("Multiple exceptions"))
    return [
        (caused(APIConnectionError(), httpx2.ConnectError("x"), refused), "connection", False),
        (ConnectionRefusedError("x"), "connection", False),
        (aiohttp.ConnectionTimeoutError("x"), "timeout", False),
        (httpx2.PoolTimeout("x"), "timeout", False),
        # One SDK calls a connection that was dropped after sending a time-out of connecting.
        (
            caused(APIConnectionError(), httpx2.ConnectTimeout("x"), aiohttp.ServerDisconnectedError()),
            "connection",
            True,
        ),
        (ConnectionResetError("x"), "connection", True),
        (aiohttp.ClientOSError(104, "reset"), "connection", True),
        (httpx2.ReadError("x"), "connection", True),
        (httpx2.RemoteProtocolError("x"), "connection", True),
        (aiohttp.ClientPayloadError("x"), "connection", True),
        (httpx2.ReadTimeout("x"), "timeout", True),
        (aiohttp.SocketTimeoutError("x"), "timeout", True),
        (TimeoutError(), "timeout", True),
        (json.JSONDecodeError("x", "y", 0), "garbled", True),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "garbled", True),
        (httpx2.DecodingError("x"), "garbled", True),
        (APIConnectionError("x"), "connection", True),
    ]


@pytest.mark.parametrize("place", range(len(breakdowns())))
def test_breakdowns_are_told_apart_by_what_caused_them(place):
    error, kind, billed = breakdowns()[place]
    verdict = explain_breakdown("openai", error)
    assert isinstance(verdict, TransportError)
    assert (verdict.kind, verdict.maybe_billed) == (kind, billed)


def test_a_bad_address_and_a_bug_are_not_sent_again():
    import aiohttp

    assert "`base_url`" in str(explain_breakdown("openai", aiohttp.InvalidURL("ftp:/x")))
    verdict = explain_breakdown("openai", ZeroDivisionError("x"))
    assert type(verdict) is VendorError
    assert "ZeroDivisionError" in str(verdict)


def test_a_ring_of_causes_ends():
    first, second = ValueError("a"), TimeoutError("b")
    first.__cause__, second.__cause__ = second, first
    assert isinstance(explain_breakdown("openai", first), TransportError)
