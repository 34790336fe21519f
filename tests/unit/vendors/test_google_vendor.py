import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import GOOD, KEY_ENV, ask, bent, failure, make_trial, make_vendor, places, resets, says, without

from counterbalance.canonical import canonical_json, parse_json
from counterbalance.errors import ConfigError
from counterbalance.vendors.base import Reply, Request, TransportError
from counterbalance.vendors.google_vendor import path_of, reply_of, wire_body

KEY = "AIzaTest0123456789"
CHAT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1 + 2 = ?"}]}


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv(KEY_ENV, KEY)


def sent(read="generate", prompt=None, **settings_) -> dict:
    return wire_body(make_vendor("google", read, **settings_).request(make_trial(prompt)))


def test_only_set_fields_are_sent():
    assert sent(prompt={"text": "1 + 2 ="}) == {
        "contents": [{"role": "user", "parts": [{"text": "1 + 2 ="}]}],
        "generationConfig": {"maxOutputTokens": 16},
    }


@pytest.mark.parametrize(
    ("thinking", "config"),
    [
        ({"thinking_level": "LOW"}, {"thinkingLevel": "LOW"}),
        ({"thinking_budget": 0}, {"thinkingBudget": 0}),
    ],
)
def test_everything_that_is_set_is_sent_under_the_vendors_own_names(thinking, config):
    read = {"kind": "generate", "max_tokens": 7, "temperature": 0.0, "stop": ["X"]}
    assert sent(read, CHAT, seed=3, **thinking) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "1 + 2 = ?"}]}],
        "generationConfig": {
            "maxOutputTokens": 7,
            "temperature": 0.0,
            "stopSequences": ["X"],
            "seed": 3,
            "thinkingConfig": config,
        },
    }


def test_what_the_model_does_not_accept_is_not_sent():
    read = {"kind": "generate", "temperature": 0.0, "stop": ["X"]}
    body = sent(read, seed=3, does_not_accept=["temperature", "stop", "seed"])
    assert body["generationConfig"] == {"maxOutputTokens": 16}


def test_log_probabilities_are_asked_for_one_token():
    asked = {"maxOutputTokens": 1, "responseLogprobs": True, "logprobs": 5}
    assert sent("logprob")["generationConfig"] == asked
    assert sent("logprob", seed=3, does_not_accept=["seed"])["generationConfig"] == asked
    own = {"seed": 3, "thinkingConfig": {"thinkingBudget": 0}}
    assert sent("logprob", seed=3, thinking_budget=0)["generationConfig"] == asked | own


def test_a_decision_has_labels_for_criteria_in_slot_order():
    body = sent("decide", CHAT)
    assert body == {
        "model": "models/some-model",
        "input": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "1 + 2 = ?"}],
        "questions": {
            "answer": {
                "type": "choice",
                "instructions": "Choose the label of the best answer.",
                "criteria": {"A": "four", "B": "three", "C": "fünf"},
            }
        },
    }
    assert list(body["questions"]["answer"]["criteria"]) == ["A", "B", "C"]


def test_the_wire_sees_what_was_hashed_also_after_it_was_stored():
    for read in ("generate", "logprob", "decide"):
        thinking = {} if read == "decide" else {"thinking_level": "LOW"}
        request = make_vendor("google", read, **thinking).request(make_trial(CHAT))
        stored = parse_json(canonical_json(request.body()), source="ledger")
        stored.pop("schema")
        again = Request(**stored)
        assert json.dumps(wire_body(again)["questions"] if read == "decide" else 0) == json.dumps(
            wire_body(request)["questions"] if read == "decide" else 0
        )
        assert wire_body(again) == wire_body(request)
        assert path_of(again) == path_of(request)


@pytest.mark.parametrize("version", ["v1", "v1beta"])
@pytest.mark.parametrize("read", ["generate", "logprob", "decide"])
def test_the_server_gets_that_body_with_the_key_in_the_header(read, version):
    good = DECIDED if read == "decide" else GOOD["google"]
    _, (one,) = ask("google", says(good), read=read, prompt=CHAT, api_version=version)
    assert one.path == f"/{version}/" + ("decisions" if read == "decide" else "models/some-model:generateContent")
    assert one.headers["x-goog-api-key"] == KEY
    assert KEY not in one.path
    port = int(one.headers["host"].rpartition(":")[2])
    request = make_vendor("google", read, port=port, api_version=version).request(make_trial(CHAT))
    assert request.parameters["api_version"] == version
    assert one.body == wire_body(request)


def test_our_body_is_the_one_the_sdk_would_have_made():
    import asyncio

    from google import genai
    from google.genai import types
    from scripted import Server

    async def through_the_sdk() -> dict:
        async with Server([says(GOOD["google"])]) as server:
            import aiohttp

            async with aiohttp.ClientSession() as session:
                client = genai.Client(
                    api_key=KEY,
                    http_options=types.HttpOptions(base_url=f"http://127.0.0.1:{server.port}", aiohttp_client=session),
                )
                await client.aio.models.generate_content(
                    model="some-model",
                    contents="1 + 2 = ?",
                    config=types.GenerateContentConfig(
                        system_instruction="Be brief.",
                        max_output_tokens=7,
                        temperature=0.0,
                        stop_sequences=["X"],
                        seed=3,
                    ),
                )
                await client.aio.aclose()
                client.close()
            assert server.seen[0].path == "/v1/models/some-model:generateContent"
            return server.seen[0].body

    theirs = asyncio.run(through_the_sdk())
    theirs["systemInstruction"].pop("role")
    read = {"kind": "generate", "max_tokens": 7, "temperature": 0.0, "stop": ["X"]}
    assert theirs == sent(read, CHAT, seed=3)


def test_the_environment_does_not_send_it_elsewhere(monkeypatch):
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GOOGLE_API_KEY", "AIzaAnother-key-0123")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    _, (one,) = ask("google", says(GOOD["google"]))
    assert one.headers["x-goog-api-key"] == KEY
    assert one.path.startswith("/v1/")


def test_a_full_answer():
    reply, _ = ask("google", says(GOOD["google"]))
    assert reply == Reply(
        "ok",
        text="B",
        finish_reason="STOP",
        model_returned="gemini-x-001",
        request_id="resp-1",
        input_tokens=40,
        cached_tokens=32,
        output_tokens=9,
        reasoning_tokens=8,
    )


def candidate(finish: object, *parts: object) -> dict:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": finish}]}


B = {"text": "B"}
ENDINGS = [
    (candidate("STOP", B, {"text": "."}), "ok", "B."),
    (candidate("STOP", {"text": "hm", "thought": True}), "empty", None),
    (candidate("STOP", {"text": " "}), "empty", " "),
    (candidate("STOP"), "empty", None),
    (candidate("STOP", None, {"functionCall": {}}), "empty", None),
    (candidate("MAX_TOKENS", {"text": "The"}), "truncated", "The"),
    ({"candidates": [{"finishReason": "MAX_TOKENS", "content": {}}]}, "truncated", None),
    ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "truncated", None),
    ({"candidates": [{"finishReason": "SAFETY"}]}, "blocked", None),
    (candidate("RECITATION", {"text": "The"}), "blocked", "The"),
    (candidate("PROHIBITED_CONTENT"), "blocked", None),
    (candidate("OTHER", B), "unknown", "B"),
    (candidate("CONTINUATION", B), "unknown", "B"),
    (candidate("SOMETHING_NEW", B), "unknown", "B"),
    (candidate(None, B), "unknown", "B"),
    ({"promptFeedback": {"blockReason": "OTHER"}}, "blocked", None),
    ({"candidates": [], "promptFeedback": {"blockReason": "SAFETY"}}, "blocked", None),
    ({"candidates": [], "promptFeedback": {}}, "empty", None),
    ({"candidates": None}, "empty", None),
    ({"candidates": [None]}, "empty", None),
    ({"usageMetadata": {"promptTokenCount": 4}}, "empty", None),
]


@pytest.mark.parametrize(("body", "status", "text"), ENDINGS)
def test_every_ending_has_its_status_and_keeps_its_text(body, status, text):
    reply, seen = ask("google", says(body))
    assert (reply.status, reply.text) == (status, text)
    assert (reply.reason is None) == (status == "ok")
    # Also where the vendor would have the SDK ask for a continuation.
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, (None, None, None, None)),
        # A text of no tokens was not counted.
        ({"promptTokenCount": 5, "thoughtsTokenCount": 256}, (5, None, None, 256)),
        ({"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 300}, (5, None, 295, None)),
        ({"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}, (5, None, 2, None)),
        ({"promptTokenCount": 5}, (5, None, None, None)),
        ({"candidatesTokenCount": 2, "thoughtsTokenCount": 3}, (None, None, 5, 3)),
        ({"promptTokenCount": "5", "candidatesTokenCount": 1.5}, (None, None, None, None)),
    ],
)
def test_usage(usage, counted):
    reply = reply_of(bent("google", "usageMetadata", to=usage), make_vendor("google").request(make_trial()))
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens, reply.reasoning_tokens) == counted


def test_a_count_of_zero_is_left_out_where_no_text_came():
    body = {"candidates": [{"finishReason": "SAFETY"}], "usageMetadata": {"promptTokenCount": 5}}
    reply = reply_of(body, make_vendor("google").request(make_trial()))
    assert (reply.text, reply.input_tokens, reply.output_tokens) == (None, 5, 0)


def with_logprobs(result: object, finish: str = "MAX_TOKENS") -> dict:
    return {"candidates": [{"content": {"parts": [B]}, "finishReason": finish, "logprobsResult": result}]}


def test_log_probabilities_are_those_of_the_first_token_likeliest_first():
    first = [{"token": " B", "logProbability": -2.5}, {"token": "B", "tokenId": 4, "logProbability": -0.1}]
    body = with_logprobs({"topCandidates": [{"candidates": first}, {"candidates": []}]})
    reply, _ = ask("google", says(body), read="logprob")
    assert (reply.status, reply.top_tokens, reply.top_logprobs) == ("ok", ["B", " B"], [-0.1, -2.5])


def test_a_number_that_the_json_leaves_out_is_zero():
    body = with_logprobs({"topCandidates": [{"candidates": [{"token": "B"}, {"token": "A", "logProbability": None}]}]})
    reply = reply_of(body, make_vendor("google", "logprob").request(make_trial()))
    assert (reply.top_tokens, reply.top_logprobs) == (["B"], [0.0])


@pytest.mark.parametrize(
    "result", [None, {}, {"topCandidates": None}, {"topCandidates": []}, {"topCandidates": [{"candidates": [None]}]}]
)
def test_log_probabilities_that_did_not_come_are_unavailable(result):
    reply, _ = ask("google", says(with_logprobs(result)), read="logprob")
    assert (reply.status, reply.top_tokens) == ("unavailable", None)


def test_a_block_is_one_also_where_log_probabilities_were_asked_for():
    reply, _ = ask("google", says({"promptFeedback": {"blockReason": "OTHER"}}), read="logprob")
    assert (reply.status, reply.reason) == ("blocked", "blockReason OTHER")


DECIDED = {
    "answers": {
        "answer": {"type": "choice", "choice": "B", "confidence": 0.75, "probabilities": {"A": 0.25, "B": 0.75, "C": 0}}
    },
    "usage": {"total_input_tokens": 50, "total_cached_tokens": 10, "total_output_tokens": 2, "total_thought_tokens": 3},
}


def test_a_decision_gives_natural_logarithms_and_leaves_out_what_was_rounded_to_zero():
    reply, _ = ask("google", says(DECIDED), read="decide")
    assert reply == Reply(
        "ok",
        text="B",
        top_tokens=["B", "A"],
        top_logprobs=[math.log(0.75), math.log(0.25)],
        finish_reason="choice",
        input_tokens=50,
        cached_tokens=10,
        output_tokens=5,
        reasoning_tokens=3,
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"prompt_feedback": {"block_reason": "safety"}}, "blocked"),
        ({"answers": {}}, "empty"),
        ({"answers": None, "usage": None}, "empty"),
        ({"answers": {"answer": {"type": "noul"}}}, "unknown"),
        ({"answers": {"answer": {"type": "choice", "probabilities": None}}}, "unavailable"),
        ({"answers": {"answer": {"type": "choice", "probabilities": {"A": -0.1, "B": 1.1}}}}, "unavailable"),
    ],
)
def test_decisions_without_an_answer(body, status):
    reply, seen = ask("google", says(body), read="decide")
    assert (reply.status, reply.top_tokens) == (status, None)
    assert len(seen) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(data=st.data(), read=st.sampled_from(["generate", "logprob", "decide"]))
def test_reading_is_total_and_never_makes_an_answer_of_something_else(data, read):
    request = make_vendor("google", read).request(make_trial())
    listed = {"topCandidates": [{"candidates": [{"token": "B", "logProbability": -0.5}]}]}
    body = json.loads(json.dumps(DECIDED if read == "decide" else with_logprobs(listed)))
    path = data.draw(st.sampled_from(places(body)))
    at = body
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = data.draw(json_values)
    canonical_json(reply_of(body, request).body())
    alone = data.draw(json_values)
    assert reply_of(alone, request).status in ("empty", "unknown", "unavailable")


def test_a_missing_part_is_no_crash():
    for path in places(GOOD["google"]):
        reply_of(without("google", *path), make_vendor("google").request(make_trial()))


@pytest.mark.parametrize(
    ("read", "settings_", "named"),
    [
        ({"kind": "option_text"}, {}, "option_text"),
        ({"kind": "logprob", "top": 21}, {}, "read.top"),
        ({"kind": "decide"}, {"thinking_level": "LOW"}, "thinking_level"),
    ],
)
def test_what_the_interface_cannot_give_is_said_before_anything_is_sent(read, settings_, named):
    with pytest.raises(ConfigError, match=named):
        make_vendor("google", read, **settings_)


@pytest.mark.parametrize("read", ["generate", "decide"])
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 504])
def test_nothing_is_sent_twice(status, read):
    error, count = failure("google", says({"error": {"code": status, "message": "x"}}, status), read=read)
    assert isinstance(error, TransportError)
    assert count == 1


@pytest.mark.parametrize("read", ["generate", "decide"])
def test_a_dropped_connection_is_not_tried_again_in_silence(read):
    error, count = failure("google", resets, read=read)
    assert isinstance(error, TransportError)
    assert (error.kind, error.maybe_billed, count) == ("connection", True, 1)


@pytest.mark.parametrize(
    "body", [b'"text"', b"null", b"[]", b'[{"error": {"message": "x"}}]', b'{"a": NaN, "b": "\\ud800"}']
)
def test_an_error_of_any_form_is_one(body):
    error, _ = failure("google", says(body, 503))
    assert isinstance(error, TransportError)
    assert error.kind == "overload"


def test_a_proxy_is_taken_from_the_environment_but_not_for_hosts_that_go_without(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "localhost")
    error, count = failure("google", says(GOOD["google"]))
    assert isinstance(error, TransportError)
    assert (error.kind, error.maybe_billed, count) == ("connection", False, 0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    reply, _ = ask("google", says(GOOD["google"]))
    assert reply.text == "B"


def test_a_redirect_is_not_followed_with_the_key():
    error, count = failure("google", says("", 307, location="/elsewhere"), says(GOOD["google"]))
    assert "redirects are not followed" in str(error)
    assert count == 1


def test_a_model_id_may_be_a_full_name():
    request = make_vendor("google", model="tunedModels/mine?x").request(make_trial())
    assert path_of(request) == "tunedModels/mine%3Fx:generateContent"
