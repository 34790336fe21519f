"""Half-effects of the four cells: planted values come back, relabelling changes only the signs that it should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.designs.crossing.effects import EFFECTS, flagged, half_effects, null_controls
from counterbalance.errors import InputError

# Rows: e1 to e4. B second or first, B recent or stale, stale first or second, by the definition of the cells.
SECOND = np.array([1, -1, -1, 1])
RECENT = np.array([1, 1, -1, -1])
STALE_FIRST = np.array([1, -1, 1, -1])

nats = st.floats(-10, 10)


@settings(max_examples=50, deadline=None)
@given(nats, nats, nats, nats)
def test_planted_effects_come_back(token, role, order, serial):
    cells = token + role * RECENT + order * STALE_FIRST + serial * SECOND
    found = half_effects(cells[None, :])
    assert [found[name][0] for name in EFFECTS] == pytest.approx([token, role, order, serial], abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(nats, min_size=4, max_size=4))
def test_swapping_the_answers_turns_token_and_order_only(cells):
    # With A and B exchanged, e1 becomes -e3, e2 -e4, and the reverse.
    e1, e2, e3, e4 = cells
    before, after = half_effects([cells]), half_effects([[-e3, -e4, -e1, -e2]])
    signs = {"token": -1, "role": 1, "order": -1, "serial": 1}
    for name, sign in signs.items():
        assert after[name][0] == pytest.approx(sign * before[name][0], abs=1e-12)


def test_flags_are_strict_inequalities_in_both_directions():
    token = np.array([2.0, 2.01, -2.01, 0, 0, 0])
    order = np.array([0, 0, 0, 0.5, 0.51, -0.51])
    assert flagged(token, order).tolist() == [False, True, True, False, True, True]


def test_role_is_no_null_control_in_a_loaded_body():
    assert null_controls("loaded") == ("order",)
    assert null_controls("verbatim") == null_controls("mixed") == null_controls(None) == ("role", "order")


@pytest.mark.parametrize("cells", [[1, 2, 3, 4], [[1, 2, 3]], [[1, 2, 3, float("nan")]]])
def test_other_shapes_and_gaps_are_refused(cells):
    with pytest.raises(InputError, match=r"expected \(items, 4\)"):
        half_effects(cells)
