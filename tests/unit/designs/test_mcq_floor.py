"""The repeat floor through the design's doors: drawn prompts, balanced estimates, planted disagreement."""

from collections import Counter

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import make_items, make_outcomes, make_replies, make_study, make_trials, the_cell
from scipy.stats import binomtest

from counterbalance.config import Analysis
from counterbalance.designs.mcq.estimate import estimate
from counterbalance.designs.mcq.expand import asked_again
from counterbalance.designs.mcq.quantities import describe

QUICK = Analysis(resamples=199, run_resamples=99)
NAMES = ("disagreement.same_order", "disagreement.other_order", "disagreement.excess")
NOISY = {"ability_mean": 0.3, "call_noise": 1.0, "slot_bonus": [1.5, 0.0]}


def outcomes_of(study, items):
    trials = make_trials(study, items)
    return make_outcomes(study, trials, make_replies(study, trials))


@given(st.floats(0.01, 0.99), st.integers(0, 2**53 - 1))
@settings(max_examples=20, deadline=None)
def test_the_drawn_share_is_the_share_asked_for(share, seed) -> None:
    drawn = sum(asked_again(share, seed, f"i{item}", index) for item in range(100) for index in range(10))
    assert binomtest(drawn, 1000, share).pvalue > 1e-9


def test_a_larger_share_keeps_what_a_smaller_one_drew() -> None:
    names = [(f"i{item}", index) for item in range(50) for index in range(6)]
    small = {name for name in names if asked_again(0.2, 7, *name)}
    large = {name for name in names if asked_again(0.4, 7, *name)}
    assert small < large
    assert all(asked_again(1.0, 7, *name) for name in names)


@pytest.mark.parametrize("repeats", [1, 2])
def test_drawn_prompts_are_asked_once_more_in_the_same_words(tmp_path, repeats) -> None:
    study = make_study(tmp_path, respondent={}, repeats=repeats, repeat_share=0.3)
    rows = make_trials(study, make_items(20)).to_pylist()
    by_prompt = Counter((row["item_id"], row["arrangement_index"]) for row in rows)
    assert set(by_prompt.values()) == {repeats, repeats + 1}
    extra = [row for row in rows if row["repeat"] == repeats]
    assert {(row["item_id"], row["arrangement_index"]) for row in extra} == {
        name for name in by_prompt if asked_again(0.3, 7, *name)
    }
    first = {row["trial_id"]: row for row in rows if row["repeat"] == 0}
    for row in extra:
        same = first[row["trial_id"][:-2] + "00"]
        assert row["prompt"] == same["prompt"]
        assert row["arrangement"] == same["arrangement"]
    assert [row["trial_id"] for row in rows] == sorted(row["trial_id"] for row in rows)


def test_dropping_an_item_moves_no_other_repeat(tmp_path) -> None:
    study = make_study(tmp_path, respondent={}, repeat_share=0.3)
    items = make_items(12)
    whole = make_trials(study, items).to_pylist()
    left = make_trials(study, items.filter(pc.not_equal(items.column("item_id"), "i005"))).to_pylist()
    assert left == [row for row in whole if row["item_id"] != "i005"]


def test_extra_calls_leave_every_other_number_as_it_was(tmp_path) -> None:
    for name in ("plain", "again"):
        (tmp_path / name).mkdir()
    items = make_items(15)
    plain = outcomes_of(make_study(tmp_path / "plain", respondent=NOISY), items)
    again = outcomes_of(make_study(tmp_path / "again", respondent=NOISY, repeat_share=0.4), items)
    assert not pc.any(plain.column("extra")).as_py()
    assert again.filter(pc.invert(again.column("extra"))).equals(plain)
    before, after = estimate(QUICK, plain), estimate(QUICK, again)
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {NAMES[0], NAMES[2]}
    assert before[NAMES[0]].status == before[NAMES[2]].status == "undefined"
    assert "repeat_share" in (before[NAMES[0]].reason or "")
    assert after[NAMES[0]].status == "ok"


def test_planted_disagreement_is_found_and_order_stands_above_it(tmp_path) -> None:
    # Gumbel noise of scale 1: choices are the softmax of the utilities. With equal options and a bonus b for the first
    # slot, an option is chosen with p = e^b / (e^b + 2) or q = 1 / (e^b + 2), by where it stands.
    respondent = {"ability_mean": 0.0, "ability_sd": 0.0, "distractor_sd": 0.0, "call_noise": 1.0}
    study = make_study(tmp_path, respondent={**respondent, "slot_bonus": [1.5, 0.0]}, repeat_share=1.0)
    found = estimate(QUICK, outcomes_of(study, make_items(150)))
    p = 2.718281828**1.5 / (2.718281828**1.5 + 2)
    q = (1 - p) / 2
    same = 1 - p**2 - 2 * q**2
    # Of the 15 pairs of orders, 3 have the same option in the first slot; in the others two options trade places.
    other = (3 * same + 12 * (1 - 2 * p * q - q**2)) / 15
    for name, truth in zip(NAMES, (same, other, other - same), strict=True):
        assert found[name].estimate == pytest.approx(truth, abs=0.04)
        assert found[name].low < truth < found[name].high
        assert (found[name].n_items, found[name].status) == (150, "ok")


def test_repeats_of_two_give_the_floor_as_well_and_stay_in_the_estimates(tmp_path) -> None:
    study = make_study(tmp_path, respondent=NOISY, repeats=2)
    table = outcomes_of(study, make_items(12))
    found = estimate(QUICK, table)
    assert not pc.any(table.column("extra")).as_py()
    assert found["accuracy"].n_calls == 12 * 6 * 2
    assert (found[NAMES[0]].status, found[NAMES[0]].n_calls) == ("ok", 144)


def test_a_respondent_without_noise_never_disagrees_with_itself(tmp_path) -> None:
    study = make_study(tmp_path, respondent={"ability_mean": 0.3, "slot_bonus": [1.0, 0.0]}, repeat_share=0.5)
    found = estimate(QUICK, outcomes_of(study, make_items(20)))
    assert found[NAMES[0]].estimate == found[NAMES[0]].low == 0
    assert found[NAMES[0]].high > 0
    assert found[NAMES[0]].status == "degenerate"
    assert found[NAMES[1]].estimate > 0


def test_every_quantity_of_a_cell_has_a_meaning(tmp_path) -> None:
    study = make_study(tmp_path, respondent=NOISY, repeat_share=0.5)
    for name in estimate(QUICK, outcomes_of(study, make_items(6))):
        assert describe(name).endswith(".")
    assert the_cell(study).experiment.repeat_share == 0.5
