"""A secret key that was pasted into a study by mistake: found wherever it is, repeated nowhere."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_study import study_body, write_study

from counterbalance.cli import main
from counterbalance.config.yaml import parse_yaml
from counterbalance.errors import ConfigError
from counterbalance.keys import Redactor, redact

KEYS = {
    "openai": "sk-proj-" + "A1b2C3d4" * 4,
    "google": "AIzaSy" + "B5c6D7e8" * 4,
    "google's newer": "AQ.Ab8" + "E9f0G1h2" * 4,
    "hub": "hf_" + "I3j4K5l6" * 4,
    # Of no known form: known because it stands in the environment too.
    "exported": "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
}
Paste = Callable[[dict, str], object]
FIELDS: dict[str, Paste] = {
    "id": lambda body, key: body.update(id=key),
    "title": lambda body, key: body.update(title=key),
    "question": lambda body, key: body.update(question=f"Is {key} the key?"),
    "seed": lambda body, key: body.update(seed=key),
    "licence": lambda body, key: body["datasets"][0].update(licence=key),
    "label": lambda body, key: body["experiments"][0]["prompt"].update(labels=["A", "B", key]),
    "stop": lambda body, key: body["experiments"][0]["read"].update(stop=[key]),
    "reasoning_effort": lambda body, key: body["models"][0].update(reasoning_effort=key),
    "model": lambda body, key: body["models"][0].update(model=key),
    "vendor": lambda body, key: body["models"][0].update(vendor=key),
    "base_url": lambda body, key: body["models"][0].update(base_url=key),
    "base_url's path": lambda body, key: body["models"][0].update(base_url=f"http://127.0.0.1:1/{key}/v1"),
    "base_url's user": lambda body, key: body["models"][0].update(base_url=f"http://me:{key}@127.0.0.1:1/v1"),
    "account": lambda body, key: body["models"][0].update(account=key),
    "asked model": lambda body, key: body["experiments"][0].update(models=[key]),
    "extra": lambda body, key: body["models"][0].update(extra={"user": key}),
    "name in extra": lambda body, key: body["models"][0].update(extra={key: 1}),
    "name of a price": lambda body, key: body["money"]["prices"].update({key: {"input": 1.0, "output": 1.0}}),
    "price": lambda body, key: body["money"]["prices"]["paid"].update(input=key),
    "key_env": lambda body, key: body["accounts"][0].update(key_env=key),
    "unknown field": lambda body, key: body["accounts"][0].update(key=key),
    "unknown name": lambda body, key: body["accounts"][0].update({key: 1}),
    "list for a block": lambda body, key: body.update(money=[key]),
    "file of contrasts": lambda body, key: body.update(analysis={"contrasts": key}),
}


@pytest.fixture(autouse=True)
def _knows_no_key_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEYS["exported"])
    monkeypatch.setattr(redact, "_secrets", [])


def paste(root: Path, field: str, key: str) -> Path:
    body = study_body(
        [{"id": "paid", "vendor": "openai", "model": "m-2026-01-01", "account": "purse"}],
        accounts=[{"id": "purse", "key_env": "SOME_KEY"}],
        money={"prices": {"paid": {"input": 1.0, "output": 2.0}}},
    )
    FIELDS[field](body, key)
    return write_study(root, body)


def resolve(path: Path) -> tuple[int, str]:
    log = path.parent / "resolve.log"
    done = CliRunner().invoke(main, ["--log", str(log), "resolve", "--study", str(path)])
    return done.exit_code, done.output + log.read_text(encoding="utf-8")


def assert_hidden(path: Path, said: str, key: str) -> None:
    written = [file.read_text(encoding="utf-8") for file in path.parent.rglob("*") if file.is_file() and file != path]
    for text in (said, *written):
        # Not a part of it either.
        assert not [key[at : at + 12] for at in range(len(key) - 11) if key[at : at + 12] in text]


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("field", FIELDS)
def test_a_key_in_any_field_is_refused_and_nowhere_repeated(tmp_path, field, key) -> None:
    path = paste(tmp_path, field, key)
    code, said = resolve(path)
    assert code == 2
    assert f"{path} line " in said or "no file '[key]'" in said
    assert_hidden(path, said, key)


@pytest.mark.parametrize("key", [KEYS["openai"], KEYS["google"]])
@pytest.mark.parametrize(
    "text",
    [
        "accounts: [{{id: a, key: {key}}}\n x: : y\n",
        "{pad} {key}: : {key}\n",
        "title: *{key}\n",
        "title: '{key}\n",
        "{key}: 1\n{key}: 2\n",
        "title: &{key} x\nid: *{key}2\n",
        "title: !{key}! x\n",
    ],
)
def test_broken_yaml_is_told_by_its_place_and_not_quoted(tmp_path, text, key) -> None:
    path = write_study(tmp_path, text.format(key=key, pad="p" * 60))
    code, said = resolve(path)
    assert code == 2
    assert f"{path} line " in said
    assert_hidden(path, said, key)


def test_an_error_of_the_parser_does_not_stand_behind_ours() -> None:
    with pytest.raises(ConfigError, match=r"^x line 2, column 3: not valid YAML: .*mapping values") as caught:
        parse_yaml("a: 1\n b: : c\n", source="x")
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_short_value_of_the_environment_may_be_a_name_in_the_study(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SOME_KEY", "lm-studio")
    path = paste(tmp_path, "title", "lm-studio")
    assert resolve(path)[0] == 0
    assert json.loads((tmp_path / "results/tiny/study.json").read_text())["config"]["title"] == "lm-studio"


def test_a_key_is_known_within_a_text_only_if_it_is_too_long_for_a_name() -> None:
    told = Redactor()
    told.add("twelve-chars")
    told.add("sixteen-chars-it")
    assert told.knows("a sixteen-chars-it b")
    assert not told.knows("twelve-chars, sixteen-chars")
