"""Anthropic's interface: Messages."""

from __future__ import annotations

from collections.abc import Mapping

from .failure import WireError, wait_headers
from .respondent import Answer, Ask
from .settings import Json, Settings

VERSIONS = ("2023-06-01", "2026-10-21")
_SAMPLING = ("temperature", "top_p", "top_k")


MESSAGES = {
    *("cache_control", "container", "diagnostics", "inference_geo", "max_tokens", "messages"),
    *("metadata", "model", "output_config", "service_tier", "speed", "stop_sequences", "system"),
    *("thinking", "tool_choice", "tools", "user_profile_id", "workspace_id"),
}


def problem(status: int, kind: str, message: str, *, code: str | None = None) -> WireError:
    """Return an error in Anthropic's form."""
    error: dict[str, Json] = {"type": kind, "message": message}
    if code is not None:
        error["details"] = {"error_code": code}
    return WireError(status, {"type": "error", "error": error, "request_id": "req_anthropic_refused"})


def invalid(message: str) -> WireError:
    """Return a 400."""
    return problem(400, "invalid_request_error", message)


def check_key(headers: Mapping[str, str], settings: Settings) -> None:
    """Refuse a missing or wrong key."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    key = token if scheme == "Bearer" else headers.get("x-api-key", "")
    expected = settings.keys.get("anthropic")
    if not key or (expected is not None and key != expected):
        raise failure("unauthorized", {"key": key}, "")


def read(endpoint: str, headers: Mapping[str, str], body: Json, settings: Settings, model: str | None) -> Ask:
    """Understand a request, or refuse it as the vendor would."""
    version = headers.get("anthropic-version")
    if version is None:
        raise invalid("anthropic-version: header is required")
    if version not in VERSIONS:
        raise invalid(f"anthropic-version: {version!r} is not a valid version")
    if not isinstance(body, dict):
        raise invalid("The request body is not valid JSON.")
    known = MESSAGES | set(_SAMPLING if version == VERSIONS[0] else ()) | set(settings.accepts.get("anthropic", ()))
    for name in body:
        if name in known:
            continue
        raise failure("bad_parameter", {"parameter": name}, "")
    for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if not isinstance(body.get(name), kind):
            raise invalid(f"{name}: Field required")
    model = body["model"]
    if model not in settings.models.get("anthropic", [model]):
        raise failure("no_model", {}, model)
    for parameter in settings.refuses.get(model, ()):
        if parameter in body:
            raise failure("bad_parameter", {"parameter": parameter}, model)
    messages = body["messages"]
    if not messages or messages[-1].get("role") != "user":
        raise invalid("messages: the conversation must end with a user message.")
    words = [_words(message["content"]) for message in messages]
    if body.get("system"):
        words.insert(0, _words(body["system"]))
    return Ask("anthropic", "messages", model, "\n".join(words), body["max_tokens"])


def _words(content: Json) -> str:
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def reply(ask: Ask, said: Answer, serial: int, model: str, twist: Mapping[str, Json]) -> Json:
    """Return the body of an answer; `twist` bends it as a scripted fault asks."""
    blocks: list[Json] = [{"type": "text", "text": said.text, "citations": None}]
    thought = {"type": "thinking", "thinking": "", "signature": "c2lnbmF0dXJl"}
    if said.usage.reasoning:
        blocks.insert(0, thought)
    stop, details = "max_tokens" if said.cut else "end_turn", None
    match twist.get("kind"):
        case "refusal":
            blocks, stop = [], "refusal"
            details = {"type": "refusal", "category": "other", "explanation": "Declined."}
        case "filtered":
            blocks, stop = [], "refusal"
        case "empty_text":
            blocks = []
        case "no_text":
            blocks, stop = [thought], "max_tokens"
        case "unknown_finish":
            stop = "paused_by_moon"
    usage = said.usage
    return {
        "id": f"msg_{serial:08d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": details,
        "usage": {
            # Unlike the other two vendors, the input excludes what was cached.
            "input_tokens": usage.input - usage.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": usage.output + usage.reasoning,
            "output_tokens_details": {"thinking_tokens": usage.reasoning},
            "service_tier": "standard",
        },
    }


def headers_of(serial: int) -> dict[str, str]:
    """Return the headers of an answer."""
    return {"request-id": request_id(serial), "anthropic-organization-id": "00000000-organisation"}


def request_id(serial: int) -> str:
    """Return what the vendor calls a request."""
    return f"req_anthropic_{serial:08d}"


def failure(kind: str, fault: Mapping[str, Json], model: str) -> WireError:
    """Return a scripted failure in the vendor's own words."""
    parameter = fault.get("parameter", "temperature")
    quoted = f" {fault.get('key', '')}" if fault.get("quote_key") else ""
    found: dict[str, tuple[int, str, str]] = {
        "unauthorized": (401, "authentication_error", f"invalid x-api-key{quoted}"),
        "forbidden": (403, "permission_error", "Your API key does not have permission to use this resource."),
        "no_model": (404, "not_found_error", f"model: {model}"),
        "bad_parameter": (400, "invalid_request_error", f"{parameter}: Extra inputs are not permitted"),
        "unsupported": (400, "invalid_request_error", f"`{parameter}` is not supported by this model."),
        "too_long": (400, "invalid_request_error", "prompt is too long: 214748 tokens > 200000 maximum"),
        "filter": (400, "invalid_request_error", "Output blocked by content filtering policy"),
        "out_of_funds": (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API. Please go to Plans & Billing to purchase credits.",
        ),
        "no_credit": (402, "billing_error", "Your organization has no payment method."),
        "rate_limit": (429, "rate_limit_error", "This request would exceed your rate limit of 50 requests per minute."),
        "overload": (529, "overloaded_error", "Overloaded"),
    }
    made = problem(*found.get(kind, (int(fault.get("status", 500)), "api_error", "Internal server error")))
    made.headers = {"request-id": "req_anthropic_refused", **wait_headers(fault)}
    return made
