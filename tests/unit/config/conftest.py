from pathlib import Path

import pytest
import small_study


@pytest.fixture
def study_text() -> str:
    return small_study.study_text(("vendor: simulated", "vendor: simulated, slot_bonus: [0.5, 0.0]"))


@pytest.fixture
def write_study(tmp_path):
    def write(text: str) -> Path:
        return small_study.write_study(tmp_path, text)

    return write
