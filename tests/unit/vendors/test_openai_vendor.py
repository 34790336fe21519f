import asyncio
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import GOOD, KEY_ENV, ask, bent, failure, make_trial, make_vendor, places, says, without

from counterbalance.canonical import canonical_json, parse_json
from counterbalance.config.extra import refused_fields
from counterbalance.config.models import Account
from counterbalance.errors import ConfigError, KeyRefusedError, VendorError
from counterbalance.vendors.base import Reply, Request
from counterbalance.vendors.openai_vendor import reply_of, wire_body

KEY = "sk-test-0123456789abcdef"
CHAT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 2 = ?"}]}


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)


def sent(read="generate", prompt=None, **settings_) -> dict:
    """The body for OpenAI's own server."""
    vendor = make_vendor("openai", read, **settings_)
    return wire_body(vendor.request(make_trial(prompt)))


GENERATE = {"kind": "generate", "max_tokens": 7, "temperature": 0.0, "stop": ["\n"]}


def test_only_set_fields_are_sent():
    assert sent({"kind": "generate", "temperature": None}) == {
        "model": "some-model",
        "messages": [{"role": "user", "content": "1 + 2 = ? \u2028 ü"}],
        "max_completion_tokens": 16,
        "store": False,
    }


def test_everything_that_is_set_is_sent_under_the_vendors_own_names():
    body = sent(
        GENERATE,
        CHAT,
        seed=3,
        reasoning_effort="none",
        system_role="developer",
        token_limit_field="max_tokens",
        extra={"top_p": 1.0},
    )
    assert body == {
        "model": "some-model",
        "messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "1 + 2 = ?"}],
        "max_tokens": 7,
        "temperature": 0.0,
        "stop": ["\n"],
        "seed": 3,
        "reasoning_effort": "none",
        "store": False,
        "top_p": 1.0,
    }


def test_what_the_model_does_not_accept_is_not_sent():
    body = sent(GENERATE, seed=3, does_not_accept=["temperature", "stop", "seed"])
    assert not {"temperature", "stop", "seed"} & body.keys()


def test_plain_text_is_one_user_message():
    assert sent(prompt={"text": "1 + 2 ="})["messages"] == [{"role": "user", "content": "1 + 2 ="}]


def test_another_server_is_not_sent_what_only_openai_knows():
    assert "store" not in sent(base_url="http://127.0.0.1:1/v1")


def test_log_probabilities_are_asked_for_one_token():
    body = sent("logprob")
    assert (body["max_completion_tokens"], body["logprobs"], body["top_logprobs"]) == (1, True, 5)
    assert not {"temperature", "seed"} & body.keys()


def test_log_probabilities_are_asked_for_with_the_models_own_settings():
    body = sent("logprob", seed=3, reasoning_effort="none", extra={"top_p": 1.0})
    assert (body["seed"], body["reasoning_effort"], body["top_p"]) == (3, "none", 1.0)
    assert "seed" not in sent("logprob", seed=3, does_not_accept=["seed"])


@pytest.mark.parametrize("read", [GENERATE, "logprob", "decide"])
@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_nothing_that_the_study_sets_may_be_set_again_by_extra(read, limit):
    own = {} if read == "decide" else {"seed": 3, "reasoning_effort": "low"}
    vendor = make_vendor("openai", read, system_role="developer", token_limit_field=limit, **own)
    request = vendor.request(make_trial(CHAT))
    names = {*request.parameters, *wire_body(request)} - {"store"}
    assert {name for name, _ in refused_fields(dict.fromkeys(names))} == names


def test_a_decision_has_labels_for_values_and_options_for_descriptions_in_slot_order():
    assert sent("decide", CHAT) == {
        "model": "some-model",
        "input": CHAT["messages"],
        "questions": [
            {
                "type": "choice",
                "name": "answer",
                "instructions": "Choose the label of the best answer.",
                "choices": [
                    {"value": "A", "description": "four"},
                    {"value": "B", "description": "three"},
                    {"value": "C", "description": "fünf"},
                ],
            }
        ],
    }


@pytest.mark.parametrize("read", ["generate", "logprob", "decide"])
def test_the_wire_sees_what_was_hashed_also_after_it_was_stored(read):
    request = make_vendor("openai", read).request(make_trial(CHAT))
    stored = parse_json(canonical_json(request.body()), source="ledger")
    stored.pop("schema")
    assert wire_body(Request(**stored)) == wire_body(request)


@pytest.mark.parametrize("read", ["generate", "logprob", "decide"])
def test_the_server_gets_those_bytes_with_the_key_in_the_header(read):
    good = DECIDED if read == "decide" else GOOD["openai"]
    reply, seen = ask("openai", says(good, x_request_id="req_1"), read=read)
    assert reply.request_id == "req_1"
    (one,) = seen
    assert one.path == ("/v1/decisions" if read == "decide" else "/v1/chat/completions")
    assert one.headers["authorization"] == f"Bearer {KEY}"
    assert one.headers["content-type"] == "application/json"
    port = int(one.headers["host"].rpartition(":")[2])
    assert one.body == wire_body(make_vendor("openai", read, port=port).request(make_trial()))
    assert KEY.encode() not in one.raw


def test_a_key_less_server_and_the_organisation_of_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/elsewhere")
    _, (one,) = ask("openai", says(GOOD["openai"]), account={"key_env": None})
    assert one.headers["authorization"] == "Bearer none"
    assert not {"openai-organization", "openai-project"} & one.headers.keys()


def test_a_full_answer():
    reply, _ = ask("openai", says(GOOD["openai"], x_request_id="req_7"))
    assert reply == Reply(
        "ok",
        text="B",
        finish_reason="stop",
        model_returned="gpt-x-2026-01-02",
        fingerprint="fp_1",
        request_id="req_7",
        input_tokens=40,
        cached_tokens=32,
        output_tokens=9,
        reasoning_tokens=8,
    )


def chat(finish: object = "stop", **message: object) -> dict:
    return {"choices": [{"message": message, "finish_reason": finish}]}


ENDINGS = [
    (chat(content=" B\n"), "ok", " B\n"),
    (chat(content=[{"type": "text", "text": "B"}, {"type": "text", "text": "."}]), "ok", "B."),
    (chat("length", content="The answ"), "truncated", "The answ"),
    (chat("length", content=""), "truncated", ""),
    (chat("length", content=None), "truncated", None),
    (chat(content=""), "empty", ""),
    (chat(content=" \n"), "empty", " \n"),
    (chat(content=None), "empty", None),
    (chat(content=None, reasoning_content="hm"), "empty", None),
    (chat(content=[]), "empty", None),
    (chat(content=None, refusal="I cannot."), "refused", "I cannot."),
    (chat("content_filter", content=None), "blocked", None),
    (chat("content_filter", content="The"), "blocked", "The"),
    (chat("abort", content="B"), "unknown", "B"),
    (chat("tool_calls", content=None), "unknown", None),
    (chat(None, content="B"), "unknown", "B"),
    ({"choices": [{"finish_reason": "stop"}]}, "empty", None),
    ({"choices": [{"message": None, "finish_reason": "stop"}]}, "empty", None),
    ({"choices": []}, "empty", None),
    ({"choices": None, "usage": None}, "empty", None),
    ({"choices": [None]}, "empty", None),
]


@pytest.mark.parametrize(("body", "status", "text"), ENDINGS)
def test_every_ending_has_its_status_and_keeps_its_text(body, status, text):
    reply, seen = ask("openai", says(body))
    assert (reply.status, reply.text) == (status, text)
    assert (reply.reason is None) == (status == "ok")
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, (None, None, None, None)),
        ({}, (None, None, None, None)),
        ({"prompt_tokens": 5, "completion_tokens": 2}, (5, None, 2, None)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": None}, (5, None, 2, None)),
        ({"prompt_tokens": -5, "completion_tokens": "2"}, (None, None, None, None)),
        # Reasoning that is counted in the total alone: 5 in, 2 + 30 out.
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "total_tokens": 37,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            (5, None, 32, 30),
        ),
    ],
)
def test_usage(usage, counted):
    reply = reply_of(bent("openai", "usage", to=usage), make_vendor("openai").request(make_trial()))
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens, reply.reasoning_tokens) == counted


def with_logprobs(logprobs: object, finish: str = "length") -> dict:
    return {"choices": [{"message": {"content": "B"}, "finish_reason": finish, "logprobs": logprobs}]}


def listed(*entries: tuple[object, object]) -> dict:
    return {"content": [{"token": "B", "top_logprobs": [{"token": t, "logprob": p} for t, p in entries]}]}


def test_log_probabilities_are_those_of_the_first_token_likeliest_first():
    body = with_logprobs({"content": listed((" B", -2.5), ("B", -0.1))["content"] + [{"top_logprobs": []}]})
    reply, _ = ask("openai", says(body), read="logprob")
    assert (reply.status, reply.reason) == ("ok", None)
    assert (reply.top_tokens, reply.top_logprobs) == (["B", " B"], [-0.1, -2.5])
    assert (reply.text, reply.finish_reason) == ("B", "length")


@pytest.mark.parametrize(
    "logprobs",
    [None, {}, {"content": None}, {"content": []}, {"content": [None]}, {"content": [{"top_logprobs": []}]}, [], "x"],
)
def test_log_probabilities_that_did_not_come_are_unavailable_not_a_text_to_read(logprobs):
    reply, _ = ask("openai", says(with_logprobs(logprobs)), read="logprob")
    assert (reply.status, reply.top_tokens, reply.top_logprobs) == ("unavailable", None, None)


def test_entries_without_a_finite_number_are_left_out():
    body = with_logprobs(listed(("A", None), ("B", -1.0), (None, -2.0), ("C", math.inf), ("D", True), ("E", "x")))
    reply = reply_of(body, make_vendor("openai", "logprob").request(make_trial()))
    assert (reply.top_tokens, reply.top_logprobs) == (["B"], [-1.0])


@pytest.mark.parametrize(
    ("finish", "message", "status"),
    [("content_filter", {}, "blocked"), ("stop", {"refusal": "no"}, "refused"), ("abort", {}, "unknown")],
)
def test_a_refusal_is_one_also_where_log_probabilities_were_asked_for(finish, message, status):
    body = {"choices": [{"message": message, "finish_reason": finish, "logprobs": listed(("B", -0.1))}]}
    assert reply_of(body, make_vendor("openai", "logprob").request(make_trial())).status == status


def shares(*entries: tuple[object, object]) -> list[dict]:
    return [{"value": value, "probability": share} for value, share in entries]


DECIDED = {
    "model": "gpt-6-luna-x",
    "answers": [
        {
            "type": "choice",
            "name": "answer",
            "choice": "B",
            "confidence": 0.75,
            "probabilities": shares(("A", 0.25), ("B", 0.75), ("C", 0)),
        }
    ],
    "usage": {
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}


def test_a_decision_gives_natural_logarithms_and_leaves_out_what_was_rounded_to_zero():
    reply, _ = ask("openai", says(DECIDED), read="decide")
    assert reply == Reply(
        "ok",
        text="B",
        top_tokens=["B", "A"],
        top_logprobs=[math.log(0.75), math.log(0.25)],
        finish_reason="choice",
        model_returned="gpt-6-luna-x",
        input_tokens=50,
        cached_tokens=10,
        output_tokens=0,
        reasoning_tokens=0,
    )


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([{"type": "refusal", "name": "answer"}], "refused"),
        ([], "empty"),
        (None, "empty"),
        ([{"type": "predicate", "probability": 0.5}], "unknown"),
        ([{"type": "choice", "choice": "B", "probabilities": None}], "unavailable"),
        ([{"type": "choice", "choice": "B", "probabilities": shares(("B", 1.5))}], "unavailable"),
        ([{"type": "choice", "choice": "B", "probabilities": shares(("B", None))}], "unavailable"),
        ([{"type": "choice", "choice": True, "probabilities": shares((True, 1.0))}], "unavailable"),
        ([{"type": "choice", "choice": "B", "probabilities": shares(("B", 0))}], "unavailable"),
    ],
)
def test_decisions_without_an_answer(answers, status):
    reply, _ = ask("openai", says({"answers": answers, "usage": None, "model": "m"}), read="decide")
    assert (reply.status, reply.top_tokens) == (status, None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), read=st.sampled_from(["generate", "logprob", "decide"]))
def test_reading_is_total_and_never_makes_an_answer_of_something_else(data, read):
    request = make_vendor("openai", read).request(make_trial())
    body = json.loads(json.dumps(DECIDED if read == "decide" else with_logprobs(listed(("B", -0.5)))))
    path = data.draw(st.sampled_from(places(body)))
    at = body
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = data.draw(json_values)
    canonical_json(reply_of(body, request).body())
    alone = data.draw(json_values)
    assert reply_of(alone, request).status in ("empty", "unknown", "unavailable")


CONFIG = [
    ({"kind": "option_text"}, {}, "option_text"),
    ({"kind": "logprob", "top": 21}, {}, "read.top"),
    ({"kind": "logprob", "top": 5}, {"does_not_accept": ["logprobs"]}, "log-probabilities"),
    ({"kind": "decide"}, {"extra": {"top_p": 1}}, "extra"),
    ({"kind": "decide"}, {"seed": 0}, "seed"),
    ({"kind": "generate"}, {"base_url": "http://user:pw@host/v1"}, "base_url"),
]


@pytest.mark.parametrize(("read", "settings_", "named"), CONFIG)
def test_what_the_interface_cannot_give_is_said_before_anything_is_sent(read, settings_, named):
    with pytest.raises(ConfigError, match=named):
        make_vendor("openai", read, **settings_)


def test_a_request_needs_no_key(monkeypatch):
    monkeypatch.delenv(KEY_ENV)
    vendor = make_vendor("openai")
    assert vendor.request(make_trial()).sha256.startswith("sha256:")

    async def open_it() -> None:
        async with vendor:
            raise AssertionError("opened without a key")

    with pytest.raises(KeyRefusedError, match=KEY_ENV):
        asyncio.run(open_it())


def test_neither_account_nor_key_nor_mode_is_part_of_the_call():
    one = make_vendor("openai").request(make_trial())
    other = make_vendor("openai", account={"key_env": "OTHER", "mode": "batch", "timeout_s": 9.0}).request(make_trial())
    assert one.sha256 == other.sha256
    assert one.sha256 != make_vendor("openai", seed=1).request(make_trial()).sha256
    assert Account.model_fields.keys().isdisjoint(one.parameters)


def test_bounds_hold_the_bytes_of_everything_sent():
    vendor = make_vendor("openai", GENERATE)
    request = vendor.request(make_trial(CHAT))
    bounds = vendor.bounds(request)
    text = len("Be brief.") + len("1 + 2 = ?")
    assert bounds.input_most > text + 2 * 16
    assert bounds.input_about < bounds.input_most
    assert bounds.output_most == 7
    longer = vendor.bounds(vendor.request(make_trial({"text": "ü" * 1000})))
    assert longer.input_most >= 2000
    assert (
        make_vendor("openai", "logprob").bounds(make_vendor("openai", "logprob").request(make_trial())).output_most == 1
    )
    decide = make_vendor("openai", "decide")
    assert decide.bounds(decide.request(make_trial())).output_most > 0


def test_an_unusable_address_is_a_matter_of_configuration():
    vendor = make_vendor("openai", base_url="ftp://127.0.0.1/v1")

    async def run() -> None:
        async with vendor:
            await vendor.ask(vendor.request(make_trial()), make_trial())

    with pytest.raises(VendorError, match="base_url"):
        asyncio.run(run())


def test_nothing_is_sent_twice():
    for status in (408, 409, 429, 500, 503):
        _, count = failure("openai", says({"error": {"message": "x"}}, status, x_should_retry="true"))
        assert count == 1


def test_a_missing_part_is_no_crash():
    for path in places(GOOD["openai"]):
        reply_of(without("openai", *path), make_vendor("openai").request(make_trial()))
