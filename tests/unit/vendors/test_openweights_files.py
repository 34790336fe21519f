"""Where a model's files come from and how they are hashed; needs neither PyTorch nor a network."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from open_weights import a_model

from counterbalance.errors import VendorError
from counterbalance.vendors.openweights import find_folder, read_files

# As docs/transformers.md has it.
RECIPE = r"ls | LC_ALL=C sort | grep -E '\.(jinja|json|model|safetensors|txt)$' | xargs -d '\n' sha256sum | sha256sum"
COMMIT = "c" * 40
TOKEN = "hf_abcdefgh12345678"
HUB = {"folder": None, "hub_id": "owner/name", "revision": COMMIT}


def fill(folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "Model 2.safetensors", "model é.safetensors", "chat.jinja"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def test_the_hash_is_the_one_that_coreutils_give(tmp_path: Path) -> None:
    folder = fill(tmp_path / "a model é")
    told = subprocess.run(["bash", "-c", RECIPE], cwd=folder, capture_output=True, text=True, check=True).stdout
    assert read_files(folder).sha256 == "sha256:" + told.split()[0]


def test_what_is_not_loaded_is_not_hashed(tmp_path: Path) -> None:
    folder = fill(tmp_path / "model")
    before = read_files(folder).sha256
    for name in ("README.md", "pytorch_model.bin", "modeling.py"):
        (folder / name).write_text("anything", encoding="utf-8")
    assert read_files(folder).sha256 == before
    (folder / "generation_config.json").write_text("{}", encoding="utf-8")
    assert read_files(folder).sha256 != before


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "Model 2.safetensors"])
def test_every_file_and_its_name_enters_the_hash(tmp_path: Path, name: str) -> None:
    folder = fill(tmp_path / "model")
    before = read_files(folder).sha256
    text = (folder / name).read_text(encoding="utf-8")
    (folder / name).write_text(text + " ", encoding="utf-8")
    changed = read_files(folder).sha256
    (folder / name).write_text(text, encoding="utf-8")
    (folder / "tokenizer.json").rename(folder / "vocabulary.json")
    assert len({before, changed, read_files(folder).sha256}) == 3


def test_folders_without_a_model_are_refused(tmp_path: Path) -> None:
    with pytest.raises(VendorError, match="no such folder"):
        read_files(tmp_path / "none")
    with pytest.raises(VendorError, match=r"no weights as \.safetensors"):
        read_files(tmp_path)
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(VendorError, match=r"no config\.json"):
        read_files(tmp_path)


class FakeHub(SimpleNamespace):
    """Keeps how it is called; `error` is what it raises."""

    def __init__(self, folder: Path, error: Exception | None = None) -> None:
        super().__init__(folder=folder, error=error, asked=[], get_token=lambda: TOKEN)

    def snapshot_download(self, name: str, **settings: Any) -> str:
        self.asked.append((name, settings))
        if self.error is not None:
            raise self.error
        return str(self.folder)


def test_the_hub_is_asked_for_a_commit_and_offline_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert find_folder(a_model(**HUB), tmp_path) == tmp_path
    assert find_folder(a_model(**HUB, download=True), tmp_path) == tmp_path
    assert find_folder(a_model(**HUB, download=True), tmp_path, download=True) == tmp_path
    assert [settings["local_files_only"] for _, settings in hub.asked] == [True, True, False]
    assert {(name, settings["revision"]) for name, settings in hub.asked} == {("owner/name", COMMIT)}
    assert all("token" not in settings for _, settings in hub.asked)
    assert all("*.bin" not in settings["allow_patterns"] for _, settings in hub.asked)


def test_what_is_not_cached_is_not_fetched_and_the_way_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", FakeHub(tmp_path, FileNotFoundError("no snapshot")))
    with pytest.raises(VendorError, match="not in the hub cache, and nothing is fetched unasked") as caught:
        find_folder(a_model(**HUB), tmp_path)
    assert f"hf download owner/name --revision {COMMIT}" in str(caught.value)


def test_no_message_repeats_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", FakeHub(tmp_path, OSError(f"401 for {TOKEN} at owner/name")))
    with pytest.raises(VendorError, match="could not be fetched") as caught:
        find_folder(a_model(**HUB, download=True), tmp_path, download=True)
    assert TOKEN not in str(caught.value)
    assert "401" in str(caught.value)
    assert caught.value.__cause__ is None
