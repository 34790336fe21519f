"""A server on this machine that answers as it is told, and the vendors' own SDKs pointed at it."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Self

from aiohttp import web

from counterbalance.config.models import Account, AnthropicModel, Experiment, GoogleModel, OpenAIModel
from counterbalance.vendors.anthropic_vendor import AnthropicVendor
from counterbalance.vendors.api import ApiVendor
from counterbalance.vendors.base import Reply, Trial
from counterbalance.vendors.google_vendor import GoogleVendor
from counterbalance.vendors.openai_vendor import OpenAIVendor

KEY_ENV = "TEST_VENDOR_KEY"
STUDY: Any = SimpleNamespace(path="study.yaml")
READS: dict[str, dict[str, Any]] = {
    "generate": {"kind": "generate", "temperature": None},
    "logprob": {"kind": "logprob", "top": 5},
    "decide": {"kind": "decide"},
    "option_text": {"kind": "option_text"},
}
VENDORS: dict[str, tuple[type[Any], type[ApiVendor[Any]], str]] = {
    "openai": (OpenAIModel, OpenAIVendor, "/v1"),
    "anthropic": (AnthropicModel, AnthropicVendor, ""),
    "google": (GoogleModel, GoogleVendor, ""),
}

# Answers of the three vendors that hold the letter B.
GOOD: dict[str, dict[str, Any]] = {
    "openai": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-x-2026-01-02",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "B"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 40,
            "completion_tokens": 9,
            "total_tokens": 49,
            "prompt_tokens_details": {"cached_tokens": 32},
            "completion_tokens_details": {"reasoning_tokens": 8},
        },
    },
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "thinking", "thinking": "..."}, {"type": "text", "text": "B"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 8,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 32,
            "output_tokens": 9,
            "output_tokens_details": {"thinking_tokens": 8},
        },
    },
    "google": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "B"}]},
                "finishReason": "STOP",
            }
        ],
        "modelVersion": "gemini-x-001",
        "responseId": "resp-1",
        "usageMetadata": {
            "promptTokenCount": 40,
            "cachedContentTokenCount": 32,
            "candidatesTokenCount": 1,
            "thoughtsTokenCount": 8,
            "totalTokenCount": 49,
        },
    },
}

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Seen:
    """A request as it came in."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Server:
    """Answers requests in turn, the last answer again and again."""

    answers: list[Answer] = field(repr=False)
    # Not shown, because the key is in what was seen, and some tests look for it in everything that is shown.
    seen: list[Seen] = field(default_factory=list, repr=False)
    port: int = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.path, headers, raw))
        return await self.answers[min(len(self.seen), len(self.answers)) - 1](request)


def says(body: Any, status: int = 200, **headers: str) -> Answer:
    """Answer with JSON, or with text as HTML."""

    async def answer(_: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, bytes):
            return web.Response(body=body, status=status, content_type="application/json", headers=named)
        if isinstance(body, str):
            return web.Response(text=body, status=status, content_type="text/html", headers=named)
        return web.json_response(body, status=status, headers=named)

    return answer


async def resets(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def cuts_short(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "4000", "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b'{"choices": [')
    assert request.transport is not None
    request.transport.close()
    return response


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(600)
    return web.Response()


def make_vendor(
    vendor: str,
    read: str | dict[str, Any] = "generate",
    *,
    port: int | None = None,
    account: Any = None,
    **settings: Any,
) -> ApiVendor[Any]:
    model_class, vendor_class, path = VENDORS[vendor]
    url = {} if port is None else {"base_url": f"http://127.0.0.1:{port}{path}"}
    model = model_class.model_validate(
        {"id": "asked", "vendor": vendor, "model": "some-model", "account": "a", **url, **settings}
    )
    experiment = Experiment.model_validate(
        {
            "id": "letters",
            "design": "mcq",
            "datasets": ["sums"],
            "models": ["asked"],
            "prompt": {"template": "letter.j2", "style": "chat"},
            "read": READS[read] if isinstance(read, str) else read,
        }
    )
    paid = Account.model_validate({"id": "a", "key_env": KEY_ENV, "timeout_s": 60.0, **(account or {})})
    return vendor_class(model, paid, experiment, STUDY)


def make_trial(prompt: Any = None, repeat: int = 0) -> Trial:
    return Trial(
        trial_id="i001.mcq.0000.00",
        experiment="letters",
        subset="sums",
        item_id="i001",
        arrangement=("o2", "o1", "o3"),
        labels=("A", "B", "C"),
        option_texts=("four", "three", "fünf"),
        gold_slot=1,
        repeat=repeat,
        prompt=prompt or {"messages": [{"role": "user", "content": "1 + 2 = ? \u2028 ü"}]},
        prompt_sha256="sha256:" + "0" * 64,
    )


def ask(
    vendor: str, *answers: Answer, read: str | dict[str, Any] = "generate", prompt: Any = None, **settings: Any
) -> tuple[Reply, list[Seen]]:
    """Ask once through the real SDK; the key must be in the environment."""

    async def run() -> tuple[Reply, list[Seen]]:
        async with Server(list(answers)) as server, make_vendor(vendor, read, port=server.port, **settings) as asked:
            trial = make_trial(prompt)
            return await asked.ask(asked.request(trial), trial), server.seen

    return asyncio.run(run())


def failure(vendor: str, *answers: Answer, **settings: Any) -> tuple[Exception, int]:
    """Ask once, and return what was raised and how many requests came in."""

    async def run() -> tuple[Exception, int]:
        async with Server(list(answers)) as server, make_vendor(vendor, port=server.port, **settings) as asked:
            trial = make_trial()
            try:
                reply = await asked.ask(asked.request(trial), trial)
            except Exception as error:
                return error, len(server.seen)
            raise AssertionError(f"no failure, but {reply}")

    return asyncio.run(run())


def bent(vendor: str, *path: str | int, to: Any) -> dict[str, Any]:
    """A good answer with one place changed."""
    body = json.loads(json.dumps(GOOD[vendor]))
    at = body
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return body


def without(vendor: str, *path: str | int) -> dict[str, Any]:
    """A good answer with one place missing."""
    body = json.loads(json.dumps(GOOD[vendor]))
    at = body
    for step in path[:-1]:
        at = at[step]
    del at[path[-1]]
    return body


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """All paths into a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + list(itertools.chain.from_iterable(places(v, (*path, k)) for k, v in inner))
