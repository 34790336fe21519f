import hashlib
import json
import math
import struct

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.canonical import canonical_json, parse_json, sha256_bytes, sha256_file, sha256_json
from counterbalance.errors import InputError


def test_equal_content_has_one_byte_form() -> None:
    first = parse_json('{"b":1,"a":1e-5}', source="first")
    second = parse_json('{"a":0.00001,"b":1.0}', source="second")
    assert canonical_json(first) == canonical_json(second) == b'{"a":0.00001,"b":1}'


def test_keys_sort_by_utf16_code_unit() -> None:
    # U+10000 is written as surrogates D800 DC00, which sort before U+FFFD.
    assert canonical_json({"\ufffd": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ufffd":1}'.encode()


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**53) - 2, -(2**53) + 2),
    st.integers(2**53 - 2, 2**53 + 2),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-30, 0),
    st.integers(-(10**17), 10**17).map(float),
    st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0]),
    st.integers(-30, 30).map(lambda exponent: 10.0**exponent),
)
TEXTS = st.one_of(st.text(), st.text(st.characters(codec=None, categories=["Cs", "Cc", "Lu", "So"])))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(st.one_of(st.text(st.characters(codec="ascii")), TEXTS), inner),
        st.dictionaries(st.one_of(st.integers(), st.none(), st.text()), inner, max_size=2),
    ),
    max_leaves=12,
)


@given(VALUES)
@settings(max_examples=50, deadline=None)
def test_it_is_what_the_reference_implementation_writes(value) -> None:
    try:
        expected = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        with pytest.raises(InputError):
            canonical_json(value)
    else:
        assert canonical_json(value) == expected


@pytest.mark.parametrize(
    "number", [0.0, -0.0, 1e-4, 9.9e-5, 1e-7, 2.0**53, -(2.0**53) + 1, 9999999999999998.0, 1e16, 1e21, 0.1, 5e-324]
)
def test_reals_are_written_as_the_standard_says(number: float) -> None:
    written = canonical_json([number])
    assert written == rfc8785.dumps([number])
    assert math.copysign(json.loads(written)[0], 1) == abs(number)


class Subclassed(str):
    """A string to `isinstance`, and not a plain one."""


def test_subclasses_of_plain_types_are_written_as_the_plain_ones() -> None:
    assert canonical_json({Subclassed("a"): Subclassed("b")}) == b'{"a":"b"}'


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
