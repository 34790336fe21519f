"""The models a study asks, one block per vendor; every field here is part of what is frozen."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from counterbalance.config.names import Id


class Block(BaseModel):
    """Base of every configuration block: strict types, no unknown keys, immutable."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Rate = Annotated[float, Field(ge=0, le=1)]
PerSubset = dict[Id, float] | float
BonusPerSubset = dict[Id, list[float]] | list[float]


class LocalModel(Block):
    """A small open-weights model in this process, on the CPU, without a key."""

    id: Id = Field(description="Name of the model in cells, paths and the report.")
    vendor: Literal["local"]
    model: Literal["smollm2-135m-instruct", "gemma-3-270m"] = Field(
        "smollm2-135m-instruct", description="Which packaged weights; they are dequantised once to F32."
    )
    accept_terms: str | None = Field(
        None, description="Name of the licence terms you accept, where the weights have terms of their own (Gemma)."
    )
    context_tokens: Annotated[int, Field(ge=64, le=8192)] = Field(2048, description="Context length in tokens.")


class TransformersModel(Block):
    """A model with open weights in this process, on the CPU, through PyTorch: an extra (docs/transformers.md)."""

    id: Id = Field(description="Name of the model in cells, paths and the report.")
    vendor: Literal["transformers"]
    folder: Annotated[str, Field(min_length=1)] | None = Field(
        None,
        description="Folder of the model, relative to the project: configuration, tokenizer, weights as safetensors.",
    )
    hub_id: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None = Field(
        None, description="In the place of a folder: OWNER/NAME on the Hugging Face hub."
    )
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = Field(
        None,
        description="Commit of the hub's repository, 40 digits: branches and tags move. Null takes what is cached.",
    )
    files_sha256: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = Field(
        None, description="Expected hash of the model's files, as docs/transformers.md defines it."
    )
    download: bool = Field(
        False, description="Whether files of `revision` that are not cached are fetched; else no network is used."
    )
    allow_unpinned: bool = Field(
        False, description="Whether a confirmatory study may use a model without `revision` and `files_sha256`."
    )
    context_tokens: Annotated[int, Field(ge=16, le=1_048_576)] = Field(
        2048, description="Longest prompt and reply together, in tokens; at most what the model has positions for."
    )
    threads: Annotated[int, Field(ge=1, le=256)] = Field(
        1, description="Processor threads; another number can change the last bits, so it belongs to a call's identity."
    )
    batch_size: Annotated[int, Field(ge=1, le=256)] = Field(
        1,
        description="Most prompts, all of equally many tokens, in one pass. Above 1 is faster and can change the last "
        "bits by what else is in the pass.",
    )

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if (self.folder is None) == (self.hub_id is None):
            raise ValueError("write `folder` or `hub_id`: the one place that the model comes from")
        if self.hub_id is None and (self.revision is not None or self.download):
            raise ValueError("`revision` and `download` belong to a `hub_id`; a folder is pinned by `files_sha256`")
        if self.download and self.revision is None:
            raise ValueError("`download` needs `revision`: only files of a fixed commit are fetched")
        return self


class SimulatedModel(Block):
    """A respondent with planted biases, for power analysis and calibration; never evidence about a real model."""

    id: Id = Field(description="Name of the model in cells, paths and the report.")
    vendor: Literal["simulated"]
    seed: Annotated[int, Field(ge=0, lt=2**53)] = Field(1, description="Seed of every draw the respondent makes.")
    ability_mean: PerSubset = Field(
        1.5, description="Mean utility of the correct option; one number, or one per data set."
    )
    ability_sd: Annotated[float, Field(ge=0)] = Field(2.0, description="Spread of that utility between items.")
    distractor_sd: Annotated[float, Field(ge=0)] = Field(1.0, description="Spread of the wrong options' utilities.")
    slot_bonus: BonusPerSubset = Field(
        [0.0], description="Utility added by slot, first slot first, in nats; slots beyond the list get the last value."
    )
    item_slot_sd: Annotated[float, Field(ge=0)] = Field(0.0, description="Spread of each item's own slot effects.")
    call_noise: Annotated[float, Field(ge=0)] = Field(0.0, description="Scale of the Gumbel noise of each call.")
    refusal_rate: Rate = Field(0.0, description="Share of calls that answer with a refusal.")
    blank_rate: Rate = Field(0.0, description="Share of calls that answer with nothing.")
    error_rate: Rate = Field(0.0, description="Share of attempts that end in a transport error and stay pending.")
    latency_ms: Annotated[float, Field(ge=0)] = Field(0.0, description="Pause before each reply, to try out resuming.")


class ReplayModel(Block):
    """Replies taken from a published replies table; trials are matched by prompt hash, arrangement and repeat."""

    id: Id = Field(description="Name of the model in cells, paths and the report.")
    vendor: Literal["replay"]
    replies: str = Field(description="Path of a replies.parquet, with {experiment} and {subset} as place holders.")
    trials: str = Field(description="Path of the matching trials.parquet, with the same place holders.")


class CellsModel(Block):
    """No model: cells of a crossing that somebody has published, taken from the data set's file as they stand there."""

    id: Id = Field(description="Name under which the cells stand in tables, paths and the report.")
    vendor: Literal["cells"]
    described_as: str | None = Field(
        None, description="What the source says about the model behind them; printed as its words, checked by nobody."
    )


class ApiModel(Block):
    """What all models behind a paid interface have in common."""

    id: Id = Field(description="Name of the model in cells, paths and the report.")
    model: Annotated[str, Field(min_length=1)] = Field(description="Model id as the vendor spells it.")
    account: Id = Field(description="Which of the study's `accounts` pays.")
    base_url: str | None = Field(None, description="Another server that speaks the same interface.")
    seed: Annotated[int, Field(ge=0, lt=2**31)] | None = Field(
        None, description="Sampling seed to send; null sends none."
    )
    does_not_accept: list[Literal["temperature", "stop", "seed", "logprobs"]] = Field(
        [],
        description="Parameters this model refuses: they are not sent, and the report says so. What a read asks for "
        "and a model refuses without being listed here stops the study before anything is bought.",
    )
    allow_undated: bool = Field(
        False, description="Whether a confirmatory study may use a model id that names no dated version."
    )


class OpenAIModel(ApiModel):
    """A model behind OpenAI's Chat Completions or any server that speaks it (xAI, vLLM, llama.cpp, Ollama)."""

    vendor: Literal["openai"]
    token_limit_field: Literal["max_completion_tokens", "max_tokens"] = Field(
        "max_completion_tokens",
        description="How the output limit is called; compatible servers mostly know `max_tokens`.",
    )
    system_role: Literal["system", "developer"] = Field("system", description="Role of the system message.")
    reasoning_effort: str | None = Field(None, description="Reasoning effort to send; null sends none.")
    extra: dict[str, Any] = Field(
        {},
        description="Further fields of the request's body, sent as they are; those with which prices, worst case or "
        "the reading of one answer would not hold are refused by name (docs/vendors.md).",
    )


class AnthropicModel(ApiModel):
    """A model behind Anthropic's Messages."""

    vendor: Literal["anthropic"]
    thinking: Literal["disabled", "between_tools", "adaptive"] | None = Field(
        None, description="Thinking mode to send; null leaves the model's default, which thinks on current models."
    )
    effort: str | None = Field(None, description="Output effort to send; null sends none.")
    api_version: Literal["2023-06-01"] | None = Field(
        None, description="Older interface version, under which old models still take a temperature."
    )


class GoogleModel(ApiModel):
    """A model behind Google's Gemini API."""

    vendor: Literal["google"]
    api_version: Literal["v1", "v1beta"] = Field("v1", description="Version of the interface.")
    thinking_level: Literal["MINIMAL", "LOW", "MEDIUM", "HIGH"] | None = Field(
        None, description="Thinking level to send (Gemini 3 and later)."
    )
    thinking_budget: Annotated[int, Field(ge=-1)] | None = Field(
        None, description="Thinking budget in tokens to send (Gemini 2.5)."
    )


class Account(Block):
    """A key and how it may be used. Limits hold for all cells of a run together, `max_in_flight` for each job."""

    id: Id = Field(description="Name by which models refer to it.")
    key_env: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")] | None = Field(
        description="Environment variable that holds the key; null for a server that needs none."
    )
    mode: Literal["live", "batch"] = Field(
        "live", description="Ask call by call, or hand in batches, which vendors sell at a discount."
    )
    max_in_flight: Annotated[int, Field(ge=1, le=1000)] = Field(16, description="Most calls under way in one job.")
    requests_per_minute: Annotated[int, Field(ge=1)] | None = Field(None, description="Most requests sent a minute.")
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Most tokens a minute, input as estimated and output at its limit."
    )
    timeout_s: Annotated[float, Field(gt=0)] = Field(120.0, description="Longest a single sending may take in all.")
    tries: Annotated[int, Field(ge=1, le=20)] = Field(6, description="Most sendings of one call in one session.")
    deadline_s: Annotated[float, Field(gt=0)] = Field(
        900.0, description="Longest a call is waited for over all its sendings in one session; then it stays pending."
    )
    cap_usd: Annotated[float, Field(gt=0)] | None = Field(
        None, description="Most this study may spend on this account."
    )
    batch_poll_s: Annotated[float, Field(gt=0)] = Field(30.0, description="Pause between two looks at a batch.")
    batch_wait_s: Annotated[float, Field(ge=0)] = Field(
        86_400.0, description="Longest a session waits for batches; a later run collects what is left."
    )


Price = Annotated[float, Field(ge=0)]


class Prices(Block):
    """US dollars per million tokens."""

    input: Price = Field(description="Input tokens that were not cached.")
    cached_input: Price | None = Field(None, description="Cached input tokens; null charges them like other input.")
    output: Price = Field(description="Output tokens, reasoning included.")
    batch_discount: Annotated[float, Field(ge=0, lt=1)] = Field(0.0, description="Share taken off in batches.")


class Money(Block):
    """Prices by model, and the study's cap. No price is built in."""

    prices: dict[Id, Prices] = Field({}, description="Prices by model id; needed for every model behind an account.")
    cap_usd: Annotated[float, Field(gt=0)] | None = Field(None, description="Most the whole study may spend.")


Model = Annotated[
    LocalModel
    | TransformersModel
    | SimulatedModel
    | ReplayModel
    | CellsModel
    | OpenAIModel
    | AnthropicModel
    | GoogleModel,
    Field(discriminator="vendor"),
]
