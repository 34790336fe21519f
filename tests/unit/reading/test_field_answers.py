"""Replies as models write them, and what a careful person would read in each."""

import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.errors import InputError
from counterbalance.reading import Reading, read_answer, read_label_logprobs

OPTIONS = ("red", "green", "blue", "pink")


def read(text: str | None, labels: str = "ABCD", finish: str | None = "stop") -> Reading:
    options = OPTIONS if len(labels) == 4 else tuple(f"choice {index}" for index in range(len(labels)))
    return read_answer(text, labels=list(labels), option_texts=options, finish_reason=finish)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        ("b", "B"),
        ("B.", "B"),
        ("(C)", "C"),
        ("Ｂ", "B"),
        ("green", "B"),
        ("Answer: A? Wait, recheck. Answer: C", "C"),
        ("The answer is C because a lens bends light.", "C"),
        ("B. Note that A is a trap.", "B"),
        ("Antwort:\n\nAntwort: C", "C"),
        ("Answer: \u0410", "A"),
        ("Ответ: В", "B"),
        ("Réponse : C", "C"),
        ("答案是B", "B"),
        ("回答：C", "C"),
        ("**ANSWER: B**", "B"),
        ("ANSWER: $B$", "B"),
        ("ANSWER: (B)", "B"),
        (r"\boxed{B}", "B"),
        ('{"answer": "B"}', "B"),
        ("<answer>D</answer>", "D"),
        ("maybe A, no\n</think>\nB", "B"),
        ("[THINK]A?[/THINK]B", "B"),
        ("[[A]] at first. Final: [[B]]", "B"),
        ("I think it is B, not C", "B"),
        ("Option A is wrong, so I choose B.", "B"),
        ("The correct option is (D).", "D"),
        ("I cannot be sure, but the answer is B", "B"),
    ],
)
def test_an_answer_that_is_there_is_read(text, letter) -> None:
    reading = read(text)
    assert (reading.status, reading.slot) == ("ok", "ABCD".index(letter)), reading


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (None, "empty"),
        ("", "empty"),
        (" \u200b\n", "empty"),
        ("I can't help with that.", "refused"),
        ("<think>A or B", "incomplete"),
        ("A or B", "multiple"),
        ("Answer: A and C", "multiple"),
        ("The answer is either A or D", "multiple"),
        ("Answer: A\nAnswer: B", "ambiguous"),
        ("B. red", "ambiguous"),
        ("A lens bends light", "unparsed"),
    ],
)
def test_no_answer_is_guessed(text, status) -> None:
    reading = read(text)
    assert (reading.status, reading.slot) == (status, None), reading


@pytest.mark.parametrize("text", ["The answer is not A.", "Both are fine", "A. red\nB. green\nC. blue\nD. pink"])
def test_what_names_no_single_option_has_no_slot(text) -> None:
    assert read(text).slot is None


@pytest.mark.parametrize(
    ("text", "slot"),
    [("Answer is C since I computed it.", 2), ("I", 8), ("I can answer that", None), ("a good question", None)],
)
def test_pronoun_and_article_are_no_labels(text, slot) -> None:
    assert read(text, "ABCDEFGHIJ").slot == slot


def test_all_candidates_are_kept() -> None:
    assert read("Answer: A? Wait, recheck. Answer: C").candidates == ("A", "C")


@pytest.mark.parametrize(("text", "status"), [("", "truncated"), ("Let us see whether", "truncated"), ("B", "ok")])
def test_a_cut_reply_is_truncated_unless_its_answer_is_whole(text, status) -> None:
    assert read(text, finish="length").status == status


FORMS = ("Answer: {}", "The answer is {}.", "**{}**", "{}", "Final answer: ({})", "I choose {} because it fits.")


@given(st.sampled_from(FORMS), st.permutations(string.ascii_uppercase[:4]), st.integers(0, 3))
@settings(max_examples=50, deadline=None)
def test_no_label_is_preferred(form, labels, slot) -> None:
    assert read(form.format(labels[slot]), "".join(labels)).slot == slot


@given(st.text(max_size=200))
@settings(max_examples=50, deadline=None)
def test_any_text_is_read_without_a_crash_and_alike_twice(text) -> None:
    reading = read(text)
    assert reading == read(text)
    assert (reading.slot is None) == (reading.status != "ok")


@given(st.text(alphabet=string.ascii_letters + " .,?:\n", max_size=80))
@settings(max_examples=50, deadline=None)
def test_deliberation_never_changes_the_answer(thoughts) -> None:
    assert read(f"<think>{thoughts}</think>\nAnswer: D").slot == 3


def test_a_very_long_reply_takes_linear_time() -> None:
    def seconds(size: int) -> float:
        start = time.process_time()
        read("so A or perhaps B (" * size + "\nAnswer: C")
        return time.process_time() - start

    seconds(100)
    assert min(seconds(8_000), seconds(8_000)) < 40 * max(seconds(800), 0.005)


LISTED = [("A", -1.0), (" A", -2.0), ("B", -1.5), ("the", -3.0)]


def test_variants_of_a_label_are_added_and_a_missing_one_is_bounded() -> None:
    reading = read_label_logprobs(LISTED, ["A", "B", "C"], min_mass=0.05)
    # log(e^-1 + e^-2) = log 0.503215 = -0.686738
    assert reading.logprobs[0] == pytest.approx(-0.686738, abs=1e-6)
    assert reading.logprobs[1] == pytest.approx(-1.5)
    assert reading.censored == (False, False, True)
    assert reading.label_mass == pytest.approx(0.503215 + 0.223130, abs=1e-5)
    # An unlisted label's spellings may each have what the smallest listed token has.
    assert reading.logprobs[2] is not None
    assert -3.0 <= reading.logprobs[2] < -1.5
    assert (reading.status, reading.slot) == ("ok", 0)


def test_little_mass_is_unusable_and_no_list_is_unavailable() -> None:
    assert read_label_logprobs([("A", -5.0), ("the", -0.1)], ["A", "B"], min_mass=0.05).status == "unusable"
    for nothing in (None, []):
        reading = read_label_logprobs(nothing, ["A", "B"], min_mass=0.05)
        assert (reading.status, reading.slot, reading.label_mass) == ("unavailable", None, None)


def test_a_tie_has_no_slot() -> None:
    reading = read_label_logprobs([("A", -1.0), ("B", -1.0), ("the", -4.0)], ["A", "B"], min_mass=0.05)
    assert (reading.tie, reading.slot) == (True, None)


@pytest.mark.parametrize("value", [float("nan"), 0.5])
def test_what_is_no_log_probability_is_refused_by_its_token(value) -> None:
    with pytest.raises(InputError, match="A"):
        read_label_logprobs([("A", value)], ["A", "B"], min_mass=0.05)
