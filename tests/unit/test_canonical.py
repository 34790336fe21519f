import hashlib

import pytest

from counterbalance.canonical import canonical_json, parse_json, sha256_bytes, sha256_file, sha256_json
from counterbalance.errors import InputError


def test_equal_content_has_one_byte_form() -> None:
    first = parse_json('{"b":1,"a":1e-5}', source="first")
    second = parse_json('{"a":0.00001,"b":1.0}', source="second")
    assert canonical_json(first) == canonical_json(second) == b'{"a":0.00001,"b":1}'


def test_keys_sort_by_utf16_code_unit() -> None:
    # U+10000 is written as surrogates D800 DC00, which sort before U+FFFD.
    assert canonical_json({"\ufffd": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ufffd":1}'.encode()


def test_digest_is_sha256_of_the_canonical_bytes() -> None:
    expected = hashlib.sha256(b'{"a":[1,"x",null,true]}').hexdigest()
    assert sha256_json({"a": [1, "x", None, True]}) == f"sha256:{expected}"


def test_published_vector_of_sha256(tmp_path) -> None:
    # FIPS 180-2, appendix B.1.
    expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_bytes(b"abc") == sha256_file(tmp_path / "abc") == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60, {1: 2}, {"a": object()}])
def test_what_json_cannot_hold_is_refused(value) -> None:
    with pytest.raises(InputError):
        canonical_json(value)


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', "[NaN]", "[Infinity]", "{", b"\xff"])
def test_loose_json_is_refused_with_its_source(text) -> None:
    with pytest.raises(InputError, match="the-source"):
        parse_json(text, source="the-source")
