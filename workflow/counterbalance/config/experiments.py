"""An experiment: which items and models, in which orders, with which prompt, and how the answer is read."""

from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from counterbalance.config.names import Id, find_collision
from counterbalance.config.vendors import Block

Share = Annotated[float, Field(gt=0, lt=1)]

_CONDITIONS = "expected `all`, or a list of conditions such as - {header: neutral, body: verbatim, cues: 0}"


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

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if why := why_incoherent(self.header, self.body, self.cues):
            raise ValueError(
                f"condition {self.words} is incoherent: {why}; the ten coherent ones are in docs/crossing.md"
            )
        return self

    @property
    def words(self) -> str:
        """The dials as a study has them."""
        return f"{{header: {self.header}, body: {self.body}, cues: {self.cues}}}"


def why_incoherent(header: str, body: str, cues: int) -> str | None:
    """Say why a setting of the three dials makes no sense, None if it does; the reasons are ours."""
    if body == "verbatim":
        return None if cues != 1 else "verbatim bodies have the same words, so a cue is in neither or in both"
    if cues == 0:
        return f"the cues are what the two wordings of a {body} body differ by, so there is at least one"
    if body == "loaded" and header == "neutral":
        return "a loaded body says which source is the recent one, so its blocks are framed whatever the header says"
    return None


def _form(value: object) -> str | None:
    """Tell the two forms of `conditions` apart, so that a fault in one is not told as one in the other."""
    return "all" if value == "all" else "dials" if isinstance(value, list) else None


class Crossing(Block):
    """What a crossing asks: two conflicting blocks in both orders and both roles, in several conditions."""

    conditions: Annotated[
        Annotated[Literal["all"], Tag("all")] | Annotated[list[Dials], Field(min_length=1), Tag("dials")],
        Discriminator(_form, custom_error_type="conditions", custom_error_message=_CONDITIONS),
    ] = Field("all", description="Conditions by their dials, or all ten.")
    cues: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)] = Field(
        description="Words that are cues: they are counted in every prompt and have to match the condition."
    )

    @model_validator(mode="after")
    def _conditions_once(self) -> Self:
        listed = [] if self.conditions == "all" else [dials.words for dials in self.conditions]
        twice = next((words for words in listed if listed.count(words) > 1), None)
        if twice:
            raise ValueError(f"crossing.conditions: condition {twice} is there twice; list every condition once")
        return self


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
