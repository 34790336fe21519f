"""Naming the first difference of two tables."""

import pytest

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.verification.differences import compare

REPLIES, ESTIMATES = SCHEMAS["replies"], SCHEMAS["estimates"]


def reply(trial, **columns):
    row = dict.fromkeys(REPLIES.arrow.names)
    row |= {"trial_id": trial, "call_sha256": "c", "status": "ok", "attempts": 1, "call_order": 0, "started_at": "t"}
    return row | columns


def found(published, derived, schema=REPLIES):
    return compare(table_from_rows(published, schema), table_from_rows(derived, schema), schema)


@pytest.mark.parametrize(
    ("published", "derived", "text"),
    [
        ([reply("a")], [reply("a")], None),
        ([], [], None),
        ([reply("a", call_order=1, started_at="u", latency_ms=2.5)], [reply("a")], None),
        (
            [reply("a"), reply("b", text="x")],
            [reply("a"), reply("b", text="y")],
            "row 1 (trial_id 'b'), column 'text': 'x' is there, derived again it is 'y'",
        ),
        (
            [reply("a", text="x")],
            [reply("a")],
            "row 0 (trial_id 'a'), column 'text': 'x' is there, derived again it is None",
        ),
        (
            [reply("a"), reply("c")],
            [reply("a"), reply("b"), reply("c")],
            "row 1: trial_id 'c' is there, derived again it is trial_id 'b'",
        ),
        ([reply("a"), reply("b")], [reply("a")], "row 1: trial_id 'b' is surplus"),
        ([reply("a")], [reply("a"), reply("b")], "row 1: trial_id 'b' is missing"),
        ([], [reply("b")], "row 0: trial_id 'b' is missing"),
        (
            [reply("a", top_logprobs=[-1.0])],
            [reply("a", top_logprobs=[-1.0, -2.0])],
            "row 0 (trial_id 'a'), column 'top_logprobs': [-1.0] is there, derived again it is [-1.0, -2.0]",
        ),
        (
            [reply("a", option_tokens=[1, 2])],
            [reply("a", option_tokens=[1, 3])],
            "row 0 (trial_id 'a'), column 'option_tokens': [1, 2] is there, derived again it is [1, 3]",
        ),
    ],
)
def test_the_first_difference_is_named(published, derived, text) -> None:
    assert found(published, derived).text == text


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (0.5, 0.5 * (1 + 5e-10), True),
        (0.5, 0.5 * (1 + 2e-9), False),
        (-1e-30, -1.0000000001e-30, True),
        (0.0, 1e-300, False),
        (1e-12, -1e-12, False),
        (None, 0.0, False),
    ],
)
def test_only_the_last_digits_of_reals_may_differ(ours, theirs, same) -> None:
    for column in ("top_logprobs", "option_logprobs"):
        difference = found([reply("a", **{column: [0.0, ours]})], [reply("a", **{column: [0.0, theirs]})])
        assert (difference.text is None) == same
        assert (difference.rounding > 0) == same
