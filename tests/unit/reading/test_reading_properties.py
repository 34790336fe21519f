"""What must hold for every reply."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_cases import LETTERS, TEXTS, read

PHRASES = """Answer:|The answer is|the answer is not|Final answer:|I choose|it is|So|or|and|but|is correct|is wrong
Wait,|Actually,|both|none of the above|because|maybe|if|first|the lens|blue light|bends|Antwort:|nicht|答案是|不是
Ответ:|1.5|,|.|?|(|)|[[|]]|\\boxed{|}|**|$|"|<answer>|</answer>|~~|-"""
PIECES = ["\n", "\u2028", *PHRASES.replace("\n", "|").split("|")]
SOUP = st.lists(st.sampled_from(PIECES) | st.integers(0, 3), max_size=10)


def spell(soup, labels) -> str:
    return " ".join(labels[piece] if isinstance(piece, int) else piece for piece in soup)


@given(SOUP, st.permutations(LETTERS), st.sampled_from(["stop", "length"]))
@settings(max_examples=50, deadline=None)
def test_renaming_the_labels_renames_the_result(soup, renamed, finish) -> None:
    plain = read(spell(soup, LETTERS), LETTERS, TEXTS, finish)
    other = read(spell(soup, renamed), renamed, TEXTS, finish)
    names = dict(zip(LETTERS, renamed, strict=True))
    assert (other.status, other.slot, other.rule) == (plain.status, plain.slot, plain.rule)
    assert other.candidates == tuple(names[label] for label in plain.candidates)


@given(SOUP, st.permutations(range(4)))
@settings(max_examples=50, deadline=None)
def test_another_order_of_the_options_moves_the_slot_only(soup, order) -> None:
    text = spell(soup, LETTERS)
    plain = read(text, LETTERS, TEXTS)
    moved = read(text, [LETTERS[i] for i in order], [TEXTS[i] for i in order])
    assert (moved.status, moved.rule, moved.candidates) == (plain.status, plain.rule, plain.candidates)
    assert moved.slot == (None if plain.slot is None else order.index(plain.slot))


@given(st.text(st.characters(), max_size=60) | SOUP.map(lambda soup: spell(soup, LETTERS)))
@settings(max_examples=50, deadline=None)
def test_any_text_is_read_and_only_ok_has_a_slot(text) -> None:
    reading = read(text)
    assert (reading.slot is not None) == (reading.status == "ok")
    assert reading.status != "blocked"
    assert set(reading.candidates) <= set(LETTERS)


@given(st.text(st.characters(blacklist_characters="<>[]|\u25c1\u25b7"), max_size=80), SOUP)
@settings(max_examples=50, deadline=None)
def test_deliberation_never_changes_the_reading(thoughts, soup) -> None:
    text = spell(soup, LETTERS)
    plain, thought = read(text), read(f"<think>{thoughts}</think>{text}")
    assert (thought.status, thought.slot, thought.candidates) == (plain.status, plain.slot, plain.candidates)


HOSTILE = [
    "(A",
    "[[A",
    "A/",
    "\\boxed{",
    "* a",
    "Answer: A lens ",
    "not ",
    "wait, ",
    "\U0001f171",
    "<b>",
    "a\u0301\u0316",
    "(",
    "answer is not A but ",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_grows_with_the_length_and_not_with_its_square(unit) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        read(text)
        return time.process_time() - start

    seconds(500)
    # 16 times the text: 16 times the time if linear, 256 times if quadratic. The less of two, for the collector of
    # cycles may come in between.
    assert min(seconds(32_000), seconds(32_000)) < 80 * max(seconds(2_000), 0.001)


def test_a_reply_of_a_megabyte_is_read() -> None:
    text = "The lens of an eye bends light towards its back wall. " * 18_600
    assert len(text) > 1_000_000
    assert read(text + "\nAnswer: C").slot == 2
