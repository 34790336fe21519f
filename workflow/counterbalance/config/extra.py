"""Fields that a model's `extra` may not hold, because then neither worst case nor cap would, or no answer be read."""

from collections.abc import Iterator, Mapping

from counterbalance.canonical import Json

_SET = "the study sets it, or leaves it out, by a key of its own: use that key"
_LIMIT = "it is an output limit beside `read.max_tokens`, by which the worst case of a call is reserved"
_SEVERAL = "one call would bring or cost several answers, and one is read and reserved"
_PIECES = "the answer would come in pieces or later, which is not how it is read"
_TOOLS = "the model could call a tool in the place of answering, and definitions and results of tools are billed"
_PRICE = "it is billed by another list than `money.prices`, so neither worst case nor cap would hold"
_OTHER_MODEL = "another model or server could answer, at another price than that in `money.prices`"

_REFUSED = {
    **dict.fromkeys(("endpoint", "system_role", "choices", "instructions", "model", "messages", "input"), _SET),
    **dict.fromkeys(("questions", "max_tokens", "max_completion_tokens", "temperature", "stop", "seed"), _SET),
    **dict.fromkeys(("logprobs", "top_logprobs", "reasoning_effort"), _SET),
    **dict.fromkeys(("max_output_tokens", "max_new_tokens", "n_predict", "num_predict"), _LIMIT),
    **dict.fromkeys(("n", "best_of", "use_beam_search", "num_return_sequences", "candidate_count"), _SEVERAL),
    **dict.fromkeys(("stream", "stream_options", "background", "deferred"), _PIECES),
    **dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"), _TOOLS),
    **dict.fromkeys(("service_tier", "web_search_options", "search_parameters", "enable_search"), _PRICE),
    **dict.fromkeys(("plugins", "modalities", "audio", "prediction", "speed"), _PRICE),
    **dict.fromkeys(("models", "route", "provider"), _OTHER_MODEL),
}


def refused_fields(extra: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield name and reason of every field that may not be there.

    Whether letters are large or small does not matter, for some servers do not tell them apart.
    """
    for name in extra:
        reason = _REFUSED.get(name.casefold())
        if reason is not None:
            yield name, reason
