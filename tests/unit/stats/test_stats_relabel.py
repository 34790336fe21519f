"""The slot-relabelling test and its sensitivity analysis."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from counterbalance.errors import InputError
from counterbalance.stats.relabel import (
    _random_relabellings,
    guarded_picks,
    recentred_bootstrap,
    relabel_accuracy,
    relabel_picks,
    relabel_unanswered,
)

small_cells = hnp.arrays(np.int64, st.tuples(st.integers(1, 3), st.integers(2, 4)), elements=st.integers(0, 3))


def failing_at_one_slot(m, stable=10):
    """`m` items that fail one of six calls in slot 4, and some that never do."""
    correct = np.full((m + stable, 4), 6)
    correct[:m, 3] = 5
    return correct, np.full(correct.shape, 6)


@pytest.mark.parametrize("m", range(1, 8))
def test_p_of_items_that_fail_at_the_same_slot(m):
    found = relabel_accuracy(*failing_at_one_slot(m), seed=1)
    assert found.result.p == pytest.approx(4.0 ** -(m - 1), rel=1e-12)
    assert found.enumerated
    assert (found.n_unstable, found.n_relabellings) == (m, 4**m)
    assert found.p_floor == pytest.approx(found.result.p)
    assert found.result.status == ("ok" if m >= 4 else "not_measurable")


def test_enumeration_by_hand():
    """Two items (2, 1, 0) and (1, 0, 0): 6 x 3 relabellings, listed here one by one."""
    correct = np.array([[2, 1, 0], [1, 0, 0]])
    statistics = []
    for first in set(itertools.permutations((2, 1, 0))):
        for second in set(itertools.permutations((1, 0, 0))):
            totals = np.add(first, second)
            statistics.append(((totals - totals.mean()) ** 2).sum())
    observed = ((correct.sum(axis=0) - correct.sum() / 3) ** 2).sum()
    found = relabel_accuracy(correct, np.full((2, 3), 2), seed=1)
    assert found.n_relabellings == 18
    assert found.result.p == pytest.approx(np.mean(np.array(statistics) >= observed - 1e-9))
    # In accuracy, per item: counts over 2 calls, means over 2 items.
    assert found.result.estimate == pytest.approx(observed / 2**2 / 2**2)


def test_monte_carlo_agrees_with_enumeration():
    correct = np.array([[3, 2, 0, 1], [3, 3, 1, 0], [2, 2, 3, 1]])
    n = np.full(correct.shape, 3)
    exact = relabel_accuracy(correct, n, seed=1)
    drawn = relabel_accuracy(correct, n, seed=1, n_draws=20_000, enumerate_up_to=10)
    assert exact.enumerated
    assert not drawn.enumerated
    assert drawn.n_relabellings == exact.n_relabellings == 24 * 12 * 12
    assert drawn.result.p == pytest.approx(exact.result.p, abs=0.012)


def test_ties_count_and_p_is_never_zero():
    """Thirty equal items: no draw can beat the data, and p is the floor 1 / (m + 1)."""
    correct = np.tile([6, 0, 0, 0], (30, 1))
    found = relabel_accuracy(correct, np.full((30, 4), 6), n_draws=999, seed=1)
    assert found.result.p == 1 / 1000 == found.p_floor


def test_stable_items_are_degenerate_not_evidence_of_no_effect():
    found = relabel_accuracy([[6, 6], [0, 0]], [[6, 6], [6, 6]], seed=1)
    assert (found.result.p, found.result.status, found.n_unstable) == (1.0, "degenerate", 0)
    assert relabel_accuracy(np.zeros((0, 4)), np.zeros((0, 4)), seed=1).result.status == "undefined"


@settings(max_examples=40, deadline=None)
@given(small_cells, st.randoms())
def test_names_of_slots_and_order_of_items_do_not_matter(correct, random):
    n = np.full(correct.shape, 3)
    slots = random.sample(range(correct.shape[1]), correct.shape[1])
    items = random.sample(range(len(correct)), len(correct))
    before = relabel_accuracy(correct, n, seed=1)
    after = relabel_accuracy(correct[items][:, slots], n, seed=1)
    assert before.enumerated
    assert after.result.p == before.result.p
    assert after.result.estimate == pytest.approx(before.result.estimate)
    drawn = [
        relabel_accuracy(table, n, seed=1, enumerate_up_to=0, n_draws=50) for table in (correct, correct[:, slots])
    ]
    assert drawn[0].result.p == drawn[1].result.p


@settings(max_examples=40, deadline=None)
@given(small_cells)
def test_right_and_wrong_are_symmetric(correct):
    n = np.full(correct.shape, 3)
    right, wrong = (relabel_accuracy(table, n, seed=1) for table in (correct, n - correct))
    assert right.result.p == wrong.result.p
    assert right.n_unstable == wrong.n_unstable


@settings(max_examples=30, deadline=None)
@given(small_cells)
def test_p_is_uniform_at_most_over_the_relabellings_themselves(correct):
    """Exactness: over all relabellings of the data, at most a share x has p <= x."""
    n = np.full(correct.shape, 3)
    orders = [sorted(set(itertools.permutations(row.tolist()))) for row in correct]
    if np.prod([len(order) for order in orders]) > 60:
        orders = orders[:1]
    ps = [relabel_accuracy(np.array(table), n[: len(orders)], seed=1).result.p for table in itertools.product(*orders)]
    for x in set(ps):
        assert np.mean(np.array(ps) <= x + 1e-12) <= x + 1e-9


def test_missing_calls_are_exchanged_among_the_slots_asked_only():
    """Item 1 was asked in slots 1 and 2 only: 2 orders; item 2 in all three, with two equal accuracies: 3 orders."""
    found = relabel_accuracy([[2, 1, 0], [1, 1, 0]], [[2, 2, 0], [2, 2, 1]], seed=1)
    assert found.n_relabellings == 6
    # Centred: (.25, -.25, 0) and (1/6, 1/6, -1/3). Listed over the 2 x 3 relabellings:
    first = [np.array([0.25, -0.25, 0]), np.array([-0.25, 0.25, 0])]
    second = [np.roll([1 / 6, 1 / 6, -1 / 3], shift) for shift in range(3)]
    statistics = [((a + b) ** 2).sum() for a in first for b in second]
    assert found.result.p == pytest.approx(np.mean(np.array(statistics) >= statistics[0] - 1e-9))


def test_equal_accuracies_from_unequal_calls_are_no_effect():
    found = relabel_accuracy([[1, 2, 3]], [[2, 4, 6]], seed=1)
    assert found.n_unstable == 0


def test_null_with_missing_calls_keeps_its_level(respondent):
    rng = np.random.default_rng(3)
    rejected = 0
    for correct, n, _ in respondent(4, accuracy=0.75, tau=0.5, noise=0.5, cells=200):
        kept = rng.binomial(6, 0.6, n.shape)
        hits = rng.hypergeometric(correct.astype(int), (n - correct).astype(int), kept)
        rejected += relabel_accuracy(hits, kept, n_draws=199, seed=1).result.p <= 0.05
    assert 0.015 <= rejected / 200 <= 0.10


def test_picks_of_one_slot():
    found = relabel_picks(np.tile([24, 0, 0, 0], (5, 1)), seed=1)
    assert found.result.p == pytest.approx(4.0**-4)
    assert found.result.n_calls == 120


def test_items_without_picks_are_left_out():
    assert relabel_picks([[3, 1], [0, 0]], seed=1).result.n_items == 1


def test_picks_count_items_equally():
    """An item asked ten times as often weighs the same."""
    a = relabel_picks([[3, 1], [1, 3]], seed=1).result
    b = relabel_picks([[30, 10], [1, 3]], seed=1).result
    assert a.estimate == pytest.approx(0)
    assert b.estimate == pytest.approx(0)


def test_recentred_bootstrap_sees_a_planted_effect(respondent):
    correct, n, _ = next(iter(respondent(1, accuracy=0.75, noise=0.5, bonus=(0.5, 0, 0, -0.5))))
    assert recentred_bootstrap(correct, n, n_resamples=999, seed=1).p == 0.001
    assert recentred_bootstrap([[6, 6], [0, 0]], [[6, 6], [6, 6]], seed=1).status == "degenerate"
    assert recentred_bootstrap([[6, 3]], [[6, 6]], seed=1).status == "undefined"


def test_same_seed_same_p(respondent):
    correct, n, _ = next(iter(respondent(2, accuracy=0.75, tau=1.0)))
    assert relabel_accuracy(correct, n, seed=5) == relabel_accuracy(correct, n, seed=np.random.default_rng(5))


@pytest.mark.parametrize("bad", [{"n_draws": 0}, {"alpha": 0}, {"alpha": 1.0}])
def test_bad_settings_are_refused(bad):
    with pytest.raises(InputError):
        relabel_accuracy([[1, 0]], [[1, 1]], seed=1, **bad)


def test_many_equal_items_are_drawn_as_one():
    """Items of one kind are drawn together; the null mean and variance of the statistic stay those of relabelling.

    With deviations d_q the sum of squared slot totals has mean A = sum |d_q|^2 and variance
    2 (A^2 - sum |d_q|^4) / (k - 1), since E (x . y)^2 = |x|^2 |y|^2 / (k - 1) for independently shuffled x and y.
    """
    deviations = np.repeat([[0.75, -0.25, -0.25, -0.25], [0.5, 0.5, -0.5, -0.5], [0.6, 0.2, -0.3, -0.5]], 20, axis=0)
    drawn = _random_relabellings(np.ones(deviations.shape, bool), deviations, 20_000, np.random.default_rng(1))
    squares = (deviations**2).sum(axis=1)
    assert drawn.mean() == pytest.approx(squares.sum(), rel=0.03)
    assert drawn.var() == pytest.approx(2 * (squares.sum() ** 2 - (squares**2).sum()) / 3, rel=0.1)


def unbiased_with_gaps(rng, lost):
    """40 items of 24 calls; right in three of four calls, wrong ones anywhere; `lost` of six are missing by slot."""
    right = rng.binomial(6, 0.75, (40, 4))
    asked = np.full((40, 4), 6)
    missing = rng.binomial(right, np.broadcast_to(lost, (40, 4)))
    wrong = rng.multinomial(6, [0.25] * 4, size=40)
    return right - missing + wrong, missing, asked


def test_picks_are_not_tested_where_answers_are_missing_by_position():
    """Without the guard nearly every cell would be called biased, though the model prefers no slot."""
    rng, raw, guarded = np.random.default_rng(3), 0, 0
    for seed in range(20):
        picks, missing, asked = unbiased_with_gaps(rng, (0, 0, 0, 0.4))
        found = relabel_picks(picks, n_draws=199, seed=seed).result
        unanswered = relabel_unanswered(missing, asked, n_draws=199, seed=seed).result
        kept = guarded_picks(found, unanswered, int(missing.sum()), alpha=0.05)
        raw += found.p < 0.05
        guarded += kept.p is not None and kept.p < 0.05
        assert kept.status == "not_measurable"
        assert f"{missing.sum()} of 960 calls have no usable answer" in kept.reason
    assert (raw, guarded) == (20, 0)


def test_picks_are_tested_where_answers_are_missing_anywhere_or_nowhere():
    rng, untested = np.random.default_rng(4), 0
    for seed in range(40):
        picks, missing, asked = unbiased_with_gaps(rng, 0.2)
        unanswered = relabel_unanswered(missing, asked, n_draws=199, seed=seed).result
        found = relabel_picks(picks, n_draws=199, seed=seed).result
        untested += guarded_picks(found, unanswered, 1, alpha=0.05).p is None
    assert untested <= 6  # of 40, where .05 is meant: P(more) < .01
    none = relabel_unanswered(np.zeros((40, 4)), asked, seed=1).result
    assert (none.status, none.p) == ("degenerate", 1.0)
    assert guarded_picks(found, none, 0, alpha=0.05) is found


def test_without_calls_there_is_no_test():
    nothing = np.zeros((3, 4))
    results = [
        relabel_accuracy(nothing, nothing, seed=1).result,
        relabel_picks(nothing, seed=1).result,
        recentred_bootstrap(nothing, nothing, seed=1),
    ]
    assert {(found.status, found.p, found.reason) for found in results} == {("undefined", None, "no scored calls")}
