"""The server: takes a request apart, has the vendor's wire format judge it, answers, or fails as scripted."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import ModuleType
from typing import Any

from aiohttp import web

from . import anthropic_wire, google_wire, openai_wire
from .batches import Batches
from .counts import Counts
from .failure import WireError
from .faults import REFUSED, Script
from .respondent import Ask, answer
from .settings import VENDORS, Json, Settings, cost_nano_usd

WIRES: dict[str, ModuleType] = {"openai": openai_wire, "anthropic": anthropic_wire, "google": google_wire}
_LARGEST_BODY = 2**30
_LOOK_S = 0.01
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_HTML = "<html><head><title>Just a moment...</title></head><body>Checking your browser.</body></html>"


@dataclass(frozen=True)
class Route:
    """Where a path leads: an endpoint that answers, or `files` and `batches` with the rest of the path."""

    vendor: str
    endpoint: str
    model: str | None = None


@lru_cache(maxsize=1024)
def find_route(path: str, key_kind: str) -> Route:
    """Take a path apart. Its first part may name the vendor; else the kind of key header tells."""
    parts = [part for part in path.partition("?")[0].split("/") if part]
    vendor = parts.pop(0) if parts and parts[0] in VENDORS else key_kind
    if parts and parts[0] in {"v1", "v1beta"}:
        parts.pop(0)
    rest = "/".join(parts)
    if vendor == "google" and rest.startswith("models/") and rest.endswith(":generateContent"):
        return Route(vendor, "generateContent", rest[len("models/") : -len(":generateContent")])
    endpoints = {
        ("openai", "chat/completions"): "chat.completions",
        ("openai", "decisions"): "decisions",
        ("google", "decisions"): "decisions",
        ("anthropic", "messages"): "messages",
    }
    return Route(vendor, endpoints.get((vendor, rest), rest))


class Loopback:
    """Three vendors in one server; its state is all in `settings`, `counts` and `batches`."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.counts = Counts(record=self.settings.record)
        self.script = Script(self.settings.faults)
        self.batches = Batches(self)

    def apply(self, changes: Mapping[str, Json]) -> None:
        """Change settings; counts stay, but scripted rules start afresh where they were changed."""
        self.settings.update(changes)
        if "faults" in changes:
            self.script = Script(self.settings.faults)

    def reset(self) -> None:
        """Forget everything that was counted, filed and handed in; settings stay."""
        self.counts = Counts(record=self.settings.record)
        self.script = Script(self.settings.faults)
        self.batches = Batches(self)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request."""
        path = request.raw_path
        if path.startswith("/control/"):
            return await self._control(request, path)
        headers = request.headers
        kind = "google" if "x-goog-api-key" in headers or path.startswith("/upload/") else "openai"
        route = find_route(path, "anthropic" if "anthropic-version" in headers else kind)
        if request.method == "POST" and route.endpoint in {
            "chat.completions",
            "messages",
            "generateContent",
            "decisions",
        }:
            return await self._answer(request, route)
        try:
            if "/upload/session/" not in path:
                WIRES[route.vendor].check_key(headers, self.settings)
            return await self.batches.handle(request, route.vendor, route.endpoint)
        except WireError as failure:
            return _json(failure.body, failure.status, failure.headers)

    async def _answer(self, request: web.BaseRequest, route: Route) -> web.StreamResponse:
        arrived = time.monotonic()
        vendor, wire = route.vendor, WIRES[route.vendor]
        raw = await request.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        digest = identity(route, body)
        serial, ordinal, sending = self.counts.arrive(vendor, route.endpoint, digest)
        end = partial(self.counts.end, vendor, digest, arrived=arrived)
        try:
            ask = self.understand(route, request.headers, body)
            fault = self.script.pick(ask, ordinal, sending)
            if fault["kind"] in REFUSED:
                raise wire.failure(fault["kind"], fault, ask.model)
        except WireError as failure:
            await asyncio.sleep(self.settings.latency_ms / 1000)
            end(f"refused {failure.status}", cost=0, reply=None)
            return _json(failure.body, failure.status, failure.headers)
        if self.settings.latency_ms:
            await asyncio.sleep(self.settings.latency_ms / 1000)
        while self.counts.vendors[vendor].delivered >= self.settings.hold.get(vendor, math.inf):
            await asyncio.sleep(_LOOK_S)
        if fault["kind"] in {"reset", "html_error"}:
            end(fault["kind"], cost=0, reply=None)
            return _reset(request) if fault["kind"] == "reset" else _html(int(fault.get("status", 502)))
        sent, cost = self.work(ask, serial, fault)
        if fault["kind"] in _SPOILED:
            if fault["kind"] == "timeout":
                await asyncio.sleep(float(fault.get("sleep_s", 5.0)))
            end(fault["kind"], cost=cost, reply=None)
            return await _SPOILED[fault["kind"]](request, sent)
        end(fault["kind"] or "ok", cost=cost, reply=wire.request_id(serial))
        return web.Response(body=sent, content_type="application/json", headers=wire.headers_of(serial))

    def understand(self, route: Route, headers: Mapping[str, str], body: Json) -> Ask:
        """Check key, body and funds; return what is asked."""
        wire = WIRES[route.vendor]
        wire.check_key(headers, self.settings)
        if isinstance(body, dict) and body.get("stream"):
            raise wire.invalid("This server does not stream.")
        ask: Ask = wire.read(route.endpoint, headers, body, self.settings, route.model)
        funds = self.settings.funds_nano_usd.get(route.vendor)
        counts = self.counts.vendors[route.vendor]
        if funds is not None and counts.delivered_nano_usd + counts.undelivered_nano_usd >= funds:
            raise wire.failure("out_of_funds", {}, ask.model)
        return ask

    def work(self, ask: Ask, serial: int, twist: Mapping[str, Json], *, batch: bool = False) -> tuple[bytes, int]:
        """Return an answer's body and its price in nano-USD."""
        said = answer(ask, self.settings, serial)
        body = WIRES[ask.vendor].reply(ask, said, serial, self._model(ask, twist), twist)
        if twist["kind"] == "no_usage":
            body.pop("usage", None)
            body.pop("usageMetadata", None)
        cost = cost_nano_usd(said.usage, self.settings.prices[ask.vendor], batch=batch)
        return json.dumps(body).encode(), cost

    def _model(self, ask: Ask, twist: Mapping[str, Json]) -> str:
        if twist["kind"] == "other_model":
            return str(twist["model"])
        name = ask.model
        for change in self.settings.model_changes:
            if change["vendor"] == ask.vendor and self.counts.vendors[ask.vendor].delivered >= change["after"]:
                name = change["model"]
        return name

    async def _control(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        given = json.loads(await request.read() or b"{}")
        match (request.method, path.removeprefix("/control/")):
            case ("GET", "state"):
                return _json(self.counts.view())
            case ("GET", "requests"):
                return _json(self.counts.log())
            case ("GET", "replies"):
                return _json({vendor: counts.replies for vendor, counts in self.counts.vendors.items()})
            case ("POST", "settings"):
                try:
                    self.apply(given)
                except (ValueError, KeyError) as error:
                    return _json({"error": str(error)}, 400)
            case ("POST", "topup"):
                funds = self.settings.funds_nano_usd
                funds[given["vendor"]] = funds.get(given["vendor"], 0) + given["nano_usd"]
            case ("POST", "reset"):
                self.reset()
            case _:
                return _json({"error": f"no such control: {path}"}, 404)
        return _json({"ok": True})

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> tuple[web.ServerRunner, int]:
        """Listen; return what `cleanup` is called on, and the port."""
        loop = asyncio.get_running_loop()

        def make(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_LARGEST_BODY)

        server = web.Server(self.handle, request_factory=make)
        runner = web.ServerRunner(server, shutdown_timeout=0.2)
        await runner.setup()
        site = web.TCPSite(runner, host, port, backlog=1024)
        await site.start()
        return runner, int(runner.addresses[0][1])


def identity(route: Route, body: Json) -> bytes:
    """Return the digest by which two requests are the same one."""
    canonical = _CANONICAL.encode([route.endpoint, route.model, body])
    return hashlib.sha256(canonical.encode()).digest()


def _json(body: Json, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=json.dumps(body).encode(), status=status, content_type="application/json", headers=headers)


def _html(status: int) -> web.Response:
    return web.Response(text=_HTML, status=status, content_type="text/html")


def _reset(request: web.BaseRequest) -> web.Response:
    transport = request.transport
    if transport is not None:
        # Zero linger: the peer gets a reset, not an orderly end.
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


async def _reset_after(request: web.BaseRequest, sent: bytes) -> web.StreamResponse:
    return _reset(request)


async def _late(request: web.BaseRequest, sent: bytes) -> web.StreamResponse:
    return web.Response(body=sent, content_type="application/json")


async def _html_200(request: web.BaseRequest, sent: bytes) -> web.StreamResponse:
    return _html(200)


async def _empty(request: web.BaseRequest, sent: bytes) -> web.StreamResponse:
    return _json({})


async def _broken(request: web.BaseRequest, sent: bytes) -> web.StreamResponse:
    return web.Response(body=sent[: len(sent) // 2], content_type="application/json")


async def _cut(request: web.BaseRequest, sent: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": str(len(sent))})
    await response.prepare(request)
    await response.write(sent[: len(sent) // 2])
    if request.transport is not None:
        request.transport.close()
    return response


_SPOILED = {
    "timeout": _late,
    "reset_after": _reset_after,
    "html_200": _html_200,
    "empty_200": _empty,
    "broken_json": _broken,
    "cut_body": _cut,
}
