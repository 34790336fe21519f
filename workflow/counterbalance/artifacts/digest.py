"""A digest of a table's content that does not depend on the Parquet writer.

Every column is flattened into streams, and each stream is hashed with SHA-256 over the whole table, so neither
chunks nor row groups matter. For a column of *n* rows:

``validity``
    *n* bytes, 1 for a value and 0 for null.
``lengths``
    for text (UTF-8 bytes) and lists (elements): *n* little-endian signed 64-bit integers, 0 for null.
``values``
    text: the UTF-8 bytes one after the other; integers: little-endian signed 64-bit; reals: little-endian IEEE 754
    binary64; booleans: one byte; null writes a zero of the same width. A list writes its elements as a column of
    their own, under ``items``.

The digest is the SHA-256 of the canonical JSON (RFC 8785) of ``{"rows": n, "columns": [{"name", "type",
"streams"}, ...]}`` with the streams' hex digests.
"""

import hashlib
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.canonical import sha256_json
from counterbalance.errors import InputError


class _Hash(Protocol):
    def update(self, data: Any, /) -> None: ...
    def hexdigest(self) -> str: ...


class LogicalDigest:
    """Running digest over record batches of one schema.

    Parameters
    ----------
    schema
        Arrow schema of the batches: text, 64-bit integers, 64-bit reals, booleans and lists of these.
    columns
        Names to include; all by default.
    """

    def __init__(self, schema: pa.Schema, columns: Iterable[str] | None = None) -> None:
        chosen = set(schema.names if columns is None else columns)
        self._fields = [field for field in schema if field.name in chosen]
        self._streams: dict[tuple[str, str], _Hash] = {}
        self._rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Take in one more batch."""
        self._rows += batch.num_rows
        for field in self._fields:
            self._feed(field.name, "", batch.column(field.name), field.type)

    def result(self) -> str:
        """Return the digest of all batches so far, written `sha256:<hex>`."""
        columns = [
            {
                "name": field.name,
                "type": _type_name(field.type),
                "streams": {
                    stream: digest.hexdigest() for (name, stream), digest in self._streams.items() if name == field.name
                },
            }
            for field in self._fields
        ]
        return sha256_json({"rows": self._rows, "columns": columns})

    def _feed(self, name: str, prefix: str, column: pa.Array, kind: pa.DataType) -> None:
        self._write(name, prefix + "validity", pc.is_valid(column).to_numpy(zero_copy_only=False).astype("u1"))
        if pa.types.is_list(kind):
            lengths = pc.fill_null(pc.list_value_length(column), 0)
            self._write(name, prefix + "lengths", lengths.to_numpy(zero_copy_only=False).astype("<i8"))
            self._feed(name, prefix + "items.", column.flatten(), kind.value_type)
        elif pa.types.is_string(kind):
            filled = pc.fill_null(column, "")
            lengths = pc.binary_length(filled).to_numpy(zero_copy_only=False)
            self._write(name, prefix + "lengths", lengths.astype("<i8"))
            self._write(name, prefix + "values", _text_bytes(filled))
        elif pa.types.is_int64(kind):
            self._write(name, prefix + "values", _numbers(pc.fill_null(column, 0), "<i8"))
        elif pa.types.is_float64(kind):
            self._write(name, prefix + "values", _numbers(pc.fill_null(column, 0.0), "<f8"))
        elif pa.types.is_boolean(kind):
            self._write(name, prefix + "values", _numbers(pc.fill_null(column, False), "u1"))
        else:
            raise InputError(f"column {name!r} has type {kind}, which has no logical digest; use a declared type")

    def _write(self, name: str, stream: str, data: Any) -> None:
        self._streams.setdefault((name, stream), hashlib.sha256()).update(memoryview(data).cast("B"))


def logical_digest(table: pa.Table, columns: Iterable[str] | None = None) -> str:
    """Digest of a table's content, written `sha256:<hex>` (see the module's text for the layout)."""
    digest = LogicalDigest(table.schema, columns)
    for batch in table.to_batches():
        digest.update(batch)
    if table.num_rows == 0:
        digest.update(pa.RecordBatch.from_pylist([], schema=table.schema))
    return digest.result()


def _numbers(column: pa.Array, kind: str) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False).astype(kind))


def _text_bytes(column: pa.Array) -> bytes:
    if len(column) == 0:
        return b""
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, dtype="<i4")[column.offset : column.offset + len(column) + 1]
    return b"" if data is None else bytes(data[int(edges[0]) : int(edges[-1])])


def _type_name(kind: pa.DataType) -> str:
    return f"list<{_type_name(kind.value_type)}>" if pa.types.is_list(kind) else str(kind)
