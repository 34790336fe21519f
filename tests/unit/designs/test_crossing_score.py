"""What a reply to a crossing prompt is read as."""

import math

import pytest
from crossing_cases import make_outcomes, make_replies, make_study, make_trials

from counterbalance.errors import InputError


def outcomes_of(tmp_path, kind, change=lambda rows: None, **read):
    study = make_study(tmp_path, read={"kind": kind, **read}, items=1)
    trials = make_trials(study).slice(0, 4)
    replies = make_replies(trials, [1.0, 1.0, -1.0, -1.0], kind)
    change(replies)
    return make_outcomes(study, trials, replies).to_pylist()


@pytest.mark.parametrize("kind", ["option_text", "logprob"])
def test_log_probabilities_are_kept_by_the_place_of_the_block(tmp_path, kind) -> None:
    rows = outcomes_of(tmp_path, kind)
    # e1 prints A first and leans to B by 1 nat; e2 prints B first; e3 prints B first and leans to A.
    assert [row["option_id"] for row in rows] == ["o2", "o2", "o1", "o1"]
    assert [row["slot"] for row in rows] == [1, 0, 1, 0]
    assert [row["slot_logprobs"][1] - row["slot_logprobs"][0] for row in rows] == pytest.approx([1, -1, 1, -1])
    assert [row["label_mass"] for row in rows] == pytest.approx([math.exp(-0.1)] * 4)
    assert {row["outcome"] for row in rows} == {"ok"}
    assert {(row["correct"], row["gold_slot"], row["extra"]) for row in rows} == {(None, None, False)}


def test_an_answer_that_is_not_listed_is_a_bound_and_no_measurement(tmp_path) -> None:
    def drop(rows):
        rows[0]["top_tokens"], rows[0]["top_logprobs"] = rows[0]["top_tokens"][:1], rows[0]["top_logprobs"][:1]

    row = outcomes_of(tmp_path, "logprob", drop)[0]
    assert (row["outcome"], row["slot"], row["option_id"]) == ("unlisted", None, None)
    assert row["slot_censored"] == [False, True]


def test_spellings_with_and_without_a_blank_are_one_answer(tmp_path) -> None:
    def spell(rows):
        a, b = (token.strip() for token in rows[0]["top_tokens"])
        rows[0]["top_tokens"] = [f" {a}", b, a, f"{a}s"]
        rows[0]["top_logprobs"] = [math.log(0.1), math.log(0.2), math.log(0.3), math.log(0.35)]

    row = outcomes_of(tmp_path, "logprob", spell)[0]
    assert row["slot_logprobs"] == pytest.approx([math.log(0.4), math.log(0.2)])


def test_little_mass_on_both_answers_is_unusable(tmp_path) -> None:
    def shrink(rows):
        rows[0]["top_logprobs"] = [value - 6 for value in rows[0]["top_logprobs"]]

    assert outcomes_of(tmp_path, "logprob", shrink, min_label_mass=0.01)[0]["outcome"] == "unusable"


def test_an_answer_of_several_tokens_is_excluded_by_the_models_own_tokenizer(tmp_path) -> None:
    def split(rows):
        rows[2]["option_tokens"] = [1, 2]

    rows = outcomes_of(tmp_path, "option_text", split)
    assert [row["outcome"] for row in rows] == ["ok", "ok", "several_tokens", "ok"]
    assert rows[2]["slot_logprobs"] is None


def test_written_answers_are_read_strictly(tmp_path) -> None:
    said = ["Blue.", "the answer is **brown**", "blue or brown", "I cannot tell."]

    def write(rows):
        for row, text in zip(rows, said, strict=True):
            row["text"] = text

    rows = outcomes_of(tmp_path, "generate", write)
    assert [row["option_id"] for row in rows] == ["o1", "o2", None, None]
    assert [row["outcome"] for row in rows[:3]] == ["ok", "ok", "multiple"]
    assert all(row["slot_logprobs"] is None for row in rows)


def test_a_refusal_of_the_vendor_stays_one(tmp_path) -> None:
    def refuse(rows):
        rows[0] |= {"status": "refused", "option_logprobs": None, "option_tokens": None}

    assert outcomes_of(tmp_path, "option_text", refuse)[0]["outcome"] == "refused"


def test_a_trial_without_a_reply_stops(tmp_path) -> None:
    with pytest.raises(InputError, match="1 trials without a reply"):
        outcomes_of(tmp_path, "option_text", lambda rows: rows.pop())
