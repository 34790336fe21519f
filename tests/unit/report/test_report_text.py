import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.report.numbers import Number, show, show_p, writer_of
from counterbalance.report.text import (
    count,
    listing,
    nats,
    p_equals,
    p_value,
    percent,
    plural,
    proportion,
    shorten,
    visible,
)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.2144, ".214"),
        (0.0, ".000"),
        (1.0, "1.000"),
        (-0.0523, "−.052"),
        (-0.00001, ".000"),
        (0.9996, "1.000"),
        (12.5, "12.500"),
    ],
)
def test_proportions_have_three_digits_and_no_leading_zero(value: float, written: str) -> None:
    assert proportion(value) == written


@pytest.mark.parametrize(
    ("p", "written"),
    [(0.0001, "<.001"), (0.001, ".001"), (0.0494, ".049"), (0.5, ".500"), (0.9999, ">.999"), (1.0, ">.999")],
)
def test_a_p_value_is_never_written_as_zero_or_one(p: float, written: str) -> None:
    assert p_value(p) == written


def test_p_in_running_text_says_how_it_compares() -> None:
    assert [p_equals(p).replace("\u00a0", " ") for p in (0.0002, 0.04, 1.0)] == ["p < .001", "p = .040", "p > .999"]


@pytest.mark.parametrize(
    ("share", "written"),
    [(0.0, "0%"), (0.001, "<1%"), (0.333, "33%"), (0.999, ">99%"), (1.0, "100%"), (0.995, ">99%"), (0.994, "99%")],
)
def test_only_none_and_all_are_written_as_none_and_all(share: float, written: str) -> None:
    assert percent(share) == written


@given(st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_a_share_that_is_not_none_or_all_never_reads_so(share: float) -> None:
    assert (percent(share) == "0%") == (share == 0)
    assert (percent(share) == "100%") == (share == 1)


def test_other_numbers() -> None:
    assert [nats(value) for value in (0.693, -1.204, -0.001)] == ["+0.69", "−1.20", "0.00"]
    assert (count(24000), plural(1, "cell"), plural(2, "reply", "replies")) == ("24,000", "1 cell", "2 replies")
    assert (listing([]), listing(["a"]), listing(["a", "b", "c"])) == ("", "a", "a, b and c")


@pytest.mark.parametrize(
    ("character", "spelled"),
    [
        ("\u202e", "⟨U+202E⟩"),  # right-to-left override
        ("\u2066", "⟨U+2066⟩"),  # isolate
        ("\u200f", "⟨U+200F⟩"),  # right-to-left mark
        ("\x07", "⟨U+0007⟩"),
        ("\x1b", "⟨U+001B⟩"),
        ("\r", "⟨U+000D⟩"),
        ("\u2028", "⟨U+2028⟩"),
        ("\u200b", "⟨U+200B⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),  # tag letter
    ],
)
def test_characters_that_hide_or_reorder_are_spelled_out(character: str, spelled: str) -> None:
    assert visible(f"a{character}b") == f"a{spelled}b"


@given(st.text())
@settings(max_examples=50, deadline=None)
def test_visible_text_hides_nothing_and_is_stable(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    hidden = {c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}}
    assert hidden <= set("\n\t\u200c\u200d")


def test_ordinary_scripts_are_left_alone() -> None:
    for text in ("Malmö", "日本語", "العربية", "क्षि", "می\u200cخواهم", "line\nline"):
        assert visible(text) == text


def test_shortened_text_is_one_line_and_marks_the_cut() -> None:
    assert shorten("a\n b", 10) == "a b"
    assert shorten("abcdefgh", 4) == "abc…"


def number(**fields: object) -> Number:
    row: dict[str, object] = dict.fromkeys(Number.__dataclass_fields__)
    row |= {"quantity": "V.corrected", "method": "m", "n_items": 5, "n_calls": 9, "status": "ok"}
    return Number.from_row(row | fields)


def test_a_number_is_shown_with_its_interval() -> None:
    shown = show(number(estimate=0.2144, low=0.15, high=0.281))
    assert (shown.text, shown.interval.replace("\u00a0", " "), shown.note) == (".214", "[.150, .281]", "")


@pytest.mark.parametrize("status", ["degenerate", "not_measurable", "undefined"])
def test_a_missing_number_says_why(status: str) -> None:
    shown = show(number(status=status, reason="all answers are equal"))
    assert (shown.text, shown.note) == ("–", "all answers are equal")
    assert show_p(number(status=status, reason="all answers are equal"), adjusted=True).note == "all answers are equal"


def test_nothing_is_ever_blank() -> None:
    for shown in (show(None), show(number()), show_p(None, adjusted=False), show_p(number(), adjusted=True)):
        assert shown.text == "–"
        assert shown.note


def test_a_number_beside_a_warning_keeps_both() -> None:
    shown = show(number(estimate=0.2, status="not_measurable", reason="too few items"))
    assert (shown.text, shown.note) == (".200", "too few items")


def test_each_quantity_is_written_in_its_unit() -> None:
    written = {
        "slot_bonus.slot_1": "+0.52",
        "label_logprob.slot_2": "+0.52",
        "chi2.published": "0.52",
        "shape.linear": "+.520",
        "unstable_items": "1",
        "accuracy@k=3": ".520",
        "slot_bonus.slot_1@k=3": "+0.52",
        "relabelling.accuracy": "0.52",
    }
    assert {name: writer_of(name)(0.52) for name in written} == written
