"""The bytes of a data set, from the project or the hub, checked against the hash that the study states."""

import os
from dataclasses import dataclass
from pathlib import Path

from counterbalance.canonical import sha256_bytes
from counterbalance.config import Dataset
from counterbalance.errors import ConfigError, InputError
from counterbalance.files import write_bytes
from counterbalance.items.hub import SCHEME, download, parse_hub_path


@dataclass(frozen=True)
class Source:
    """A data file's bytes, their hash, and where the file lies if it is one of the project."""

    data: bytes
    sha256: str
    path: Path | None


def read_source(dataset: Dataset, root: Path) -> Source:
    """Read a data set's file.

    Parameters
    ----------
    dataset
        Its `path` is relative to the project, or ``hf://datasets/OWNER/NAME@REVISION/FILE``.
    root
        The project's folder.

    Raises
    ------
    ConfigError
        If the path leads nowhere or out of the project, or a hub path is not pinned by revision and hash.
    InputError
        If the bytes do not have the stated hash, or cannot be fetched.
    """
    if dataset.path.startswith(SCHEME):
        data = _from_hub(dataset)
        return Source(data, sha256_bytes(data), None)
    path = project_file(root, dataset.path)
    data = path.read_bytes()
    if dataset.sha256 is not None:
        check_sha256(data, dataset.sha256, dataset.path)
    return Source(data, sha256_bytes(data), path)


def project_file(root: Path, name: str) -> Path:
    """Return the path of a file that a study names, which has to lie inside the project."""
    path = root / name
    if Path(name).is_absolute() or not path.resolve().is_relative_to(root.resolve()):
        raise ConfigError(
            f"{name}: lies outside the project's folder, so that nobody else would have it; put the file into the "
            "project and name it relative to the project's folder"
        )
    if not path.is_file():
        raise ConfigError(f"{name}: no such file in {root}; correct the path in the study file")
    return path


def check_sha256(data: bytes, expected: str, name: str) -> None:
    """Raise `InputError` unless the bytes have the stated hash; changed line ends are named, not forgiven."""
    found = sha256_bytes(data)
    if found == expected:
        return
    unix = data.replace(b"\r\n", b"\n")
    advice = "fetch the file again, or correct `sha256` if the change is meant"
    for ends, variant in (("LF", unix), ("CRLF", unix.replace(b"\n", b"\r\n"))):
        if variant != data and sha256_bytes(variant) == expected:
            advice = (
                f"with {ends} line ends it would match, so something rewrote the line ends on the way (git's autocrlf "
                "does; `-text` in .gitattributes prevents it); restore the original bytes"
            )
    raise InputError(f"{name}: its hash is {found}, expected {expected}; {advice}")


def cache_folder() -> Path:
    """Return where fetched data files are kept, by hash: `$COUNTERBALANCE_CACHE`, or a folder in the user's cache."""
    named = os.environ.get("COUNTERBALANCE_CACHE")
    return (Path(named) if named else Path.home() / ".cache" / "counterbalance") / "data"


def _from_hub(dataset: Dataset) -> bytes:
    file = parse_hub_path(dataset.path)
    if dataset.sha256 is None:
        raise ConfigError(
            f"{dataset.path}: `sha256` is needed for hf:// paths, since the file is not part of the project; the hub "
            "shows it on the file's page"
        )
    kept = cache_folder() / dataset.sha256.removeprefix("sha256:")
    if kept.is_file():
        data = kept.read_bytes()
        # A damaged copy in the cache is worth nothing; the hub has a good one.
        if sha256_bytes(data) == dataset.sha256:
            return data
    data = download(file)
    check_sha256(data, dataset.sha256, dataset.path)
    write_bytes(kept, data)
    return data
