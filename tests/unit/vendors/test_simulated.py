import asyncio
import itertools
import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.config.models import Arrangement, Experiment, Prompt, SimulatedModel
from counterbalance.errors import ConfigError
from counterbalance.vendors.base import Reply, TransportError, Trial
from counterbalance.vendors.simulated import LABEL_MASS, REFUSAL, SimulatedVendor

LABELS = ("A", "B", "C", "D")
READS = {
    "generate": {"kind": "generate"},
    "logprob": {"kind": "logprob", "top": 20},
    "option_text": {"kind": "option_text"},
    "decide": {"kind": "decide"},
}


def make_vendor(read: str = "generate", **planted) -> SimulatedVendor:
    model = SimulatedModel.model_validate({"id": "planted", "vendor": "simulated", **planted})
    experiment = Experiment(
        id="letters",
        design="mcq",
        datasets=["sums", "words"],
        models=["planted"],
        prompt=Prompt(template="letter.j2", style="plain"),
        read=READS[read],
        arrangement=Arrangement(),
    )
    return SimulatedVendor(model, experiment)


def make_trial(item: int = 0, order: tuple[str, ...] = ("o1", "o2", "o3", "o4"), **other) -> Trial:
    return Trial(
        trial_id=f"i{item:03d}.mcq.{'-'.join(order)}.{other.get('repeat', 0):02d}",
        experiment="letters",
        subset=other.pop("subset", "sums"),
        item_id=f"i{item:03d}",
        arrangement=order,
        labels=LABELS[: len(order)],
        option_texts=tuple(f"the {option}" for option in order),
        gold_slot=order.index("o1"),
        repeat=other.pop("repeat", 0),
        prompt={"text": f"{item} {order}"},
        prompt_sha256="sha256:" + "0" * 64,
        **other,
    )


def all_orders(n_items: int) -> list[Trial]:
    return [
        make_trial(item, order) for item in range(n_items) for order in itertools.permutations(("o1", "o2", "o3", "o4"))
    ]


def ask(vendor: SimulatedVendor, trial: Trial) -> Reply:
    return asyncio.run(vendor.ask(vendor.request(trial), trial))


def accuracy_by_slot(vendor: SimulatedVendor, n_items: int) -> list[float]:
    right: Counter[int] = Counter()
    for trial in all_orders(n_items):
        right[trial.gold_slot] += vendor.answer(trial).text == LABELS[trial.gold_slot]
    return [right[slot] / (6 * n_items) for slot in range(4)]


@given(seed=st.integers(0, 2**53 - 1), shuffle=st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_replies_do_not_depend_on_the_order_of_calls(seed: int, shuffle: random.Random) -> None:
    planted = {"seed": seed, "call_noise": 0.7, "item_slot_sd": 0.5, "refusal_rate": 0.1, "blank_rate": 0.1}
    trials = all_orders(2)
    first = make_vendor(**planted)
    expected = {trial.trial_id: first.answer(trial) for trial in trials}
    shuffle.shuffle(trials)
    second = make_vendor(**planted)
    assert {trial.trial_id: second.answer(trial) for trial in trials} == expected
    assert make_vendor(**planted).answer(trials[0]) == expected[trials[0].trial_id]


def test_without_bias_and_noise_the_same_option_is_picked_in_every_order() -> None:
    vendor = make_vendor(ability_mean=0.5)
    for _, trials in itertools.groupby(all_orders(30), key=lambda trial: trial.item_id):
        picked = {trial.arrangement[LABELS.index(vendor.answer(trial).text)] for trial in trials}
        assert len(picked) == 1


def test_accuracy_is_the_probability_that_the_correct_option_is_best() -> None:
    vendor = make_vendor(ability_mean=0.0, ability_sd=1.0, distractor_sd=1.0)
    found = sum(vendor.answer(make_trial(item)).text == "A" for item in range(4000)) / 4000
    # Four equal options: 1/4, with a standard error of .0068.
    assert found == pytest.approx(0.25, abs=0.03)


def test_the_planted_bonus_is_recovered_in_nats() -> None:
    # With Gumbel noise of scale 1 and equal utilities, the slot's share is the softmax of the bonuses (McFadden 1974).
    bonus = [1.0, 0.0, -0.5, 0.5]
    vendor = make_vendor(ability_mean=0.0, ability_sd=0.0, distractor_sd=0.0, slot_bonus=bonus, call_noise=1.0)
    picks = Counter(vendor.answer(trial).text for trial in all_orders(250))
    shares = [picks[label] / 6000 for label in LABELS]
    total = sum(math.exp(value) for value in bonus)
    assert shares == pytest.approx([math.exp(value) / total for value in bonus], abs=0.03)
    logs = [math.log(share) for share in shares]
    centred = [value - sum(logs) / 4 for value in logs]
    assert centred == pytest.approx([value - sum(bonus) / 4 for value in bonus], abs=0.1)


def test_a_first_slot_bonus_raises_accuracy_there_and_the_list_goes_on() -> None:
    biased = accuracy_by_slot(make_vendor(ability_mean=0.5, slot_bonus=[1.5, 0.0]), 100)
    assert biased[0] > max(biased[1:]) + 0.1
    plain, spelled = make_vendor(slot_bonus=[0.7, 0.0]), make_vendor(slot_bonus=[0.7, 0.0, 0.0, 0.0])
    assert [plain.answer(t) for t in all_orders(5)] == [spelled.answer(t) for t in all_orders(5)]
    last = make_vendor(slot_bonus=[0.0, 50.0])
    assert {last.answer(trial).text for trial in all_orders(5)} <= {"B", "C", "D"}


def test_items_own_slot_effects_have_the_planted_spread() -> None:
    vendor = make_vendor("option_text", ability_mean=0.0, ability_sd=0.0, distractor_sd=0.0, item_slot_sd=0.5)
    differences = []
    for item in range(1500):
        logprobs = vendor.answer(make_trial(item)).option_logprobs
        differences.append(logprobs[0] - logprobs[1])
    spread = math.sqrt(sum(value**2 for value in differences) / len(differences))
    # The difference of two such effects: sd .5 * sqrt(2) = .707; standard error about .013.
    assert spread == pytest.approx(0.5 * math.sqrt(2), abs=0.06)


def test_values_per_data_set() -> None:
    vendor = make_vendor(ability_mean={"sums": 50.0, "words": -50.0}, slot_bonus={"sums": [0.0], "words": [500.0, 0.0]})
    assert {vendor.answer(trial).text == LABELS[trial.gold_slot] for trial in all_orders(3)} == {True}
    assert {vendor.answer(replace(trial, subset="words")).text for trial in all_orders(3)} == {"A"}


@pytest.mark.parametrize(
    ("planted", "named"),
    [
        (
            {"ability_mean": {"sums": 1.0}},
            r"models\.planted\.ability_mean: no value for data set 'words', only for sums",
        ),
        ({"slot_bonus": {"words": [0.0]}}, r"models\.planted\.slot_bonus: no value for data set 'sums'"),
        ({"slot_bonus": []}, r"models\.planted\.slot_bonus: the list for 'sums' is empty"),
        ({"refusal_rate": 0.6, "blank_rate": 0.5}, "together more than 1"),
    ],
)
def test_settings_that_cannot_be_used_are_named(planted: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        make_vendor(**planted)


def test_refusals_and_blanks_come_at_their_rates_in_the_form_of_the_read() -> None:
    written = [make_vendor(refusal_rate=0.2, blank_rate=0.1).answer(trial) for trial in all_orders(100)]
    kinds = Counter((reply.status, reply.text) for reply in written)
    assert kinds["ok", REFUSAL] / 2400 == pytest.approx(0.2, abs=0.03)
    assert kinds["empty", ""] / 2400 == pytest.approx(0.1, abs=0.03)
    listed = make_vendor("logprob", refusal_rate=1.0).answer(make_trial())
    assert (listed.status, listed.text, listed.top_tokens) == ("refused", None, None)


def test_errors_are_drawn_per_attempt_so_that_trying_again_helps() -> None:
    vendor = make_vendor(error_rate=0.5)
    failed = set()
    for trial in all_orders(10):
        for attempt in (1, 2):
            try:
                ask(vendor, replace(trial, facts={"attempt": attempt}))
            except TransportError:
                failed.add((trial.trial_id, attempt))
    assert len(failed) / 480 == pytest.approx(0.5, abs=0.1)
    once = {trial for trial, attempt in failed if attempt == 1}
    assert 0.3 < len({trial for trial, attempt in failed if attempt == 2} & once) / len(once) < 0.7
    with pytest.raises(TransportError):
        ask(make_vendor(error_rate=1.0), make_trial())


def test_listed_tokens_are_a_distribution_with_the_planted_odds() -> None:
    bonus = [1.0, 0.0, -0.5, 0.5]
    vendor = make_vendor("logprob", ability_mean=0.0, ability_sd=0.0, distractor_sd=0.0, slot_bonus=bonus)
    reply = vendor.answer(make_trial())
    listed = dict(zip(reply.top_tokens, reply.top_logprobs, strict=True))
    assert list(reply.top_logprobs) == sorted(reply.top_logprobs, reverse=True)
    assert sum(math.exp(listed[label]) for label in LABELS) == pytest.approx(LABEL_MASS)
    assert LABEL_MASS < sum(math.exp(value) for value in listed.values()) <= 1
    assert [listed[label] - listed["B"] for label in LABELS] == pytest.approx(bonus)


def test_a_short_list_is_cut_and_other_tokens_never_look_like_labels() -> None:
    vendor = make_vendor("logprob", slot_bonus=[9.0, 0.0])
    vendor._read = vendor._read.model_copy(update={"top": 2})
    assert len(vendor.answer(make_trial()).top_tokens) == 2
    trial = replace(make_trial(), labels=("the", "is", "**", "x"))
    tokens = make_vendor("logprob").answer(trial).top_tokens
    assert sorted(tokens, key=str).count("the") == 1
    assert {"The", " The", " is"}.isdisjoint(tokens)


def test_option_texts_get_log_probabilities_and_token_counts() -> None:
    reply = make_vendor("option_text").answer(make_trial())
    assert sum(math.exp(value) for value in reply.option_logprobs) == pytest.approx(1)
    assert reply.option_tokens == [2, 2, 2, 2]


def test_items_without_a_key_are_answered_too() -> None:
    vendor = make_vendor(ability_mean=1000.0)
    replies = Counter(vendor.answer(replace(make_trial(item), gold_slot=None)).text for item in range(400))
    assert min(replies[label] for label in LABELS) > 60


BASE = {"seed": 1, "ability_mean": 1.5, "call_noise": 0.3}


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 2},
        {"ability_mean": 1.0},
        {"ability_sd": 1.0},
        {"distractor_sd": 0.5},
        {"slot_bonus": [0.1]},
        {"item_slot_sd": 0.1},
        {"call_noise": 0.0},
        {"refusal_rate": 0.1},
        {"blank_rate": 0.1},
        {"id": "another"},
    ],
    ids=str,
)
def test_every_planted_setting_enters_the_identity_of_a_call(changed: dict) -> None:
    assert (
        make_vendor(**(BASE | changed)).request(make_trial()).sha256 != make_vendor(**BASE).request(make_trial()).sha256
    )


def test_circumstance_stays_out_of_the_identity_of_a_call() -> None:
    slow = make_vendor(**BASE, latency_ms=5.0, error_rate=0.1)
    assert slow.request(make_trial()).sha256 == make_vendor(**BASE).request(make_trial()).sha256


def test_all_that_a_reply_hangs_on_enters_the_identity() -> None:
    vendor, trial = make_vendor(**BASE), make_trial()
    others = [
        replace(trial, subset="words"),
        replace(trial, item_id="i001"),
        replace(trial, arrangement=("o2", "o1", "o3", "o4")),
        replace(trial, gold_slot=2),
        replace(trial, repeat=1),
        replace(trial, labels=("1", "2", "3", "4")),
    ]
    assert len({vendor.request(other).sha256 for other in [trial, *others]}) == 7
    assert make_vendor("logprob", **BASE).request(trial).sha256 != vendor.request(trial).sha256


def test_a_decision_is_a_distribution_over_the_labels_alone() -> None:
    vendor = make_vendor("decide", slot_bonus=[2.0, 0.0])
    reply = ask(vendor, make_trial())
    assert reply.status == "ok"
    assert reply.top_tokens == list(LABELS)
    assert math.fsum(math.exp(value) for value in reply.top_logprobs) == pytest.approx(1)
    other = ask(make_vendor("logprob", slot_bonus=[2.0, 0.0]), make_trial())
    # The same respondent: the labels' share of the next token is LABEL_MASS, and otherwise nothing differs.
    listed = dict(zip(other.top_tokens, other.top_logprobs, strict=True))
    assert [listed[label] - math.log(LABEL_MASS) for label in LABELS] == pytest.approx(reply.top_logprobs)
    assert vendor.request(make_trial()).parameters["read"] == "decide"
