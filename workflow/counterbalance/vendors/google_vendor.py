"""The vendor `google`: generateContent and Decisions of the Gemini API."""

import json
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from counterbalance.canonical import Json
from counterbalance.config.models import DecideRead, GenerateRead, GoogleModel, LogprobRead
from counterbalance.vendors.api import ApiVendor, messages_of, split_system, wire_bytes
from counterbalance.vendors.base import Reply, ReplyStatus, Request
from counterbalance.vendors.decisions import DECISION, decided
from counterbalance.vendors.fields import as_count, as_list, as_text, dig, rank_tokens, total
from counterbalance.vendors.wire import Received

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from google.genai._api_client import HttpRequest

DEFAULT_URL = "https://generativelanguage.googleapis.com"
GENERATE = "generateContent"

_NOT_IN_CONFIG = {"endpoint", "api_version", "instructions", "choices"}
_QUESTION = "answer"
_ENDINGS: dict[str, ReplyStatus] = {
    "STOP": "ok",
    "MAX_TOKENS": "truncated",
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"), "blocked"),
}
_SHAPES = {
    GENERATE: frozenset({"candidates", "promptFeedback", "usageMetadata"}),
    DECISION: frozenset({"answers", "prompt_feedback", "usage"}),
}


class GoogleVendor(ApiVendor[GoogleModel]):
    """A model behind Google's interface."""

    name = "google"

    def _parameters(self) -> dict[str, Json]:
        model, read = self._model, self._read
        sent: dict[str, Json] = {"endpoint": GENERATE, "api_version": model.api_version}
        match read:
            case DecideRead(instructions=instructions):
                return sent | {"endpoint": DECISION, "instructions": instructions}
            case GenerateRead(max_tokens=limit, temperature=temperature, stop=stop):
                sent["maxOutputTokens"] = limit
                if temperature is not None and "temperature" not in model.does_not_accept:
                    sent["temperature"] = temperature
                if stop and "stop" not in model.does_not_accept:
                    sent["stopSequences"] = list(stop)
            case LogprobRead(top=top):
                sent |= {"maxOutputTokens": 1, "responseLogprobs": True, "logprobs": top}
        if model.seed is not None and "seed" not in model.does_not_accept:
            sent["seed"] = model.seed
        if model.thinking_level is not None:
            sent["thinkingConfig"] = {"thinkingLevel": model.thinking_level}
        if model.thinking_budget is not None:
            sent["thinkingConfig"] = {"thinkingBudget": model.thinking_budget}
        return sent

    async def _open(self, key: str) -> None:
        import aiohttp
        from google import genai
        from google.genai import errors, types

        # One of our own: the SDK's has a warning, no limit, and takes credentials from ~/.netrc.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._account.max_in_flight),
            cookie_jar=aiohttp.DummyCookieJar(),
            response_class=_answer_class(),
        )
        self._client = genai.Client(
            vertexai=False,
            api_key=key,
            http_options=types.HttpOptions(
                base_url=self._model.base_url or DEFAULT_URL,
                api_version=self._model.api_version,
                timeout=max(1, round(self._account.timeout_s * 1000)),
                # Without this the SDK sends a call again, in silence, when a connection drops.
                retry_options=types.HttpRetryOptions(attempts=1),
                async_client_args={"allow_redirects": False, "proxy": _proxy(self._model.base_url or DEFAULT_URL)},
                aiohttp_client=self._session,
            ),
        )
        # The SDK's own transport, below `generate_content` and `decisions.create`: those rebuild the body, may send
        # several requests for one call (continuation, function calling), and cost four times as much.
        self._transport = self._client._api_client
        self._post = self._transport.async_request
        self._prepared: dict[str, HttpRequest] = {}
        self._refused: type[errors.APIError] = errors.APIError

    async def _close(self) -> None:
        await self._client.aio.aclose()
        self._client.close()
        await self._session.close()

    async def _send(self, request: Request) -> Received:
        path = path_of(request)
        prepared = self._prepared.get(path)
        if prepared is None:
            # Address, headers and time-out are the same in every call of a cell.
            prepared = self._prepared[path] = self._transport._build_request("post", path, {})
        try:
            answer = await self._transport._async_request_once(replace(prepared, data=wire_bytes(wire_body(request))))
        except self._refused as error:
            headers = getattr(error.response, "headers", None) or {}
            # Without a code where the server's status was 0.
            return Received.of(error.code or 0, _lower(headers), json.dumps(error.details))
        return Received.of(200, _lower(answer.headers or {}), answer.response_stream[0])

    def _shape(self, request: Request) -> frozenset[str]:
        return _SHAPES[request.parameters["endpoint"]]

    def _reply(self, body: Json, request: Request, request_id: str | None) -> Reply:
        return reply_of(body, request, request_id=request_id)

    def _output_most(self, request: Request) -> int | None:
        limit = request.parameters.get("maxOutputTokens")
        return None if limit is None else int(limit)


def path_of(request: Request) -> str:
    """Return the path below the interface's version."""
    if request.parameters["endpoint"] == DECISION:
        return DECISION
    return f"{quote(resource_of(request), safe='/')}:{GENERATE}"


def resource_of(request: Request) -> str:
    """Return the model's full name, such as ``models/gemini-3-flash``."""
    return request.model if "/" in request.model else f"models/{request.model}"


def wire_body(request: Request) -> dict[str, Json]:
    """Return the body that is sent: a function of the request alone, for live calls and batches."""
    sent = request.parameters
    if sent["endpoint"] == DECISION:
        question = {"type": "choice", "instructions": sent["instructions"], "criteria": dict(sent["choices"])}
        words = [{"type": "text", "text": message["content"]} for message in messages_of(request.prompt)]
        return {"model": resource_of(request), "input": words, "questions": {_QUESTION: question}}
    system, messages = split_system(request.prompt)
    roles = {"assistant": "model"}
    body: dict[str, Json] = {
        "contents": [
            {"role": roles.get(message["role"], "user"), "parts": [{"text": message["content"]}]}
            for message in messages
        ],
        "generationConfig": {name: value for name, value in sent.items() if name not in _NOT_IN_CONFIG},
    }
    if system is not None:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    return body


def reply_of(body: Json, request: Request, *, request_id: str | None = None) -> Reply:
    """Read an answer of generateContent or Decisions; total over any JSON value.

    Parameters
    ----------
    body
        What the server sent with a 200, or what a batch holds of it.
    request
        What was sent.
    request_id
        From the headers; Google's own is in the body.
    """
    if request.parameters.get("endpoint") == DECISION:
        return _decided(body, request_id)
    candidate = dig(body, "candidates", 0)
    parts = as_list(dig(candidate, "content", "parts"))
    texts = [as_text(dig(part, "text")) for part in parts if dig(part, "thought") is not True]
    said = [text for text in texts if text is not None]
    text, ending = "".join(said) if said else None, as_text(dig(candidate, "finishReason"))
    status, reason = _status(body, candidate, ending, text)
    common: dict[str, Any] = {
        "text": text,
        "finish_reason": ending,
        "model_returned": as_text(dig(body, "modelVersion")),
        "request_id": as_text(dig(body, "responseId")) or request_id,
        **_usage(dig(body, "usageMetadata"), has_text=bool(text)),
    }
    asked = request.parameters.get("responseLogprobs") is True
    if not asked or status in ("blocked", "unknown") or not isinstance(candidate, dict):
        return Reply(status, reason=reason, **common)
    listed = as_list(dig(candidate, "logprobsResult", "topCandidates", 0, "candidates"))
    # A number that is zero is left out of Google's JSON: the logarithm of certainty.
    tokens, logprobs = rank_tokens(
        (dig(entry, "token"), entry.get("logProbability", 0.0)) for entry in listed if isinstance(entry, dict)
    )
    if not tokens:
        return Reply("unavailable", reason="no log-probabilities came back", **common)
    return Reply("ok", top_tokens=tokens, top_logprobs=logprobs, **common)


def _status(body: Json, candidate: Json, ending: str | None, text: str | None) -> tuple[ReplyStatus, str | None]:
    blocked = as_text(dig(body, "promptFeedback", "blockReason"))
    if blocked is not None:
        return "blocked", f"blockReason {blocked}"
    if not isinstance(candidate, dict):
        return "empty", "no candidates came back"
    status = _ENDINGS.get(ending or "", "unknown")
    if status == "ok" and not (text or "").strip():
        return "empty", "no text came back"
    return status, None if status == "ok" else f"finishReason {ending}"


def _usage(usage: Json, *, has_text: bool) -> dict[str, Any]:
    thoughts = as_count(dig(usage, "thoughtsTokenCount"))
    said, both = as_count(dig(usage, "candidatesTokenCount")), as_count(dig(usage, "totalTokenCount"))
    given = as_count(dig(usage, "promptTokenCount"))
    if said is None and given is not None and not has_text:
        # A count that is zero is left out of Google's JSON.
        said = 0
    made = None if said is None else total(said, thoughts)
    if made is not None and given is not None and both is not None:
        made = max(made, both - given)
    return {
        "input_tokens": given,
        "cached_tokens": as_count(dig(usage, "cachedContentTokenCount")),
        "output_tokens": made,
        "reasoning_tokens": thoughts,
    }


def _decided(body: Json, request_id: str | None) -> Reply:
    usage = dig(body, "usage")
    thoughts = as_count(dig(usage, "total_thought_tokens"))
    common: dict[str, Any] = {
        "request_id": request_id,
        "input_tokens": as_count(dig(usage, "total_input_tokens")),
        "cached_tokens": as_count(dig(usage, "total_cached_tokens")),
        "output_tokens": total(as_count(dig(usage, "total_output_tokens")), thoughts),
        "reasoning_tokens": thoughts,
    }
    blocked = as_text(dig(body, "prompt_feedback", "block_reason"))
    if blocked is not None:
        return Reply("blocked", reason=f"block_reason {blocked}", **common)
    answer = dig(body, "answers", _QUESTION)
    shares = dig(answer, "probabilities")
    return decided(answer, shares.items() if isinstance(shares, dict) else (), common)


def _answer_class() -> "type[ClientResponse]":
    """Return a class of answers that keeps the status of a failure whose text cannot be read.

    The SDK reads a failure's text before its status, and raises what went wrong with the former.
    """
    from aiohttp import ClientError, ClientResponse

    class Answer(ClientResponse):
        async def json(self, **given: Any) -> Any:
            try:
                return await super().json(**given)
            except (ClientError, ValueError, RecursionError):
                if self.status < HTTPStatus.BAD_REQUEST:
                    raise
            try:
                return {"message": await self.text(errors="replace")}
            except ClientError:
                return {}

    return Answer


def _proxy(url: str) -> str | None:
    """Return the proxy that the environment names for an address: looked up once, not for every call."""
    parts = urlsplit(url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _lower(headers: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in headers.items()}
