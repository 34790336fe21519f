"""The models a study asks, one block per vendor; every field here is part of what is frozen."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

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


Model = Annotated[LocalModel | SimulatedModel | ReplayModel, Field(discriminator="vendor")]
