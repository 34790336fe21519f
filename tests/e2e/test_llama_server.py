"""A server that none of us wrote: llama.cpp's own, asked with the vendors' SDKs through stage query.

It speaks OpenAI's Chat Completions and Anthropic's Messages, and it has no decision endpoint.
"""

import importlib.util
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback.studies import KEYS, freeze_study, key_env, prompts_of, study_body, write_study
from vendor_cases import Case

from counterbalance.errors import KeyRefusedError, VendorError
from counterbalance.vendors.local.server import load_binding
from counterbalance.vendors.local.weights import KNOWN_WEIGHTS

KEY = KEYS["openai"]
CONTEXT = 512


def weights() -> Path:
    known = KNOWN_WEIGHTS["smollm2-135m-instruct"]
    found = importlib.util.find_spec(known.package)
    assert found is not None, f"install {known.requirement}"
    assert found.origin is not None
    return Path(found.origin).parent / known.file_name


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    binding = load_binding()
    parameters = binding.CommonParams()
    parameters.model.path = str(weights())
    parameters.model_alias = {"smollm2"}
    parameters.n_ctx, parameters.n_parallel, parameters.n_gpu_layers = CONTEXT, 1, 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.fit_params = parameters.warmup = parameters.ui = False
    parameters.verbosity = -1
    parameters.api_keys = [KEY]
    server = binding.Server(parameters)
    yield server.listening_address
    del server


@pytest.fixture
def case(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(
        vendor: str, *, padding: str = "", key: str = KEY, model: dict[str, Any] | None = None, **body: Any
    ) -> Case:
        monkeypatch.setenv(key_env(vendor), key)
        datasets = {"sums": 2}
        url = f"{address}/v1" if vendor == "openai" else address
        study = study_body(
            {vendor: url},
            datasets=datasets,
            models={vendor: {"model": "smollm2", **(model or {})}},
            accounts={vendor: {"max_in_flight": 2, "timeout_s": 60.0, "tries": 1}},
            arrangement={"scheme": "identity_reverse"},
            **body,
        )
        path = write_study(tmp_path / vendor, study, datasets, padding=padding)
        freeze_study(path)
        return Case(None, vendor, path)  # type: ignore[arg-type]

    return make


def ask(address: str, body: dict[str, Any]) -> Any:
    """Ask the server without any of our code, or an SDK."""
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    request = urllib.request.Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answered:
        return json.load(answered)


def tokens_of(address: str, prompt: str) -> int:
    """Return what the server counts in a prompt."""
    body = {"model": "smollm2", "messages": [{"role": "user", "content": prompt}], "max_tokens": 1}
    return int(ask(address, body)["usage"]["prompt_tokens"])


def test_chat_through_the_openai_sdk(case: Any, address: str) -> None:
    asked = case("openai", read={"kind": "generate", "max_tokens": 6, "temperature": 0.0})
    assert asked.buy().new == 4
    rows = asked.replies()
    assert {row["status"] for row in rows} <= {"ok", "truncated"}
    assert all(row["text"].strip() for row in rows)
    assert {row["model_returned"] for row in rows} == {"smollm2"}
    assert all(0 < row["output_tokens"] <= 6 for row in rows)
    counted = {tokens_of(address, prompt) for prompt in prompts_of_case(asked)}
    assert {row["input_tokens"] for row in rows} == counted
    # A dollar per million input tokens and four per million output tokens.
    assert asked.held() == sum(1000 * row["input_tokens"] + 4000 * row["output_tokens"] for row in rows)


def test_log_probabilities_through_the_openai_sdk(case: Any, address: str) -> None:
    asked = case("openai", read={"kind": "logprob", "top": 20})
    assert asked.buy().new == 4
    rows = asked.replies()
    assert {row["status"] for row in rows} == {"ok"}
    assert {len(row["top_tokens"]) for row in rows} == {20}
    best = []
    for prompt in prompts_of_case(asked):
        body = {
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": 1,
            "logprobs": True,
            "top_logprobs": 20,
        }
        listed = ask(address, {"model": "smollm2", **body})["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        best.append((listed[0]["token"], listed[0]["logprob"]))
    # The weights are quantised, so the numbers move a little with what the server has cached.
    seen = [(row["top_tokens"][0], row["top_logprobs"][0]) for row in rows]
    assert sorted(token for token, _ in seen) == sorted(token for token, _ in best)
    assert sorted(p for _, p in seen) == pytest.approx(sorted(p for _, p in best), abs=0.2)


def test_messages_through_the_anthropic_sdk(case: Any, address: str) -> None:
    asked = case(
        "anthropic",
        model={"api_version": "2023-06-01"},
        read={"kind": "generate", "max_tokens": 6, "temperature": 0.0},
    )
    assert asked.buy().new == 4
    rows = asked.replies()
    assert {row["status"] for row in rows} <= {"ok", "truncated"}
    assert all(row["text"].strip() for row in rows)
    counted = {tokens_of(address, prompt) for prompt in prompts_of_case(asked)}
    # Its Messages leave out what was cached, its Chat Completions do not; here both mean the whole prompt.
    assert {row["input_tokens"] for row in rows} == counted


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_a_wrong_key_is_told(case: Any, vendor: str) -> None:
    asked = case(vendor, key="sk-wrong-canary-1234567890")
    with pytest.raises(KeyRefusedError, match="Invalid API Key"):
        asked.buy()


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_a_prompt_beyond_the_context_is_final_for_its_call(case: Any, vendor: str) -> None:
    asked = case(vendor, padding="word " * CONTEXT)
    assert asked.buy().new == 4
    assert {row["status"] for row in asked.replies()} == {"unavailable"}
    assert all("too long" in row["reason"] for row in asked.replies())


def test_it_has_no_decision_endpoint(case: Any) -> None:
    asked = case("openai", read={"kind": "decide"})
    with pytest.raises(VendorError, match="HTTP 404"):
        asked.buy()


def prompts_of_case(case: Case) -> list[str]:
    from counterbalance.config import load_study

    return list(prompts_of(load_study(case.path), "sums"))
