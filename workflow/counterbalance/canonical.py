"""One byte form for every JSON that is hashed (RFC 8785), and digests that name their algorithm."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import rfc8785

from counterbalance.errors import InputError

Json = Any

_SAFE = 2**53
_STRINGS = frozenset({str})
_PLAIN = frozenset({str, bool, type(None)})
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def canonical_json(value: Json) -> bytes:
    """Serialise to RFC 8785 JSON.

    Parameters
    ----------
    value
        Dicts with string keys, lists, tuples, strings, finite numbers, booleans, None.

    Returns
    -------
    bytes
        UTF-8, keys sorted by UTF-16 code unit, no white space.

    Raises
    ------
    InputError
        For NaN, infinities, integers beyond 2**53, lone surrogates and types that JSON does not have.
    """
    try:
        return _ENCODER.encode(_settle(value)).encode()
    except (_UnsureError, ValueError, RecursionError):
        pass
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise InputError(
            f"cannot be written as canonical JSON: {error}; use finite numbers, strings, lists and string keys"
        ) from error


class _UnsureError(Exception):
    """The standard library might write this value otherwise than RFC 8785 does."""


def _settle(value: Json) -> Json:
    """Return a value that the standard library writes as RFC 8785 does.

    The two differ in reals (whole ones, and where the exponent starts), in the order of keys beyond U+FFFF, in keys
    that are no strings, and in what they refuse; all but whole reals go the slow way.
    """
    kind = type(value)
    if kind is dict:
        if not (set(map(type, value)) <= _STRINGS and "".join(value).isascii()):
            raise _UnsureError
        return {
            key: entry
            if (kind := type(entry)) in _PLAIN or (kind is int and -_SAFE < entry < _SAFE)
            else _settle(entry)
            for key, entry in value.items()
        }
    if kind is list or kind is tuple:
        return [entry if type(entry) in _PLAIN else _settle(entry) for entry in value]
    if kind is float:
        size = abs(value)
        if size < _SAFE and value == (whole := int(value)):
            return whole
        if 1e-4 <= size < _SAFE:
            return value
    elif kind in _PLAIN or (kind is int and -_SAFE < value < _SAFE):
        return value
    raise _UnsureError


def utf8_text(text: str) -> str:
    """Return a text as UTF-8 can hold it: a lone surrogate, which JSON can carry, becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def sha256_bytes(data: bytes) -> str:
    """Digest of a byte string, written `sha256:<hex>`."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def sha256_json(value: Json) -> str:
    """Digest of a value's canonical JSON, written `sha256:<hex>`."""
    return sha256_bytes(canonical_json(value))


def sha256_file(path: Path) -> str:
    """Digest of a file's bytes, written `sha256:<hex>`."""
    with path.open("rb") as handle:
        return "sha256:" + hashlib.file_digest(handle, "sha256").hexdigest()


def parse_json(data: bytes | str, *, source: str) -> Json:
    """Read JSON strictly.

    Parameters
    ----------
    data
        The JSON text; bytes are UTF-8.
    source
        Name of where it came from, for messages.

    Raises
    ------
    InputError
        For duplicate keys, NaN or Infinity, bytes that are not UTF-8, or broken syntax.
    """

    def unique(pairs: list[tuple[str, Json]]) -> Mapping[str, Json]:
        seen: dict[str, Json] = {}
        for key, value in pairs:
            if key in seen:
                raise InputError(f"{source}: key {key!r} appears twice in one object; keep one of them")
            seen[key] = value
        return seen

    def refuse(token: str) -> Json:
        raise InputError(f"{source}: {token} is not a JSON number; write null with a reason instead")

    try:
        return json.loads(data, object_pairs_hook=unique, parse_constant=refuse)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{source}: not valid JSON: {error}") from error
