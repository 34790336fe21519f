from collections.abc import Callable
from typing import Any

import pytest

from counterbalance.config import Dataset
from counterbalance.items.prepare import Prepared, prepare_table

DECLARED = {
    "id": "sums",
    "path": "sums.csv",
    "format": "csv",
    "columns": {"options": ["a", "b", "c"], "key": "key"},
    "key": {"type": "letter"},
    "licence": "CC0-1.0",
    "source": "written for this test",
}


def declare(**changes: Any) -> Dataset:
    """Return a declaration; `columns` and `key` replace, everything else is set."""
    return Dataset.model_validate({**DECLARED, **changes})


@pytest.fixture
def dataset() -> Callable[..., Dataset]:
    return declare


@pytest.fixture
def prepare() -> Callable[..., Prepared]:
    def run(data: bytes | str, *, seed: int = 1, **changes: Any) -> Prepared:
        return prepare_table(data.encode() if isinstance(data, str) else data, declare(**changes), seed)

    return run
