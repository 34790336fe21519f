"""Google's interface: generateContent and Decisions."""

from __future__ import annotations

from collections.abc import Mapping

from .failure import WireError, wait_headers
from .respondent import Answer, Ask
from .settings import Json, Settings

TOP = {
    *("model", "contents", "systemInstruction", "generationConfig", "safetySettings", "tools", "toolConfig"),
    *("cachedContent", "labels", "store", "serviceTier", "continuationToken"),
}
CONFIG = {
    *("temperature", "topP", "topK", "seed", "maxOutputTokens", "stopSequences", "candidateCount", "logprobs"),
    *("responseLogprobs", "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities"),
    *("thinkingConfig", "presencePenalty", "frequencyPenalty", "mediaResolution", "speechConfig", "imageConfig"),
}
# The SDK sends these two ways.
THINKING = {
    *("thinkingLevel", "thinkingBudget", "includeThoughts"),
    *("thinking_level", "thinking_budget", "include_thoughts"),
}


def problem(status: int, state: str, message: str, *details: Json) -> WireError:
    """Return an error in Google's form."""
    error = {"code": status, "message": message, "status": state}
    if details:
        error["details"] = list(details)
    return WireError(status, {"error": error})


def invalid(message: str, *details: Json) -> WireError:
    """Return a 400."""
    return problem(400, "INVALID_ARGUMENT", message, *details)


def check_key(headers: Mapping[str, str], settings: Settings) -> None:
    """Refuse a missing or wrong key."""
    key = headers.get("x-goog-api-key", "")
    if not key:
        raise problem(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")
    expected = settings.keys.get("google")
    if expected is not None and key != expected:
        raise failure("unauthorized", {"key": key}, "")


def read(endpoint: str, headers: Mapping[str, str], body: Json, settings: Settings, model: str | None) -> Ask:
    """Understand a request, or refuse it as the vendor would."""
    if not isinstance(body, dict):
        raise invalid("Invalid JSON payload received.")
    name = (model or str(body.get("model", ""))).removeprefix("models/")
    if name not in settings.models.get("google", [name]):
        raise failure("no_model", {}, name)
    if endpoint == "decisions":
        return _decision(body, name)
    config = body.get("generationConfig", {})
    thinking = config.get("thinkingConfig", {})
    accepted = settings.accepts.get("google", ())
    for where, given, known in (
        ("", body, TOP),
        ("generation_config", config, CONFIG),
        ("thinking", thinking, THINKING),
    ):
        for field in given:
            if field not in known and field not in accepted:
                raise failure("bad_parameter", {"parameter": field, "where": where}, name)
    if len({field.replace("_", "").lower() for field in thinking} & {"thinkinglevel", "thinkingbudget"}) == 2:
        raise invalid("You can only set only one of thinking budget and thinking level.")
    for parameter in settings.refuses.get(name, ()):
        if parameter in config:
            raise failure("unsupported", {"parameter": parameter}, name)
    return _generate(body, config, name)


def _generate(body: dict[str, Json], config: dict[str, Json], model: str) -> Ask:
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        raise invalid("* GenerateContentRequest.contents: contents is not specified")
    words = [_words(content) for content in contents]
    if body.get("systemInstruction"):
        words.insert(0, _words(body["systemInstruction"]))
    top = config.get("logprobs")
    if top is not None and not config.get("responseLogprobs"):
        raise invalid("logprobs requires response_logprobs to be true.")
    if top is not None and not 0 <= top <= 20:
        raise invalid("logprobs must be in the range [0, 20].")
    wanted = (top or 0) if config.get("responseLogprobs") else None
    return Ask("google", "generateContent", model, "\n".join(words), config.get("maxOutputTokens"), wanted)


def _words(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content["parts"])


def _decision(body: dict[str, Json], model: str) -> Ask:
    extra = set(body) - {"input", "model", "questions"}
    if extra:
        raise failure("bad_parameter", {"parameter": min(extra)}, model)
    questions = body.get("questions")
    if not isinstance(questions, dict) or len(questions) != 1:
        raise invalid("This server answers exactly one question.")
    [(name, question)] = questions.items()
    criteria = question.get("criteria")
    if question.get("type") != "choice" or not isinstance(criteria, dict) or not 2 <= len(criteria) <= 255:
        raise invalid("A choice question needs between 2 and 255 criteria.")
    text = "\n".join(_texts(body["input"]) + _texts(question["instructions"]))
    return Ask("google", "decisions", model, text, choices=tuple(criteria), question=name)


def _texts(given: Json) -> list[str]:
    if isinstance(given, str):
        return [given]
    return [entry["text"] for entry in (given if isinstance(given, list) else [given])]


def reply(ask: Ask, said: Answer, serial: int, model: str, twist: Mapping[str, Json]) -> Json:
    """Return the body of an answer; `twist` bends it as a scripted fault asks."""
    if ask.endpoint == "decisions":
        return _decided(ask, said, twist)
    candidate: dict[str, Json] = {
        "content": {"parts": [{"text": said.text}], "role": "model"},
        "finishReason": "MAX_TOKENS" if said.cut else "STOP",
        "index": 0,
    }
    if ask.top is not None and twist.get("kind") != "null_logprobs":
        candidate |= _logprobs(said, ask.top, twist)
    usage = said.usage
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": usage.input + usage.output + usage.reasoning,
    }
    counts |= {"cachedContentTokenCount": usage.cached} if usage.cached else {}
    counts |= {"thoughtsTokenCount": usage.reasoning} if usage.reasoning else {}
    body: dict[str, Json] = {
        "candidates": [candidate],
        "usageMetadata": counts,
        "modelVersion": model,
        "responseId": request_id(serial),
    }
    match twist.get("kind"):
        case "refusal" | "prompt_block":
            del body["candidates"]
            body["promptFeedback"] = {"blockReason": twist.get("reason", "OTHER")}
        case "filtered":
            body["candidates"] = [{"finishReason": "SAFETY", "index": 0}]
        case "no_text":
            body["candidates"] = [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS", "index": 0}]
        case "empty_text":
            candidate["content"] = {"role": "model"}
        case "no_choices":
            del body["candidates"]
        case "unknown_finish":
            candidate["finishReason"] = "PAUSED_BY_MOON"
    return body


def _logprobs(said: Answer, top: int, twist: Mapping[str, Json]) -> dict[str, Json]:
    listed = said.top(max(top, 1), without_labels=twist.get("kind") == "labels_absent")
    entries = [{"token": token, "tokenId": rank, "logProbability": p} for rank, (token, p) in enumerate(listed)]
    chosen = next((entry for entry in entries if entry["token"] == said.text), entries[0])
    result = {"chosenCandidates": [chosen], "topCandidates": [{"candidates": entries[:top]}]}
    return {"avgLogprobs": chosen["logProbability"], "logprobsResult": result}


def _decided(ask: Ask, said: Answer, twist: Mapping[str, Json]) -> Json:
    usage = {
        "total_input_tokens": said.usage.input,
        "total_cached_tokens": said.usage.cached,
        "total_output_tokens": said.usage.output,
        "total_thought_tokens": 0,
        "total_tokens": said.usage.input + said.usage.output,
    }
    if twist.get("kind") in {"refusal", "prompt_block"}:
        return {"prompt_feedback": {"block_reason": "safety"}, "usage": usage}
    best, share = said.odds[0]
    answered = {"type": "choice", "choice": best, "confidence": share, "probabilities": dict(said.odds)}
    return {"answers": {ask.question: answered}, "usage": usage}


def headers_of(serial: int) -> dict[str, str]:
    """Return the headers of an answer; the vendor documents no request id among them."""
    return {"server-timing": "gfet4t7; dur=1"}


def request_id(serial: int) -> str:
    """Return what the vendor calls a request."""
    return f"resp_google_{serial:08d}"


_TYPES = "type.googleapis.com/google.rpc."


def failure(kind: str, fault: Mapping[str, Json], model: str) -> WireError:
    """Return a scripted failure in the vendor's own words."""
    parameter = fault.get("parameter", "temperature")
    quoted = f" ({fault.get('key', '')})" if fault.get("quote_key") else ""
    bad_key = {"@type": _TYPES + "ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
    where = fault.get("where", "generation_config")
    found: dict[str, tuple[Json, ...]] = {
        "unauthorized": (400, "INVALID_ARGUMENT", f"API key not valid. Please pass a valid API key.{quoted}", bad_key),
        "forbidden": (403, "PERMISSION_DENIED", "The caller does not have permission"),
        "no_model": (404, "NOT_FOUND", f"models/{model} is not found for API version v1."),
        "bad_parameter": (
            400,
            "INVALID_ARGUMENT",
            f"Invalid JSON payload received. Unknown name \"{parameter}\" at '{where}': Cannot find field.",
        ),
        "unsupported": (400, "INVALID_ARGUMENT", f"{parameter} is not enabled for models/{model}"),
        "too_long": (400, "INVALID_ARGUMENT", "The input token count (1048577) exceeds the maximum number of tokens."),
        "filter": (400, "INVALID_ARGUMENT", "The prompt was blocked for safety reasons: PROHIBITED_CONTENT."),
        "out_of_funds": (
            429,
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.",
            _quota("GenerateRequestsPerDayPerProjectPerModel"),
        ),
        "no_credit": (402, "FAILED_PRECONDITION", "Your prepaid credits are depleted."),
        "overload": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    }
    if kind == "rate_limit":
        made = problem(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", *_rate_details(fault))
    else:
        made = problem(*found.get(kind, (int(fault.get("status", 500)), "INTERNAL", "An internal error has occurred.")))
    made.headers = wait_headers(fault)
    return made


def _quota(name: str) -> Json:
    return {"@type": _TYPES + "QuotaFailure", "violations": [{"quotaId": name, "quotaValue": "10"}]}


def _rate_details(fault: Mapping[str, Json]) -> list[Json]:
    details = [_quota("GenerateRequestsPerMinutePerProjectPerModel")]
    if fault.get("hint") == "google":
        details.append({"@type": _TYPES + "RetryInfo", "retryDelay": f"{float(fault.get('wait_s', 1.0)):g}s"})
    return details
