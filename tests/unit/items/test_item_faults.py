"""What makes an item malformed, what only excludes it, and what is neither."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.errors import ConfigError, InputError
from counterbalance.items.folding import fold_text
from counterbalance.items.prepare import prepare_table

WITH_ID = {"columns": {"options": ["a", "b", "c"], "key": "key", "id": "id"}}
HEADER = "id,question,a,b,c,key\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("5 m", "5\u00a0m"),
        ("5 m", "5  m "),
        ("5 m", "5\u202fm"),
        ("5 m", "５\u3000ｍ"),
        ("5m", "5\u200bm"),
        ("ﬁve", "five"),
        ("caf\u00e9", "cafe\u0301"),
        ("soft", "so\u00adft"),
    ],
)
def test_what_a_reader_cannot_tell_apart_folds_together(first, second) -> None:
    assert fold_text(first) == fold_text(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2⁵", "25"),
        ("x₂", "x2"),
        ("x²", "x2"),
        ("pH", "PH"),
        ("5 m", "5m"),
        ("1.0", "1"),
        ("a, b", "a b"),
        ("3ª", "3a"),
    ],
)
def test_what_means_different_things_stays_apart(first, second) -> None:
    assert fold_text(first) != fold_text(second)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=20))
def test_folding_twice_changes_nothing(text) -> None:
    assert fold_text(fold_text(text)) == fold_text(text)


def test_equal_options_stop_the_run_unless_their_rule_is_named(prepare) -> None:
    text = HEADER + "i1,q?,5 m,5\u00a0m,6 m,A\ni2,r?,1,2,3,B\n"
    with pytest.raises(InputError, match=r"row 2: options 1 and 2 are the same.*'5\\xa0m'.*'duplicate_options'"):
        prepare(text, **WITH_ID)
    prepared = prepare(text, exclude=["duplicate_options"], **WITH_ID)
    assert prepared.items.column("item_id").to_pylist() == ["i2"]
    (row,) = prepared.rejected.to_pylist()
    assert (row["source_row"], row["item_id"], row["rule"]) == (2, "i1", "duplicate_options")
    assert prepared.facts["rejected"] == {"duplicate_options": 1}


def test_equal_options_with_a_text_key_are_excluded_too(prepare) -> None:
    text = HEADER + "i1,q?,three,one,three,three\ni2,r?,1,2,3,2\n"
    prepared = prepare(text, key={"type": "text"}, exclude=["duplicate_options"], **WITH_ID)
    assert prepared.rejected.column("item_id").to_pylist() == ["i1"]


def test_options_that_refer_to_others_are_excluded_by_their_rule_only(prepare) -> None:
    text = HEADER + "i1,q?,cats,dogs,all of the above,A\ni2,r?,1,2,3,B\n"
    assert prepare(text, **WITH_ID).facts["rejected"] == {"option_refers_to_others": 1}
    with pytest.raises(InputError, match=r"row 2: refers to other options.*option 3 'all of the above'"):
        prepare(text, exclude=[], **WITH_ID)


def test_an_item_may_break_two_rules(prepare) -> None:
    text = HEADER + "i1,q?,cats,cats,both,A\ni2,r?,1,2,3,B\n"
    prepared = prepare(text, exclude=["duplicate_options", "option_refers_to_others"], **WITH_ID)
    assert prepared.rejected.column("rule").to_pylist() == ["duplicate_options", "option_refers_to_others"]
    assert prepared.facts["kept"] == 1


def test_excluding_everything_is_an_error(prepare) -> None:
    with pytest.raises(InputError, match="no item is left"):
        prepare(HEADER + "i1,q?,cats,dogs,neither,A\n", **WITH_ID)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("7,q?,1,2,3,A\n7,r?,1,2,3,B\n", r"row 3, field 'id': id '7' is also that of row 2"),
        ("x1,q?,1,2,3,A\nX1,r?,1,2,3,B\n", r"row 3, field 'id': id 'X1' and 'x1' of row 2 differ by case"),
        ("ﬁ,q?,1,2,3,A\nfi,r?,1,2,3,B\n", r"'fi' and 'ﬁ' of row 2"),
        (
            "i1,q?,1,2,3,A\ni2,q?,3,1,2,B\n",
            r"row 3: the same question .* row 2 \(ids 'i1' and 'i2'\); delete one, or name",
        ),
        ("i1,q?,1,2,3,A\ni2,q?,3,1,2,A\n", r"row 3: the same question .* row 2 \(ids .*\), but with another key"),
        ("i1,q is?,1,2,3,A\ni2,q  is?,1,2,3,A\n", r"row 3: the same question and options as in row 2"),
        (",q?,1,2,3,A\n", r"row 2, field 'id': '' cannot be an id"),
        ("a b,q?,1,2,3,A\n", r"'a b' cannot be an id"),
        ("a\u00a0b,q?,1,2,3,A\n", r"cannot be an id"),
        ("a\u200bb,q?,1,2,3,A\n", r"cannot be an id"),
        ("x" * 101 + ",q?,1,2,3,A\n", r"cannot be an id"),
        ("i1, ,1,2,3,A\n", r"row 2, field 'question': the question is empty"),
        ("i1,q?,1,2,,A\n", r"row 2, field 'c': the option is empty.*trailing_empty_options"),
        ("i1,q?,1,\u200b,3,A\n", r"row 2, field 'b': the option is empty"),
        ('i1,q?,1,"2\nB. three",3,A\n', r"row 2, field 'b': the option contains a line break"),
        ("i1,q?,1,2\u2028x,3,A\n", r"row 2, field 'b': the option contains a line break"),
        ("i1,q?,1,2\tx,3,A\n", r"row 2, field 'b': character 2 is U\+0009, a control character"),
        ("i1,q\x07?,1,2,3,A\n", r"row 2, field 'question': character 2 is U\+0007"),
        ("i1,q\x85?,1,2,3,A\n", r"row 2, field 'question': character 2 is U\+0085"),
        ("i1,q?,1\0,2,3,A\n", r"row 2, field 'a': character 2 is U\+0000"),
    ],
)
def test_malformed_items_stop_the_run(prepare, rows, expected) -> None:
    with pytest.raises(InputError, match=r"sums\.csv row \d") as caught:
        prepare(HEADER + rows, **WITH_ID)
    assert caught.match(expected)


def test_line_breaks_and_tabs_belong_into_questions(prepare) -> None:
    items = prepare(HEADER + 'i1,"first:\n\tA. one\n",1,2,3,A\n', **WITH_ID).items
    assert items.column("stem").to_pylist() == ["first:\n\tA. one\n"]


def test_lines_of_a_question_that_look_like_options_are_remarked_upon(prepare) -> None:
    rows = 'i1,"q?\nB. fake",1,2,3,A\ni2,"q?\nD. no slot, I. a numeral",1,2,3,A\ni3,A. is at the start,1,2,3,A\n'
    (warning,) = prepare(HEADER + rows, **WITH_ID).facts["warnings"]
    assert warning.endswith("rows 2, 6")


def test_a_column_has_one_meaning(prepare) -> None:
    with pytest.raises(ConfigError, match="column 'a' is named for two things"):
        prepare(HEADER, columns={"options": ["a", "b", "a"], "key": "key"})


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("i1,q?,1,2,,C", "'C' is beyond the 2 options"),
        ("i1,q?,1,,3,A", "although one after it is not"),
        ("i1,q?,1,,,A", "1 options; an item has 2 to 26"),
    ],
)
def test_declared_trailing_empty_options_end_an_item_and_nothing_else(prepare, row, expected) -> None:
    declared = {"trailing_empty_options": True, **WITH_ID}
    fewer = prepare(HEADER + "i1,q?,1,2,,B\n", **declared).items
    assert fewer.column("option_texts").to_pylist() == [["1", "2"]]
    with pytest.raises(InputError, match=expected):
        prepare(HEADER + row + "\n", **declared)


def test_ids_made_from_content_do_not_move_when_a_row_goes(prepare) -> None:
    rows = [f"question {n}?,1,2,{n + 3},A\n" for n in range(6)]
    header = "question,a,b,c,key\n"
    whole = prepare(header + "".join(rows)).items.to_pylist()
    part = prepare(header + "".join(rows[:2] + rows[3:])).items.to_pylist()
    ids = {item["stem"]: item["item_id"] for item in whole}
    assert len(set(ids.values())) == 6
    assert {item["stem"]: item["item_id"] for item in part}.items() < ids.items()
    assert all(item["group_id"] == item["item_id"] for item in whole)


def test_the_same_content_without_ids_is_named_by_both_rows(prepare) -> None:
    with pytest.raises(InputError, match=r"row 3: the same question and options as in row 2; delete one") as caught:
        prepare("question,a,b,c,key\nq?,1,2,3,A\nq?,1,2,3,A\n")
    assert "\n" not in str(caught.value)


def test_groups_and_strata(prepare) -> None:
    columns = {**WITH_ID["columns"], "group": "text", "strata": ["year", "topic"]}
    text = "id,question,a,b,c,key,text,year,topic\ni1,q?,1,2,3,A,t1,1999,\ni2,r?,1,2,3,A,t1,007,b\n"
    items = prepare(text, columns=columns).items.to_pylist()
    assert [item["group_id"] for item in items] == ["t1", "t1"]
    assert [item["strata"] for item in items] == ['{"topic":"","year":"1999"}', '{"topic":"b","year":"007"}']
    with pytest.raises(InputError, match=r"row 2, field 'text': the group is empty"):
        prepare(text.replace("t1", "", 1), columns=columns)


def test_repeated_items_are_excluded_where_their_rule_is_named(dataset) -> None:
    # The rule is looked up by name, so that this holds however many rules the study file offers.
    declared = dataset(**WITH_ID).model_copy(update={"exclude": ["duplicate_items"]})
    text = HEADER + "i1,q?,1,2,3,A\ni2,q?,2,1,3,B\ni3,r?,1,2,3,A\n"
    prepared = prepare_table(text.encode(), declared, 1)
    assert prepared.items.column("item_id").to_pylist() == ["i1", "i3"]
    (row,) = prepared.rejected.to_pylist()
    assert (row["source_row"], row["item_id"], row["rule"]) == (3, "i2", "duplicate_items")
    assert "row 2" in row["reason"]
    with pytest.raises(InputError, match=r"row 3: .* with another key"):
        prepare_table(text.replace("3,B", "3,A").encode(), declared, 1)


def many(count: int, skip: int | None = None) -> str:
    return HEADER + "".join(f"i{n:02d},q{n}?,1,2,3,A\n" for n in range(count) if n != skip)


def test_items_are_sorted_by_id_and_first_means_the_file_order(prepare) -> None:
    text = HEADER + "z,q?,1,2,3,A\nb,r?,1,2,3,A\na,s?,1,2,3,A\n"
    prepared = prepare(text, take={"n": 2, "how": "first"}, **WITH_ID)
    assert prepared.items.column("item_id").to_pylist() == ["b", "z"]
    assert (prepared.facts["taken"], prepared.facts["not_taken"], prepared.rejected.num_rows) == (2, 1, 0)


def test_a_random_draw_depends_on_the_seed_and_each_items_id_alone(prepare) -> None:
    take = {"take": {"n": 10, "how": "random"}, **WITH_ID}
    drawn = set(prepare(many(40), **take).items.column("item_id").to_pylist())
    assert drawn == set(prepare(many(40), **take).items.column("item_id").to_pylist())
    assert drawn != set(prepare(many(40), seed=2, **take).items.column("item_id").to_pylist())
    bystander = next(n for n in range(40) if f"i{n:02d}" not in drawn)
    assert drawn == set(prepare(many(40, bystander), **take).items.column("item_id").to_pylist())
    chosen = int(min(drawn)[1:])
    assert len(drawn - set(prepare(many(40, chosen), **take).items.column("item_id").to_pylist())) == 1


def test_more_items_than_there_are_cannot_be_taken(prepare) -> None:
    with pytest.raises(InputError, match=r"`take\.n` is 4, but there are only 3 valid items"):
        prepare(many(3), take={"n": 4}, **WITH_ID)
