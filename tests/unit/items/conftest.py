from collections.abc import Callable
from typing import Any

import pytest
from small_study import study_body

from counterbalance.config import Dataset
from counterbalance.items.prepare import Prepared, prepare_table

# Items of these tests are known by their content.
DECLARED = study_body(dataset={"columns": {"options": ["a", "b", "c"], "key": "key"}})["datasets"][0]


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
