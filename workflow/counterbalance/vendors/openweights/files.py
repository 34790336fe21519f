"""The files of a model: where they are, and one hash over all that are loaded."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from counterbalance.canonical import sha256_file
from counterbalance.config.models import TransformersModel
from counterbalance.errors import VendorError
from counterbalance.keys import redact
from counterbalance.vendors.openweights.libraries import load

PATTERNS = ("*.jinja", "*.json", "*.model", "*.safetensors", "*.txt")
"""What is fetched, hashed and loaded. No pickled weights, no Python files."""

_BELOW = ("*/*",)


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model.

    Attributes
    ----------
    folder
        Where they are.
    hashes
        By name, `sha256:<hex>`.
    """

    folder: Path
    hashes: Mapping[str, str]

    @property
    def sha256(self) -> str:
        """Hash of the listing that `sha256sum` prints of these files in the order of their names' bytes."""
        names = sorted(self.hashes, key=os.fsencode)
        listing = "".join(f"{self.hashes[name].removeprefix('sha256:')}  {name}\n" for name in names)
        return "sha256:" + hashlib.sha256(os.fsencode(listing)).hexdigest()


def read_files(folder: Path) -> ModelFiles:
    """Hash the files of a model; a gigabyte takes about a second.

    Raises
    ------
    VendorError
        If there is no such folder, or no weights in it.
    """
    if not folder.is_dir():
        raise VendorError(f"{folder}: no such folder; correct the model's `folder`")
    found = sorted({path for pattern in PATTERNS for path in folder.glob(pattern) if path.is_file()})
    if not any(path.suffix == ".safetensors" for path in found):
        raise VendorError(
            f"{folder}: no weights as .safetensors; other kinds are not loaded, convert them or use another repository"
        )
    if not (folder / "config.json").is_file():
        raise VendorError(f"{folder}: no config.json; name the folder that holds the model's configuration and weights")
    return ModelFiles(folder, {path.name: sha256_file(path) for path in found})


def check_files(files: ModelFiles, model: TransformersModel) -> None:
    """See that the files are those of the plan.

    Raises
    ------
    VendorError
        If `files_sha256` is set and is not their hash.
    """
    if model.files_sha256 is not None and files.sha256 != model.files_sha256:
        raise VendorError(
            f"models.{model.id}.files_sha256 is {model.files_sha256}, but the files in {files.folder} have "
            f"{files.sha256}: restore the files, or correct the hash, which in a frozen plan is an amendment"
        )


def find_folder(model: TransformersModel, root: Path, *, download: bool = False) -> Path:
    """Return the folder of a model.

    Parameters
    ----------
    model
        Names a folder, or a repository of the hub whose files are in the hub's cache.
    root
        The project's folder.
    download
        Whether to fetch what is not cached.

    Raises
    ------
    VendorError
        If the files are not here; if fetching fails.
    """
    if model.folder is not None:
        return root / model.folder
    hub = load("huggingface_hub")
    if download and (token := hub.get_token()):
        # The library sends it; no message may repeat it.
        redact.add(token)
    try:
        found = hub.snapshot_download(
            model.hub_id,
            revision=model.revision,
            allow_patterns=list(PATTERNS),
            ignore_patterns=list(_BELOW),
            local_files_only=not download,
        )
    except Exception as error:
        how = f"hf download {model.hub_id}" + (f" --revision {model.revision}" if model.revision else "")
        raise VendorError(
            f"models.{model.id}: the files of {model.hub_id} at {model.revision or 'its main branch'} "
            f"{'could not be fetched' if download else 'are not in the hub cache, and nothing is fetched unasked'} "
            f"({redact(f'{type(error).__name__}: {error}')}): "
            + (
                "see to the connection and to the model's terms"
                if download
                else f"type `{how}` or set `download: true`"
            )
        ) from None
    return Path(found)
