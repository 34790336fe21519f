"""Outcomes written by hand, and the counts that follow from them."""

import pyarrow as pa
import pytest

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.designs.mcq.counts import STATUSES, count_strata


def outcome(item: str, index: int, gold: int | None, slot: int | None, **more: object) -> dict[str, object]:
    k = more.get("n_options", 2)
    return {
        "trial_id": f"{item}.{index}",
        "item_id": item,
        "group_id": item,
        "condition": "mcq",
        "arrangement_index": index,
        "repeat": 0,
        "extra": False,
        "n_options": k,
        "arrangement": None,
        "gold_slot": gold,
        "outcome": "ok",
        "slot": slot,
        "option_id": None,
        "correct": None if slot is None or gold is None else slot == gold,
        "tie": None,
        "slot_logprobs": None,
        "slot_censored": None,
        "label_mass": None,
        "candidates": [],
        "rule": "test",
        "parser": "test",
        "model_returned": None,
        **more,
    }


def table(*rows: dict[str, object]) -> pa.Table:
    return table_from_rows(rows, SCHEMAS["outcomes"])


def test_counts_follow_from_the_outcomes() -> None:
    (counts,) = count_strata(
        table(
            outcome("a", 0, 0, 0, option_id="o1"),
            outcome("a", 1, 1, 0, option_id="o2"),
            outcome("b", 0, 0, 0, option_id="o1"),
            outcome("b", 1, 1, None, outcome="refused"),
        )
    )
    assert counts.correct.tolist() == [[1, 0], [1, 0]]
    assert counts.scored.tolist() == [[1, 1], [1, 0]]
    assert counts.picks.tolist() == [[2, 0], [1, 0]]
    assert counts.wrong_picks.tolist() == [[1, 0], [0, 0]]
    assert (counts.n_items, counts.n_calls) == (2, 4)
    assert counts.status[:, STATUSES.index("refused")].tolist() == [[0, 0], [0, 1]]
    # Item b was answered once, so its choice cannot have changed.
    assert counts.consistent is not None
    assert counts.consistent.tolist() == [False]


def test_items_without_a_key_count_for_picks_only() -> None:
    (counts,) = count_strata(table(outcome("a", 0, None, 1), outcome("a", 1, None, None, outcome="empty")))
    assert counts.picks.tolist() == [[0, 1]]
    assert counts.scored.sum() == counts.correct.sum() == counts.status.sum() == 0
    assert counts.status_unkeyed[0, STATUSES.index("empty")] == 1
    assert counts.consistent is None


def test_items_of_one_group_are_one_unit_and_stay_consistent_each() -> None:
    (counts,) = count_strata(
        table(
            *(outcome("a", index, index, index, group_id="g", option_id="o1") for index in (0, 1)),
            *(outcome("b", index, 0, 1 - index, group_id="g", option_id=f"o{index}") for index in (0, 1)),
        )
    )
    assert counts.correct.tolist() == [[2, 1]]
    assert counts.scored.tolist() == [[3, 1]]
    assert counts.consistent is not None
    assert counts.consistent.tolist() == [True, False]


def test_each_number_of_options_is_a_stratum_and_the_largest_comes_first() -> None:
    strata = count_strata(
        table(
            outcome("a", 0, 0, 0, n_options=3),
            outcome("b", 0, 2, 2, n_options=3),
            outcome("c", 0, 0, 0, n_options=2),
        )
    )
    assert [(counts.k, counts.n_items) for counts in strata] == [(3, 2), (2, 1)]
    assert strata[0].correct.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_logprobs_keep_their_item_and_the_option_behind_each_slot() -> None:
    nats = {"slot_logprobs": [-0.1, -2.0], "slot_censored": [False, True]}
    (counts,) = count_strata(
        table(
            outcome("a", 0, 0, None, outcome="unavailable", arrangement=["o1", "o2"]),
            outcome("b", 0, 0, 0, arrangement=["o2", "o1"], label_mass=0.5, **nats),
            outcome("b", 1, 1, 0, arrangement=["o1", "o2"], label_mass=0.25, **nats),
        )
    )
    assert counts.nats is not None
    assert counts.nats.item.tolist() == [0, 0]
    assert counts.nats.unit.tolist() == [0]
    assert counts.label_mass.tolist() == [0, 0.75]
    assert counts.weighed.tolist() == [0, 2]
    assert counts.nats.logprobs.tolist() == [[-0.1, -2.0]] * 2
    assert counts.nats.censored.tolist() == [[False, True]] * 2
    first, second = counts.nats.option.tolist()
    assert first == second[::-1]


@pytest.mark.parametrize("status", STATUSES)
def test_every_outcome_is_counted_somewhere(status) -> None:
    (counts,) = count_strata(table(outcome("a", 0, 1, None, outcome=status)))
    assert counts.status.sum() == 1
    assert counts.status[0, STATUSES.index(status), 1] == 1
