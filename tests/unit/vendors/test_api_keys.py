import logging

import pytest

from counterbalance.config.models import Account
from counterbalance.errors import ConfigError, KeyRefusedError
from counterbalance.keys import HIDDEN, Redactor, check_base_url, protect_logs, read_key, redact, refuse_environment

CANARY = "canary-7f3a9c1e5d"


def account(name: str | None = "SOME_KEY") -> Account:
    return Account(id="paid", key_env=name)


def test_a_key_comes_from_the_environment_without_the_blanks_around_it(monkeypatch):
    monkeypatch.setenv("SOME_KEY", f" {CANARY}\n")
    assert read_key(account()) == CANARY
    assert CANARY not in redact(f"wrong key {CANARY}!")


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_is_refused_by_the_name_of_its_variable(monkeypatch, value):
    monkeypatch.delenv("SOME_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(KeyRefusedError, match=r"accounts\.paid\.key_env.*SOME_KEY is not set.*export SOME_KEY"):
        read_key(account())


@pytest.mark.parametrize("value", ["two words-in-it", "line-one\nX-Header: line-two", "schlüssel-ohne-ascii"])
def test_what_cannot_be_a_key_is_refused_without_being_shown(monkeypatch, value):
    monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(KeyRefusedError) as caught:
        read_key(account())
    assert value not in str(caught.value)


def test_a_server_without_keys_needs_no_variable():
    assert read_key(account(None)) == "none"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Incorrect API key provided: sk-proj-AbC_123456.", "Incorrect API key provided: [key]"),
        ("Incorrect API key provided: sk-ab********wxyz.", "Incorrect API key provided: [key]"),
        ("key sk-ant-api03-aaaa_bbbb-cc", "key [key]"),
        ("key AIzaSyA-1234567890_abc", "key [key]"),
        ("key xai-abcdef123456", "key [key]"),
        ("Authorization: Bearer abc.def, next", "[key], next"),
        ("{'x-goog-api-key': 'abc'}", "{'[key]'}"),
        ("got bearer abc.def here", "got [key] here"),
        ("http://user:secret@host/v1", "http://[key]@host/v1"),
    ],
)
def test_what_looks_like_a_key_is_taken_out(text, left):
    found = Redactor()(text)
    assert found.rstrip(".") == left.rstrip(".")


@pytest.mark.parametrize(
    "text",
    ["The task is risk-free, ask again", "gpt-6-luna-2026-01-02", "claude-opus-5-5", "limit: 0 tokens", "a bearer"],
)
def test_ordinary_words_stay(text):
    assert Redactor()(text) == text


def test_the_longer_of_two_keys_is_taken_out_whole():
    found = Redactor()
    found.add("abcdefgh")
    found.add("abcdefghijkl")
    assert found("abcdefghijkl and abcdefgh") == f"{HIDDEN} and {HIDDEN}"


def test_values_too_short_for_a_key_do_not_mangle_words():
    found = Redactor()
    found.add("ollama")
    assert found("ollama is not there") == "ollama is not there"


FORBIDDEN = [
    ("OPENAI_LOG", "debug"),
    ("ANTHROPIC_LOG", "info"),
    ("OPENAI_CUSTOM_HEADERS", "X-A: b"),
    ("ANTHROPIC_CUSTOM_HEADERS", "X-A: b"),
    ("GOOGLE_GENAI_USE_VERTEXAI", "true"),
    ("GOOGLE_GENAI_USE_ENTERPRISE", "1"),
    ("GOOGLE_GENAI_CLIENT_MODE", "replay"),
    ("GOOGLE_API_USE_MTLS_ENDPOINT", "always"),
]


@pytest.mark.parametrize(("name", "value"), FORBIDDEN)
def test_variables_that_change_what_is_sent_are_refused(name, value):
    with pytest.raises(ConfigError, match=rf"{name} is set: it .*unset {name}"):
        refuse_environment({name: value})


def test_the_value_of_a_refused_variable_is_not_shown():
    with pytest.raises(ConfigError) as caught:
        refuse_environment({"OPENAI_CUSTOM_HEADERS": "X-Secret: hush-hush"})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("value", ["", "0", "false", "False"])
def test_variables_that_are_switched_off_are_no_matter(value):
    refuse_environment({"GOOGLE_GENAI_USE_VERTEXAI": value, "HOME": "/home/x"})


@pytest.mark.parametrize("url", ["http://user:pw@host/v1", "https://token@host", "https://host/v1?key=abc"])
def test_credentials_in_an_address_are_refused_without_being_shown(url):
    with pytest.raises(ConfigError, match=r"models\.m\.base_url") as caught:
        check_base_url("models.m.base_url", url)
    assert "pw" not in str(caught.value)
    assert "token" not in str(caught.value)
    assert "abc" not in str(caught.value)


def test_plain_addresses_are_fine():
    check_base_url("models.m.base_url", None)
    check_base_url("models.m.base_url", "http://127.0.0.1:8080/v1")


def test_log_records_are_redacted_also_where_they_carry_an_exception(monkeypatch, caplog):
    monkeypatch.setenv("SOME_KEY", CANARY)
    key = read_key(account())
    protect_logs()
    log = logging.getLogger("somebody.else")
    try:
        raise ValueError(f"refused {key}")
    except ValueError:
        log.exception("call with %s failed", key)
    assert CANARY not in caplog.text
    assert f"call with {HIDDEN} failed" in caplog.text
    assert f"ValueError: refused {HIDDEN}" in caplog.text


def test_sdks_speak_from_warnings_on(caplog):
    protect_logs()
    for name in ("openai._base_client", "anthropic._base_client", "google_genai._api_client", "httpx2"):
        logging.getLogger(name).info("a prompt")
    assert caplog.text == ""
