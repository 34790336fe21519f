"""The logical digest against an independent, slow writing-down of its definition."""

import hashlib
import json
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.artifacts import logical_digest
from counterbalance.errors import InputError

SCHEMA = pa.schema(
    [("t", pa.string()), ("i", pa.int64()), ("r", pa.float64()), ("f", pa.bool_()), ("l", pa.list_(pa.string()))]
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "t": st.none() | st.text(max_size=5),
            "i": st.none() | st.integers(-(2**63), 2**63 - 1),
            "r": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "f": st.none() | st.booleans(),
            "l": st.none() | st.lists(st.none() | st.text(max_size=3), max_size=3),
        }
    ),
    max_size=6,
)


def by_definition(rows, names=("t", "i", "r", "f", "l")) -> str:
    types = {"t": "string", "i": "int64", "r": "double", "f": "bool", "l": "list<string>"}
    columns = []
    for name in names:
        values = [row[name] for row in rows]
        if name == "l":
            items = [item for value in values if value is not None for item in value]
            streams = {
                "validity": bytes(value is not None for value in values),
                "lengths": b"".join(struct.pack("<q", len(value or [])) for value in values),
                **{f"items.{key}": data for key, data in text_streams(items).items()},
            }
        elif name == "t":
            streams = text_streams(values)
        else:
            form = {"i": "<q", "r": "<d", "f": "<?"}[name]
            streams = {
                "validity": bytes(value is not None for value in values),
                "values": b"".join(struct.pack(form, 0 if value is None else value) for value in values),
            }
        hashed = {key: hashlib.sha256(data).hexdigest() for key, data in streams.items()}
        columns.append({"name": name, "type": types[name], "streams": hashed})
    body = json.dumps({"rows": len(rows), "columns": columns}, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(body.encode()).hexdigest()


def text_streams(values):
    data = [(value or "").encode() for value in values]
    return {
        "validity": bytes(value is not None for value in values),
        "lengths": b"".join(struct.pack("<q", len(entry)) for entry in data),
        "values": b"".join(data),
    }


@settings(deadline=None, max_examples=50)
@given(ROWS)
def test_digest_follows_its_definition(rows) -> None:
    assert logical_digest(pa.Table.from_pylist(rows, schema=SCHEMA)) == by_definition(rows)


@settings(deadline=None, max_examples=25)
@given(ROWS, st.integers(1, 5))
def test_chunks_and_slices_do_not_matter(rows, size) -> None:
    whole = pa.Table.from_pylist(rows, schema=SCHEMA)
    parts = [whole.slice(start, size) for start in range(0, max(len(rows), 1), size)]
    assert logical_digest(pa.concat_tables(parts)) == logical_digest(whole)


def test_the_parquet_writer_does_not_matter(tmp_path) -> None:
    table = pa.Table.from_pylist(
        [{"t": "ä", "i": 1, "r": 0.1, "f": True, "l": ["x"]}, {"t": None, "i": 2, "r": None, "f": None, "l": []}],
        schema=SCHEMA,
    )
    pq.write_table(table, tmp_path / "a", compression="zstd")
    pq.write_table(table, tmp_path / "b", compression="snappy", row_group_size=1, use_dictionary=False)
    assert (tmp_path / "a").read_bytes() != (tmp_path / "b").read_bytes()
    digests = {logical_digest(pq.read_table(tmp_path / name)) for name in "ab"}
    assert digests == {logical_digest(table)}


@pytest.mark.parametrize(
    "change",
    [{"t": "b"}, {"i": 3}, {"r": 0.5}, {"f": False}, {"l": ["x", ""]}, {"l": None}, {"t": None}, {"t": ""}],
)
def test_every_value_enters(change) -> None:
    row = {"t": "a", "i": 2, "r": 0.25, "f": True, "l": ["x"]}
    before = logical_digest(pa.Table.from_pylist([row], schema=SCHEMA))
    assert logical_digest(pa.Table.from_pylist([{**row, **change}], schema=SCHEMA)) != before


def test_names_enter_and_columns_can_be_left_out() -> None:
    rows = [{"t": "a", "i": 2, "r": 0.25, "f": True, "l": ["x"]}]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    assert logical_digest(table, ["t", "r"]) == by_definition(rows, ("t", "r"))
    renamed = table.rename_columns(["u", "i", "r", "f", "l"])
    assert logical_digest(renamed) != logical_digest(table)


def test_an_undeclared_type_is_refused() -> None:
    with pytest.raises(InputError, match="'day'"):
        logical_digest(pa.table({"day": pa.array([1], pa.date32())}))
