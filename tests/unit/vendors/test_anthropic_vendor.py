import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import GOOD, KEY_ENV, ask, bent, failure, make_trial, make_vendor, places, says, without

from counterbalance.canonical import canonical_json, parse_json
from counterbalance.errors import ConfigError
from counterbalance.vendors.anthropic_vendor import API_VERSION, reply_of, wire_body
from counterbalance.vendors.base import Reply, Request

KEY = "sk-ant-test-0123456789"
CHAT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 2 = ?"}]}


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)


def sent(read="generate", prompt=None, **settings_) -> dict:
    return wire_body(make_vendor("anthropic", read, **settings_).request(make_trial(prompt)))


def test_only_set_fields_are_sent():
    assert sent(prompt={"text": "1 + 2 ="}) == {
        "model": "some-model",
        "messages": [{"role": "user", "content": "1 + 2 ="}],
        "max_tokens": 16,
    }


def test_everything_that_is_set_is_sent_under_the_vendors_own_names():
    read = {"kind": "generate", "max_tokens": 7, "temperature": 0.0, "stop": ["X"]}
    assert sent(read, CHAT, api_version="2023-06-01", thinking="disabled", effort="low") == {
        "model": "some-model",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "1 + 2 = ?"}],
        "max_tokens": 7,
        "temperature": 0.0,
        "stop_sequences": ["X"],
        "thinking": {"type": "disabled"},
        "output_config": {"effort": "low"},
    }


def test_a_temperature_that_cannot_be_sent_is_refused_or_declared():
    read = {"kind": "generate", "temperature": 0.0, "stop": ["X"]}
    with pytest.raises(ConfigError, match=r"temperature: null.*does_not_accept.*2023-06-01"):
        make_vendor("anthropic", read)
    body = sent(read, does_not_accept=["temperature", "stop"])
    assert not {"temperature", "stop_sequences"} & body.keys()


@pytest.mark.parametrize("read", ["logprob", "decide", "option_text"])
def test_the_interface_has_no_other_read(read):
    with pytest.raises(ConfigError, match=r"experiments\.letters\.read"):
        make_vendor("anthropic", read)


@pytest.mark.parametrize("version", [None, "2023-06-01"])
def test_the_server_gets_those_bytes_the_key_and_the_version_that_was_hashed(version):
    _, (one,) = ask("anthropic", says(GOOD["anthropic"]), prompt=CHAT, api_version=version)
    assert one.path == "/v1/messages"
    assert one.headers["authorization"] == f"Bearer {KEY}"
    assert one.headers["anthropic-version"] == version or API_VERSION
    port = int(one.headers["host"].rpartition(":")[2])
    request = make_vendor("anthropic", port=port, api_version=version).request(make_trial(CHAT))
    assert request.parameters["api_version"] == one.headers["anthropic-version"]
    assert one.body == wire_body(request)


def test_the_version_is_the_one_the_installed_sdk_asks_for():
    from anthropic._constants import ANTHROPIC_API_VERSION

    assert API_VERSION == ANTHROPIC_API_VERSION


def test_the_wire_sees_what_was_hashed_also_after_it_was_stored():
    request = make_vendor("anthropic", effort="low").request(make_trial(CHAT))
    stored = parse_json(canonical_json(request.body()), source="ledger")
    stored.pop("schema")
    assert wire_body(Request(**stored)) == wire_body(request)


def test_a_full_answer_counts_cached_input_as_input():
    reply, _ = ask("anthropic", says(GOOD["anthropic"], request_id="req_7"))
    assert reply == Reply(
        "ok",
        text="B",
        finish_reason="end_turn",
        model_returned="claude-x",
        request_id="req_7",
        input_tokens=40,
        cached_tokens=32,
        output_tokens=9,
        reasoning_tokens=8,
    )


def message(stop: object, *blocks: object, **more: object) -> dict:
    return {"content": list(blocks), "stop_reason": stop, "usage": None, **more}


B = {"type": "text", "text": "B"}
THINKING = {"type": "thinking", "thinking": "hm"}
ENDINGS = [
    (message("end_turn", THINKING, B), "ok", "B"),
    (message("end_turn", B, {"type": "text", "text": "."}), "ok", "B."),
    (message("stop_sequence", B), "ok", "B"),
    (message("max_tokens", B), "truncated", "B"),
    (message("max_tokens", THINKING), "truncated", None),
    (message("model_context_window_exceeded", B), "truncated", "B"),
    (message("end_turn", THINKING), "empty", None),
    (message("end_turn", {"type": "redacted_thinking", "data": "x"}), "empty", None),
    (message("end_turn", {"type": "text", "text": " "}), "empty", " "),
    (message("end_turn"), "empty", None),
    (message("refusal"), "refused", None),
    (message("refusal", B, stop_details={"type": "refusal", "category": "bio", "explanation": None}), "refused", "B"),
    (message("pause_turn", B), "unknown", "B"),
    (message("tool_use", {"type": "tool_use"}), "unknown", None),
    (message("something_new", B), "unknown", "B"),
    (message(None, B), "unknown", "B"),
    (message(7, B), "unknown", "B"),
    (message("end_turn", None, {"type": "text", "text": None}, {"text": "no type"}), "empty", None),
    ({"content": None, "stop_reason": "end_turn"}, "empty", None),
]


@pytest.mark.parametrize(("body", "status", "text"), ENDINGS)
def test_every_ending_has_its_status_and_keeps_its_text(body, status, text):
    reply, seen = ask("anthropic", says(body))
    assert (reply.status, reply.text) == (status, text)
    assert (reply.reason is None) == (status == "ok")
    assert len(seen) == 1


def test_why_a_request_was_refused_is_kept():
    body = message("refusal", stop_details={"category": "bio", "explanation": "could enable harm"})
    assert reply_of(body, make_vendor("anthropic").request(make_trial())).reason == (
        "stop_reason refusal: bio: could enable harm"
    )
    thought = reply_of(message("end_turn", THINKING), make_vendor("anthropic").request(make_trial()))
    assert thought.reason == "only thinking came back"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, (None, None, None, None)),
        ({"input_tokens": 5, "output_tokens": 2}, (5, None, 2, None)),
        ({"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": None}, (5, None, 2, None)),
        (
            {
                "input_tokens": 5,
                "cache_read_input_tokens": 30,
                "cache_creation_input_tokens": 7,
                "output_tokens": 2,
                "output_tokens_details": None,
            },
            (42, 30, 2, None),
        ),
        ({"cache_read_input_tokens": 30, "output_tokens": 2}, (None, 30, 2, None)),
    ],
)
def test_usage(usage, counted):
    reply = reply_of(bent("anthropic", "usage", to=usage), make_vendor("anthropic").request(make_trial()))
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens, reply.reasoning_tokens) == counted


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(path=st.sampled_from(places(GOOD["anthropic"])), value=json_values)
def test_reading_is_total_and_never_makes_an_answer_of_something_else(path, value):
    request = make_vendor("anthropic").request(make_trial())
    canonical_json(reply_of(bent("anthropic", *path, to=value), request).body())
    reply_of(without("anthropic", *path), request)
    assert reply_of(value, request).status in ("empty", "unknown")


def test_a_deprecated_model_raises_no_warning():
    from anthropic._data import DEPRECATED_MODELS

    # Warnings are errors in these tests.
    reply, _ = ask("anthropic", says(GOOD["anthropic"]), model=next(iter(DEPRECATED_MODELS)))
    assert reply.status == "ok"


def test_a_long_output_limit_needs_no_streaming():
    reply, _ = ask(
        "anthropic", says(GOOD["anthropic"]), read={"kind": "generate", "temperature": None, "max_tokens": 60_000}
    )
    assert reply.status == "ok"


def test_nothing_is_sent_twice():
    for status in (408, 409, 429, 500, 529):
        error = {"type": "error", "error": {"type": "api_error", "message": "x"}}
        _, count = failure("anthropic", says(json.loads(json.dumps(error)), status, x_should_retry="true"))
        assert count == 1
