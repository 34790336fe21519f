"""Keys of calls, fixed for ever: a key that moves would buy every reply again.

The texts are written by hand after RFC 8785, and the hashes come from `printf '%s' "$text" | sha256sum`.
"""

import hashlib
import json
from dataclasses import replace

import pytest

from counterbalance.canonical import canonical_json
from counterbalance.vendors.base import Request

PLAIN = Request(
    vendor="scripted",
    base_url=None,
    model="m1",
    parameters={"temperature": 0.0, "max_tokens": 16, "stop": []},
    prompt={"text": "2 + 2 = ?\nA. 4\nB. 5\nAnswer:"},
    continuations=None,
    repeat=0,
)
PLAIN_TEXT = (
    r'{"base_url":null,"continuations":null,"model":"m1","parameters":{"max_tokens":16,"stop":[],"temperature":0},'
    r'"prompt":{"text":"2 + 2 = ?\nA. 4\nB. 5\nAnswer:"},"repeat":0,"schema":"counterbalance/call/1",'
    r'"vendor":"scripted"}'
)
PLAIN_KEY = "sha256:d2e8e46bafc5f76024d4ace872048b5056e0bdfa38f42cd9e0531a786e2d16ba"
CHAT = Request(
    vendor="other",
    base_url="https://models.example/v1",
    model="größe-1",
    parameters={"top": 20, "temperature": 0.5},
    prompt={
        "messages": [
            {"role": "system", "content": "Answer “A” or “B”."},
            {"role": "user", "content": "tab\there\u0001"},
        ]
    },
    continuations=[" vier", " fünf"],
    repeat=3,
)
CHAT_TEXT = (
    r'{"base_url":"https://models.example/v1","continuations":[" vier"," fünf"],"model":"größe-1",'
    r'"parameters":{"temperature":0.5,"top":20},"prompt":{"messages":[{"content":"Answer “A” or “B”.",'
    r'"role":"system"},{"content":"tab\there\u0001","role":"user"}]},"repeat":3,"schema":"counterbalance/call/1",'
    r'"vendor":"other"}'
)
CHAT_KEY = "sha256:01f4cc31709747b9c0d793b268f2c8f730522f593aac16da168352a70f7f38b1"

CHANGED = {
    "vendor": "another",
    "base_url": "http://127.0.0.1:8000/v1",
    "model": "m2",
    "parameters": {"temperature": 0.0, "max_tokens": 17, "stop": []},
    "prompt": {"text": "2 + 2 = ?\nA. 5\nB. 4\nAnswer:"},
    "continuations": [" 4", " 5"],
    "repeat": 1,
}


@pytest.mark.parametrize(
    ("request_", "text", "key"), [(PLAIN, PLAIN_TEXT, PLAIN_KEY), (CHAT, CHAT_TEXT, CHAT_KEY)], ids=["plain", "chat"]
)
def test_golden_keys(request_: Request, text: str, key: str) -> None:
    assert canonical_json(request_.body()).decode() == text
    assert request_.sha256 == key


def test_a_key_is_what_the_standard_library_computes() -> None:
    # No real numbers here: their shortest form is where the standard library and RFC 8785 differ.
    request = replace(PLAIN, parameters={"max_tokens": 16, "stop": ["\n"]})
    text = json.dumps(request.body(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert request.sha256 == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("name", CHANGED)
def test_every_field_enters_the_key(name: str) -> None:
    assert replace(PLAIN, **{name: CHANGED[name]}).sha256 != PLAIN.sha256


def test_no_field_is_left_out_of_the_cases_above() -> None:
    assert CHANGED.keys() == vars(PLAIN).keys()


@pytest.mark.parametrize("parameters", [{}, {"max_tokens": 16}, {"temperature": 0.0, "max_tokens": 16, "top": 5}])
def test_a_parameter_added_or_left_out_is_another_call(parameters: dict) -> None:
    assert replace(PLAIN, parameters=parameters).sha256 != PLAIN.sha256


def test_the_order_of_parameters_and_the_kind_of_sequence_do_not_matter() -> None:
    turned = replace(PLAIN, parameters={"stop": [], "max_tokens": 16, "temperature": 0})
    assert turned.sha256 == PLAIN.sha256
    assert replace(CHAT, continuations=(" vier", " fünf")).sha256 == CHAT.sha256
    assert replace(CHAT, continuations=[" fünf", " vier"]).sha256 != CHAT.sha256
