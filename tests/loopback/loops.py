"""Bare asyncio loops over the vendors' SDKs: what a careful script does that keeps nothing.

Styles: ``default``: the client as its documentation shows it; ``aiohttp``: the same call over the faster transport;
``raw``: the SDK's client, but the reply's JSON is not made into SDK objects (the way the pipeline asks).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

STYLES = {
    "openai": ("default", "aiohttp", "raw"),
    "anthropic": ("default", "aiohttp", "raw"),
    "google": ("default", "raw"),
}
Ask = Callable[[str], Awaitable[str]]


def run_loop(vendor: str, style: str, url: str, prompts: Sequence[str], in_flight: int) -> float:
    """Ask all prompts, `in_flight` at a time; return the seconds it took."""
    return asyncio.run(_loop(vendor, style, url, prompts, in_flight))


async def _loop(vendor: str, style: str, url: str, prompts: Sequence[str], in_flight: int) -> float:
    ask, close = CLIENTS[vendor](style, url, in_flight)
    left, letters, began = iter(prompts), 0, time.perf_counter()

    async def work() -> None:
        nonlocal letters
        for prompt in left:
            answer = await ask(prompt)
            letters += answer in {"A", "B", "C"}

    await asyncio.gather(*(work() for _ in range(in_flight)))
    took = time.perf_counter() - began
    await close()
    if letters != len(prompts):
        raise ValueError(f"{len(prompts) - letters} of {len(prompts)} replies held no letter")
    return took


def _openai(style: str, url: str, in_flight: int) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    import httpx2
    import openai

    limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    transport = None if style == "default" else openai.DefaultAioHttpClient(limits=limits)
    client = openai.AsyncOpenAI(api_key="key", base_url=url, max_retries=0, http_client=transport)

    def body(prompt: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}]
        return {"model": "m", "messages": messages, "max_completion_tokens": 16, "temperature": 0, "store": False}

    async def ask(prompt: str) -> str:
        reply = await client.chat.completions.create(**body(prompt))
        return str(reply.choices[0].message.content)

    async def ask_raw(prompt: str) -> str:
        reply = await client.post("/chat/completions", cast_to=httpx2.Response, body=body(prompt))
        return str(json.loads(reply.content)["choices"][0]["message"]["content"])

    return ask_raw if style == "raw" else ask, client.close


def _anthropic(style: str, url: str, in_flight: int) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    import anthropic
    import httpx2

    limits = httpx2.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    transport = None if style == "default" else anthropic.DefaultAioHttpClient(limits=limits)
    client = anthropic.AsyncAnthropic(api_key="key", base_url=url, max_retries=0, http_client=transport)

    def body(prompt: str) -> dict[str, Any]:
        return {"model": "m", "max_tokens": 16, "messages": [{"role": "user", "content": prompt}]}

    async def ask(prompt: str) -> str:
        reply = await client.messages.create(**body(prompt))
        return str(reply.content[0].text)

    async def ask_raw(prompt: str) -> str:
        reply = await client.post("/v1/messages", cast_to=httpx2.Response, body=body(prompt))
        return str(json.loads(reply.content)["content"][0]["text"])

    return ask_raw if style == "raw" else ask, client.close


def _google(style: str, url: str, in_flight: int) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url, api_version="v1", timeout=60_000)
    client = genai.Client(api_key="key", http_options=options)
    config = types.GenerateContentConfig(
        temperature=0,
        max_output_tokens=16,
        automatic_continuation=False,
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        should_return_http_response=style == "raw",
    )

    async def ask(prompt: str) -> str:
        reply = await client.aio.models.generate_content(model="m", contents=prompt, config=config)
        return str(reply.text)

    async def ask_raw(prompt: str) -> str:
        reply: Any = await client.aio.models.generate_content(model="m", contents=prompt, config=config)
        return str(json.loads(reply.sdk_http_response.body)["candidates"][0]["content"]["parts"][0]["text"])

    return ask_raw if style == "raw" else ask, client.aio.aclose


CLIENTS = {"openai": _openai, "anthropic": _anthropic, "google": _google}
