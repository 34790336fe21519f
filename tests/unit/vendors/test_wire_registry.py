import subprocess
import sys

import pytest
from small_study import study_body, write_study

from counterbalance.config import load_study
from counterbalance.vendors import get_vendor

NAMES = {
    "gpt": ("openai", "gpt-x-2026-01-01"),
    "claude": ("anthropic", "claude-x"),
    "gemini": ("google", "gemini-x-001"),
}


@pytest.fixture
def study(tmp_path):
    models = [
        {"id": f"{name}{suffix}", "vendor": vendor, "model": model, "account": account}
        for suffix, account in (("", "live"), ("-later", "later"))
        for name, (vendor, model) in NAMES.items()
    ]
    body = study_body(
        models,
        experiment={"read": {"kind": "generate", "temperature": None}},
        accounts=[{"id": "live", "key_env": "NO_SUCH_KEY"}, {"id": "later", "key_env": "NO_SUCH_KEY", "mode": "batch"}],
        money={"prices": {model["id"]: {"input": 1.0, "output": 2.0} for model in models}},
    )
    return load_study(write_study(tmp_path, body))


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
