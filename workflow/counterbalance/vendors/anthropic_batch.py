"""Batches of the vendor `anthropic`: requests in one body, results as a stream of lines."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from counterbalance.canonical import Json
from counterbalance.config.models import AnthropicModel
from counterbalance.vendors.anthropic_vendor import PATH, AnthropicVendor, wire_body
from counterbalance.vendors.api import wire_bytes
from counterbalance.vendors.base import BatchState, Reply, Request, TransportError
from counterbalance.vendors.batch_ids import BatchGoneError, Line, RunId
from counterbalance.vendors.batch_talk import (
    MOST_PAGES,
    PER_PAGE,
    BatchTalker,
    id_of,
    not_listed,
    read_lines,
    text_of,
    unreached,
    unreadable,
)
from counterbalance.vendors.fields import as_count, as_list, as_text, dig
from counterbalance.vendors.wire import Received

if TYPE_CHECKING:
    import httpx2

_BATCHES = PATH + "/batches"
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
_UNREACHED = {"expired": "expired", "canceled": "was cancelled"}
# A result has the type of its error but not the HTTP status that a live call would have had.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatchVendor(AnthropicVendor, BatchTalker[AnthropicModel]):
    """A model behind Anthropic's interface, asked live or in batches."""

    async def submit(self, run_id: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Hand in requests under custom ids; return the batch's id. No name is stored with it but in the ids."""
        entries = [{"custom_id": name, "params": wire_body(request)} for name, request in requests]
        content = wire_bytes({"requests": entries})
        return id_of(self.name, await self._look(self._post_bytes(_BATCHES, content), transfer=True), "id")

    async def find(self, run_id: str) -> str | None:
        """Return the id of the batch whose custom ids end with this name's tag.

        Only batches of the right size made since the name was are looked at. The ids of one that has not ended cannot
        be seen.

        Raises
        ------
        TransportError
            If it takes the end of such a batch to tell whether it is this one.
        """
        run = RunId.parse(run_id)
        path, waiting = f"{_BATCHES}?limit={PER_PAGE}", None
        for _ in range(MOST_PAGES):
            page = await self._look(self._get(path))
            batches = as_list(page.get("data"))
            for batch in batches:
                if not _may_be(batch, run):
                    continue
                batch_id = id_of(self.name, batch, "id")
                if batch.get("processing_status") != "ended":
                    waiting = batch_id
                elif await self._has_tag(batch_id, run.tag):
                    return batch_id
            # Newest first.
            if not batches or not page.get("has_more") or _made(batches[-1]) < run.oldest:
                break
            path = f"{_BATCHES}?limit={PER_PAGE}&after_id={dig(batches[-1], 'id')}"
        else:
            raise not_listed(self.name, run_id)
        if waiting is not None:
            raise TransportError(f"{self.name}: whether batch {waiting} is {run_id} can only be seen when it has ended")
        return None

    async def state(self, batch_id: str) -> BatchState:
        """Look at a batch."""
        batch = await self._view(batch_id)
        counts = {name: as_count(dig(batch, "request_counts", name)) or 0 for name in _COUNTS}
        counts["completed"] = counts["succeeded"] + counts["errored"]
        status = as_text(batch.get("processing_status")) or "unknown"
        if status != "ended":
            return BatchState(False, status, counts)
        if batch.get("archived_at"):
            raise BatchGoneError(self._gone(f"batch {batch_id}"))
        if batch.get("cancel_initiated_at") and counts["canceled"]:
            return BatchState(True, "cancelled", counts)
        return BatchState(True, "expired" if counts["expired"] else "completed", counts)

    async def results(self, batch_id: str, example: Request) -> AsyncIterator[Line]:
        """Yield what became of each call."""
        for line in self._read_lines(await self._text(batch_id), "its results", "custom_id", example):
            yield line

    def _line(self, line: dict[str, Json], example: Request) -> Reply | TransportError:
        kind = as_text(dig(line, "result", "type"))
        if kind in _UNREACHED:
            return unreached(self.name, _UNREACHED[kind])
        if kind == "succeeded":
            return self._outcome(200, dig(line, "result", "message"), None, example)
        error = dig(line, "result", "error")
        if kind != "errored" or not isinstance(error, dict):
            return unreadable(f"a result of type {kind!r}" + (" without 'error'" if kind == "errored" else ""))
        status = _STATUS.get(as_text(dig(error, "error", "type")) or as_text(dig(error, "type")) or "", 500)
        return self._outcome(status, error, as_text(dig(error, "request_id")), example)

    async def _has_tag(self, batch_id: str, tag: str) -> bool:
        lines = read_lines(await self._text(batch_id))
        return any((as_text(dig(line.entry, "custom_id")) or "").endswith(f"-{tag}") for line in lines)

    async def _text(self, batch_id: str) -> str:
        # Not the address in the batch's `results_url`: the key is sent to the configured server only.
        path, gone = f"{_BATCHES}/{batch_id}/results", self._gone(f"the results of batch {batch_id}")
        return (await self._fetch(self._get(path, lines=True), gone=gone, transfer=True)).text

    async def _view(self, batch_id: str) -> dict[str, Json]:
        return await self._look(self._get(f"{_BATCHES}/{batch_id}"), gone=self._gone(f"batch {batch_id}"))

    async def _get(self, path: str, *, lines: bool = False) -> Received:
        try:
            answer = await self._client.get(path, cast_to=self._response, options={"headers": self._version})
        except self._refused as error:
            return _received(error.response)
        body = text_of(answer.content) if lines else answer.content
        return Received.of(answer.status_code, answer.headers, body)

    async def _post_bytes(self, path: str, content: bytes) -> Received:
        try:
            answer = await self._client.post(
                path, cast_to=self._response, content=content, options={"headers": self._version}
            )
        except self._refused as error:
            answer = error.response
        return _received(answer)

    @property
    def _version(self) -> dict[str, str]:
        return {"anthropic-version": str(self._fixed["api_version"])}


def _may_be(batch: Json, run: RunId) -> bool:
    """Tell whether a batch has the right size and is young enough."""
    calls = sum(as_count(dig(batch, "request_counts", name)) or 0 for name in _COUNTS)
    return calls == run.calls and _made(batch) >= run.oldest and not dig(batch, "archived_at")


def _made(batch: Json) -> float:
    try:
        return datetime.fromisoformat(as_text(dig(batch, "created_at")) or "").timestamp()
    except ValueError:
        return 0.0


def _received(answer: "httpx2.Response") -> Received:
    return Received.of(answer.status_code, answer.headers, answer.content)
