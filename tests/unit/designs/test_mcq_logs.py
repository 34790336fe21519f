"""Logs of somebody else's runs: what the further columns add, and what they refuse."""

import pytest

from counterbalance.config import Analysis
from counterbalance.designs.mcq.estimate import estimate
from counterbalance.errors import InputError
from counterbalance.logs import read_runs

QUICK = Analysis(resamples=199, run_resamples=99)
HEADER = "item_id,n_options,correct_slot,picked_slot"


def write(path, header, *rows):
    path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    return path


def test_groups_orders_and_options_reach_the_estimates(tmp_path) -> None:
    """Four items in two groups, two orders each, the first asked twice; item q0 changes its option with the order."""
    rows = []
    for item in range(4):
        for order, gold, asked in (("xy", 0, 2), ("yx", 1, 1)):
            picked = 0 if item == 0 else gold
            rows += [f"q{item},2,{gold},{picked},g{item // 2},{'xy' if picked == gold else 'no'},{order}"] * asked
    path = write(tmp_path / "runs.csv", f"{HEADER},group_id,picked_option,order", *rows)
    table = read_runs(path)
    assert table.column("arrangement_index").to_pylist() == [0, 0, 1] * 4
    assert table.column("repeat").to_pylist() == [0, 1, 0] * 4
    found = estimate(QUICK, table)
    assert (found["accuracy"].n_items, found["accuracy"].n_calls) == (4, 12)
    assert found["groups"].estimate == 2
    assert found["flip_rate"].estimate == pytest.approx(1 / 4)
    assert (found["disagreement.same_order"].estimate, found["disagreement.other_order"].estimate) == (0, 1 / 4)


def test_without_them_every_call_is_an_order_and_options_are_unknown(tmp_path) -> None:
    table = read_runs(write(tmp_path / "runs.csv", HEADER, "a,2,0,0", "a,2,1,0", "b,2,0,"))
    assert table.column("arrangement_index").to_pylist() == [0, 1, 0]
    assert table.column("group_id").to_pylist() == ["a", "a", "b"]
    assert estimate(QUICK, table)["flip_rate"].status == "undefined"


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("group_id", ["a,2,0,0,g", "a,2,1,0,h"], r"line 3, group_id: item 'a' is in 'h' here and in 'g' on line 2"),
        ("group_id", ["a,2,0,0, "], "line 2, group_id: empty"),
        ("picked_option", ["a,2,0,,x"], "line 2, picked_option: found 'x' beside picked_slot ''"),
        ("picked_option", ["a,2,0,1,"], "expected both or neither"),
        ("colour", ["a,2,0,1,red"], "line 1: header"),
        ("item_id", ["a,2,0,1,a"], "line 1: header"),
        ("order", ["a,2,0,1"], "line 2: 4 fields; expected 5"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path, header, rows, message) -> None:
    with pytest.raises(InputError, match=message):
        read_runs(write(tmp_path / "runs.csv", f"{HEADER},{header}", *rows))
