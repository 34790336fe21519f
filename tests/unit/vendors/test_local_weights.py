import struct
import threading
import time
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from counterbalance.canonical import sha256_file
from counterbalance.errors import VendorError
from counterbalance.vendors.local import weights as room
from counterbalance.vendors.local.weights import (
    KNOWN_WEIGHTS,
    Weights,
    cache_folder,
    convert_checked,
    dequantise,
    ensure_f32,
    find_weights,
    locate_packaged,
)

SCALE, OFFSET = 0.5, -3.0
CODES = list(range(16)) + list(range(15, -1, -1))


def write_tiny(path: Path) -> None:
    """One Q4_1 block of 32 weights: half-float scale and offset, then low nibbles (first 16) and high (last 16)."""
    nibbles = bytes(low | high << 4 for low, high in zip(CODES[:16], CODES[16:], strict=True))
    block = np.frombuffer(struct.pack("<ee", SCALE, OFFSET) + nibbles, dtype=np.uint8).reshape(1, 20)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.name", "tiny")
    writer.add_array("tokenizer.ggml.tokens", ["a", "é"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q4_1)
    writer.add_tensor("weight", block, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
    writer.add_tensor("norm", np.array([1.5, -2.25], dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """A package of one small file, known by its hashes."""
    package = tmp_path / "packages" / "tiny_weights"
    package.mkdir(parents=True)
    # Importing it would fail: the file is found without.
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    write_tiny(package / "tiny.gguf")
    monkeypatch.syspath_prepend(str(package.parent))
    dequantise(package / "tiny.gguf", tmp_path / "expected.gguf")
    return Weights(
        name="tiny",
        package="tiny_weights",
        file_name="tiny.gguf",
        source_sha256=sha256_file(package / "tiny.gguf"),
        f32_sha256=sha256_file(tmp_path / "expected.gguf"),
        f32_bytes=1024,
        terms=None,
        chat=False,
        requirement="tiny-weights",
    )


def flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_weights_are_scale_times_code_plus_offset(tiny: Weights, tmp_path: Path) -> None:
    reader = gguf.GGUFReader(ensure_f32(tiny, tmp_path / "cache"))
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    assert tensors["weight"].tensor_type == gguf.GGMLQuantizationType.F32
    assert tensors["weight"].data.ravel().tolist() == [SCALE * code + OFFSET for code in CODES]
    assert tensors["norm"].data.tolist() == [1.5, -2.25]


def test_metadata_is_kept_but_for_the_file_type(tiny: Weights, tmp_path: Path) -> None:
    fields = gguf.GGUFReader(ensure_f32(tiny, tmp_path / "cache")).fields
    assert fields["general.architecture"].contents() == "llama"
    assert fields["general.name"].contents() == "tiny"
    assert fields["tokenizer.ggml.tokens"].contents() == ["a", "é"]
    assert fields["general.file_type"].contents() == gguf.LlamaFileType.ALL_F32


def test_flipped_byte_in_the_package_is_refused_and_nothing_is_left(tiny: Weights, tmp_path: Path) -> None:
    flip_byte(locate_packaged(tiny, tmp_path))
    with pytest.raises(VendorError, match=r"tiny\.gguf: its hash is .* expected .* reinstall"):
        ensure_f32(tiny, tmp_path / "cache")
    assert not list((tmp_path / "cache").glob("*.gguf"))


def test_flipped_byte_in_the_cache_is_refused(tiny: Weights, tmp_path: Path) -> None:
    flip_byte(ensure_f32(tiny, tmp_path / "cache"))
    with pytest.raises(VendorError, match="delete it and run again"):
        ensure_f32(tiny, tmp_path / "cache")


def test_unexpected_result_is_refused_and_nothing_is_left(tiny: Weights, tmp_path: Path) -> None:
    source, target = locate_packaged(tiny, tmp_path), tmp_path / "out" / "f32.gguf"
    with pytest.raises(VendorError, match="pinned versions"):
        convert_checked(source, tiny.source_sha256, target, "sha256:" + "0" * 64)
    assert not list(target.parent.iterdir())


def test_many_at_once_convert_once(tiny: Weights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conversions = []

    def slow(source: Path, target: Path) -> None:
        conversions.append(target)
        time.sleep(0.2)
        dequantise(source, target)

    monkeypatch.setattr(room, "dequantise", slow)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(ensure_f32(tiny, tmp_path / "cache"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(conversions) == 1
    assert found == [tmp_path / "cache" / tiny.f32_name] * 4


def test_too_small_a_disk_is_told_before_writing(tiny: Weights, tmp_path: Path) -> None:
    with pytest.raises(VendorError, match=r"MiB are needed .* COUNTERBALANCE_CACHE"):
        ensure_f32(replace(tiny, f32_bytes=2**60), tmp_path / "cache")


def test_parts_are_assembled_by_the_package(tiny: Weights, tmp_path: Path) -> None:
    package = tmp_path / "packages" / "tiny_parts"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from pathlib import Path\n"
        "def assemble(path, overwrite):\n"
        "    whole = Path(__file__).parents[1] / 'tiny_weights' / 'tiny.gguf'\n"
        "    Path(path).write_bytes(whole.read_bytes())\n"
    )
    in_parts = replace(tiny, package="tiny_parts")
    assert ensure_f32(in_parts, tmp_path / "cache").is_file()
    assert (tmp_path / "cache" / "tiny.gguf").is_file()


def test_missing_package_says_what_to_install(tiny: Weights, tmp_path: Path) -> None:
    with pytest.raises(VendorError, match="install tiny-weights"):
        locate_packaged(replace(tiny, package="no_such_weights"), tmp_path)


def test_package_without_the_file_says_so(tiny: Weights, tmp_path: Path) -> None:
    (tmp_path / "packages" / "tiny_empty").mkdir()
    (tmp_path / "packages" / "tiny_empty" / "__init__.py").write_text("")
    with pytest.raises(VendorError, match=r"no file tiny\.gguf in tiny_empty"):
        locate_packaged(replace(tiny, package="tiny_empty"), tmp_path)


def test_terms_have_to_be_accepted_by_name() -> None:
    terms = KNOWN_WEIGHTS["gemma-3-270m"].terms
    assert terms
    for wrong in (None, "yes", terms.lower()):
        with pytest.raises(VendorError, match=terms):
            find_weights("gemma-3-270m", wrong)
    assert find_weights("gemma-3-270m", terms).name == "gemma-3-270m"


def test_unknown_model_lists_the_known_ones() -> None:
    with pytest.raises(VendorError, match="smollm2-135m-instruct, gemma-3-270m"):
        find_weights("gpt-5")


def test_cache_folder_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COUNTERBALANCE_CACHE", str(tmp_path / "a b"))
    assert cache_folder() == tmp_path / "a b"
    monkeypatch.delenv("COUNTERBALANCE_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "counterbalance"
