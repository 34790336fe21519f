import re
from pathlib import Path

import pytest
from small_study import study_body, write_study

from counterbalance.config import load_study
from counterbalance.config.models import TransformersModel
from counterbalance.errors import ConfigError

REPOSITORY = Path(__file__).parents[3]
COMMIT = "0123456789abcdef" * 2 + "01234567"
HASH = "sha256:" + "a" * 64


def write(folder: Path, model: dict, *, preregistration: str | None = None) -> Path:
    models = [{"id": "open", "vendor": "transformers", **model}]
    body = study_body(models, experiment={"read": {"kind": "logprob"}}, preregistration=preregistration)
    return write_study(folder, body)


@pytest.mark.parametrize(
    ("model", "preregistration"),
    [
        ({"folder": "weights"}, None),
        ({"hub_id": "owner/name"}, None),
        ({"folder": "weights", "files_sha256": HASH}, "plan.md"),
        ({"hub_id": "owner/name", "revision": COMMIT}, "plan.md"),
        ({"hub_id": "owner/name", "revision": COMMIT, "download": True}, "plan.md"),
        ({"hub_id": "owner/name", "files_sha256": HASH}, "plan.md"),
        ({"hub_id": "owner/name", "allow_unpinned": True}, "plan.md"),
        ({"folder": "weights", "allow_unpinned": True}, "plan.md"),
    ],
)
def test_what_is_accepted(tmp_path: Path, model: dict, preregistration: str | None) -> None:
    (found,) = load_study(write(tmp_path, model, preregistration=preregistration)).config.models
    assert isinstance(found, TransformersModel)
    assert (found.threads, found.batch_size, found.download) == (1, 1, model.get("download", False))


@pytest.mark.parametrize(
    ("model", "key", "advice"),
    [
        ({"hub_id": "owner/name"}, "models.0.hub_id", "add `revision`, the commit of the hub's repository"),
        ({"folder": "weights"}, "models.0.folder", "add `files_sha256`, the hash of its files"),
    ],
)
def test_a_confirmatory_study_pins_its_weights(tmp_path: Path, model: dict, key: str, advice: str) -> None:
    path = write(tmp_path, model, preregistration="plan.md")
    with pytest.raises(ConfigError, match="is not pinned") as caught:
        load_study(path)
    told = str(caught.value)
    assert key in told
    assert advice in told
    assert "allow_unpinned: true" in told


def test_the_study_in_the_documentation_is_one(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "transformers.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    contrasts = "config/contrasts/crossing.yaml"
    (tmp_path / contrasts).parent.mkdir(parents=True)
    (tmp_path / contrasts).write_bytes((REPOSITORY / contrasts).read_bytes())
    (tmp_path / "Snakefile").touch()
    (tmp_path / "gemma.yaml").write_text(text, encoding="utf-8")
    study = load_study(tmp_path / "gemma.yaml")
    (model,) = study.config.models
    assert isinstance(model, TransformersModel)
    assert model.hub_id == "google/gemma-4-e4b"
    assert study.config.preregistration is not None


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({}, "write `folder` or `hub_id`"),
        ({"folder": "weights", "hub_id": "owner/name"}, "write `folder` or `hub_id`"),
        ({"folder": "weights", "revision": COMMIT}, "a folder is pinned by `files_sha256`"),
        ({"folder": "weights", "download": True}, "a folder is pinned by `files_sha256`"),
        ({"hub_id": "owner/name", "download": True}, "`download` needs `revision`"),
        ({"hub_id": "owner/name", "revision": "main"}, "revision"),
        ({"hub_id": "owner/name", "revision": COMMIT[:12]}, "revision"),
        ({"hub_id": "name"}, "hub_id"),
        ({"hub_id": "https://hub/owner/name"}, "hub_id"),
        ({"folder": "weights", "token": "hf_abc"}, "token"),
        ({"folder": "weights", "batch_size": 0}, "batch_size"),
    ],
)
def test_what_is_refused(tmp_path: Path, model: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_study(write(tmp_path, model))
