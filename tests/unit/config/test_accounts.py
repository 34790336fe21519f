from pathlib import Path

import pytest
from small_study import study_body, write_study

from counterbalance.config import load_study
from counterbalance.config.checks import is_dated
from counterbalance.config.models import AnthropicModel, GoogleModel, OpenAIModel
from counterbalance.errors import ConfigError
from counterbalance.keys import holds_key

CHAT = {"template": "letter.j2", "style": "chat"}
SECRET = "sk-not-to-be-repeated"
DATED = {"openai": "gpt-6-luna-2026-08-01", "anthropic": "claude-haiku-4-5-20251001", "google": "gemini-3-flash-001"}
KINDS = {"openai": OpenAIModel, "anthropic": AnthropicModel, "google": GoogleModel}


def paid(vendor: str = "openai", **settings: object) -> dict:
    return {"id": "paid", "vendor": vendor, "model": DATED[vendor], "account": "purse", **settings}


def write(
    folder: Path,
    model: dict,
    *,
    read: dict | None = None,
    account: dict | None = None,
    prices: dict | None = None,
    **study: object,
) -> Path:
    body = study_body(
        [model],
        experiment={"prompt": CHAT, "read": read or {"kind": "generate", "temperature": None}},
        accounts=[{"id": "purse", "key_env": "SOME_KEY", **(account or {})}],
        money={"prices": {"paid": {"input": 1.0, "output": 2.0}} if prices is None else prices},
    )
    return write_study(folder, body | study)


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (paid("openai"), {"read": {"kind": "generate"}}),
        (paid("openai"), {"read": {"kind": "logprob", "top": 20}}),
        (paid("openai"), {"read": {"kind": "decide"}}),
        (paid("openai", seed=1), {"preregistration": "plan.md"}),
        (paid("anthropic"), {"preregistration": "plan.md"}),
        (paid("anthropic", does_not_accept=["temperature"]), {"read": {"kind": "generate"}}),
        (paid("anthropic", api_version="2023-06-01"), {"read": {"kind": "generate"}}),
        (paid("google"), {"read": {"kind": "decide"}, "preregistration": "plan.md"}),
        (paid("google"), {"account": {"mode": "batch"}}),
        (paid("openai", model="m-latest", allow_undated=True), {"preregistration": "plan.md"}),
        (paid("openai", model="m-latest"), {"preregistration": None}),
        (paid("openai", base_url="http://127.0.0.1:8080/v1"), {"account": {"key_env": None}}),
        (paid("openai", base_url="http://[::1]:8080/v1"), {"prices": {"paid": {"input": 0.0, "output": 0.0}}}),
    ],
)
def test_what_fits_together_loads(tmp_path, model, settings) -> None:
    study = load_study(write(tmp_path, model, **settings))
    assert study.account(study.model("paid").account).id == "purse"


@pytest.mark.parametrize(
    ("model", "settings", "expected"),
    [
        (paid(account="other"), {}, r"key models\.0\.account: no account 'other'.*\['purse'\]\).*key_env"),
        (paid(), {"accounts": []}, r"key models\.0\.account: no account 'purse'.*\(there is none\)"),
        (paid(), {"account": {"key_env": None}}, r"models\.0\.account: accounts\.purse\.key_env is null.*name the env"),
        (paid(), {"prices": {}}, r"key money\.prices: no prices for model 'paid', and none is built in: add `paid: \{"),
        (
            paid(),
            {"prices": {"paid": {"input": 1.0, "output": 1.0}, "piad": {"input": 1.0, "output": 1.0}}},
            r"money\.prices\.piad: 'piad' is no model behind an account; those are \['paid'\]",
        ),
        (paid(base_url="127.0.0.1:8080"), {}, r"models\.0\.base_url: expected an address such as http"),
        (paid(base_url="http://[::1"), {}, r"models\.0\.base_url: expected an address such as http"),
        (paid("anthropic", seed=1), {}, r"models\.0\.seed: .*takes no seed: remove it"),
        (paid(seed=1, does_not_accept=["seed"]), {}, r"models\.0\.seed: .*remove one of them"),
        (
            paid("anthropic"),
            {"read": {"kind": "generate"}},
            r"experiments\.0\.read\.temperature: .*`temperature: null`.*`does_not_accept: \[temperature\]`",
        ),
        (paid("anthropic"), {"read": {"kind": "logprob", "top": 20}}, r"read\.kind: `logprob`.*Anthropic's interface"),
        (
            paid(does_not_accept=["logprobs"]),
            {"read": {"kind": "logprob", "top": 20}},
            r"read\.kind: `logprob`.*`does_not_accept` lists logprobs.*never taken in their place",
        ),
        (paid(), {"read": {"kind": "logprob"}}, r"read\.top: openai lists at most 20.*asked for 200.*`top: 20`"),
        (paid("google"), {"read": {"kind": "logprob", "top": 21}}, r"read\.top: google lists at most 20"),
        (paid(), {"read": {"kind": "option_text"}}, r"read\.kind: `option_text`.*no paid interface"),
        (paid("anthropic"), {"read": {"kind": "decide"}}, r"read\.kind: Anthropic has no endpoint for `decide`"),
        (paid(), {"read": {"kind": "decide"}, "account": {"mode": "batch"}}, r"read\.kind: `decide`.*`mode: live`"),
        (
            paid(seed=1, reasoning_effort="low"),
            {"read": {"kind": "decide"}},
            r"read\.kind: models\.paid sets seed, reasoning_effort, which .* 'letters' asks does not take: give",
        ),
        (
            paid(extra={"top_p": 1}),
            {"read": {"kind": "decide"}},
            r"models\.paid sets extra, which .* experiment 'letters'",
        ),
        (paid("google", seed=0), {"read": {"kind": "decide"}}, r"models\.paid sets seed, which .* 'letters'"),
        (
            paid("google", thinking_level="LOW"),
            {"read": {"kind": "decide"}},
            r"sets thinking_level, which .* 'letters'",
        ),
        (paid("google", thinking_budget=0), {"read": {"kind": "decide"}}, r"sets thinking_budget, which .* 'letters'"),
        (
            paid("google", thinking_level="LOW", thinking_budget=0),
            {},
            r"models\.0\.thinking_budget: .*`thinking_level`.* or `thinking_budget`.*, not both: remove one",
        ),
        (
            paid(extra={"seed": 4}),
            {},
            r"models\.0\.extra\.seed: model 'paid' may not be sent `seed`: the study",
        ),
        (paid(extra={"service_tier": "priority"}), {}, r"extra\.service_tier: .*another list than `money\.prices`"),
        (paid(extra={"web_search_options": {}}), {}, r"extra\.web_search_options: .*another list than"),
        (paid(extra={"best_of": 4}), {}, r"extra\.best_of: .*several answers.*remove it"),
        (paid(extra={"N": 4}), {}, r"extra\.N: .*several answers.*remove it"),
        (paid(extra={"num_predict": 400}), {}, r"extra\.num_predict: .*output limit beside `read\.max_tokens`"),
        (
            paid(model="gpt-6-luna"),
            {"preregistration": "plan.md"},
            r"models\.0\.model: 'gpt-6-luna' names no dated version.*`allow_undated: true`",
        ),
        (
            paid(base_url="http://127.0.0.1:8080/v1"),
            {"preregistration": "plan.md"},
            r"models\.0\.model: .*names no dated version",
        ),
    ],
)
def test_what_does_not_fit_is_told_with_file_line_key_and_remedy(tmp_path, model, settings, expected) -> None:
    with pytest.raises(ConfigError, match=r"tiny\.yaml line \d+, key ") as caught:
        load_study(write(tmp_path, model, **settings))
    assert caught.match(expected)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("address", [f"https://user:{SECRET}@host/v1", f"https://host/v1?key={SECRET}"])
def test_credentials_in_an_address_are_refused_and_not_repeated(tmp_path, address) -> None:
    with pytest.raises(ConfigError, match=r"models\.0\.base_url: it holds credentials or a query") as caught:
        load_study(write(tmp_path, paid(base_url=address)))
    assert SECRET not in str(caught.value)


KEY = "sk-proj-" + "a1B2" * 8


@pytest.mark.parametrize(
    ("model", "account", "expected"),
    [
        ({}, {"key_env": KEY}, r"accounts\.0\.key_env: expected the name of an environment variable"),
        ({}, {"api_key": KEY}, r"accounts\.0\.api_key: no such key"),
        ({}, {"cap_usd": KEY}, r"accounts\.0\.cap_usd: expected a number"),
        ({"extra": {"metadata": [{"token": KEY}]}}, {}, r"extra\.metadata\.0\.token: it holds what looks like a key"),
        ({"extra": {"authorization": f"Bearer {KEY}"}}, {}, r"extra\.authorization: it holds what looks like a key"),
        ({"base_url": f"https://host/{KEY}/v1"}, {}, r"models\.0\.base_url: it holds what looks like a key"),
    ],
)
def test_a_key_in_the_study_file_is_refused_and_not_repeated(tmp_path, model, account, expected) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        load_study(write(tmp_path, paid(**model), account=account))
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("text", ["sk_items_of_the_first_kind.csv", "pk-draft", "Bearer of news", "gpt-4o-2024-08-06"])
def test_what_only_resembles_a_key_is_none(text) -> None:
    assert not holds_key({"name": [text]})


def test_all_that_is_wrong_is_told_at_once_each_with_its_line(tmp_path) -> None:
    path = write(tmp_path, paid("anthropic", seed=1), read={"kind": "logprob"}, prices={})
    with pytest.raises(ConfigError) as caught:
        load_study(path)
    told, lines = str(caught.value).splitlines(), path.read_text(encoding="utf-8").splitlines()
    assert len(told) == 3
    for key in ("seed", "prices", "kind"):
        (message,) = [text for text in told if f"{key}: " in text]
        number = int(message.split(" line ")[1].split(",")[0])
        assert f'"{key}"' in lines[number - 1]


@pytest.mark.parametrize(
    ("vendor", "name", "dated"),
    [
        ("openai", "gpt-6-luna-2026-08-01", True),
        ("openai", "gpt-6-luna", False),
        ("openai", "gpt-4-0613", False),
        ("anthropic", "claude-haiku-4-5-20251001", True),
        ("anthropic", "claude-haiku-5-5", False),
        ("google", "gemini-3-flash-001", True),
        ("google", "gemini-3-flash-preview-09-2026", True),
        ("google", "gemini-3-flash-preview-05-20", True),
        ("google", "gemini-3-flash", False),
        ("google", "gemini-flash-latest", False),
    ],
)
def test_a_dated_id_is_told_by_the_vendors_own_way_of_dating(vendor, name, dated) -> None:
    kind = KINDS[vendor]
    assert is_dated(kind(id="m", vendor=vendor, model=name, account="a")) is dated
    assert not is_dated(kind(id="m", vendor=vendor, model=name, account="a", base_url="http://127.0.0.1:1"))
