"""Log-probabilities of labels: which tokens count, what a missing label means, and what is refused."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.errors import InputError
from counterbalance.reading import read_label_logprobs

ABCD = ("A", "B", "C", "D")


def test_a_capped_list_bounds_the_labels_that_it_leaves_out() -> None:
    top = [("A", -0.6), (" B", -1.8), ("B", -2.1), ("**", -3.0), ("\n", -3.4)]
    reading = read_label_logprobs(top, ABCD, min_mass=0.5)
    assert reading.logprobs[0] == -0.6
    assert reading.logprobs[1] == pytest.approx(math.log(math.exp(-1.8) + math.exp(-2.1)), abs=1e-12)
    assert reading.logprobs[2:] == (-3.4, -3.4)
    assert reading.censored == (False, False, True, True)
    assert reading.bound == -3.4
    assert reading.label_mass == pytest.approx(math.exp(-0.6) + math.exp(-1.8) + math.exp(-2.1), abs=1e-12)
    assert (reading.status, reading.slot, reading.tie, reading.may_be_overturned) == ("ok", 0, False, False)


@pytest.mark.parametrize("token", ["A", " A", "\u2581A", "\u0120A", "\u010aA", "  A", "A\n"])
def test_space_marks_belong_to_the_label(token) -> None:
    assert read_label_logprobs([(token, -0.1)], ABCD, min_mass=0.1).censored[0] is False


@pytest.mark.parametrize("token", ["a", "A.", "(A", "**A", "AA", "\uff21", "", "\u2581"])
def test_other_forms_are_other_tokens(token) -> None:
    assert read_label_logprobs([(token, -0.1)], ABCD, min_mass=0.1).censored == (True,) * 4


def test_one_spelling_listed_twice_is_two_tokens() -> None:
    reading = read_label_logprobs([("A", math.log(0.2)), ("A", math.log(0.3)), ("B", math.log(0.4))], ABCD, min_mass=0)
    assert reading.logprobs[0] == pytest.approx(math.log(0.5), abs=1e-12)
    assert reading.slot == 0


@pytest.mark.parametrize("top", [None, []])
def test_without_a_list_nothing_is_read(top) -> None:
    reading = read_label_logprobs(top, ABCD, min_mass=0.1)
    assert (reading.status, reading.slot, reading.label_mass) == ("unavailable", None, None)
    assert reading.logprobs == (None,) * 4


def test_little_mass_is_unusable_and_still_shown() -> None:
    reading = read_label_logprobs([("The", -0.1), ("A", -4.0)], ABCD, min_mass=0.1)
    assert (reading.status, reading.slot) == ("unusable", None)
    assert reading.label_mass == pytest.approx(math.exp(-4.0), abs=1e-12)
    nothing = read_label_logprobs([("The", -0.1)], ABCD, min_mass=0.0)
    assert (nothing.status, nothing.label_mass, nothing.bound) == ("unusable", 0.0, -0.1)


def test_an_exact_tie_chooses_nothing() -> None:
    tied = read_label_logprobs([("A", -1.0), ("B", -1.0)], ABCD, min_mass=0.1)
    assert (tied.tie, tied.slot) == (True, None)
    near = read_label_logprobs([("A", -1.0), ("B", -1.0 + 1e-9)], ABCD, min_mass=0.1)
    assert (near.tie, near.slot) == (False, 1)


def test_a_bound_near_the_best_label_is_flagged() -> None:
    # two unlisted spellings of 0.1 each could make 0.2 > 0.15, but not more than 0.25
    low = math.log(0.1)
    assert read_label_logprobs([("A", math.log(0.15)), ("x", low)], ("A", "B"), min_mass=0.1).may_be_overturned
    assert not read_label_logprobs([("A", math.log(0.25)), ("x", low)], ("A", "B"), min_mass=0.1).may_be_overturned
    both = [("A", math.log(0.15)), ("B", low)]
    assert not read_label_logprobs(both, ("A", "B"), min_mass=0.1).may_be_overturned


def test_a_known_bound_replaces_the_smallest_value() -> None:
    reading = read_label_logprobs([("A", -0.5)], ("A", "B"), min_mass=0.1, censor_bound=-7.0)
    assert (reading.logprobs, reading.bound) == ((-0.5, -7.0), -7.0)


def test_placeholders_are_no_measurements() -> None:
    top = [("A", -0.5), ("x", -2.0), ("B", -math.inf), ("C", -9999.0)]
    reading = read_label_logprobs(top, ABCD, min_mass=0.1)
    assert reading.logprobs == (-0.5, -2.0, -2.0, -2.0)
    assert reading.censored == (False, True, True, True)
    assert read_label_logprobs([("A", -9999.0)], ABCD, min_mass=0.1).status == "unavailable"


def test_a_label_that_begins_another_is_noted() -> None:
    reading = read_label_logprobs([("1", -0.5), ("2", -1.5)], ("1", "2", "10"), min_mass=0.1)
    assert any("'1'" in note and "'10'" in note for note in reading.notes)
    assert read_label_logprobs([("A", -0.5)], ABCD, min_mass=0.1).notes == ()


@pytest.mark.parametrize(
    ("top", "message"),
    [
        ([("A", -1.0), ("B", math.nan)], "entry 2.*'B'"),
        ([("A", 0.25)], "entry 1.*'A'"),
        ([("A", -0.1), ("B", -0.2)], "add up to"),
    ],
)
def test_what_is_no_log_probability_is_named(top, message) -> None:
    with pytest.raises(InputError, match=message):
        read_label_logprobs(top, ABCD, min_mass=0.1)


@pytest.mark.parametrize(
    ("labels", "min_mass", "bound", "message"),
    [
        (("A", "A"), 0.1, None, "twice"),
        (("A", ""), 0.1, None, "empty"),
        (ABCD, 1.5, None, "min_mass"),
        (ABCD, math.nan, None, "min_mass"),
        (ABCD, 0.1, 0.5, "censor_bound"),
        (ABCD, 0.1, -math.inf, "censor_bound"),
    ],
)
def test_arguments_are_checked(labels, min_mass, bound, message) -> None:
    with pytest.raises(InputError, match=message):
        read_label_logprobs([("A", -0.5)], labels, min_mass=min_mass, censor_bound=bound)


@given(
    st.lists(
        st.tuples(st.sampled_from(["A", " A", "B", "\u2581C", "x", "D."]), st.floats(-40.0, -3.0)),
        min_size=1,
        max_size=20,
    ),
    st.permutations(range(4)),
)
@settings(max_examples=50, deadline=None)
def test_the_order_of_labels_and_of_the_list_does_not_matter(top, order) -> None:
    plain = read_label_logprobs(top, ABCD, min_mass=0.0)
    moved = read_label_logprobs(top[::-1], [ABCD[i] for i in order], min_mass=0.0)
    assert moved.logprobs == pytest.approx([plain.logprobs[i] for i in order], abs=1e-12)
    assert moved.censored == tuple(plain.censored[i] for i in order)
    assert moved.slot == (None if plain.slot is None else order.index(plain.slot))
    assert all(value is not None and math.isfinite(value) and value < 0 for value in plain.logprobs)
