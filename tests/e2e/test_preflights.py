"""What a preflight takes for proof, on the wire: the real SDKs against the server of the tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Remote, subprocess_server
from loopback.studies import KEYS, key_env
from vendor_cases import VENDORS, Case, assert_no_key, make_case

from counterbalance.config import load_study
from counterbalance.errors import VendorError
from counterbalance.progress import SilentProgress
from counterbalance.stages.preflight import preflight_model

LOGPROB = {"kind": "logprob", "top": 5}
DECIDE = {"kind": "decide"}


@pytest.fixture(scope="module")
def running() -> Iterator[Remote]:
    with subprocess_server(keys=KEYS) as server:
        yield server


@pytest.fixture
def server(running: Remote, monkeypatch: pytest.MonkeyPatch) -> Remote:
    for vendor, key in KEYS.items():
        monkeypatch.setenv(key_env(vendor), key)
    running.set(faults=[])
    running.reset()
    return running


def preflight(case: Case) -> str:
    try:
        return str(preflight_model(load_study(case.path), "letters", case.vendor, SilentProgress()))
    finally:
        assert_no_key(case.root)


@pytest.mark.parametrize(
    ("vendor", "read", "kind", "status"),
    [
        ("openai", LOGPROB, "too_long", "unavailable"),
        ("openai", LOGPROB, "no_choices", "unavailable"),
        ("google", LOGPROB, "prompt_block", "blocked"),
        ("openai", DECIDE, "refusal", "refused"),
        ("openai", DECIDE, "no_choices", "empty"),
        ("anthropic", None, "too_long", "unavailable"),
        ("google", None, "no_text", "truncated"),
    ],
)
def test_a_first_item_that_shows_nothing_is_followed_by_the_next(
    server: Remote, tmp_path: Path, vendor: str, read: dict[str, Any] | None, kind: str, status: str
) -> None:
    server.set(faults=[{"at": [0], "fault": {"kind": kind}}])
    case = make_case(server, tmp_path, vendor, read=read)
    assert f": ok after 1 {status} (" in preflight(case)
    assert case.counts()["requests"] == 2
    assert case.held() >= case.counts()["bill_nano_usd"]
    assert case.buy().bought.statuses == {"ok": 5, status: 1}
    assert case.counts()["requests"] == 6


@pytest.mark.parametrize(
    ("vendor", "read", "kind", "said"),
    [
        ("openai", LOGPROB, "null_logprobs", r"5 unavailable \(no log-probabilities came back\).* use another read"),
        ("openai", DECIDE, "no_choices", r"5 empty \(no answers came back\).* the model's settings"),
        *(
            (vendor, None, "unknown_finish", r"5 unknown \(.*settings of the model and of its server")
            for vendor in VENDORS
        ),
        *((vendor, None, "no_text", r"5 truncated \(.* raise `max_tokens`") for vendor in ("openai", "google")),
        *((vendor, None, "empty_text", r"5 empty \(.* those of its reasoning") for vendor in VENDORS),
        *((vendor, None, "too_long", r"5 unavailable \(.* a lower `max_tokens`") for vendor in VENDORS),
    ],
)
def test_nothing_that_the_study_reads_from_five_items_stops_before_the_rest_is_bought(
    server: Remote, tmp_path: Path, vendor: str, read: dict[str, Any] | None, kind: str, said: str
) -> None:
    server.set(faults=[{"fault": {"kind": kind}}])
    case = make_case(server, tmp_path, vendor, items=6, read=read)
    for _ in range(2):
        with pytest.raises(VendorError, match=said):
            preflight(case)
        assert case.counts()["requests"] == 5


def test_a_sweep_without_a_preflight_stops_when_too_many_replies_hold_nothing(server: Remote, tmp_path: Path) -> None:
    server.set(faults=[{"fault": {"kind": "null_logprobs"}}])
    case = make_case(server, tmp_path, "openai", items=20, read=LOGPROB)
    for _ in range(2):
        with pytest.raises(VendorError, match=r"replies there is nothing to read \(1\d unavailable; docs/vendors\.md"):
            case.buy()
        assert 11 <= case.counts()["requests"] <= 11 + 4
