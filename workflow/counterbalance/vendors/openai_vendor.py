"""The vendor `openai`: Chat Completions and Decisions of OpenAI, and of any server that speaks the former."""

from typing import Any

from counterbalance.canonical import Json
from counterbalance.config.models import DecideRead, GenerateRead, LogprobRead, OpenAIModel
from counterbalance.vendors.api import ApiVendor, messages_of, wire_bytes
from counterbalance.vendors.base import Reply, ReplyStatus, Request
from counterbalance.vendors.decisions import DECISION, decided
from counterbalance.vendors.fields import as_count, as_list, as_text, dig, rank_tokens
from counterbalance.vendors.wire import Received

DEFAULT_URL = "https://api.openai.com/v1"
CHAT = "chat.completions"
PATHS = {CHAT: "/chat/completions", DECISION: "/decisions"}

# Fields of the request's parameters that choose how something is sent and are no part of the body.
_NOT_SENT = {"endpoint", "system_role", "choices", "instructions"}
_ENDINGS: dict[str, ReplyStatus] = {"stop": "ok", "length": "truncated", "content_filter": "blocked"}
_SHAPES = {
    CHAT: frozenset({"choices", "usage", "object"}),
    DECISION: frozenset({"answers", "usage"}),
}


class OpenAIVendor(ApiVendor[OpenAIModel]):
    """A model behind OpenAI's interface."""

    name = "openai"

    def _parameters(self) -> dict[str, Json]:
        model, read = self._model, self._read
        sent: dict[str, Json] = {"endpoint": CHAT}
        if model.system_role != "system":
            sent["system_role"] = model.system_role
        if isinstance(read, DecideRead):
            return sent | {"endpoint": DECISION, "instructions": read.instructions}
        match read:
            case GenerateRead(max_tokens=limit, temperature=temperature, stop=stop):
                sent[model.token_limit_field] = limit
                if temperature is not None and "temperature" not in model.does_not_accept:
                    sent["temperature"] = temperature
                if stop and "stop" not in model.does_not_accept:
                    sent["stop"] = list(stop)
            case LogprobRead(top=top):
                sent |= {model.token_limit_field: 1, "logprobs": True, "top_logprobs": top}
        if model.seed is not None and "seed" not in model.does_not_accept:
            sent["seed"] = model.seed
        if model.reasoning_effort is not None:
            sent["reasoning_effort"] = model.reasoning_effort
        if model.base_url is None:
            # OpenAI keeps nothing then; other servers need not know the field.
            sent["store"] = False
        sent |= model.extra
        return sent

    async def _open(self, key: str) -> None:
        import httpx2
        import openai

        from counterbalance.vendors.direct import DirectClient

        class Client(DirectClient, openai.DefaultAioHttpClient): ...

        most = self._account.max_in_flight
        self._client = openai.AsyncOpenAI(
            api_key=key,
            # Given even where it is the SDK's own default, which an environment variable would replace.
            base_url=self._model.base_url or DEFAULT_URL,
            timeout=httpx2.Timeout(self._account.timeout_s),
            max_retries=0,
            http_client=Client(
                limits=httpx2.Limits(max_connections=most, max_keepalive_connections=most), follow_redirects=False
            ),
        )
        if self._model.base_url is not None:
            # Read from the environment, and nobody else's business.
            self._client.organization = self._client.project = None
        # Whole addresses save the SDK's joining of every single one.
        self._address = str(self._client.base_url).rstrip("/")
        self._response: type[httpx2.Response] = httpx2.Response
        self._refused: type[openai.APIStatusError] = openai.APIStatusError

    async def _close(self) -> None:
        await self._client.close()

    async def _send(self, request: Request) -> Received:
        content = wire_bytes(wire_body(request))
        try:
            answer = await self._client.post(
                self._address + PATHS[request.parameters["endpoint"]], cast_to=self._response, content=content
            )
        except self._refused as error:
            answer = error.response
        return Received.of(answer.status_code, answer.headers, answer.content)

    def _shape(self, request: Request) -> frozenset[str]:
        return _SHAPES[request.parameters["endpoint"]]

    def _reply(self, body: Json, request: Request, request_id: str | None) -> Reply:
        return reply_of(body, request, request_id=request_id)

    def _output_most(self, request: Request) -> int | None:
        limit = request.parameters.get("max_completion_tokens", request.parameters.get("max_tokens"))
        return None if limit is None else int(limit)


def wire_body(request: Request) -> dict[str, Json]:
    """Return the body that is sent: a function of the request alone, for live calls and batches."""
    sent = request.parameters
    role = sent.get("system_role", "system")
    messages = [
        {"role": role, "content": message["content"]} if message["role"] == "system" else message
        for message in messages_of(request.prompt)
    ]
    if sent["endpoint"] == DECISION:
        question = {
            "type": "choice",
            "name": "answer",
            "instructions": sent["instructions"],
            "choices": [{"value": label, "description": text} for label, text in sent["choices"]],
        }
        return {"model": request.model, "input": messages, "questions": [question]}
    fields = {name: value for name, value in sent.items() if name not in _NOT_SENT}
    return {"model": request.model, "messages": messages, **fields}


def reply_of(body: Json, request: Request, *, request_id: str | None = None) -> Reply:
    """Read the body of an answer; total over any JSON value.

    Parameters
    ----------
    body
        What the server sent with a 200, or what a batch holds of it.
    request
        What was sent.
    request_id
        From the headers.
    """
    common: dict[str, Any] = {
        "model_returned": as_text(dig(body, "model")),
        "fingerprint": as_text(dig(body, "system_fingerprint")),
        "request_id": request_id,
    }
    if request.parameters.get("endpoint") == DECISION:
        return _decided(body, common)
    choice = dig(body, "choices", 0)
    ending = as_text(dig(choice, "finish_reason"))
    content, refusal = _text(dig(choice, "message", "content")), as_text(dig(choice, "message", "refusal"))
    text = content if content is not None else refusal
    status, reason = _status(choice, ending, content, refusal)
    common |= {"text": text, "finish_reason": ending, **_usage(dig(body, "usage"))}
    if request.parameters.get("logprobs") is not True or status in ("refused", "blocked", "unknown"):
        return Reply(status, reason=reason, **common)
    listed = as_list(dig(choice, "logprobs", "content", 0, "top_logprobs"))
    tokens, logprobs = rank_tokens((dig(entry, "token"), dig(entry, "logprob")) for entry in listed)
    if not tokens:
        return Reply("unavailable", reason="no log-probabilities came back", **common)
    return Reply("ok", top_tokens=tokens, top_logprobs=logprobs, **common)


def _status(
    choice: Json, ending: str | None, content: str | None, refusal: str | None
) -> tuple[ReplyStatus, str | None]:
    if not isinstance(choice, dict):
        return "empty", "no choices came back"
    if refusal:
        return "refused", "the vendor marked the text as a refusal"
    status = _ENDINGS.get(ending or "", "unknown")
    if status == "ok" and not (content or "").strip():
        thought = as_text(dig(choice, "message", "reasoning_content"))
        return "empty", "only reasoning came back" if thought else "no text came back"
    return status, None if status == "ok" else f"finish_reason {ending}"


def _text(content: Json) -> str | None:
    if isinstance(content, list):
        parts = [as_text(dig(part, "text")) for part in content]
        return "".join(part for part in parts if part is not None) if any(part is not None for part in parts) else None
    return as_text(content)


def _usage(usage: Json) -> dict[str, Any]:
    given, made = as_count(dig(usage, "prompt_tokens")), as_count(dig(usage, "completion_tokens"))
    both = as_count(dig(usage, "total_tokens"))
    if given is not None and made is not None and both is not None:
        # xAI counts reasoning in the total alone.
        made = max(made, both - given)
    return {
        "input_tokens": given,
        "cached_tokens": as_count(dig(usage, "prompt_tokens_details", "cached_tokens")),
        "output_tokens": made,
        "reasoning_tokens": as_count(dig(usage, "completion_tokens_details", "reasoning_tokens")),
    }


def _decided(body: Json, common: dict[str, Any]) -> Reply:
    usage = dig(body, "usage")
    common |= {
        "input_tokens": as_count(dig(usage, "input_tokens")),
        "cached_tokens": as_count(dig(usage, "input_tokens_details", "cached_tokens")),
        "output_tokens": as_count(dig(usage, "output_tokens")),
        "reasoning_tokens": as_count(dig(usage, "output_tokens_details", "reasoning_tokens")),
    }
    answer = dig(body, "answers", 0)
    listed = as_list(dig(answer, "probabilities"))
    pairs = ((dig(entry, "value"), dig(entry, "probability")) for entry in listed)
    return decided(answer, pairs, common)
