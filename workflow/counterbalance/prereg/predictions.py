"""What a prediction may say: where, which quantity, which rule, which numbers."""

from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, TypeAdapter, model_validator

from counterbalance.config.names import Id
from counterbalance.config.vendors import Block

_Name = Annotated[str, Field(pattern=r"^\S+$")]


class Target(Block):
    """One number of one cell, as the estimates table names it."""

    experiment: Id
    model: Id
    subset: Id
    quantity: _Name

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.experiment, self.model, self.subset, self.quantity


class _Prediction(Target):
    id: Id


class Bound(_Prediction):
    """The point estimate, or the whole interval, lies on one side of a value."""

    rule: Literal["at_least", "at_most", "interval_above", "interval_below"]
    value: FiniteFloat


class Between(_Prediction):
    """The point estimate lies between two values, both included."""

    rule: Literal["between"]
    low: FiniteFloat
    high: FiniteFloat

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"`low` ({self.low}) is above `high` ({self.high})")
        return self


class Chance(_Prediction):
    """The p-value, adjusted over the family where it is, is below a value or is not."""

    rule: Literal["p_below", "p_at_least"]
    value: Annotated[FiniteFloat, Field(gt=0, lt=1)]


class LabelIs(_Prediction):
    """A quantity whose value is a word has this word."""

    rule: Literal["label_is"]
    value: _Name


class Comparison(_Prediction):
    """The point estimate is strictly greater, or less, than that of another cell or quantity."""

    rule: Literal["greater_than", "less_than"]
    than: Target

    @model_validator(mode="after")
    def _of_two(self) -> Self:
        if self.key == self.than.key:
            raise ValueError("`than` names the prediction's own number; compare two different ones")
        return self


Prediction = Annotated[Bound | Between | Chance | LabelIs | Comparison, Field(discriminator="rule")]
PREDICTIONS: TypeAdapter[tuple[Prediction, ...]] = TypeAdapter(tuple[Prediction, ...])
