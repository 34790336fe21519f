"""The rule by which a scout decides, and what it predicts of the sweep; no study, no files."""

import numpy as np
import pyarrow as pa
import pytest

from counterbalance.config import Analysis
from counterbalance.config.experiments import KeepBetween, Scout
from counterbalance.scouting.look import _accuracy, _same_option
from counterbalance.scouting.rule import rule_on
from counterbalance.stats.detectable import detectable_v, fit_nuisance, predict_v
from counterbalance.stats.estimate import Result

N_ITEMS, LOOKED_AT, ORDERS = 12, 5, 6


ANALYSIS = Analysis()
BELOW = KeepBetween(max_accuracy=0.95)
WITHIN = KeepBetween(min_accuracy=0.6, max_accuracy=0.95)


def accuracy(value: float | None, low: float | None = None, high: float | None = None) -> Result:
    status = "undefined" if value is None else "ok"
    return Result(method="m", estimate=value, low=low, high=high, level=0.95, status=status, reason="no scored call")


@pytest.mark.parametrize(
    ("scout", "seen", "keeps", "settled", "skip", "words"),
    [
        (Scout(keep=BELOW), accuracy(0.95, 0.9, 0.95), True, True, False, "between"),
        (Scout(keep=BELOW), accuracy(0.951, 0.95, 1), False, False, True, "above max_accuracy 0.95"),
        (Scout(keep=BELOW), accuracy(0.98, 0.96, 1), False, True, True, "above max_accuracy 0.95"),
        (Scout(keep=WITHIN), accuracy(0.599, 0.4, 0.599), False, True, True, "below min_accuracy 0.6"),
        (Scout(keep=WITHIN), accuracy(0.6, 0.4, 0.8), True, False, False, "reaches over the edge"),
        # Both ends are kept and the middle is not: the edges inside the interval tell.
        (Scout(keep_bands=["low", "high"]), accuracy(0.5, 0.4, 0.96), True, False, False, "band low, which is among"),
        (Scout(keep_bands=["low", "high"]), accuracy(0.6, 0.6, 0.94), False, True, True, "band middle, which is not"),
        (Scout(keep_bands=["middle"]), accuracy(0.95, 0.95, 1), False, True, True, "band high"),
        (Scout(keep=BELOW, action="report"), accuracy(0.99, 0.97, 1), False, True, False, "only reports"),
        (Scout(action="report"), accuracy(0.99, 0.97, 1), None, None, False, "no rule"),
        (Scout(keep=BELOW), accuracy(None), None, None, False, "no scored call"),
    ],
)
def test_the_rule_and_how_sure_it_is(scout, seen, keeps, settled, skip, words) -> None:
    ruling = rule_on(scout, ANALYSIS, seen)
    assert (ruling.keeps, ruling.settled, ruling.skip) == (keeps, settled, skip)
    assert words in ruling.reason


def test_what_is_predicted_is_what_the_cell_says_of_itself_afterwards() -> None:
    rng = np.random.default_rng(3)
    n = np.full((30, 4), 6)
    correct = rng.binomial(6, rng.beta(2, 1, size=(30, 1)) * np.ones((1, 4)))
    after = detectable_v(correct, n, n_simulations=200, measurable_v=0.9, seed=5).result.estimate
    assert predict_v(fit_nuisance(correct, n), n, n_simulations=200, seed=5) == after
    assert predict_v(fit_nuisance(correct, n), n[:2], seed=5) is None


def outcomes(group_of: dict[str, str]) -> pa.Table:
    """Two orders of each item; those of group `a` are right in both, the others pick the first slot in both."""
    rows = [
        {"item_id": item, "group_id": group, "option_id": "x" if group == "a" else "xy"[order]}
        for item, group in group_of.items()
        for order in (0, 1)
    ]
    return pa.Table.from_pylist([row | {"correct": row["option_id"] == "x"} for row in rows])


def test_items_of_one_source_are_one_unit_to_the_scout_too() -> None:
    found = outcomes({f"q{n}": "ab"[n % 2] for n in range(12)})
    same, right = _same_option(ANALYSIS, found), _accuracy(ANALYSIS, found)
    assert (same.estimate, same.n_items, same.n_calls) == (0.5, 12, 24)
    assert (right.estimate, right.n_items, right.n_calls) == (0.75, 12, 24)
    few = "12 items in 2 groups, which are the units; intervals from so few groups tend to be too narrow"
    assert same.reason == right.reason == few
    # Wilson's interval of six items in twelve is [.25, .75]; two groups, one of each kind, know much less.
    assert (same.low < 0.1, same.high > 0.9) == (True, True)


def test_items_that_were_answered_once_say_nothing_of_change() -> None:
    found = outcomes({f"q{n}": f"{'ab'[n % 2]}{n}" for n in range(12)}).slice(0, 23)
    same = _same_option(ANALYSIS, found)
    assert (same.estimate, same.n_items, same.reason) == (0.0, 11, None)
    unanswered = found.set_column(2, "option_id", pa.nulls(23, pa.string()))
    assert _same_option(ANALYSIS, unanswered).status == "undefined"
