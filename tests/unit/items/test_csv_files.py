"""CSV as it is: nothing guessed, nothing lost, every broken record named by the line where it starts."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.errors import InputError
from counterbalance.items.problems import Problems
from counterbalance.items.readers import read_rows

HEADER = "question,a,b,c,key\n"
HEADERLESS = {
    "format": "csv_headerless",
    "columns": {"question": "column_1", "options": ["column_2", "column_3", "column_4"], "key": "column_5"},
}

FIELD = st.sampled_from(["", "NA", "null", "None", "1.0", "007", '"', ",", "\n", " ", '""', "é\u2028"]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=5
)


@settings(max_examples=50, deadline=None)
@given(
    rows=st.lists(st.lists(FIELD, min_size=5, max_size=5), min_size=1, max_size=4),
    line_end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    last_line_ended=st.booleans(),
)
def test_every_value_comes_back_with_the_line_it_starts_at(
    dataset_headerless, rows, line_end, quoting, last_line_ended
):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator=line_end, quoting=quoting)
    starts = []
    for row in rows:
        starts.append(buffer.getvalue().count("\n") + 1)
        writer.writerow(row)
    text = buffer.getvalue() if last_line_ended else buffer.getvalue().removesuffix(line_end)
    table = read_rows(text.encode(), dataset_headerless, Problems("x"))
    assert [list(row.values.values()) for row in table.rows] == rows
    assert [row.number for row in table.rows] == starts


@pytest.fixture(scope="module")
def dataset_headerless():
    from counterbalance.config import Dataset

    return Dataset.model_validate(
        {"id": "x", "path": "x.csv", **HEADERLESS, "key": {"type": "letter"}, "licence": "-", "source": "-"}
    )


def test_words_for_missing_values_are_texts(prepare) -> None:
    items = prepare(HEADER + "Which is a null value?,None,NA,null,A\n").items
    assert items.column("option_texts").to_pylist() == [["None", "NA", "null"]]


def test_digits_keep_their_spelling(prepare) -> None:
    items = prepare(HEADER + "Which?,1.10,1.1,007,B\n").items
    assert items.column("option_texts").to_pylist() == [["1.10", "1.1", "007"]]
    assert items.column("gold_option_id").to_pylist() == ["o2"]


@pytest.mark.parametrize("first", ["question", '"question"'])
def test_a_byte_order_mark_belongs_to_no_column(prepare, first) -> None:
    text = f"\ufeff{first},a,b,c,key\nq?,1,2,3,A\n"
    assert prepare(text).items.num_rows == 1


def test_a_byte_order_mark_before_a_quoted_first_field(prepare) -> None:
    items = prepare('\ufeff"one, or two?",1,2,3,A\n', **HEADERLESS).items
    assert items.column("stem").to_pylist() == ["one, or two?"]


def test_rows_are_physical_lines_also_after_quoted_line_breaks(prepare) -> None:
    text = HEADER + '"first\nof\nthree",1,2,3,A\nsecond,1,2,3,B\n"third\n",1,2,3,C\nfourth,1,2,3,A\n'
    items = prepare(text).items.to_pylist()
    assert {item["stem"]: item["source_row"] for item in items} == {
        "first\nof\nthree": 2,
        "second": 5,
        "third\n": 6,
        "fourth": 8,
    }


def test_crlf_files_give_the_same_items_and_the_change_is_counted(prepare) -> None:
    text = HEADER + '"two\nlines",1,2,3,A\nq2,1,2,4,B\n'
    unix, dos = prepare(text), prepare(text.replace("\n", "\r\n"))
    assert dos.items.equals(unix.items)
    assert (unix.facts["stems_with_crlf"], dos.facts["stems_with_crlf"]) == (0, 1)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ('"open,1,2,3,A\nnext,1,2,3,A\n', r"row 3.*quote that opens field 1 \(line 3\) is never closed"),
        ('"a" b,1,2,3,A\n', r"row 3.*text follows the closing quote of field 1"),
        ('"a"b",1,2,3,A\n', r"row 3.*text follows the closing quote"),
        ('a "b" c,1,2,3,A\n', r"row 3.*a quote stands inside field 1"),
        (' "q",1,2,3,A\n', r"row 3.*a quote stands inside field 1"),
        ("q,1,2,3\n", r"row 3.*4 fields where the first record has 5"),
        ("q,1,2,3,A,\n", r"row 3.*6 fields where the first record has 5"),
        ("\nq,1,2,3,A\n", r"row 3.*the line is blank"),
        ("q,1,2\rr,3,A\n", r"row 3.*carriage return"),
    ],
)
def test_a_broken_record_stops_with_its_line(prepare, record, expected) -> None:
    with pytest.raises(InputError, match=r"sums\.csv row 3") as caught:
        prepare(HEADER + "good,1,2,3,A\n" + record)
    assert caught.match(expected)


def test_blank_lines_at_the_end_are_nothing(prepare) -> None:
    assert prepare(HEADER + "q,1,2,3,A\n\n\n").facts["rows"] == 1


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "empty"),
        (b"\xef\xbb\xbf\n", "empty"),
        (HEADER.encode(), "no items"),
        ((HEADER + "q,1,2,3,A\n").encode("utf-16"), "UTF-16"),
        ((HEADER + "q,1,2,3,A\ncafé,1,2,3,A\n").encode("latin-1"), r"row 3: byte 0xe9 is not UTF-8"),
        (b"question;a;b;c;key\nq;1;2;3;A\n", "not separated by commas"),
        (b"question,a,b,key,\nq,1,2,A,\n", "column 5 has no name"),
        (b"question,a,a,c,key\nq,1,2,3,A\n", "'a' is there twice"),
        (b"question,a,b,c,Key \nq,1,2,3,A\n", "'Key ' differs from 'key' by case or white space"),
        (b"question,a,b,c\nq,1,2,3\n", r"no column 'key'; there are 'question', 'a'"),
        (b"What is 1+1?,1,2,3,B\nWhat is 1+2?,1,2,3,C\n", "row 1 looks like data.*csv_headerless"),
        (b"question,a,b,c,d,key\nq,1,2,3,4,D\n", "'d' looks like one more option"),
        ((HEADER + "q,1,2,3,A\n" + HEADER).encode(), "row 3: repeats the header"),
    ],
)
def test_a_file_of_another_shape_is_refused(prepare, data, expected) -> None:
    with pytest.raises(InputError, match=expected):
        prepare(data)


@pytest.mark.parametrize("header", [HEADER, "Question,A,B,C,Answer\n", "stem,w,x,y,correct_answer\n", "q,w,x,y,KEY\n"])
def test_a_header_in_a_headerless_file_is_no_item(prepare, header) -> None:
    with pytest.raises(InputError, match=r"row 1.*looks like a header"):
        prepare(header + "q?,1,2,3,A\n", **HEADERLESS)


def test_a_headerless_file_has_no_column_that_nobody_named(prepare) -> None:
    with pytest.raises(InputError, match="6 columns, of which column_6 are not declared"):
        prepare("q?,1,2,3,A,hm\n", **HEADERLESS)


def test_columns_that_are_not_used_are_listed(prepare) -> None:
    facts = prepare("question,note,a,b,c,key\nq?,hm,1,2,3,A\n").facts
    assert facts["columns_not_used"] == ["note"]


def test_all_problems_come_at_once_and_no_more_than_20_are_shown(prepare) -> None:
    rows = "".join(f"q{n}?,1,2,3,{'A' if n % 2 else 'Z'}\n" for n in range(60))
    with pytest.raises(InputError) as caught:
        prepare(HEADER + rows)
    lines = str(caught.value).splitlines()
    assert lines[0] == "sums.csv: 30 problems, the first 20 are:"
    assert [line.split(",")[0] for line in lines[1:]] == [f"sums.csv row {n}" for n in range(2, 42, 2)]
