"""What a file of contrasts may hold; a study that names one has its content among its settings."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from counterbalance.config.vendors import Block

Name = Annotated[str, Field(min_length=1, max_length=64)]
ContrastId = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Bound = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ContrastStatus = Literal["inferential", "descriptive", "confounded", "legacy", "post hoc"]


class Condition(Block):
    """What is known of a condition; it steers warnings and null verdicts, never a number."""

    header: Literal["neutral", "framed"] | None = Field(None, description="Wording of the headers.")
    body: Literal["verbatim", "mixed", "loaded"] | None = Field(
        None, description="Wording of the blocks; in a `loaded` condition role is no null control."
    )
    cues: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Cues in the rendered prompt; contrasts of conditions that differ in it are warned of."
    )


class Contrast(Block):
    """One planned contrast."""

    id: ContrastId = Field(description="Name by which results, and other contrasts, refer to it.")
    expression: str = Field(description="What is computed for each item; see docs/contrasts.md.")
    status: ContrastStatus = Field(description="What the result may be used for.")
    meaning: str | None = Field(None, description="What a positive value says, in one sentence.")
    family: Name | None = Field(None, description="Contrasts over which Holm's correction runs; `inferential` only.")
    bound: Bound | None = Field(None, description="Bound of the equivalence test; the file's where none is set.")
    about_cues: bool = Field(False, description="The contrast is about the number of cues: no warning that it differs.")

    @model_validator(mode="after")
    def _families_are_inferential(self) -> Self:
        if self.family is not None and self.status != "inferential":
            raise ValueError(
                f"contrast {self.id}: a family holds planned inferences, and the status is {self.status!r}; "
                "leave `family` out or make the status `inferential`"
            )
        return self


class ContrastFile(Block):
    """A file of contrasts."""

    schema_version: Literal["counterbalance/contrasts/1"] = Field(
        alias="schema", description="Version of this file's form."
    )
    title: str | None = Field(None, description="What the contrasts belong to.")
    source: str | None = Field(None, description="Where their definitions come from.")
    bound: Bound = Field(0.15, description="Bound of the equivalence tests, in the unit of the effects.")
    conditions: dict[Name, Condition] | None = Field(
        None, description="The conditions that expressions may name; without it they are only looked up in the data."
    )
    contrasts: Annotated[list[Contrast], Field(min_length=1)] = Field(description="The contrasts, in order.")
