"""Planted respondents: the same counts as the pipeline makes of the vendor's replies, and values known beforehand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from counterbalance.config.models import GenerateRead
from counterbalance.designs.mcq.counts import count_strata
from counterbalance.errors import ConfigError
from counterbalance.simulation.cells import design_orders, planted_cell
from counterbalance.simulation.respondent import (
    Respondent,
    ability_for,
    choose,
    population,
    tally,
    utilities,
)
from counterbalance.simulation.scenarios import SCENARIOS, respondent
from counterbalance.simulation.sizes import effect_curve
from counterbalance.simulation.truths import nats_truth, steady_truth
from counterbalance.stats.disagreement import Choices, disagreement
from counterbalance.stats.steadiness import steadiness

READ = GenerateRead(kind="generate")


@pytest.mark.parametrize(("scheme", "n"), [("exhaustive", None), ("williams", None), ("sampled", 5)])
def test_tallies_are_the_counts_of_the_pipeline(scheme, n):
    cell = planted_cell(scheme, n, n_items=7, read=READ)
    outcomes = cell.outcomes(respondent(tau=0.5, noise=0.5), seed=3)
    chosen = np.array(outcomes.column("slot").to_pylist()).reshape(1, 7, -1)
    (counts,) = count_strata(outcomes)
    found = tally(chosen, cell.orders)
    assert (found.correct[0] == counts.correct).all()
    assert (found.picks[0] == counts.picks).all()
    assert (found.wrong_picks[0] == counts.wrong_picks).all()
    assert (found.consistent[0] == counts.consistent).all()
    assert (found.n == counts.scored).all()
    ours, theirs = (steadiness(choices) for choices in (counts.choices, next(_drawn_choices(found, 1))))
    assert ours == theirs


def _drawn_choices(found, repeats):
    for option in found.option:
        items, calls = option.shape
        item, order = np.divmod(np.arange(items * calls), calls)
        yield Choices(item, item, order // repeats, option.ravel(), np.zeros(items * calls, dtype=bool))


def test_repeated_calls_are_asked_in_the_same_order():
    cell = planted_cell("williams", n_items=9, read=READ, repeats=2)
    outcomes = cell.outcomes(respondent(noise=0.5), seed=3)
    chosen = np.array(outcomes.column("slot").to_pylist()).reshape(1, 9, -1)
    (counts,) = count_strata(outcomes)
    ours, theirs = (
        disagreement(choices, n_resamples=99, seed=1)
        for choices in (counts.choices, next(_drawn_choices(tally(chosen, cell.orders), 2)))
    )
    assert ours == theirs
    assert ours.same_order.n_calls == 9 * 8


def test_a_drawn_reply_goes_through_the_reader_to_the_slot_that_was_drawn():
    cell = planted_cell("exhaustive", n_items=4, read=READ)
    able = replace(respondent(), option_slot_sd=0.5)
    rng = np.random.default_rng(9)
    drawn = choose(utilities(able.effects(1, 4, rng), cell.orders), 0.0, rng)
    assert cell.outcomes(able, seed=9).column("slot").to_pylist() == drawn.ravel().tolist()


def test_the_vendor_answers_as_the_population_does():
    cell = planted_cell("exhaustive", n_items=300, read=READ)
    able = respondent("monotone", 1.0, tau=0.3, noise=0.3)
    (counts,) = count_strata(cell.outcomes(able, seed=5))
    share, truth = counts.correct / counts.scored, population(able)
    error = share.std(axis=0, ddof=1) / math.sqrt(300)
    assert (np.abs(share.mean(axis=0) - truth.correct) < 4 * error).all()
    picks = counts.picks / counts.picks.sum(axis=1, keepdims=True)
    assert (np.abs(picks.mean(axis=0) - truth.picks) < 4 * picks.std(axis=0) / math.sqrt(300)).all()
    same = counts.consistent.mean()
    truth = steady_truth(able, cell.orders)
    assert abs(same - truth.consistency) < 4 * math.sqrt(0.25 / 300)
    found = steadiness(counts.choices, level=0.9999).usual_share
    assert found.low < truth.usual_share < found.high
    apart = disagreement(counts.choices, level=0.9999, n_resamples=999, seed=1).other_order
    assert apart.low < truth.other_order < apart.high


def test_equal_items_with_call_noise_are_a_softmax():
    able = Respondent(slot_bonus=(0.5, 0.0, 0.0), ability_mean=1.0, ability_sd=0.0, distractor_sd=0.0, call_noise=1.0)
    good, other, bonus = math.exp(1.0), 1.0, math.exp(0.5)
    expected = [
        good * bonus / (good * bonus + 2 * other),
        good / (good + other * bonus + other),
        good / (good + other * bonus + other),
    ]
    assert population(able, 200).correct == pytest.approx(expected, rel=1e-12)


def test_two_options_without_noise_are_a_normal_integral():
    able = Respondent(slot_bonus=(0.0, 0.0), ability_mean=1.0)
    assert population(able).accuracy == pytest.approx(stats.norm.cdf(1 / math.sqrt(5)), abs=0.005)


def test_steadiness_of_two_noisy_calls():
    able = Respondent(slot_bonus=(0.0, 0.0), ability_mean=1.0, ability_sd=0.0, distractor_sd=0.0, call_noise=1.0)
    right = 1 / (1 + math.exp(-1.0))
    orders = np.array([[[0, 1], [1, 0]]])
    truth = steady_truth(able, orders)
    alike = right**2 + (1 - right) ** 2
    assert truth.consistency == pytest.approx(alike, rel=1e-12)
    assert (truth.same_order, truth.other_order) == pytest.approx((1 - alike, 1 - alike), rel=1e-12)
    assert truth.usual_share == pytest.approx(alike + (1 - alike) / 2, abs=0.01)


def test_without_noise_only_the_order_changes_an_answer():
    orders = np.array([[[0, 1], [0, 1], [1, 0], [1, 0]]])
    truth = steady_truth(Respondent(slot_bonus=(50.0, 0.0)), orders, repeats=2, n_items=50)
    assert vars(truth) == {"consistency": 0.0, "usual_share": 0.5, "same_order": 0.0, "other_order": 1.0}


def test_label_log_probabilities_without_noise():
    able = Respondent(slot_bonus=(0.5, 0.0), ability_mean=1.0, ability_sd=0.0, distractor_sd=0.0)
    truth = nats_truth(able, np.array([[[0, 1], [1, 0]]]), n_items=10)
    assert truth.bonus == pytest.approx([0.25, -0.25])
    # Half the calls have the better option in the first slot: 1.5 against 0, or .5 against 1.
    first = (1.5 - math.log(math.exp(1.5) + 1) + 0.5 - math.log(math.exp(0.5) + math.exp(1.0))) / 2
    assert truth.mean[0] == pytest.approx(first + math.log(0.9))
    assert truth.prior[0] == pytest.approx(math.exp(0.5) / (math.exp(0.5) + 1))


@pytest.mark.parametrize(
    ("name", "v", "rho"), [("C1", 0.024, -1.0), ("C2", 0.049, -1.0), ("C3", 0.097, -1.0), ("C5", 0.076, -0.7746)]
)
def test_population_v_of_planted_shapes(name, v, rho):
    truth = SCENARIOS[name].population
    assert truth.v == pytest.approx(v, abs=0.0015)
    assert truth.rho == pytest.approx(rho, abs=1e-4)


def test_null_respondents_have_no_v_at_all():
    truth = population(respondent(tau=1.0))
    assert truth.v < 1e-12
    assert truth.rho == 0.0
    assert truth.picks == pytest.approx([0.25] * 4)


def test_contrasts_by_hand():
    truth = replace(population(respondent()), correct=np.array([0.9, 0.6, 0.6, 0.3]))
    # Least squares over slots -1.5, -.5, .5, 1.5: slope (-1.35 - .3 + .3 + .45) / 5 = -.18 a slot, three steps.
    assert truth.contrasts == pytest.approx({"linear": -0.54, "first": 0.4, "last": -0.4, "middle": 0.0})


def test_ability_gives_the_accuracy():
    plain = respondent(tau=0.3, noise=0.3)
    able = replace(plain, ability_mean=ability_for(0.9, plain))
    assert population(able).accuracy == pytest.approx(0.9, abs=0.003)


def test_an_accuracy_out_of_reach_is_refused():
    with pytest.raises(ConfigError, match="no ability gives"):
        ability_for(0.9, respondent(noise=1000.0))


def test_the_vendor_has_no_option_by_slot_effects():
    with pytest.raises(ConfigError, match="option-by-slot"):
        replace(respondent(), option_slot_sd=0.5).as_model(1)


def test_curve_gives_back_its_own_v():
    curve = effect_curve(replace(respondent(noise=0.3), ability_mean=1.5))
    assert (np.diff(curve.values) > 0).all()
    assert population(curve.with_v(0.1), 20_000).v == pytest.approx(0.1, abs=0.004)


def test_orders_put_the_correct_option_into_every_slot():
    orders = design_orders("williams", None, n_items=5, k=4, seed=2)
    assert (np.sort(np.argmax(orders == 0, axis=-1), axis=1) == np.arange(4)).all()
