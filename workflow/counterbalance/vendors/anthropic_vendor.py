"""The vendor `anthropic`: Messages."""

from typing import Any

from counterbalance.canonical import Json
from counterbalance.config.models import AnthropicModel, GenerateRead
from counterbalance.vendors.api import ApiVendor, split_system, wire_bytes
from counterbalance.vendors.base import Reply, ReplyStatus, Request
from counterbalance.vendors.fields import as_count, as_list, as_text, dig, total
from counterbalance.vendors.wire import Received

DEFAULT_URL = "https://api.anthropic.com"
API_VERSION = "2026-10-21"
"""Version of the interface that is asked for: written down here, so that a newer SDK does not change it unseen."""

PATH = "/v1/messages"

_NOT_SENT = {"endpoint", "api_version"}
_ENDINGS: dict[str, ReplyStatus] = {
    "end_turn": "ok",
    "stop_sequence": "ok",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "refusal": "refused",
}
_SHAPE = frozenset({"content", "stop_reason", "usage"})


class AnthropicVendor(ApiVendor[AnthropicModel]):
    """A model behind Anthropic's interface."""

    name = "anthropic"

    def _parameters(self) -> dict[str, Json]:
        model, read = self._model, self._read
        sent: dict[str, Json] = {"endpoint": "messages", "api_version": model.api_version or API_VERSION}
        if isinstance(read, GenerateRead):
            sent["max_tokens"] = read.max_tokens
            if read.temperature is not None and "temperature" not in model.does_not_accept:
                sent["temperature"] = read.temperature
            if read.stop and "stop" not in model.does_not_accept:
                sent["stop_sequences"] = list(read.stop)
        if model.thinking is not None:
            sent["thinking"] = {"type": model.thinking}
        if model.effort is not None:
            sent["output_config"] = {"effort": model.effort}
        return sent

    async def _open(self, key: str) -> None:
        import anthropic
        import httpx2

        from counterbalance.vendors.direct import DirectClient

        class Client(DirectClient, anthropic.DefaultAioHttpClient): ...

        most = self._account.max_in_flight
        self._timeout = httpx2.Timeout(self._account.timeout_s)
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            # Given even where it is the SDK's own default, which an environment variable would replace.
            base_url=self._model.base_url or DEFAULT_URL,
            timeout=self._timeout,
            max_retries=0,
            open_telemetry=False,
            http_client=Client(
                limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most), follow_redirects=False
            ),
        )
        # A whole address saves the SDK's joining of every single one.
        self._address = str(self._client.base_url).rstrip("/") + PATH
        self._response: type[httpx2.Response] = httpx2.Response
        self._refused: type[anthropic.APIStatusError] = anthropic.APIStatusError

    async def _close(self) -> None:
        await self._client.close()

    async def _send(self, request: Request) -> Received:
        content = wire_bytes(wire_body(request))
        try:
            answer = await self._client.post(
                self._address,
                cast_to=self._response,
                content=content,
                options={"headers": {"anthropic-version": request.parameters["api_version"]}, "timeout": self._timeout},
            )
        except self._refused as error:
            answer = error.response
        return Received.of(answer.status_code, answer.headers, answer.content)

    def _shape(self, request: Request) -> frozenset[str]:
        return _SHAPE

    def _reply(self, body: Json, request: Request, request_id: str | None) -> Reply:
        return reply_of(body, request, request_id=request_id)

    def _output_most(self, request: Request) -> int | None:
        return int(request.parameters["max_tokens"])


def wire_body(request: Request) -> dict[str, Json]:
    """Return the body that is sent: a function of the request alone, for live calls and batches."""
    system, messages = split_system(request.prompt)
    body: dict[str, Json] = {"model": request.model, "messages": messages}
    if system is not None:
        body["system"] = system
    return body | {name: value for name, value in request.parameters.items() if name not in _NOT_SENT}


def reply_of(body: Json, request: Request, *, request_id: str | None = None) -> Reply:
    """Read a Message; total over any JSON value.

    Parameters
    ----------
    body
        What the server sent with a 200, or what a batch holds of it.
    request
        What was sent.
    request_id
        From the headers.
    """
    blocks = as_list(dig(body, "content"))
    texts = [as_text(dig(block, "text")) for block in blocks if dig(block, "type") == "text"]
    said = [text for text in texts if text is not None]
    text = "".join(said) if said else None
    ending = as_text(dig(body, "stop_reason"))
    status = _ENDINGS.get(ending or "", "unknown")
    reason = None if status == "ok" else f"stop_reason {ending}"
    if status == "refused":
        details = [as_text(dig(body, "stop_details", name)) for name in ("category", "explanation")]
        reason = ": ".join([str(reason), *(detail for detail in details if detail)])
    elif status == "ok" and not (text or "").strip():
        status = "empty"
        thought = any("thinking" in str(dig(block, "type")) for block in blocks)
        reason = "only thinking came back" if thought else "no text came back"
    return Reply(
        status,
        reason=reason,
        text=text,
        finish_reason=ending,
        model_returned=as_text(dig(body, "model")),
        request_id=request_id or as_text(dig(body, "id")),
        **_usage(dig(body, "usage")),
    )


def _usage(usage: Json) -> dict[str, Any]:
    given = as_count(dig(usage, "input_tokens"))
    read = as_count(dig(usage, "cache_read_input_tokens"))
    written = as_count(dig(usage, "cache_creation_input_tokens"))
    return {
        # `input_tokens` leaves out what was cached. Nothing is written to the cache, because no request asks for it;
        # if the vendor counts some all the same, it is charged like other input.
        "input_tokens": None if given is None else total(given, read, written),
        "cached_tokens": read,
        "output_tokens": as_count(dig(usage, "output_tokens")),
        "reasoning_tokens": as_count(dig(usage, "output_tokens_details", "thinking_tokens")),
    }
