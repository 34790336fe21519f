"""JSON lines and Parquet: strict, typed as text, each fault with its row."""

import io
import json

import polars as pl
import pytest

from counterbalance.errors import ConfigError, InputError

JSONL = {"path": "sums.jsonl", "format": "jsonl", "columns": {"options": "choices", "key": "key"}}
PARQUET = {
    "path": "sums.parquet",
    "format": "parquet",
    "columns": {"options": "choices", "key": "key"},
    "key": {"type": "index", "base": 0},
}
GOOD = '{"question": "q1?", "choices": ["x", "y"], "key": "A"}\n'


def line(**fields: object) -> str:
    return json.dumps({"question": "q2?", "choices": ["x", "z"], "key": "B", **fields}) + "\n"


def parquet(**columns: object) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(
        {"question": ["q1?", "q2?"], "choices": [["x", "y"], ["x", "z"]], "key": [0, 1], **columns}
    ).write_parquet(buffer)
    return buffer.getvalue()


def test_line_separators_inside_a_text_are_part_of_it(prepare) -> None:
    text = '{"question": "one\u2028two\u0085?", "choices": ["x", "y"], "key": "A"}\n'.replace("\u0085", "\u2029")
    items = prepare(text + line(), **JSONL).items.to_pylist()
    assert sorted((item["stem"], item["source_row"]) for item in items) == [("one\u2028two\u2029?", 1), ("q2?", 2)]


def test_crlf_and_a_byte_order_mark_and_no_final_line_end(prepare) -> None:
    text = ("\ufeff" + GOOD + line()).replace("\n", "\r\n").rstrip()
    assert prepare(text, **JSONL).items.num_rows == 2


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ('{"question": "q", "key": "A", "key": "B"}\n', r"row 2: .*'key' appears twice"),
        ('{"question": "q2?", "choices": ["x", "z"], "k', r"row 2: .*the file ends in the middle"),
        ("\n", r"row 2: the line is blank"),
        ("[1, 2]\n", r"row 2: expected one JSON object"),
        ('{"question": NaN}\n', r"row 2: .*NaN"),
        ('{"question": ' + "9" * 5000 + "}\n", r"row 2: "),
        ("[" * 20_000 + "\n", r"row 2: "),
        (line(key=1.5), r"row 2, field 'key': found a number with a fraction"),
        (line(key=True), r"row 2, field 'key': found true or false"),
        (line(key=None), r"row 2, field 'key': the key is empty"),
        (line(key=["A", "B"]), r"row 2, field 'key': found a list"),
        (line(question=None), r"row 2, field 'question': the question is empty"),
        (line(question={"text": "q"}), r"row 2, field 'question': found an object"),
        (line(choices="x, z"), r"row 2, field 'choices': found str; expected a list"),
        (line(choices=["x", None, "z"]), r"row 2, field 'choices\[2\]': the option is empty"),
        (line(choices=["x", 0.5]), r"row 2, field 'choices\[2\]': found a number with a fraction"),
        (line(choices=["x"]), r"row 2.*1 options; an item has 2 to 26"),
        (line(choices=[str(n) for n in range(27)]), r"row 2.*27 options; an item has 2 to 26"),
        (line(question="a\ud800b"), r"row 2, field 'question': character 2 is U\+D800, half of a surrogate pair"),
        (line(question="a\0b"), r"row 2, field 'question': character 2 is U\+0000, a control"),
    ],
)
def test_a_broken_line_stops_with_its_number(prepare, second, expected) -> None:
    with pytest.raises(InputError, match=r"sums\.jsonl") as caught:
        prepare(GOOD + second, **JSONL)
    assert caught.match(expected)


def test_whole_numbers_become_their_digits(prepare) -> None:
    changes = {**JSONL, "columns": {**JSONL["columns"], "id": "id"}}
    items = prepare(line(id=7, question=12, choices=[3, 40]), **changes).items.to_pylist()
    assert (items[0]["item_id"], items[0]["stem"], items[0]["option_texts"]) == ("7", "12", ["3", "40"])


def test_the_number_of_options_may_vary_and_null_padding_has_to_be_declared(prepare) -> None:
    text = GOOD + line(choices=["x", "z", "w", None, ""], key="C")
    with pytest.raises(InputError, match="trailing_empty_options"):
        prepare(text, **JSONL)
    items = prepare(text, trailing_empty_options=True, **JSONL).items.to_pylist()
    assert sorted(len(item["option_texts"]) for item in items) == [2, 3]


def test_26_options_have_26_letters(prepare) -> None:
    items = prepare(line(choices=[f"no. {n}" for n in range(26)], key="Z"), **JSONL).items.to_pylist()
    assert items[0]["gold_option_id"] == "o26"


def test_a_csv_file_has_no_lists(prepare) -> None:
    with pytest.raises(ConfigError, match="a CSV file has no lists"):
        prepare("question,choices,key\n", columns={"options": "choices", "key": "key"})


def test_parquet_rows_count_from_1(prepare) -> None:
    items = prepare(parquet(), **PARQUET).items.to_pylist()
    assert sorted((item["source_row"], item["gold_option_id"]) for item in items) == [(1, "o1"), (2, "o2")]


def test_columns_of_other_types_are_left_alone_unless_declared(prepare) -> None:
    data = parquet(score=[0.5, 1.5])
    assert prepare(data, **PARQUET).facts["columns_not_used"] == ["score"]
    with pytest.raises(InputError, match=r"sums\.parquet, column 'score': its type is Float64"):
        prepare(data, **{**PARQUET, "columns": {**PARQUET["columns"], "strata": ["score"]}})


def test_a_key_column_of_reals_is_not_guessed_at(prepare) -> None:
    with pytest.raises(InputError, match="column 'key': its type is Float64"):
        prepare(parquet(key=[0.0, 1.0]), **PARQUET)


@pytest.mark.parametrize("data", [b"PAR1 not really PAR1", parquet()[:-30]])
def test_what_is_not_parquet_is_refused(prepare, data) -> None:
    with pytest.raises(InputError, match="not a readable Parquet file"):
        prepare(data, **PARQUET)
