"""Batches of the vendor `openai`: a file of requests, a batch, a file of outputs and a file of errors."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from counterbalance.canonical import Json
from counterbalance.config.models import OpenAIModel
from counterbalance.errors import KeyRefusedError, OutOfFundsError
from counterbalance.vendors.base import BatchState, Reply, Request, TransportError
from counterbalance.vendors.batch_ids import BatchGoneError, HopelessError, Line, RunId
from counterbalance.vendors.batch_talk import (
    MOST_PAGES,
    PER_PAGE,
    BatchTalker,
    id_of,
    not_listed,
    text_of,
    unreached,
    unreadable,
    write_lines,
)
from counterbalance.vendors.fields import as_count, as_list, as_text, dig
from counterbalance.vendors.openai_vendor import CHAT, PATHS, OpenAIVendor, wire_body
from counterbalance.vendors.wire import Received

if TYPE_CHECKING:
    import httpx2

_URL = "/v1" + PATHS[CHAT]
_LABEL = "counterbalance"
_DONE = {"completed", "expired", "cancelled"}
_UNREACHED = {"batch_expired": "expired", "batch_cancelled": "was cancelled"}
_QUEUE_FULL = "token_limit_exceeded"


class OpenAIBatchVendor(OpenAIVendor, BatchTalker[OpenAIModel]):
    """A model behind OpenAI's interface, asked live or in batches."""

    async def submit(self, run_id: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Hand in requests under custom ids; return the batch's id."""
        lines = write_lines(
            {"custom_id": name, "method": "POST", "url": _URL, "body": wire_body(request)} for name, request in requests
        )
        uploaded = await self._look(self._upload(f"{run_id}.jsonl", lines), transfer=True)
        about = {
            "input_file_id": id_of(self.name, uploaded, "id"),
            "endpoint": _URL,
            "completion_window": "24h",
            "metadata": {_LABEL: run_id},
        }
        return id_of(self.name, await self._look(self._post_json("/batches", about)), "id")

    async def find(self, run_id: str) -> str | None:
        """Return the id of the batch that has this name in its metadata."""
        oldest = RunId.parse(run_id).oldest
        path = f"/batches?limit={PER_PAGE}"
        for _ in range(MOST_PAGES):
            page = await self._look(self._get(path))
            batches = as_list(page.get("data"))
            for batch in batches:
                if dig(batch, "metadata", _LABEL) == run_id:
                    return id_of(self.name, batch, "id")
            # Newest first.
            if not batches or not page.get("has_more") or (as_count(dig(batches[-1], "created_at")) or 0) < oldest:
                return None
            path = f"/batches?limit={PER_PAGE}&after={dig(batches[-1], 'id')}"
        raise not_listed(self.name, run_id)

    async def state(self, batch_id: str) -> BatchState:
        """Look at a batch."""
        batch = await self._view(batch_id)
        status = as_text(batch.get("status")) or "unknown"
        counts = {name: as_count(dig(batch, "request_counts", name)) or 0 for name in ("total", "completed", "failed")}
        if status != "failed":
            return BatchState(status in _DONE, status, counts)
        errors = as_list(dig(batch, "errors", "data"))
        if any(dig(error, "code") == _QUEUE_FULL for error in errors):
            return BatchState(True, "queue_full", counts)
        for error in errors:
            verdict = self._refusal(Received.of(400, {}, json.dumps({"error": error})))
            if isinstance(verdict, OutOfFundsError | KeyRefusedError):
                raise HopelessError(verdict)
        said = [f"line {dig(error, 'line')}: {dig(error, 'message') or dig(error, 'code')}" for error in errors[:3]]
        return BatchState(True, status, counts, failed="; ".join(said) or "no reason was given")

    async def results(self, batch_id: str, example: Request) -> AsyncIterator[Line]:
        """Yield what became of each call, from the file of outputs and from the file of errors."""
        batch = await self._view(batch_id)
        output, errors = as_text(batch.get("output_file_id")), as_text(batch.get("error_file_id"))
        for name in (output, errors):
            if name is not None:
                gone = self._gone(f"file {name} of batch {batch_id}")
                try:
                    found = await self._fetch(self._get_lines(name), gone=gone, transfer=True)
                except BatchGoneError:
                    if name == output or output is None:
                        raise
                    # The replies are there, and are not to be lost with the list of what failed.
                    return
                for line in self._read_lines(found.text, f"file {name}", "custom_id", example):
                    yield line

    def _line(self, line: dict[str, Json], example: Request) -> Reply | TransportError:
        code, response = as_text(dig(line, "error", "code")), line.get("response")
        if code in _UNREACHED:
            return unreached(self.name, _UNREACHED[code])
        if not isinstance(response, dict):
            if not dig(line, "error"):
                return unreadable("neither 'response' nor 'error'")
            return self._outcome(500, {"error": line["error"]}, None, example)
        status = as_count(response.get("status_code"))
        if status is None:
            return unreadable("no 'status_code' in its 'response'")
        return self._outcome(status, response.get("body"), as_text(response.get("request_id")), example)

    async def _view(self, batch_id: str) -> dict[str, Json]:
        return await self._look(self._get(f"/batches/{batch_id}"), gone=self._gone(f"batch {batch_id}"))

    async def _upload(self, name: str, content: bytes) -> Received:
        try:
            raw = await self._client.files.with_raw_response.create(
                file=(name, content, "application/jsonl"), purpose="batch"
            )
        except self._refused as error:
            return _received(error.response)
        return _received(raw.http_response)

    async def _get(self, path: str) -> Received:
        try:
            answer = await self._client.get(path, cast_to=self._response)
        except self._refused as error:
            answer = error.response
        return _received(answer)

    async def _get_lines(self, name: str) -> Received:
        try:
            answer = await self._client.get(f"/files/{name}/content", cast_to=self._response)
        except self._refused as error:
            return _received(error.response)
        return Received.of(answer.status_code, answer.headers, text_of(answer.content))

    async def _post_json(self, path: str, body: Json) -> Received:
        try:
            answer = await self._client.post(path, cast_to=self._response, body=body)
        except self._refused as error:
            answer = error.response
        return _received(answer)


def _received(answer: "httpx2.Response") -> Received:
    return Received.of(answer.status_code, answer.headers, answer.content)
