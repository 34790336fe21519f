"""Keys are read as declared; what does not name exactly one option stops the run."""

import pytest

from counterbalance.config.models import Key
from counterbalance.errors import ConfigError, InputError
from counterbalance.items.keys import gold_index

LETTER = Key(type="letter")
TEXT = Key(type="text")
FROM_0 = Key(type="index", base=0)
FROM_1 = Key(type="index", base=1)
OPTIONS = ["2", "1", "x²"]


@pytest.mark.parametrize(
    ("written", "key", "expected"),
    [
        ("A", LETTER, 0),
        ("c", LETTER, 2),
        (" B ", LETTER, 1),
        ("1", TEXT, 1),
        ("1", FROM_0, 1),
        ("1", FROM_1, 0),
        ("0", FROM_0, 0),
        ("3", FROM_1, 2),
        ("x²", TEXT, 2),
        ("2\u00a0", TEXT, 0),
    ],
)
def test_one_spelling_has_one_meaning_per_declaration(written, key, expected) -> None:
    assert gold_index(written, key, OPTIONS) == expected


@pytest.mark.parametrize(
    ("written", "key", "expected"),
    [
        ("", LETTER, "empty"),
        (" ", TEXT, "empty"),
        ("2", LETTER, "not a letter"),
        ("AB", LETTER, "not a letter"),
        ("(A)", LETTER, "not a letter"),
        ("Ａ", LETTER, "not a letter"),
        ("А", LETTER, "not a letter"),
        ("D", LETTER, "beyond the 3 options.*A to C"),
        ("A", FROM_0, "not a whole number"),
        ("1.0", FROM_0, "not a whole number"),
        ("-1", FROM_0, "not a whole number"),
        ("٢", FROM_0, "not a whole number"),
        ("01", FROM_0, "not a whole number"),
        ("3", FROM_0, "outside 0 to 2"),
        ("0", FROM_1, "outside 1 to 3"),
        ("4", FROM_1, "outside 1 to 3"),
        ("x2", TEXT, "none of the options"),
        ("one", TEXT, "none of the options"),
    ],
)
def test_a_key_that_names_no_option_says_why(written, key, expected) -> None:
    with pytest.raises(ValueError, match=expected):
        gold_index(written, key, OPTIONS)


def test_a_text_that_fits_two_options_is_no_key() -> None:
    with pytest.raises(ValueError, match="options 1, 3"):
        gold_index("5 m", TEXT, ["5 m", "6 m", "5\u00a0m"])


def rows(*keys: object) -> str:
    return "question,a,b,c,key\n" + "".join(f"q{n}?,w,x,y,{key}\n" for n, key in enumerate(keys))


def test_a_wrong_key_is_named_by_file_row_and_field(prepare) -> None:
    with pytest.raises(InputError, match=r"sums\.csv row 3, field 'key': 'D' is beyond the 3 options"):
        prepare(rows("A", "D"))


def test_keys_counted_from_1_but_declared_from_0(prepare) -> None:
    with pytest.raises(InputError, match=r"no key is 0 and some are 3: .*declare `base: 1`"):
        prepare(rows(1, 2, 3), key={"type": "index", "base": 0})


@pytest.mark.parametrize(
    ("keys", "base", "warned"),
    [
        ((1, 2, 2), 0, True),
        ((2, 3, 3), 1, True),
        ((0, 1, 2), 0, False),
        ((1, 2, 3), 1, False),
        ((1, 1, 1), 0, False),
    ],
)
def test_a_first_number_that_is_never_used_is_remarked_upon(prepare, keys, base, warned) -> None:
    facts = prepare(rows(*keys), key={"type": "index", "base": base}).facts
    assert bool(facts["warnings"]) == warned


def test_the_histogram_of_keys_is_kept(prepare) -> None:
    assert prepare(rows("A", "b", "B")).facts["keys"] == {"A": 1, "B": 2}
    assert prepare(rows(1, 1, 3), key={"type": "index", "base": 1}).facts["keys"] == {"1": 2, "3": 1}
    assert prepare(rows("w", "y"), key={"type": "text"}).facts["keys"] == {"o1": 1, "o3": 1}


def test_items_without_a_key(prepare) -> None:
    prepared = prepare(rows("A"), columns={"options": ["a", "b", "c"], "key": None}, key=None)
    assert prepared.items.column("gold_option_id").to_pylist() == [None]
    assert prepared.facts["columns_not_used"] == ["key"]


@pytest.mark.parametrize(
    "changes", [{"key": None}, {"columns": {"options": ["a", "b", "c"], "key": None}, "key": {"type": "letter"}}]
)
def test_key_column_and_key_type_go_together(prepare, changes) -> None:
    with pytest.raises(ConfigError, match="give both"):
        prepare(rows("A"), **changes)
