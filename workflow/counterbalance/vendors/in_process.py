"""What the vendors of models in this process share: how these can be read, what is sent, and what a reply says."""

from collections.abc import Callable, Mapping
from typing import Any

from counterbalance.canonical import Json, sha256_json
from counterbalance.config import Experiment
from counterbalance.config.models import GenerateRead, LocalModel, LogprobRead, OptionTextRead, TransformersModel
from counterbalance.errors import ConfigError
from counterbalance.vendors.base import Reply, Request, Trial
from counterbalance.vendors.local import Generation, Prompt, Usage

OpenRead = GenerateRead | LogprobRead | OptionTextRead


def readable(experiment: Experiment, model: LocalModel | TransformersModel) -> OpenRead:
    """Return the experiment's read.

    Raises
    ------
    ConfigError
        If a model in this process cannot be read so.
    """
    read, where = experiment.read, f"experiment {experiment.id!r}, model {model.id!r}"
    if not isinstance(read, OpenRead):
        raise ConfigError(
            f"{where}: `read: {{kind: {read.kind}}}` is not for a model in this process; use `logprob`, `option_text` "
            "or `generate`, in an experiment of their own"
        )
    if isinstance(read, GenerateRead) and read.temperature is None:
        raise ConfigError(
            f"{where}: read.temperature is null, and a model in this process has no default that is used; write a "
            "number (0.0 takes the likeliest token), in an experiment of its own if other models need null"
        )
    return read


def what_is_read(read: OpenRead, trial: Trial, seed: int) -> tuple[dict[str, Json], list[str] | None]:
    """Return a read's part of a request: parameters, and the words whose log-probability is asked.

    Parameters
    ----------
    seed
        The study's; the seed of a call is drawn from it by prompt and repeat, so that repeats can differ.
    """
    parameters: dict[str, Json] = {"read": read.kind}
    match read:
        case GenerateRead(max_tokens=max_tokens, temperature=temperature, stop=stop):
            parameters |= {"max_tokens": max_tokens, "temperature": temperature, "stop": list(stop)}
            if temperature:
                digest = sha256_json([seed, trial.prompt_sha256, trial.repeat])
                parameters["seed"] = int(digest.removeprefix("sha256:")[:8], 16) >> 1
        case LogprobRead(top=top):
            parameters["top"] = top
        case OptionTextRead(prefix=prefix):
            return parameters, [prefix + text for text in trial.option_texts]
    return parameters, None


def as_prompt(prompt: Mapping[str, Any]) -> Prompt:
    """Return a trial's prompt as bare text or as messages."""
    found: Prompt = prompt["text"] if "text" in prompt else prompt["messages"]
    return found


def write(generate: Callable[..., Generation], request: Request, origin: Mapping[str, str]) -> Reply:
    """Let an engine write, and return its reply.

    Parameters
    ----------
    generate
        The engine's.
    origin
        As in `told`.
    """
    sent = request.parameters
    made = generate(
        as_prompt(request.prompt),
        max_tokens=sent["max_tokens"],
        temperature=sent["temperature"],
        seed=sent.get("seed", 0),
        stop=sent["stop"],
    )
    cut, blank = made.finish_reason == "length", not made.text.strip()
    return Reply(
        "truncated" if cut else "empty" if blank else "ok",
        text=made.text,
        finish_reason=made.finish_reason,
        **told(origin, made.usage),
    )


def told(origin: Mapping[str, str], usage: Usage) -> dict[str, Any]:
    """Return what every reply says beside its answer.

    Parameters
    ----------
    origin
        `model_returned` and `fingerprint`.
    usage
        Tokens of the read.
    """
    return {
        **origin,
        "input_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.written_tokens,
    }
