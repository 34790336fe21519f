"""Files and batches of the three vendors.

``settings.batch`` scripts them: ``delay_s`` until a batch ends; ``order`` (``same``, ``reverse``); ``expired`` and
``errored``: positions (from 0) whose outcome that is; ``fail``: the words with which validation turns a batch down;
``drop_output``: whether a batch without one success has no output file (OpenAI); ``spoil``: by position, how a line of
results is spoilt (``cut``, ``noise``, ``not_utf8``, ``no_id``, ``no_outcome``, ``other_id``, ``twice``), in the first
``spoiled_batches`` batches (all); ``lose_answer``: how many batches are taken of which whoever handed them in never
hears.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from .batch_views import (
    Outcome,
    anthropic_kind,
    anthropic_line,
    anthropic_page,
    general,
    google_line,
    google_page,
    jsonl,
    moment,
    openai_line,
    openai_page,
    query,
)
from .failure import WireError
from .settings import Json

if TYPE_CHECKING:
    from .server import Loopback

_WINDOW_S = 86_400


@dataclass
class Batch:
    """One batch of any vendor."""

    vendor: str
    id: str
    asked: Sequence[tuple[str, str, str | None, Json]]
    about: dict[str, Json]
    ready: float
    created: float
    failed: str | None = None
    cancelled: bool = False
    outcomes: list[Outcome] | None = None
    made: dict[str, str] = field(default_factory=dict)
    ended: float | None = None


class Batches:
    """Everything filed and handed in since the last reset."""

    def __init__(self, server: Loopback) -> None:
        self._server = server
        self.files: dict[str, tuple[str, bytes]] = {}
        self._filed: dict[str, float] = {}
        self.batches: dict[str, Batch] = {}
        self._number = self._spoilt = self._lost = 0

    async def handle(self, request: web.BaseRequest, vendor: str, path: str) -> web.StreamResponse:
        """Answer a request about files or batches."""
        from .server import WIRES

        self._server.counts.endpoints[f"{vendor} {request.method} {general(path)}"] += 1
        handler: Callable[..., object] = getattr(self, f"_{vendor}")
        before = len(self.batches)
        answered = await handler(request, path.split("/"))  # type: ignore[misc]
        if answered is None:
            raise WIRES[vendor].failure("no_model", {}, path)
        if isinstance(answered, web.StreamResponse):
            return answered
        if len(self.batches) > before and self._lost < self._server.settings.batch.get("lose_answer", 0):
            self._lost += 1
            if request.transport is not None:
                request.transport.abort()
        return web.json_response(answered)

    # OpenAI

    async def _openai(self, request: web.BaseRequest, path: list[str]) -> Json:
        from .openai_wire import invalid

        match (request.method, path):
            case ("POST", ["files"]):
                form = await request.post()
                upload = form["file"]
                if not isinstance(upload, web.FileField) or form.get("purpose") != "batch":
                    raise invalid("'file' and 'purpose' are required.", param="purpose")
                return self._openai_file(self._file(upload.file.read(), upload.filename, "file-"))
            case ("GET", ["files", name]) if name in self.files:
                return self._openai_file(name)
            case ("GET", ["files", name, "content"]) if name in self.files:
                return web.Response(body=self.files[name][1], content_type="application/octet-stream")
            case ("DELETE", ["files", name]) if name in self.files:
                del self.files[name]
                return {"id": name, "object": "file", "deleted": True}
            case ("POST", ["batches"]):
                return self._openai_view(self._openai_create(json.loads(await request.read())))
            case ("GET", ["batches"]):
                found = [self._openai_view(batch) for batch in self._of("openai")]
                return openai_page(found, query(request), lambda said: invalid(said, param="after"))
            case ("GET", ["batches", name]) if name in self.batches:
                return self._openai_view(self.batches[name])
            case ("POST", ["batches", name, "cancel"]) if name in self.batches:
                self.batches[name].cancelled = True
                return self._openai_view(self.batches[name])
        return None

    def _openai_file(self, name: str) -> Json:
        filename, content = self.files[name]
        about = {"id": name, "object": "file", "bytes": len(content), "created_at": int(self._filed[name])}
        return {**about, "filename": filename, "purpose": "batch", "status": "processed"}

    def _openai_create(self, given: dict[str, Json]) -> Batch:
        from .openai_wire import invalid

        if given.get("input_file_id") not in self.files:
            raise invalid("Invalid 'input_file_id': no such file.", param="input_file_id")
        lines = [json.loads(line) for line in self.files[given["input_file_id"]][1].split(b"\n") if line]
        asked = [(line["custom_id"], "chat.completions", None, line["body"]) for line in lines]
        if any(line["url"] != given["endpoint"] or line["method"] != "POST" for line in lines):
            return self._add("openai", asked, given, "batch_", failed="The URL of a line does not match the endpoint.")
        return self._add("openai", asked, given, "batch_")

    def _openai_view(self, batch: Batch) -> Json:
        done = self._is_done(batch)
        outcomes = batch.outcomes or []
        good = [outcome for outcome in outcomes if outcome.reply is not None]
        lost = [outcome for outcome in outcomes if outcome.reply is None]
        expired = any(outcome.failure is None for outcome in lost)
        view: dict[str, Json] = {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.about["endpoint"],
            "input_file_id": batch.about["input_file_id"],
            "completion_window": batch.about["completion_window"],
            "metadata": batch.about.get("metadata"),
            "created_at": int(batch.created),
            "expires_at": int(batch.created) + _WINDOW_S,
            "status": ("expired" if expired else "completed") if done else "in_progress",
            "errors": None,
            "output_file_id": None,
            "error_file_id": None,
            "request_counts": {"total": len(batch.asked), "completed": len(good), "failed": len(lost)},
        }
        if batch.failed is not None:
            errors = {
                "object": "list",
                "data": [{"code": "invalid", "message": batch.failed, "line": 1, "param": None}],
            }
            return view | {"status": "failed", "errors": errors}
        if done and not batch.made:
            if good or not self._server.settings.batch.get("drop_output", True):
                batch.made["output"] = self._file(jsonl(openai_line, good), "output.jsonl", "file-")
            if lost:
                batch.made["error"] = self._file(jsonl(openai_line, lost), "errors.jsonl", "file-")
        ids = {"output_file_id": batch.made.get("output"), "error_file_id": batch.made.get("error")}
        return view | (ids if done else {}) | ({"status": "cancelled"} if batch.cancelled else {})

    # Anthropic

    async def _anthropic(self, request: web.BaseRequest, path: list[str]) -> Json:
        from .anthropic_wire import invalid

        match (request.method, path):
            case ("POST", ["messages", "batches"]):
                given = json.loads(await request.read())
                return self._anthropic_view(self._anthropic_create(given, request.headers), request)
            case ("GET", ["messages", "batches"]):
                found = [self._anthropic_view(batch, request) for batch in self._of("anthropic")]
                return anthropic_page(found, query(request), invalid)
            case ("GET", ["messages", "batches", name]) if name in self.batches:
                return self._anthropic_view(self.batches[name], request)
            case ("POST", ["messages", "batches", name, "cancel"]) if name in self.batches:
                self.batches[name].cancelled = True
                return self._anthropic_view(self.batches[name], request)
            case ("GET", ["messages", "batches", name, "results"]) if name in self.batches:
                batch = self.batches[name]
                if self._is_done(batch):
                    body = jsonl(anthropic_line, batch.outcomes or [])
                    return web.Response(body=body, content_type="application/x-jsonl")
        return None

    def _anthropic_create(self, given: dict[str, Json], headers: Mapping[str, str]) -> Batch:
        from .anthropic_wire import invalid

        ids = [entry["custom_id"] for entry in given["requests"]]
        for name in ids:
            if not 1 <= len(name) <= 64 or not all(
                sign.isascii() and (sign.isalnum() or sign in "-_") for sign in name
            ):
                raise invalid("requests.0.custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'")
        if len(set(ids)) != len(ids):
            raise invalid("requests: custom_id must be unique within a batch.")
        asked = [(entry["custom_id"], "messages", None, entry["params"]) for entry in given["requests"]]
        return self._add("anthropic", asked, {"version": headers.get("anthropic-version", "")}, "msgbatch_")

    def _anthropic_view(self, batch: Batch, request: web.BaseRequest) -> Json:
        done = self._is_done(batch)
        kinds = [anthropic_kind(outcome) for outcome in batch.outcomes or []]
        counts = {kind: kinds.count(kind) for kind in ("succeeded", "errored", "canceled", "expired")}
        prefix = "/anthropic" if request.raw_path.startswith("/anthropic/") else ""
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if done else "in_progress",
            "request_counts": {"processing": 0 if done else len(batch.asked), **counts},
            "created_at": moment(batch.created),
            "expires_at": moment(batch.created + _WINDOW_S),
            "ended_at": moment(batch.ended) if batch.ended is not None else None,
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"http://{request.host}{prefix}/v1/messages/batches/{batch.id}/results" if done else None,
        }

    # Google

    async def _google(self, request: web.BaseRequest, path: list[str]) -> Json:
        from .google_wire import invalid

        match (request.method, path):
            case ("POST", ["upload", _, "files"] | ["upload", "files"]):
                name = f"session-{self._next()}"
                self.files[name] = ("", b"")
                prefix = "/google" if request.raw_path.startswith("/google/") else ""
                url = f"http://{request.host}{prefix}/upload/session/{name}"
                return web.json_response({}, headers={"x-goog-upload-url": url, "x-goog-upload-status": "active"})
            case ("POST", ["upload", "session", name]) if name in self.files:
                return await self._google_chunk(request, name)
            case ("GET", ["files", name]) if ":" in name and name.removesuffix(":download") in self.files:
                content = self.files[name.removesuffix(":download")][1]
                return web.Response(body=content, content_type="application/octet-stream")
            case ("GET", ["files", name]) if name in self.files:
                return self._google_file(name)
            case ("POST", ["models", model]) if model.endswith(":batchGenerateContent"):
                given = json.loads(await request.read())["batch"]
                return self._google_view(self._google_create(given, model.removesuffix(":batchGenerateContent")))
            case ("GET", ["batches"]):
                found = [self._google_view(batch) for batch in self._of("google")]
                return google_page(found, query(request), invalid)
            case ("GET", ["batches", name]) if name in self.batches:
                return self._google_view(self.batches[name])
            case ("POST", ["batches", name]) if name.removesuffix(":cancel") in self.batches:
                self.batches[name.removesuffix(":cancel")].cancelled = True
                return {}
        return None

    async def _google_chunk(self, request: web.BaseRequest, session: str) -> Json:
        _, content = self.files[session]
        content += await request.read()
        if "finalize" not in request.headers["x-goog-upload-command"]:
            self.files[session] = ("", content)
            return web.json_response({}, headers={"x-goog-upload-status": "active"})
        del self.files[session]
        name = self._file(content, "", "")
        return web.json_response({"file": self._google_file(name)}, headers={"x-goog-upload-status": "final"})

    def _google_file(self, name: str) -> Json:
        size = str(len(self.files[name][1]))
        return {"name": f"files/{name}", "mimeType": "jsonl", "sizeBytes": size, "state": "ACTIVE"}

    def _google_create(self, given: dict[str, Json], model: str) -> Batch:
        from .google_wire import invalid

        source = given["inputConfig"]
        name = source.get("fileName", "").removeprefix("files/")
        if name and name not in self.files:
            raise invalid(f"File {name} not found.")
        if name:
            lines = [json.loads(line) for line in self.files[name][1].split(b"\n") if line]
            asked = [(line["key"], "generateContent", model, line["request"]) for line in lines]
        else:
            entries = source["requests"]["requests"]
            keys = [entry.get("metadata", {}).get("key", "") for entry in entries]
            asked = [
                (key, "generateContent", model, entry["request"]) for key, entry in zip(keys, entries, strict=True)
            ]
        about = {"displayName": given.get("displayName", ""), "inline": not name, "model": f"models/{model}"}
        return self._add("google", asked, about, "")

    def _google_view(self, batch: Batch) -> Json:
        done = self._is_done(batch)
        outcomes = batch.outcomes or []
        state = "BATCH_STATE_SUCCEEDED" if done else "BATCH_STATE_RUNNING"
        if batch.cancelled:
            state = "BATCH_STATE_CANCELLED"
        if done and outcomes and all(outcome.reply is None and outcome.failure is None for outcome in outcomes):
            state = "BATCH_STATE_EXPIRED"
        about: dict[str, Json] = {
            "model": batch.about["model"],
            "displayName": batch.about["displayName"],
            "state": "BATCH_STATE_FAILED" if batch.failed is not None else state,
            "createTime": moment(batch.created),
            "name": f"batches/{batch.id}",
        }
        view: dict[str, Json] = {"name": f"batches/{batch.id}", "metadata": about}
        if batch.failed is not None:
            return view | {"done": True, "error": {"code": 3, "message": batch.failed}}
        if done and state == "BATCH_STATE_SUCCEEDED":
            output = self._google_output(batch, outcomes)
            about["output"] = output
            view |= {"done": True, "response": output}
        return view

    def _google_output(self, batch: Batch, outcomes: list[Outcome]) -> dict[str, Json]:
        if batch.about["inline"]:
            lines = [google_line(outcome) for outcome in outcomes]
            inlined = [{"metadata": {"key": line.pop("key")}, **line} for line in lines]
            return {"inlinedResponses": {"inlinedResponses": inlined}}
        if "output" not in batch.made:
            batch.made["output"] = self._file(jsonl(google_line, outcomes), "", "batch-")
        return {"responsesFile": f"files/{batch.made['output']}"}

    # Common

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _file(self, content: bytes, filename: str, prefix: str) -> str:
        name = f"{prefix}f{self._next():06d}"
        self.files[name], self._filed[name] = (filename, content), time.time()
        return name

    def _of(self, vendor: str) -> list[Batch]:
        return [batch for batch in reversed(self.batches.values()) if batch.vendor == vendor]

    def _add(
        self,
        vendor: str,
        asked: Sequence[tuple[str, str, str | None, Json]],
        about: dict[str, Json],
        prefix: str,
        failed: str | None = None,
    ) -> Batch:
        script = self._server.settings.batch
        name = f"{prefix}b{self._next():06d}"
        ready = time.monotonic() + float(script.get("delay_s", 0.0))
        batch = Batch(vendor, name, asked, about, ready, time.time(), failed or script.get("fail"))
        self.batches[name] = batch
        return batch

    def end(self, name: str) -> None:
        """Have a batch end now, as `settings.batch` scripts it now."""
        batch = self.batches[name]
        batch.ready = 0.0
        self._is_done(batch)

    def _is_done(self, batch: Batch) -> bool:
        if batch.outcomes is None and (batch.cancelled or time.monotonic() >= batch.ready):
            outcomes = [] if batch.failed is not None else [self._work(batch, n) for n in range(len(batch.asked))]
            script = self._server.settings.batch
            reverse = script.get("order", "same") == "reverse"
            batch.outcomes, batch.ended = outcomes[::-1] if reverse else outcomes, time.time()
            spoil = script.get("spoil", {}) if self._spoilt < script.get("spoiled_batches", math.inf) else {}
            self._spoilt += bool(spoil)
            for position, how in spoil.items():
                outcomes[int(position)].spoilt = how
        return batch.outcomes is not None

    def _work(self, batch: Batch, position: int) -> Outcome:
        """Answer one request as a live call would be, at the batch's price; only answers are billed."""
        from .server import WIRES, Route, identity

        custom_id, endpoint, model, body = batch.asked[position]
        script, counts = self._server.settings.batch, self._server.counts
        if batch.cancelled or position in script.get("expired", ()):
            return Outcome(custom_id)
        wire, route = WIRES[batch.vendor], Route(batch.vendor, endpoint, model)
        counts.serial += 1
        digest = identity(route, body)
        counts.vendors[batch.vendor].bodies.setdefault(digest, [0, 0, 0])[0] += 1
        request_id: str = wire.request_id(counts.serial)
        try:
            if position in script.get("errored", ()):
                raise wire.failure("server", {"status": 500}, "")
            headers = {"anthropic-version": batch.about.get("version", "")}
            ask = wire.read(endpoint, headers, body, self._server.settings, model)
            fault = self._server.script.pick(ask, counts.serial, counts.vendors[batch.vendor].bodies[digest][0])
            sent, cost = self._server.work(ask, counts.serial, fault, batch=True)
        except WireError as failure:
            counts.close(batch.vendor, digest, "batch failure", cost=0, reply=None, billed=False)
            return Outcome(custom_id, failure=failure, request_id=request_id)
        counts.close(batch.vendor, digest, "batch ok", cost=cost, reply=request_id, billed=True)
        return Outcome(custom_id, reply=sent, request_id=request_id)
