"""Reading a vendor's own choice probabilities: a whole distribution, rounded, with zeros left out."""

import math

import pytest
from planted import make_items, make_outcomes, make_replies, make_study, make_trials

from counterbalance.config import Analysis
from counterbalance.designs.mcq.estimate import estimate


@pytest.fixture
def study(tmp_path):
    return make_study(tmp_path, respondent={"ability_mean": 0.5, "call_noise": 0.5}, read={"kind": "decide"})


def scored(study, shares):
    """Score one trial whose reply holds these probabilities by label."""
    trials = make_trials(study, make_items(1)).slice(0, 1)
    (reply,) = make_replies(study, trials)
    listed = {label: share for label, share in shares.items() if share > 0}
    reply |= {"top_tokens": list(listed), "top_logprobs": [math.log(share) for share in listed.values()]}
    (row,) = make_outcomes(study, trials, [reply]).to_pylist()
    return row


def test_a_decision_goes_the_whole_way_from_respondent_to_estimates(study) -> None:
    trials = make_trials(study, make_items(20))
    outcomes = make_outcomes(study, trials, make_replies(study, trials))
    assert set(outcomes.column("outcome").to_pylist()) == {"ok"}
    assert set(outcomes.column("rule").to_pylist()) == {"choice_probability"}
    assert outcomes.column("label_mass").to_pylist() == pytest.approx([1.0] * 120)
    for row in outcomes.to_pylist():
        assert math.fsum(math.exp(value) for value in row["slot_logprobs"]) == pytest.approx(1)
        assert row["slot"] == max(range(3), key=row["slot_logprobs"].__getitem__)
        assert row["slot_censored"] == [False] * 3
    found = estimate(Analysis(resamples=199, run_resamples=99), outcomes)
    assert found["slot_bonus.slot_1"].status == "ok"
    assert 0 < found["accuracy"].estimate < 1


def test_the_planted_bonus_is_recovered_in_nats(tmp_path) -> None:
    respondent = {"slot_bonus": [0.9, 0.0], "ability_mean": 0.5}
    study = make_study(tmp_path, respondent=respondent, read={"kind": "decide"})
    trials = make_trials(study, make_items(12))
    outcomes = make_outcomes(study, trials, make_replies(study, trials))
    found = estimate(Analysis(resamples=199, run_resamples=99), outcomes)
    # Relative to the mean of the slots, which is .3.
    assert [found[f"slot_bonus.slot_{slot}"].estimate for slot in (1, 2, 3)] == pytest.approx([0.6, -0.3, -0.3])


def test_a_label_that_was_given_0_is_below_all_others_and_cannot_win(study) -> None:
    row = scored(study, {"A": 1.0, "B": 0.0, "C": 0.0})
    assert (row["outcome"], row["slot"], row["tie"]) == ("ok", 0, False)
    assert row["slot_logprobs"] == [0.0, math.log(0.01), math.log(0.01)]
    assert row["slot_censored"] == [False, True, True]
    row = scored(study, {"A": 0.997, "B": 0.003, "C": 0.0})
    assert row["slot_logprobs"][2] == row["slot_logprobs"][1] == pytest.approx(math.log(0.003))


def test_rounded_probabilities_are_brought_to_one(study) -> None:
    row = scored(study, {"A": 0.34, "B": 0.33, "C": 0.34})
    assert (row["outcome"], row["tie"], row["slot"]) == ("ambiguous", True, None)
    row = scored(study, {"A": 0.67, "B": 0.34})
    assert row["slot"] == 0
    assert math.exp(row["slot_logprobs"][0]) == pytest.approx(0.67 / 1.01)


@pytest.mark.parametrize("shares", [{"A": 0.5, "B": 0.2}, {"A": 0.9, "B": 0.9}])
def test_numbers_that_are_no_distribution_are_unusable(study, shares) -> None:
    row = scored(study, shares)
    assert (row["outcome"], row["slot"], row["slot_logprobs"]) == ("unusable", None, None)


def test_probability_on_other_words_than_the_labels_is_unusable(study) -> None:
    assert scored(study, {"A": 0.4, "none of them": 0.6})["outcome"] == "unusable"


def test_a_reply_without_probabilities_is_unavailable(study) -> None:
    assert scored(study, {})["outcome"] == "unavailable"


def test_a_refusal_stays_one(tmp_path) -> None:
    study = make_study(tmp_path, respondent={"refusal_rate": 1.0}, read={"kind": "decide"})
    trials = make_trials(study, make_items(2))
    outcomes = make_outcomes(study, trials, make_replies(study, trials))
    assert set(outcomes.column("outcome").to_pylist()) == {"refused"}
