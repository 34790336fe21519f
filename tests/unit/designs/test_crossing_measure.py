"""From outcomes to e1 to e4: averages, flags, and what is incomplete."""

import pyarrow as pa
import pytest
from crossing_cases import make_outcomes, make_replies, make_study, make_trials

from counterbalance.designs.crossing.measure import measure


def measured(study, leans, change=lambda rows: None, kind="option_text"):
    trials = make_trials(study)
    given = [leans(row) for row in trials.to_pylist()]
    replies = make_replies(trials, given, kind)
    change(replies)
    return measure(make_outcomes(study, trials, replies))


def place(row):
    return row["condition"], row["arrangement_index"]


def test_repeats_are_averaged_within_an_assignment_and_assignments_with_equal_weight(tmp_path) -> None:
    study = make_study(tmp_path, items=1, repeats=2)
    # Cell e1 of T2: 1 and 3 in the first assignment, 8 and 10 in the second.
    found = measured(study, lambda r: {0: 1.0, 4: 8.0}.get(r["arrangement_index"], 0.0) + 2.0 * r["repeat"])

    def refuse(rows):
        for row in rows:
            if row["trial_id"] == "door01.T2.0004.01":
                row |= {"status": "refused", "option_logprobs": None}

    assert found.cells["T2"]["door01"] == pytest.approx(((2 + 9) / 2, 1, 1, 1))
    assert found.cells["T1"]["door01"] == pytest.approx((2, 1, 1, 1))
    # One refused repeat leaves its assignment with the other repeat, at the same weight.
    again = measured(study, lambda r: {0: 1.0, 4: 8.0}.get(r["arrangement_index"], 0.0) + 2.0 * r["repeat"], refuse)
    assert again.cells["T2"]["door01"][0] == pytest.approx((2 + 8) / 2)
    assert again.calls["T2"]["door01"] == 15


def test_an_item_with_a_missing_cell_is_incomplete_there_and_not_kept(tmp_path) -> None:
    study = make_study(tmp_path, items=3)

    def refuse(rows):
        for row in rows:
            if row["trial_id"].startswith("door02.T3.0001"):
                row |= {"status": "refused", "option_logprobs": None}

    found = measured(study, lambda r: 0.1, refuse)
    assert found.missing["T3"] == {"door02": "1 refused of 4 calls"}
    assert list(found.cells["T3"]) == ["door01", "door03"]
    assert list(found.cells["T1"]) == ["door01", "door02", "door03"]
    assert found.kept == ("door01", "door03")
    assert found.statuses["T3"]["e2"] == {"ok": 2, "refused": 1}
    assert found.table(found.items).present["T3"].tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("token", "order", "out"),
    [
        (2.0, 0.0, False),
        (2.01, 0.0, True),
        (-2.01, 0.0, True),
        (0.0, 0.5, False),
        (0.0, 0.51, True),
        (0.0, -0.51, True),
    ],
)
def test_the_rule_for_flags_and_its_bounds(tmp_path, token, order, out) -> None:
    study = make_study(tmp_path, items=2)
    signs = (1, -1, 1, -1)

    def lean(row):
        if row["item_id"] != "door01" or row["condition"] != "T2c":
            return 0.0
        # A hair inwards, so that rounding does not decide.
        return (token + signs[row["arrangement_index"] % 4] * order) * (1 - 1e-12)

    found = measured(study, lean)
    assert found.flagged("T2c") == (("door01",) if out else ())
    assert found.flagged("T1") == ()
    assert found.kept == (("door02",) if out else ("door01", "door02"))


def test_items_of_one_source_are_one_unit(tmp_path) -> None:
    study = make_study(tmp_path, items=3)
    trials = make_trials(study)
    groups = ["shared" if item != "door03" else "door03" for item in trials.column("item_id").to_pylist()]
    column = trials.schema.get_field_index("group_id")
    trials = trials.set_column(column, trials.schema.field(column), pa.array(groups))
    token = {"door01": 0.2, "door02": 0.6, "door03": -1.0}
    replies = make_replies(trials, [token[row["item_id"]] for row in trials.to_pylist()])
    found = measure(make_outcomes(study, trials, replies))
    table = found.table(found.items)
    assert table.units == ("shared", "shared", "door03")
    means, sizes = table.by_unit(table.effects["T1"]["token"], table.present["T1"])
    assert (means.tolist(), sizes.tolist()) == (pytest.approx([0.4, -1.0]), [2, 1])
    assert found.table(["door01", "door03"]).units is None


def test_choices_are_shares_around_one_half_and_never_flagged(tmp_path) -> None:
    study = make_study(tmp_path, items=1, repeats=2, read={"kind": "generate"})
    trials = make_trials(study)
    replies = make_replies(trials, [50.0] * trials.num_rows, "generate")
    for trial, reply in zip(trials.to_pylist(), replies, strict=True):
        if place(trial) == ("T1", 1) and trial["repeat"] == 1:
            reply["text"] = trial["labels"][trial["arrangement"].index("o1")]
    found = measure(make_outcomes(study, trials, replies))
    assert found.scale == "probability"
    assert found.cells["T1"]["door01"] == (0.5, 0.0, 0.5, 0.5)
    assert found.effects("T1")["token"]["door01"] == 0.375
    assert all(found.flagged(condition) == () for condition in found.conditions)
    assert found.mass["T1"] is None
