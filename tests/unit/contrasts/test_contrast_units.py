"""Items that share a source are one unit of every interval and test; and a mean is a mean however it is written."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from counterbalance.config.yaml import parse_yaml
from counterbalance.contrasts import EffectTable, Resampling, estimate_contrasts, estimate_means
from counterbalance.contrasts.caution import cue_warnings
from counterbalance.contrasts.grammar import parse_expression, pooled_arms, to_text
from counterbalance.contrasts.plan import plan_contrasts
from counterbalance.errors import InputError
from counterbalance.stats import signflip

FAST = Resampling(n_resamples=499, seed=7)


@pytest.fixture
def rng() -> np.random.Generator:
    """One for each test, so that none hangs on which others ran before."""
    return np.random.default_rng(8)


def plan_of(**expressions):
    entries = [{"id": name, "expression": text, "status": "inferential"} for name, text in expressions.items()]
    value = {"schema": "counterbalance/contrasts/1", "contrasts": entries}
    return plan_contrasts(value, {}, source="test", effects=("serial",))


def table_of(units=None, **conditions):
    names = [f"i{place}" for place in range(len(next(iter(conditions.values()))))]
    by_condition = {
        name: {"serial": {item: value for item, value in zip(names, row, strict=True) if value is not None}}
        for name, row in conditions.items()
    }
    return EffectTable.build(names, by_condition, units)


def numbers(found):
    estimate = found.estimate
    ends = [end for interval in estimate.intervals for end in (interval.low, interval.high)]
    return [estimate.estimate, estimate.sd, *ends, estimate.p, estimate.p_tost]


def test_copies_of_items_in_one_unit_add_no_certainty(rng):
    a, b = rng.normal(0.2, 0.3, 11), rng.normal(0, 0.3, 11)
    plan = plan_of(difference="A.serial - B.serial", pooled="mean(A.serial, B.serial)")
    once = estimate_contrasts(plan, table_of(A=a, B=b), FAST)
    units = [f"u{place // 3}" for place in range(33)]
    thrice = estimate_contrasts(plan, table_of(units, A=np.repeat(a, 3), B=np.repeat(b, 3)), FAST)
    for one, three in zip(once, thrice, strict=True):
        assert numbers(three) == pytest.approx(numbers(one), abs=1e-12)
        assert (three.estimate.n, three.estimate.n_negative) == (11, one.estimate.n_negative)
        assert three.warnings == one.warnings


def test_the_mean_is_over_items_and_its_error_over_units(rng):
    """Units of 1, 2 and 3 items and so on: the mean weighs items, the t test has the error of a ratio."""
    sizes = np.array([1, 2, 3, 1, 2, 3, 4.0])
    means = rng.normal(0.1, 0.2, 7)
    (found,) = estimate_means([means], [0.15], FAST, [sizes])
    mean = float((means * sizes).sum() / sizes.sum())
    assert found.estimate == pytest.approx(mean)
    error = np.sqrt(7 / 6 * ((sizes * (means - mean)) ** 2).sum()) / sizes.sum()
    by_hand = max(stats.t.sf((mean + 0.15) / error, 6), stats.t.cdf((mean - 0.15) / error, 6))
    assert found.p_tost == pytest.approx(by_hand)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 7)).reshape(7, -1).T
    reached = np.abs(signs @ (means * sizes)) >= abs((means * sizes).sum()) - 1e-12
    assert found.p == pytest.approx(reached.mean())


def test_a_unit_is_made_of_the_items_that_all_conditions_have():
    units = ["u", "u", "v", "w", "x", "y", "z"]
    a, b = [1.0, 3.0, 2.0, 4.0, 1.0, 2.0, 5.0], [None, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    (found,) = estimate_contrasts(plan_of(d="A.serial - B.serial"), table_of(units, A=a, B=b), FAST)
    # The first item lacks B, so unit u is its second item alone: 2, 1, 3, 0, 1, 4.
    assert found.estimate.n == 6
    assert found.estimate.estimate == pytest.approx(11 / 6)


def test_fewer_than_six_units_give_no_verdict_however_many_items(rng):
    units = [f"u{place % 5}" for place in range(40)]
    (found,) = estimate_contrasts(plan_of(d="A.serial"), table_of(units, A=rng.normal(9, 1, 40)), FAST)
    assert (found.estimate.evaluation, found.estimate.n, found.estimate.excludes_zero) == ("too_few", 5, None)


def test_units_and_sizes_have_to_fit():
    with pytest.raises(InputError, match="2 units for 3 items"):
        table_of(["u", "v"], A=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="1 series and 1 bounds, 2 sizes"):
        estimate_means([np.ones(3)], [None], FAST, [None, None])


def test_signs_drawn_in_blocks_are_those_drawn_at_once(monkeypatch, rng):
    rows = rng.normal(0.1, 1, (2, 40))
    whole = [found.p for found in signflip.sign_flip_means(rows, n_draws=999, seed=3)]
    monkeypatch.setattr(signflip, "_BLOCK", 40 * 70)
    assert [found.p for found in signflip.sign_flip_means(rows, n_draws=999, seed=3)] == whole


@pytest.mark.parametrize(
    ("text", "arms"),
    [
        ("mean(A.x, B.x)", ["A.x", "B.x"]),
        ("(A.x + B.x) / 2", ["A.x", "B.x"]),
        ("0.5 * (A.x + B.x)", ["A.x", "B.x"]),
        ("(A.x + B.x) * 0.5", ["A.x", "B.x"]),
        ("A.x / 2 + B.x / 2", ["A.x", "B.x"]),
        ("0.5 * A.x + B.x / 2", ["A.x", "B.x"]),
        ("(A.x + B.x + C) / 3", ["A.x", "B.x", "C"]),
        ("((A.x - B.x) + C) / 2", ["A.x - B.x", "C"]),
        ("(A.x + B.x) / 3", []),
        ("(A.x - B.x) / 2", []),
        ("A.x + B.x", []),
        ("A.x / 2 + B.x / 3", []),
        ("A.x / 2 + B.x", []),
        ("(A.x + 1) / 2", []),
        ("A.x / 1", []),
        ("2 * (A.x + B.x)", []),
    ],
)
def test_a_sum_over_its_number_of_arms_is_a_mean(text, arms):
    assert [to_text(arm) for arm in pooled_arms(parse_expression(text))] == arms


def test_pooling_is_warned_of_in_every_spelling(rng):
    rows = {"A": rng.normal(1, 0.1, 12), "B": rng.normal(0, 0.1, 12), "C": rng.normal(0, 0.1, 12)}
    plan = plan_of(
        mean="mean(A.serial, B.serial)",
        sum="(A.serial + B.serial) / 2",
        halves="A.serial / 2 + 0.5 * B.serial",
        inside="C.serial - (A.serial + B.serial) / 2",
        through="sum - C.serial",
        third="(A.serial + B.serial) / 3",
    )
    found = {entry.planned.id: entry.warnings for entry in estimate_contrasts(plan, table_of(**rows), FAST)}
    assert found["mean"][0].startswith("pools A.serial and B.serial, which differ by +")
    assert found["mean"] == found["sum"] == found["halves"] == found["inside"] == found["through"]
    assert found["third"] == ()


def test_the_shipped_dials_warn_of_exactly_the_unequal_numbers_of_cues():
    path = Path(__file__).parents[3] / "config" / "contrasts" / "ad_series.yaml"
    value, lines = parse_yaml(path.read_text(encoding="utf-8"), source="ad_series")
    plan = plan_contrasts(value, lines, source="ad_series", effects=("token", "role", "order", "serial"))
    warned = {entry.id: cue_warnings(entry, plan.file.conditions) for entry in plan.contrasts}
    # T1 and T3 have no cue, T2, T4 and T5 one, the others two; contrasts about cues are silent.
    assert {name for name, texts in warned.items() if texts} == {"B1", "B3", "C5"}
    assert all("cue counts differ" in text for texts in warned.values() for text in texts)
