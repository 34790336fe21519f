import json
import subprocess
import sys

import pytest

from counterbalance.config import load_study
from counterbalance.vendors import get_vendor

STUDY = {
    "schema": "counterbalance/study/1",
    "id": "tiny",
    "title": "A tiny study",
    "question": "Who is asked?",
    "seed": 7,
    "preregistration": None,
    "models": [
        {"id": "gpt", "vendor": "openai", "model": "gpt-x-2026-01-01", "account": "live"},
        {"id": "claude", "vendor": "anthropic", "model": "claude-x", "account": "live"},
        {"id": "gemini", "vendor": "google", "model": "gemini-x-001", "account": "live"},
        {"id": "gpt-later", "vendor": "openai", "model": "gpt-x-2026-01-01", "account": "later"},
        {"id": "claude-later", "vendor": "anthropic", "model": "claude-x", "account": "later"},
        {"id": "gemini-later", "vendor": "google", "model": "gemini-x-001", "account": "later"},
    ],
    "accounts": [{"id": "live", "key_env": "NO_SUCH_KEY"}, {"id": "later", "key_env": "NO_SUCH_KEY", "mode": "batch"}],
    "datasets": [
        {
            "id": "sums",
            "path": "sums.csv",
            "format": "csv",
            "columns": {"options": ["a", "b"], "key": "key"},
            "key": {"type": "letter"},
            "licence": "CC0-1.0",
            "source": "made by the test",
        }
    ],
    "experiments": [
        {
            "id": "letters",
            "design": "mcq",
            "datasets": ["sums"],
            "models": ["gpt", "claude", "gemini", "gpt-later", "claude-later", "gemini-later"],
            "prompt": {"template": "letter.j2", "style": "plain"},
            "read": {"kind": "generate", "temperature": None},
        }
    ],
}


@pytest.fixture
def study(tmp_path):
    prices = {model["id"]: {"input": 1.0, "output": 2.0} for model in STUDY["models"]}
    path = tmp_path / "tiny.yaml"
    path.write_text(json.dumps(STUDY | {"money": {"prices": prices}}), encoding="utf-8")
    return load_study(path)


@pytest.mark.parametrize(
    ("name", "expected"), [("gpt", "OpenAIVendor"), ("claude", "AnthropicVendor"), ("gemini", "GoogleVendor")]
)
def test_every_paid_model_has_its_vendor_and_in_batches_one_that_can_do_both(study, name, expected):
    live = get_vendor(study.model(name), study.experiment("letters"), study)
    assert type(live).__name__ == expected
    later = get_vendor(study.model(f"{name}-later"), study.experiment("letters"), study)
    assert isinstance(later, type(live))
    for method in ("submit", "find", "state", "results"):
        assert callable(getattr(later, method))
        assert not hasattr(live, method)
    assert (live.shares_prefixes, live.max_in_flight) == (False, 16)


def test_no_sdk_is_loaded_before_a_vendor_is_opened():
    code = (
        "import sys, counterbalance.cli, counterbalance.vendors.openai_vendor; "
        "import counterbalance.vendors.anthropic_vendor, counterbalance.vendors.google_vendor; "
        "print(sorted({'openai', 'anthropic', 'google.genai', 'aiohttp', 'httpx2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
