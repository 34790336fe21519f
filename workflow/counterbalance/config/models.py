"""A whole study: every setting with its type, default and meaning. The reference page is generated from here."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from counterbalance.config.contrasts import ContrastFile
from counterbalance.config.datasets import Columns, Dataset, Key, Take
from counterbalance.config.experiments import (
    Arrangement,
    CellsRead,
    Crossing,
    DecideRead,
    Dials,
    Experiment,
    GenerateRead,
    LogprobRead,
    OptionTextRead,
    Prompt,
    Read,
    Scout,
    Share,
)
from counterbalance.config.names import Id, find_collision
from counterbalance.config.vendors import (
    Account,
    AnthropicModel,
    ApiModel,
    Block,
    CellsModel,
    GoogleModel,
    LocalModel,
    Model,
    Money,
    OpenAIModel,
    ReplayModel,
    SimulatedModel,
    TransformersModel,
)

__all__ = [
    "Account",
    "Analysis",
    "AnthropicModel",
    "ApiModel",
    "Arrangement",
    "CellsModel",
    "CellsRead",
    "Columns",
    "Crossing",
    "Dataset",
    "DecideRead",
    "Dials",
    "Experiment",
    "GenerateRead",
    "GoogleModel",
    "Key",
    "Limits",
    "LocalModel",
    "LogprobRead",
    "Model",
    "Money",
    "OpenAIModel",
    "OptionTextRead",
    "Prompt",
    "Read",
    "ReplayModel",
    "Scout",
    "SimulatedModel",
    "StudyConfig",
    "Take",
    "TransformersModel",
]


class Analysis(Block):
    """The analysis plan; it is frozen with the rest."""

    alpha: Share = Field(0.05, description="Significance level.")
    level: Share = Field(0.95, description="Level of all intervals.")
    resamples: Annotated[int, Field(ge=99)] = Field(9999, description="Draws of the calibrated tests and intervals.")
    run_resamples: Annotated[int, Field(ge=99)] = Field(1000, description="Draws of the published run-level bootstrap.")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(42, description="Seed of every resampling.")
    v_floor: Share = Field(0.05, description="Published floor of V below which a cell is called inactive.")
    rho_threshold: Annotated[float, Field(ge=-1, le=0)] = Field(
        -0.5, description="Published threshold of Spearman's rho for `processing_load`."
    )
    capability_band: tuple[Share, Share] = Field((0.6, 0.95), description="Edges of low, middle and high accuracy.")
    detectable_power: Share = Field(0.8, description="Power at which the smallest detectable V is given.")
    measurable_v: Share = Field(
        0.1, description="A cell without a finding that could not have shown this V is `not_measurable`."
    )
    family: Literal["experiment", "study"] = Field(
        "experiment", description="Cells over which Holm's correction runs, all confirmatory tests together."
    )
    stream: Literal["modern", "legacy"] = Field(
        "modern",
        description="Random numbers of the BCa intervals of half-effects, nats by slot and planned contrasts: NumPy's "
        "Generator, or the older RandomState, to replicate papers whose intervals were drawn with it.",
    )
    contrasts: ContrastFile | None = Field(
        None,
        description="Planned contrasts of the crossing: a file (docs/contrasts.md), relative to the project. Its "
        "content becomes part of the settings and is frozen with them.",
    )
    slot_contrasts: ContrastFile | None = Field(
        None,
        description="Planned contrasts of mcq, over what is known by slot of each item (docs/contrasts.md); a file, "
        "read and frozen like `contrasts`.",
    )


class Limits(Block):
    """Where the run stops before it costs too much."""

    max_arrangements: Annotated[int, Field(ge=1)] = Field(120, description="Most orders of one item.")
    max_calls: Annotated[int, Field(ge=1)] = Field(100_000, description="Most calls of the whole study.")
    max_truncated_share: Share = Field(
        0.2,
        description="A cell stops when more than this share of its first 50 replies is cut at the output limit, or, of "
        "a paid model's, holds nothing to read.",
    )


class StudyConfig(Block):
    """A whole study."""

    schema_version: Literal["counterbalance/study/1"] = Field(
        alias="schema", description="Version of this file's form."
    )
    id: Id = Field(description="Name of the study in paths.")
    title: str = Field(description="Title of the report.")
    question: str = Field(description="The question the study answers, in one sentence.")
    seed: Annotated[int, Field(ge=0, lt=2**53)] = Field(description="Seed of arrangements, drawn items and order.")
    preregistration: str | None = Field(
        description="Markdown file of the preregistration; null stamps the study exploratory."
    )
    models: Annotated[list[Model], Field(min_length=1)] = Field(description="Who is asked.")
    datasets: Annotated[list[Dataset], Field(min_length=1)] = Field(description="What is asked.")
    experiments: Annotated[list[Experiment], Field(min_length=1)] = Field(description="How it is asked.")
    accounts: list[Account] = Field(
        [], description="Keys and how fast they may be used; not frozen, because no reply depends on it."
    )
    money: Money = Field(default_factory=Money, description="Prices and caps; not frozen.")
    analysis: Analysis = Field(default_factory=Analysis, description="The analysis plan.")
    limits: Limits = Field(default_factory=Limits, description="Where the run stops.")

    @model_validator(mode="after")
    def _names_are_unique_and_known(self) -> Self:
        for key, ids in (
            ("models", [entry.id for entry in self.models]),
            ("datasets", [entry.id for entry in self.datasets]),
            ("experiments", [entry.id for entry in self.experiments]),
            ("accounts", [entry.id for entry in self.accounts]),
        ):
            pair = find_collision(ids)
            if pair:
                raise ValueError(
                    f"{key}: ids {pair[0]!r} and {pair[1]!r} are the same on some file systems; rename one of them"
                )
        known = {"models": {m.id for m in self.models}, "datasets": {d.id for d in self.datasets}}
        for experiment in self.experiments:
            for key, used in (("models", experiment.models), ("datasets", experiment.datasets)):
                for name in used:
                    if name not in known[key]:
                        raise ValueError(
                            f"experiments.{experiment.id}.{key}: {name!r} is not among {sorted(known[key])}"
                        )
                if len(set(used)) != len(used):
                    raise ValueError(f"experiments.{experiment.id}.{key}: an id is listed twice")
        return self
