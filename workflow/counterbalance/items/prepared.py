"""What the preparation of a data set leaves."""

from dataclasses import dataclass

import pyarrow as pa

from counterbalance.canonical import Json


@dataclass(frozen=True)
class Prepared:
    """A data set's items, sorted by id, its excluded rows, and what is to be known about both.

    Attributes
    ----------
    facts
        Counts and warnings as JSON values, for the record.
    """

    items: pa.Table
    rejected: pa.Table
    facts: dict[str, Json]
