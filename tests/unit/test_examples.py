"""Solved examples: strictly read, and arranged so that their answers favour no label."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.errors import ConfigError
from counterbalance.examples import SolvedItem, arrange_examples, read_examples

ONE = "- {question: 'q1?', options: [x, y], answer: 1}\n"


def solved(count: int, k: int) -> list[SolvedItem]:
    return [SolvedItem(f"q{n}?", tuple(f"{n}-{option}" for option in range(k)), n % k) for n in range(count)]


def test_examples_are_read(tmp_path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(ONE + "- question: q2?\n  options: ['4', '5', '6']\n  answer: 0\n", encoding="utf-8")
    assert read_examples(path, "e.yaml") == [
        SolvedItem("q1?", ("x", "y"), 1),
        SolvedItem("q2?", ("4", "5", "6"), 0),
    ]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("- {question: 'q?', options: [x, y]}", r"e\.yaml line 2: expected the keys"),
        ("- {question: 'q?', options: [x, y], answer: 0, note: hm}", r"line 2: expected the keys"),
        ("- q?", r"line 2: expected the keys"),
        ("- {question: 7, options: [x, y], answer: 0}", r"line 2: question is not text"),
        ("- {question: 'q?', options: [x], answer: 0}", r"line 2: options has to be a list of at least two"),
        ("- {question: 'q?', options: x, answer: 0}", r"line 2: options has to be a list"),
        ("- {question: 'q?', options: [4, x], answer: 0}", r"line 2: option 4 is not one line of text"),
        ('- {question: "q?", options: ["x\\ny", z], answer: 0}', r"line 2: option 'x\\ny' is not one line"),
        ('- {question: "q?", options: ["5 m", "5\\u00a0m"], answer: 0}', r"line 2: two options are the same"),
        ("- {question: 'q?', options: [x, y], answer: 2}", r"line 2: answer 2 is not .*expected 0 to 1, from 0"),
        ("- {question: 'q?', options: [x, y], answer: -1}", r"line 2: answer -1"),
        ("- {question: 'q?', options: [x, y], answer: A}", r"line 2: answer 'A'"),
        ("- {question: 'q?', options: [x, y], answer: true}", r"line 2: answer True"),
    ],
)
def test_a_wrong_example_is_named_by_its_line(tmp_path, entry, expected) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(ONE + entry + "\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=expected):
        read_examples(path, "e.yaml")


@pytest.mark.parametrize("text", ["question: q?\n", "[]\n"])
def test_a_file_that_is_no_list_is_refused(tmp_path, text) -> None:
    path = tmp_path / "e.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"e\.yaml: expected a list of examples"):
        read_examples(path, "e.yaml")


@settings(max_examples=50, deadline=None)
@given(count=st.integers(1, 12), k=st.integers(2, 5), seed=st.integers(0, 2**53 - 1))
def test_answers_are_balanced_over_the_labels_and_stay_right(count, k, seed) -> None:
    items = solved(count, k)
    arranged = arrange_examples(items, None, seed, "e.yaml")
    used = Counter(example.answer_label for example in arranged)
    assert max(used.values()) - min(used[label] for label in "ABCDE"[:k]) <= 1
    for item, example in zip(items, arranged, strict=True):
        assert example.question == item.question
        assert sorted(option.text for option in example.options) == sorted(item.options)
        assert [option.label for option in example.options] == list("ABCDE"[:k])
        shown = {option.label: option.text for option in example.options}
        assert shown[example.answer_label] == example.answer_text == item.options[item.answer]
    assert arranged == arrange_examples(items, None, seed, "e.yaml")


def test_the_seed_decides_which_slot_comes_first() -> None:
    firsts = Counter(arrange_examples(solved(1, 4), None, seed, "e")[0].answer_label for seed in range(200))
    assert set(firsts) == set("ABCD")


def test_examples_take_the_experiments_labels() -> None:
    arranged = arrange_examples(solved(2, 2), ["1", "2"], 1, "e.yaml")
    assert {example.answer_label for example in arranged} == {"1", "2"}
    with pytest.raises(ConfigError, match=r"e\.yaml, example 1: 3 options but only 2 labels"):
        arrange_examples(solved(2, 3), ["1", "2"], 1, "e.yaml")


@pytest.mark.parametrize("moved", range(4))
def test_moved_answers_stay_right_and_go_round(moved) -> None:
    items = solved(5, 4)
    plain, shifted = arrange_examples(items, None, 3, "e"), arrange_examples(items, None, 3, "e", moved=moved)
    for item, before, after in zip(items, plain, shifted, strict=True):
        assert (ord(after.answer_label) - ord(before.answer_label)) % 4 == moved
        assert {option.label: option.text for option in after.options}[after.answer_label] == item.options[item.answer]
        assert sorted(option.text for option in after.options) == sorted(item.options)
