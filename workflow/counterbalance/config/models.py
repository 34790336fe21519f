"""Every setting of a study, with its type, default and meaning. The reference page is generated from here."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from counterbalance.config.contrasts import ContrastFile
from counterbalance.config.datasets import Columns, Dataset, Key, Take
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

Share = Annotated[float, Field(gt=0, lt=1)]


class Arrangement(Block):
    """Which orders of an item's options are asked."""

    scheme: Literal["exhaustive", "cyclic", "williams", "sampled", "identity_reverse"] = Field(
        "exhaustive", description="Family of orders; see docs/arrangements.md."
    )
    n: Annotated[int, Field(ge=1)] | None = Field(None, description="Orders per item; needed when `sampled`.")

    @model_validator(mode="after")
    def _n_belongs_to_sampled(self) -> Self:
        if (self.scheme == "sampled") != (self.n is not None):
            raise ValueError("`n` is needed when `scheme` is `sampled`, and only then")
        return self


class Prompt(Block):
    """How an item becomes a prompt."""

    template: str = Field(description="Jinja2 file, relative to the project; empty for published cells alone.")
    style: Literal["chat", "plain"] = Field(description="One user message, or bare text to continue.")
    system: str | None = Field(None, description="System message of a chat prompt.")
    examples: str | None = Field(None, description="YAML file of solved examples shown before the item.")
    example_slots: Literal["fixed", "drawn"] = Field(
        "fixed",
        description="Slots of the examples' answers: the same in every prompt, or moved on together by a draw for each "
        "item and order, so that over all prompts no label is an example's answer more often (mcq).",
    )
    labels: list[str] | None = Field(
        None, description="Labels in slot order, at least as many as the longest item has options; A to Z by default."
    )

    @model_validator(mode="after")
    def _system_needs_chat(self) -> Self:
        if self.system is not None and self.style == "plain":
            raise ValueError("`system` needs `style: chat`; a plain prompt has no system message")
        if self.example_slots == "drawn" and self.examples is None:
            raise ValueError("`example_slots: drawn` needs `examples`; there are no answers to move")
        if self.labels is not None and find_collision(self.labels):
            raise ValueError(f"`labels` must differ from each other after case folding; {self.labels} do not")
        return self


_NO_PROMPT = Prompt(template="", style="plain")
"""What stands in the place of `prompt` where prompts are not known."""


class GenerateRead(Block):
    """Let the model write, and read its answer from the text."""

    kind: Literal["generate"]
    max_tokens: Annotated[int, Field(ge=1)] = Field(16, description="Output limit in tokens.")
    temperature: Annotated[float, Field(ge=0, le=2)] | None = Field(
        0.0, description="Sampling temperature asked for; null sends none, so that the vendor's own default holds."
    )
    stop: list[str] = Field([], description="Texts at which the output ends.")


class LogprobRead(Block):
    """Read the log-probability of each option's label as the next token."""

    kind: Literal["logprob"]
    top: Annotated[int, Field(ge=2, le=1000)] = Field(200, description="How many tokens the model is asked to list.")
    min_label_mass: Share = Field(0.05, description="Below this total probability of all labels a reply is `unusable`.")


class OptionTextRead(Block):
    """Read the log-probability of each option's own words after the prompt."""

    kind: Literal["option_text"]
    length: Literal["sum", "per_token", "per_character"] = Field(
        "sum", description="Whether the sum is compared as it is or divided by the option's length."
    )
    prefix: str = Field(" ", description="Text between the prompt and the option's words.")


class DecideRead(Block):
    """Ask a vendor's closed-choice endpoint for a probability per label; a different instrument from writing."""

    kind: Literal["decide"]
    instructions: str = Field(
        "Choose the label of the best answer.", description="What the endpoint is told beside the prompt."
    )


class CellsRead(Block):
    """Take the cells of a crossing that somebody has published; no model is asked, and no prompt is known."""

    kind: Literal["cells"]


Read = Annotated[GenerateRead | LogprobRead | OptionTextRead | DecideRead | CellsRead, Field(discriminator="kind")]


class Dials(Block):
    """One condition of a crossing by its dials; ten of the eighteen combinations are coherent (docs/crossing.md)."""

    header: Literal["neutral", "framed"] = Field(description="Wording of the headers.")
    body: Literal["verbatim", "mixed", "loaded"] = Field(description="Wording of the blocks.")
    cues: Literal[0, 1, 2] = Field(description="Cues in the prompt.")


class Crossing(Block):
    """What a crossing asks: two conflicting blocks in both orders and both roles, in several conditions."""

    conditions: Literal["all"] | Annotated[list[Dials], Field(min_length=1)] = Field(
        "all", description="Conditions by their dials, or all ten."
    )
    cues: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)] = Field(
        description="Words that are cues: they are counted in every prompt and have to match the condition."
    )


class KeepBetween(Block):
    """Accuracies of a scout between which, both included, the cell is kept."""

    min_accuracy: Annotated[float, Field(ge=0, le=1)] = Field(0.0, description="Least accuracy that is kept.")
    max_accuracy: Annotated[float, Field(ge=0, le=1)] = Field(1.0, description="Greatest accuracy that is kept.")

    @model_validator(mode="after")
    def _leaves_something_out(self) -> Self:
        if self.min_accuracy >= self.max_accuracy:
            raise ValueError(f"`min_accuracy` ({self.min_accuracy}) must be below `max_accuracy` ({self.max_accuracy})")
        if (self.min_accuracy, self.max_accuracy) == (0, 1):
            raise ValueError("every accuracy lies between 0 and 1: give `min_accuracy`, `max_accuracy` or both")
        return self


class Scout(Block):
    """A first look at each cell, before the rest of it is bought: two orders of a few items (docs/scout.md)."""

    items: Annotated[int, Field(ge=2)] = Field(25, description="Items looked at, drawn by the seed; all if fewer.")
    keep: KeepBetween | None = Field(None, description="Rule by accuracy: a cell within is kept.")
    keep_bands: Annotated[list[Literal["low", "middle", "high"]], Field(min_length=1, max_length=2)] | None = Field(
        None, description="Rule by band of `analysis.capability_band`: a cell in one of these is kept."
    )
    action: Literal["skip", "report"] = Field(
        "skip", description="`skip`: a cell that the rule does not keep is not asked; `report`: it is, and it is said."
    )

    @model_validator(mode="after")
    def _has_one_rule(self) -> Self:
        if self.keep is not None and self.keep_bands is not None:
            raise ValueError("`keep` and `keep_bands` are two rules; write one of them")
        if self.action == "skip" and self.keep is None and self.keep_bands is None:
            raise ValueError("`action: skip` needs a rule: `keep` or `keep_bands`; or write `action: report`")
        return self


class Experiment(Block):
    """One design joined with items, models, a prompt and a way to read the model."""

    id: Id = Field(description="Name of the experiment in cells, paths and the report.")
    design: Literal["mcq", "crossing"] = Field(description="Which design analyses it.")
    datasets: Annotated[list[Id], Field(min_length=1)] = Field(description="Ids of the data sets it uses.")
    models: Annotated[list[Id], Field(min_length=1)] = Field(description="Ids of the models it asks.")
    prompt: Prompt = Field(
        default_factory=lambda: _NO_PROMPT,
        description="How an item becomes a prompt; needed unless cells are read, whose prompts are not known.",
    )
    read: Read = Field(description="How the model's answer is read.")
    arrangement: Arrangement = Field(default_factory=Arrangement, description="Which orders are asked (mcq).")
    crossing: Crossing | None = Field(
        None, description="Conditions and cues; needed when `design` is `crossing`, unless cells are read."
    )
    scout: Scout | None = Field(
        None, description="Look at each cell first, and skip those that are not worth the sweep (mcq); docs/scout.md."
    )
    repeats: Annotated[int, Field(ge=1, le=100)] = Field(1, description="How often each prompt is asked.")
    repeat_share: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0,
        description="Share of prompts, drawn by the seed, that are asked once more in the same arrangement: how often "
        "the model disagrees with itself where the order did not change.",
    )
    call_order: Literal["auto", "interleaved", "prefix"] = Field(
        "auto",
        description="`interleaved`: items and arrangements mixed by the seed, so that drift cannot pose as position; "
        "`prefix`: prompts that share a beginning one after the other; `auto`: `prefix` for local models and for "
        "`transformers` with a `batch_size` above 1, else `interleaved`.",
    )

    @model_validator(mode="after")
    def _prompt_is_known(self) -> Self:
        if isinstance(self.read, CellsRead):
            return self
        if not self.prompt.template:
            raise ValueError("`prompt` is needed, with its `template`; it says how an item becomes a prompt")
        return self

    @model_validator(mode="after")
    def _belongs_to_its_design(self) -> Self:
        if isinstance(self.read, CellsRead):
            return self._reads_cells()
        if (self.design == "crossing") != (self.crossing is not None):
            raise ValueError("`crossing` is needed when `design` is `crossing`, and only then")
        if self.crossing is not None:
            unused = {
                "arrangement": self.arrangement != Arrangement(),
                "scout": self.scout is not None,
                "repeat_share": self.repeat_share > 0,
                "prompt.labels": self.prompt.labels is not None,
                "prompt.examples": self.prompt.examples is not None,
            }
            named = [name for name, given in unused.items() if given]
            if named:
                raise ValueError(f"a crossing has no use for {', '.join(named)}; remove it (docs/crossing.md)")
            if isinstance(self.read, DecideRead):
                raise ValueError("a crossing reads `logprob`, `option_text` or `generate`; `decide` needs labels")
            if isinstance(self.read, OptionTextRead) and self.read.length != "sum":
                raise ValueError("the answers of a crossing are single tokens; leave `read.length` at `sum`")
        return self

    def _reads_cells(self) -> Self:
        if self.design != "crossing":
            raise ValueError("`read: {kind: cells}` takes the cells of a crossing; write `design: crossing`")
        unknown = {
            "prompt": self.prompt != _NO_PROMPT,
            "crossing": self.crossing is not None,
            "arrangement": self.arrangement != Arrangement(),
            "scout": self.scout is not None,
            "repeats": self.repeats > 1,
            "repeat_share": self.repeat_share > 0,
        }
        if named := [name for name, given in unknown.items() if given]:
            raise ValueError(
                f"published cells say nothing about {', '.join(named)}; remove it: conditions come from the file, and "
                "what is not in it stays unknown (docs/crossing.md)"
            )
        return self


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
        0.2, description="A cell stops when more than this share of its first 50 replies is cut at the output limit."
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
