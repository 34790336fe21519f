"""The language of contrasts: what it reads, what a tree means, and where it points when it cannot read."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.contrasts.grammar import (
    Absolute,
    Effect,
    ExpressionError,
    Mean,
    Negative,
    Number,
    Operation,
    Reference,
    parse_expression,
    to_text,
    walk,
)
from counterbalance.errors import ConfigError


def test_a_difference_of_two_conditions():
    tree = parse_expression("T1c.serial - T1.serial")
    assert tree == Operation("-", Effect("T1c", "serial", 1), Effect("T1", "serial", 14), 12)


def test_products_bind_before_sums_and_sums_go_from_left_to_right():
    tree = parse_expression("A - B - 2 * C")
    assert to_text(tree) == "(A - B) - (2 * C)"
    assert to_text(parse_expression("A - (B - C)")) == "A - (B - C)"
    assert to_text(parse_expression("-A + B / 2")) == "(-A) + (B / 2)"


def test_functions_signs_and_quoted_names():
    text = 'mean(abs(T1.role), -"framed, 2 cues".role, + A1)'
    assert parse_expression(text) == Mean(
        (
            Absolute(Effect("T1", "role", text.index("T1") + 1)),
            Negative(Effect("framed, 2 cues", "role", text.index('"') + 1)),
            Reference("A1", text.index("A1") + 1),
        )
    )


def test_a_condition_may_be_called_like_a_function():
    assert parse_expression("mean.abs - abs.mean") == Operation(
        "-", Effect("mean", "abs", 1), Effect("abs", "mean", 12), 10
    )


def test_numbers_are_worked_out_while_reading():
    assert parse_expression("(1 + 2 * 3 - 1) / 4 * A") == Operation("*", Number(1.5), Reference("A", 23), 21)
    assert parse_expression("-2e-1 * A").left == Number(-0.2)


def test_a_ratio_is_the_whole_expression():
    assert parse_expression("-T1.role / T1.serial").is_ratio
    assert not parse_expression("T1.role / 2").is_ratio
    for text in ("1 + T1.role / T1.serial", "abs(T1.role / T1.serial)", "-(A / B)", "mean(A / B, C)", "A / B / 2"):
        with pytest.raises(ExpressionError, match="only be the whole expression"):
            parse_expression(text)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "found the end of the expression; expected a condition.effect"),
        ("   ", 1, "the end"),
        ("T1.serial -", 12, "found the end"),
        ("T1.serial T2.serial", 11, "found 'T2'; expected one of"),
        ("T1.serial − T2.serial", 11, "found '−'"),
        ("T1. - T2", 5, "the effect after 'T1' and the point, as in T1.serial"),
        ("T1.serial - (T2.serial", 23, "expected ')'"),
        ("T1.serial)", 10, "found ')'"),
        ("mean()", 6, "found ')'"),
        ("mean(A1)", 1, "mean() of one arm"),
        ("mean(A1, 2)", 1, "mean() of a number"),
        ("abs(A1, A2)", 1, "abs() of 2 parts"),
        ("abs(1)", 1, "abs() of a number"),
        ("median(A1, A2)", 1, "no function 'median'"),
        ("1 + 2", 1, "only a number"),
        ("A1 / 0", 4, "division by 0"),
        ("A1 / (2 - 2)", 4, "division by 0"),
        ("A1 * A2", 4, "effects times effects"),
        ("1 / A1", 3, "a number divided by effects"),
        ("1e999 * A1", 1, "too large"),
        ("1e300 * 1e300 * A1", 7, "too large"),
        ("A1 @ A2", 4, "found '@'"),
        ('"T1.serial', 1, "found '\"'"),
        ("A1 ** 2", 5, "found '*'"),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text, column, message):
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert caught.value.column == column
    assert message in str(caught.value)
    assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("text", ["(" * 300 + "A" + ")" * 300, "-" * 300 + "A", "abs(" * 150 + "A" + ")" * 150])
def test_deep_nesting_is_refused_and_no_crash(text):
    with pytest.raises(ExpressionError, match="nested"):
        parse_expression(text)


def test_long_sums_are_read_up_to_a_limit():
    tree = parse_expression("+".join(["A"] * 500))
    assert sum(isinstance(node, Reference) for node in walk(tree)) == 500
    with pytest.raises(ExpressionError, match="at most 1000"):
        parse_expression("+".join(["A"] * 600))


_leaf = st.sampled_from(["T1.serial", "T2.role", "A1", "B_2", '"x y"."z-1"'])
_trees = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.integers(1, 9), inner).map(lambda t: f"{t[0]} * ({t[1]})"),
        inner.map(lambda text: f"abs({text})"),
        inner.map(lambda text: f"-({text})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"mean({', '.join(parts)})"),
    ),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(_trees)
def test_the_text_of_a_tree_reads_as_the_same_tree(text):
    tree = parse_expression(text)
    again = parse_expression(to_text(tree))
    assert to_text(again) == to_text(tree)
    assert [type(node) for node in walk(again)] == [type(node) for node in walk(tree)]
