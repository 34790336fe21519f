"""Batches of the vendor `google`: a file of requests, a job, a file of responses."""

import io
import json
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from counterbalance.canonical import Json
from counterbalance.config.models import GoogleModel
from counterbalance.errors import CounterbalanceError
from counterbalance.vendors.api import wire_bytes
from counterbalance.vendors.base import BatchState, Reply, Request, TransportError
from counterbalance.vendors.batch_ids import HopelessError, Line
from counterbalance.vendors.batch_talk import (
    MOST_PAGES,
    PER_PAGE,
    TRANSFER_S,
    BatchTalker,
    id_of,
    not_listed,
    text_of,
    unreadable,
    write_lines,
)
from counterbalance.vendors.fields import as_count, as_list, as_text, dig
from counterbalance.vendors.google_vendor import GoogleVendor, resource_of, wire_body
from counterbalance.vendors.wire import Received

if TYPE_CHECKING:
    from google.genai import errors

_ENDS = {
    "SUCCEEDED": "completed",
    "PARTIALLY_SUCCEEDED": "completed",
    "EXPIRED": "expired",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
}
_COUNTS = {"total": "requestCount", "completed": "successfulRequestCount", "failed": "failedRequestCount"}
_EXHAUSTED = 429
# The error of a single call has a number of google.rpc.Code: here is the HTTP status of a live call for each, from 1.
_STATUS = (503, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401)


class GoogleBatchVendor(GoogleVendor, BatchTalker[GoogleModel]):
    """A model behind Google's interface, asked live or in batches."""

    async def submit(self, run_id: str, requests: Sequence[tuple[str, Request]]) -> str:
        """Hand in requests under custom ids; return the job's name."""
        content = write_lines({"key": name, "request": wire_body(request)} for name, request in requests)
        uploaded = await self._look(self._upload(run_id, content), transfer=True)
        source = {"fileName": id_of(self.name, uploaded, "name")}
        path = f"{quote(resource_of(requests[0][1]), safe='/')}:batchGenerateContent"
        about = {"batch": {"displayName": run_id, "inputConfig": source}}
        return id_of(self.name, await self._look(self._call("post", path, about)), "name")

    async def find(self, run_id: str) -> str | None:
        """Return the name of the job that is displayed as this."""
        path = first = f"batches?pageSize={PER_PAGE}"
        for _ in range(MOST_PAGES):
            page = await self._look(self._call("get", path))
            for job in as_list(page.get("operations")):
                if dig(job, "metadata", "displayName") == run_id:
                    return id_of(self.name, job, "name")
            token = as_text(page.get("nextPageToken"))
            if not token:
                return None
            path = f"{first}&pageToken={quote(token, safe='')}"
        raise not_listed(self.name, run_id)

    async def state(self, batch_id: str) -> BatchState:
        """Look at a job."""
        job = await self._view(batch_id)
        state = as_text(dig(job, "metadata", "state")) or "unknown"
        # One part of the interface says BATCH_STATE, another JOB_STATE.
        status = _ENDS.get(state.rpartition("STATE_")[2], state)
        done = status in _ENDS.values()
        counts = {name: _number(dig(job, "metadata", "batchStats", field)) for name, field in _COUNTS.items()}
        if status != "failed":
            return BatchState(done, status, counts)
        error = dig(job, "error") or dig(job, "metadata", "error") or {}
        http = _status_of(error)
        verdict = self._refusal(Received.of(http, {}, json.dumps({"error": error})))
        if isinstance(verdict, TransportError) and http == _EXHAUSTED:
            return BatchState(True, "queue_full", counts)
        if isinstance(verdict, CounterbalanceError) and http != 400:
            raise HopelessError(verdict)
        return BatchState(True, status, counts, failed=as_text(dig(error, "message")) or "no reason was given")

    async def results(self, batch_id: str, example: Request) -> AsyncIterator[Line]:
        """Yield what became of each call, from the job's file or from within the job."""
        job = await self._view(batch_id)
        output = dig(job, "response") or dig(job, "metadata", "output")
        inlined = as_list(dig(output, "inlinedResponses", "inlinedResponses"))
        keyed = ({**line, "key": dig(line, "metadata", "key")} if isinstance(line, dict) else line for line in inlined)
        for entry in self._read_lines("\n".join(map(json.dumps, keyed)), "its responses", "key", example):
            yield entry
        name = as_text(dig(output, "responsesFile"))
        if name is not None:
            gone = self._gone(f"file {name} of {batch_id}")
            found = await self._fetch(self._download(name), gone=gone, transfer=True)
            for entry in self._read_lines(found.text, f"file {name}", "key", example):
                yield entry

    def _line(self, line: dict[str, Json], example: Request) -> Reply | TransportError:
        error, response = line.get("error") or line.get("status"), line.get("response")
        if error:
            return self._outcome(_status_of(error), {"error": error}, None, example)
        if not isinstance(response, dict):
            return unreadable("neither 'response' nor 'error'")
        return self._outcome(200, response, None, example)

    async def _view(self, batch_id: str) -> dict[str, Json]:
        return await self._look(self._call("get", batch_id), gone=self._gone(batch_id))

    async def _call(self, method: str, path: str, body: dict[str, Json] | None = None) -> Received:
        try:
            answer = await self._client._api_client.async_request(method, path, body or {})
        except self._refused as error:
            return _turned_down(error)
        return Received.of(200, {}, answer.body or "")

    async def _upload(self, name: str, content: bytes) -> Received:
        from google.genai import types

        config = types.UploadFileConfig(mime_type="jsonl", display_name=name, http_options=self._patient())
        try:
            file = await self._client.aio.files.upload(file=io.BytesIO(content), config=config)
        except self._refused as error:
            return _turned_down(error)
        return Received.of(200, {}, wire_bytes({"name": file.name}))

    async def _download(self, name: str) -> Received:
        from google.genai import types

        config = types.DownloadFileConfig(http_options=self._patient())
        try:
            content = await self._client.aio.files.download(file=name, config=config)
        except self._refused as error:
            return _turned_down(error)
        return Received.of(200, {}, text_of(content))

    def _patient(self) -> Any:
        from google.genai import types

        return types.HttpOptions(timeout=round(1000 * max(self._account.timeout_s, TRANSFER_S)))


def _turned_down(error: "errors.APIError") -> Received:
    return Received.of(error.code, {}, wire_bytes(error.details))


def _status_of(error: Json) -> int:
    """Return the HTTP status that a live call with this error would have had."""
    code = as_count(dig(error, "code")) or 0
    if 1 <= code <= len(_STATUS):
        return _STATUS[code - 1]
    return code if 400 <= code < 600 else 500


def _number(value: Json) -> int:
    """Return a count, which Google writes as text."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() else 0
