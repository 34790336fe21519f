"""Where items come from, and how their file is written."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from counterbalance.config.names import Id
from counterbalance.config.vendors import Block

Sha256 = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class Key(Block):
    """How the answer key is written; declared once per data set and never guessed."""

    type: Literal["letter", "index", "text"] = Field(
        description="`letter`: A, B, ...; `index`: a number; `text`: the option's text."
    )
    base: Literal[0, 1] | None = Field(None, description="Number of the first option; needed when `type` is `index`.")

    @model_validator(mode="after")
    def _base_belongs_to_index(self) -> Self:
        if (self.type == "index") != (self.base is not None):
            raise ValueError("`base` (0 or 1) is needed when `type` is `index`, and only then")
        return self


class Columns(Block):
    """Which column holds what. Header-less files name their columns column_1, column_2, ..."""

    question: str = Field("question", description="Column of the question.")
    options: list[str] | str = Field(
        description="Columns of the options in order, or the one column that holds a list of texts (JSONL, Parquet)."
    )
    key: str | None = Field("key", description="Column of the correct answer; null where items have none.")
    id: str | None = Field(None, description="Column of the item id; without one, ids are made from the content.")
    group: str | None = Field(None, description="Column naming the shared source of items that belong together.")
    strata: list[str] = Field([], description="Columns kept as strata.")
    fields: list[str] = Field(
        [], description="Columns with further texts that a template prints, such as those of the blocks of a crossing."
    )


_OF_CELLS = Columns(question="item", options=[], key=None, id="item")
"""What stands in the place of `columns` for published cells, whose columns have fixed names."""


class Take(Block):
    """Use part of a data set: the first n valid items, or n drawn by the study's seed."""

    n: Annotated[int, Field(ge=1)] = Field(description="Number of items.")
    how: Literal["first", "random"] = Field("first", description="Which ones.")


class Dataset(Block):
    """A source of items; each data set is one subset in the tables."""

    id: Id = Field(description="Name of the subset in cells, paths and the report.")
    path: str = Field(
        description="File, relative to the project, or hf://datasets/OWNER/NAME@REVISION/FILE with a pinned revision."
    )
    format: Literal["csv", "csv_headerless", "jsonl", "parquet", "cells"] = Field(
        description="How the file is written. `cells`: no items, but published cells of a crossing (docs/crossing.md)."
    )
    sha256: Sha256 | None = Field(None, description="Expected hash of the file; needed for hf:// paths.")
    columns: Columns = Field(
        default_factory=lambda: _OF_CELLS, description="Which column holds what; needed unless the format is `cells`."
    )
    kept_column: str | None = Field(
        None,
        description="Of published cells: the column that says which items belong to the filtered set; `kept` where "
        "there is such a column.",
    )
    key: Key | None = Field(None, description="How the answer key is written; needed where a key column is named.")
    take: Take | None = Field(None, description="Use only part of the valid items.")
    trailing_empty_options: bool = Field(
        False, description="Whether empty option fields at the end of a row mean that the item has fewer options."
    )
    exclude: list[Literal["option_refers_to_others", "duplicate_options", "duplicate_items"]] = Field(
        ["option_refers_to_others"],
        description="Rules under which an item is excluded and listed. What no rule names stops the run.",
    )
    licence: str = Field(description="Licence of the items, as the report prints it.")
    source: str = Field(description="Where the items come from, as the report prints it.")

    @model_validator(mode="after")
    def _columns_belong_to_items(self) -> Self:
        if self.format != "cells":
            if self.columns == _OF_CELLS:
                raise ValueError(f"data set {self.id!r}: `columns` is needed; it says which column holds what")
            if self.kept_column is not None:
                raise ValueError(f"data set {self.id!r}: `kept_column` is for `format: cells`; remove it")
            return self
        unused = {
            "columns": self.columns != _OF_CELLS,
            "key": self.key is not None,
            "take": self.take is not None,
            "trailing_empty_options": self.trailing_empty_options,
        }
        if named := [name for name, given in unused.items() if given]:
            raise ValueError(
                f"data set {self.id!r}: published cells have no use for {', '.join(named)}; remove it. Their columns "
                "are condition, item, e1, e2, e3, e4 (docs/crossing.md)"
            )
        return self
