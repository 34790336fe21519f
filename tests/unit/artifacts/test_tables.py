import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterbalance.artifacts import SCHEMAS, TableWriter, logical_digest, read_table, table_from_rows, write_table
from counterbalance.errors import InputError

REJECTED = SCHEMAS["rejected"]


def row(number: int, rule: str = "r") -> dict[str, object]:
    return {"source_row": number, "item_id": None, "rule": rule, "reason": "because"}


def test_rows_come_back_sorted_and_typed(tmp_path) -> None:
    path = tmp_path / "t.parquet"
    written = write_table(path, table_from_rows([row(3), row(1)], REJECTED), REJECTED)
    table = read_table(path, REJECTED)
    assert table.column("source_row").to_pylist() == [1, 3]
    assert (written.rows, written.digest) == (2, logical_digest(table))


def test_batches_give_the_same_digest_as_one_table(tmp_path) -> None:
    whole = write_table(tmp_path / "a", table_from_rows([row(1), row(2), row(5)], REJECTED), REJECTED)
    with TableWriter(tmp_path / "b", REJECTED) as writer:
        for numbers in ([1, 2], [5]):
            writer.write(table_from_rows([row(number) for number in numbers], REJECTED))
    assert writer.result() == whole


def test_an_empty_table_is_a_table(tmp_path) -> None:
    written = write_table(tmp_path / "e", table_from_rows([], REJECTED), REJECTED)
    assert read_table(tmp_path / "e", REJECTED).num_rows == 0
    assert written.digest == logical_digest(read_table(tmp_path / "e", REJECTED))


def test_a_key_that_is_there_twice_is_refused_and_leaves_no_file(tmp_path) -> None:
    with pytest.raises(InputError, match="twice"):
        write_table(tmp_path / "t", table_from_rows([row(1), row(1)], REJECTED), REJECTED)
    assert list(tmp_path.iterdir()) == []


def test_a_key_out_of_order_between_batches_is_refused(tmp_path) -> None:
    with TableWriter(tmp_path / "t", REJECTED) as writer:
        writer.write(table_from_rows([row(2)], REJECTED))
        with pytest.raises(InputError, match="out of order"):
            writer.write(table_from_rows([row(1)], REJECTED))


def test_volatile_columns_are_outside_the_stable_digest() -> None:
    schema = SCHEMAS["replies"]
    assert {"latency_ms", "started_at", "call_order"} <= schema.volatile
    assert schema.volatile < set(schema.arrow.names)
    assert not {"text", "status", "call_sha256", "trial_id"} & schema.volatile


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"surplus": 1}, "surplus"),
        ({"rule": None}, "'rule' is empty"),
        ({"source_row": "x"}, "does not fit"),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(tmp_path, change, message) -> None:
    with pytest.raises(InputError, match=message):
        write_table(tmp_path / "t", table_from_rows([{**row(1), **change}], REJECTED), REJECTED)


def test_nan_never_reaches_a_file(tmp_path) -> None:
    schema = SCHEMAS["estimates"]
    names = {field.name: None for field in schema.arrow}
    text = dict.fromkeys(("experiment", "model", "subset", "quantity", "method", "status"), "x")
    nan = {**names, **text, "n_items": 1, "n_calls": 1, "estimate": float("nan")}
    with pytest.raises(InputError, match="'estimate' holds NaN"):
        write_table(tmp_path / "t", table_from_rows([nan], schema), schema)


def test_reading_refuses_what_is_not_the_declared_table(tmp_path) -> None:
    with pytest.raises(InputError, match="is not there"):
        read_table(tmp_path / "none", REJECTED)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        read_table(tmp_path / "text", REJECTED)
    pq.write_table(pa.table({"source_row": [1], "extra": [2]}), tmp_path / "other")
    with pytest.raises(InputError, match="extra"):
        read_table(tmp_path / "other", REJECTED)
