"""OpenAI's interface: Chat Completions and Decisions."""

from __future__ import annotations

from collections.abc import Mapping

from .failure import WireError, wait_headers
from .respondent import Answer, Ask
from .settings import Json, Settings

_NEEDS_LOGPROBS = 20


CHAT = {
    *("audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"),
    *("max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model"),
    *("moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
    *("reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop"),
    *("store", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user"),
    *("verbosity", "web_search_options"),
}
DECISION = frozenset({"model", "input", "questions", "prompt_cache_key", "prompt_cache_options", "safety_identifier"})


def problem(status: int, message: str, *, kind: str, code: str | None = None, param: str | None = None) -> WireError:
    """Return an error in OpenAI's form."""
    return WireError(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def invalid(message: str, *, code: str | None = None, param: str | None = None) -> WireError:
    """Return a 400."""
    return problem(400, message, kind="invalid_request_error", code=code, param=param)


def check_key(headers: Mapping[str, str], settings: Settings) -> None:
    """Refuse a missing or wrong key."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme != "Bearer" or not key:
        raise problem(
            401, "You didn't provide an API key. You need to provide your API key.", kind="invalid_request_error"
        )
    expected = settings.keys.get("openai")
    if expected is not None and key != expected:
        raise failure("unauthorized", {"key": key}, "")


def read(endpoint: str, headers: Mapping[str, str], body: Json, settings: Settings, model: str | None) -> Ask:
    """Understand a request, or refuse it as the vendor would."""
    if not isinstance(body, dict):
        raise invalid("We could not parse the JSON body of your request.")
    known = DECISION if endpoint == "decisions" else CHAT
    extra = [name for name in body if name not in known and name not in settings.accepts.get("openai", ())]
    if extra:
        raise failure("bad_parameter", {"parameter": extra[0]}, "")
    name = body.get("model")
    if not isinstance(name, str):
        raise invalid("you must provide a model parameter", param="model")
    if name not in settings.models.get("openai", [name]):
        raise failure("no_model", {}, name)
    for parameter in settings.refuses.get(name, ()):
        if parameter in body:
            raise failure("unsupported", {"parameter": parameter, "value": body[parameter]}, name)
    return _decision(body, name) if endpoint == "decisions" else _chat(body, name)


def _chat(body: dict[str, Json], model: str) -> Ask:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise invalid("Missing required parameter: 'messages'.", code="missing_required_parameter", param="messages")
    if "max_tokens" in body and "max_completion_tokens" in body:
        raise invalid("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    words = []
    for index, message in enumerate(messages):
        if message.get("role") not in {"system", "developer", "user", "assistant"}:
            raise invalid(f"Invalid value: {message.get('role')!r}.", param=f"messages[{index}].role")
        words.append(_words(message["content"]))
    top = body.get("top_logprobs")
    if top is not None and not body.get("logprobs"):
        raise invalid("'top_logprobs' requires 'logprobs' to be true.", param="top_logprobs")
    if top is not None and not 0 <= top <= _NEEDS_LOGPROBS:
        raise invalid(f"Invalid value for 'top_logprobs': must be less than or equal to {_NEEDS_LOGPROBS}.")
    wanted = (top or 0) if body.get("logprobs") else None
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return Ask("openai", "chat.completions", model, "\n".join(words), limit, wanted)


def _decision(body: dict[str, Json], model: str) -> Ask:
    questions = body.get("questions")
    if not isinstance(questions, list) or len(questions) != 1 or questions[0].get("type") != "choice":
        raise invalid("This server answers exactly one question of type 'choice'.", param="questions")
    choices = tuple(choice["value"] for choice in questions[0]["choices"])
    if not 2 <= len(choices) <= 255 or len(set(choices)) != len(choices):
        raise invalid("Provide between 2 and 255 choices. Each choice must be unique.", param="questions[0].choices")
    given = body["input"]
    words = [given] if isinstance(given, str) else [_words(message["content"]) for message in given]
    text = "\n".join([*words, _words(questions[0]["instructions"])])
    return Ask("openai", "decisions", model, text, choices=choices, question=questions[0].get("name"))


def _words(content: Json) -> str:
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def reply(ask: Ask, said: Answer, serial: int, model: str, twist: Mapping[str, Json]) -> Json:
    """Return the body of an answer; `twist` bends it as a scripted fault asks."""
    if ask.endpoint == "decisions":
        return _decided(ask, said, model, twist)
    message: dict[str, Json] = {"role": "assistant", "content": said.text, "refusal": None, "annotations": []}
    finish = "length" if said.cut else "stop"
    odds = None if ask.top is None else _logprobs(said, ask.top, twist)
    match twist.get("kind"):
        case "refusal":
            message |= {"content": None, "refusal": "I'm sorry, I cannot assist with that request."}
        case "filtered":
            message["content"], finish = None, "content_filter"
        case "empty_text":
            message["content"] = ""
        case "no_text":
            message["content"], finish = "", "length"
        case "unknown_finish":
            finish = "abort"
    usage = said.usage
    body: dict[str, Json] = {
        "id": f"chatcmpl-{serial:08d}",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": odds, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output + usage.reasoning,
            "total_tokens": usage.input + usage.output + usage.reasoning,
            "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_loopback1",
    }
    if twist.get("kind") == "no_choices":
        body["choices"] = []
    return body


def _logprobs(said: Answer, top: int, twist: Mapping[str, Json]) -> Json:
    if twist.get("kind") == "null_logprobs":
        return None
    listed = said.top(max(top, 1), without_labels=twist.get("kind") == "labels_absent")
    entries = [{"token": token, "logprob": p, "bytes": list(token.encode())} for token, p in listed]
    chosen = next((entry for entry in entries if entry["token"] == said.text), entries[0])
    return {"content": [{**chosen, "top_logprobs": entries[:top]}], "refusal": None}


def _decided(ask: Ask, said: Answer, model: str, twist: Mapping[str, Json]) -> Json:
    if twist.get("kind") == "refusal":
        answered: Json = {"type": "refusal", "name": ask.question}
    else:
        shares = dict(said.odds)
        listed = [{"value": choice, "probability": shares[choice]} for choice in ask.choices]
        best, share = said.odds[0]
        answered = {
            "type": "choice",
            "name": ask.question,
            "choice": best,
            "confidence": share,
            "probabilities": listed,
        }
    usage = {
        "input_tokens": said.usage.input,
        "input_tokens_details": {"cached_tokens": said.usage.cached, "cache_write_tokens": 0},
        "output_tokens": said.usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": said.usage.input + said.usage.output,
    }
    return {"answers": [] if twist.get("kind") == "no_choices" else [answered], "model": model, "usage": usage}


def headers_of(serial: int) -> dict[str, str]:
    """Return the headers of an answer."""
    return {"x-request-id": request_id(serial), "openai-processing-ms": "1", "openai-version": "2020-10-01"}


def request_id(serial: int) -> str:
    """Return what the vendor calls a request."""
    return f"req_openai_{serial:08d}"


def failure(kind: str, fault: Mapping[str, Json], model: str) -> WireError:
    """Return a scripted failure in the vendor's own words."""
    parameter = fault.get("parameter", "temperature")
    found = {
        "unauthorized": lambda: problem(
            401,
            f"Incorrect API key provided: {_quote(fault)}.",
            kind="invalid_request_error",
            code="invalid_api_key",
        ),
        "forbidden": lambda: problem(
            403, "Your project does not have access to this model.", kind="invalid_request_error", code="forbidden"
        ),
        "no_model": lambda: problem(
            404,
            f"The model `{model}` does not exist or you do not have access to it.",
            kind="invalid_request_error",
            code="model_not_found",
        ),
        "bad_parameter": lambda: invalid(
            f"Unknown parameter: '{parameter}'.", code="unknown_parameter", param=parameter
        ),
        "unsupported": lambda: invalid(
            f"Unsupported value: '{parameter}' does not support {fault.get('value', 0)} with this model.",
            code="unsupported_value",
            param=parameter,
        ),
        "too_long": lambda: invalid(
            "This model's maximum context length is 128 tokens. However, your messages resulted in 4096 tokens.",
            code="context_length_exceeded",
            param="messages",
        ),
        "filter": lambda: invalid(
            "The response was filtered due to the prompt triggering our content management policy.",
            code="content_filter",
            param="prompt",
        ),
        "out_of_funds": lambda: problem(
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            kind="insufficient_quota",
            code="insufficient_quota",
        ),
        # In the words of another server that speaks this interface.
        "no_credit": lambda: problem(
            403, "Your team has used all available credits.", kind="permission_denied", code="permission_denied"
        ),
        "rate_limit": lambda: problem(
            429, "Rate limit reached for requests per min (RPM).", kind="requests", code="rate_limit_exceeded"
        ),
        "overload": lambda: problem(503, "The engine is currently overloaded.", kind="server_error", code="overloaded"),
    }.get(kind)
    made = found() if found else problem(int(fault.get("status", 500)), "The server had an error.", kind="server_error")
    made.headers = wait_headers(fault)
    return made


def _quote(fault: Mapping[str, Json]) -> str:
    # OpenAI masks the key it quotes; some compatible servers quote it whole.
    key = str(fault.get("key", ""))
    return key if fault.get("quote_key") else f"{key[:4]}********{key[-4:]}"
