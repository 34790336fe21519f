"""A model id that changes within a cell splits it; nothing over the mixture decides anything."""

import pytest
from planted import make_items, make_outcomes, make_replies, make_study, make_trials, the_cell

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.designs.mcq.quantities import describe
from counterbalance.errors import InputError
from counterbalance.prereg.judge import judge
from counterbalance.prereg.predictions import PREDICTIONS
from counterbalance.stages.contrast import combine_tables, estimate_cell_table

PLACE = {"experiment": "letters", "model": "planted", "subset": "sums"}
BIASED = {"ability_mean": 0.2, "call_noise": 0.3, "slot_bonus": [3.0, 0.0]}


@pytest.fixture
def study(tmp_path):
    return make_study(tmp_path, respondent=BIASED)


def cell_rows(study, rename):
    trials = make_trials(study, make_items(12))
    replies = make_replies(study, trials)
    for place, reply in enumerate(replies):
        rename(place, reply)
    table = estimate_cell_table(study, the_cell(study), make_outcomes(study, trials, replies))
    estimates, _ = combine_tables(study, [table])
    return estimates, {row["quantity"]: row for row in estimates.to_pylist()}


def drift(place, reply):
    """The respondent changes its name, and its mind, for the last third of the calls."""
    reply["model_returned"] = "m-2025-11-01" if place < 48 else "m@latest 2"
    if place >= 48:
        reply["text"] = "C"


def test_a_planted_drift_splits_the_cell(study) -> None:
    _, rows = cell_rows(study, drift)
    assert (rows["verdict"]["label"], rows["verdict"]["status"]) == ("not_measurable", "not_measurable")
    assert "48 by m-2025-11-01, 24 by m@latest 2" in rows["verdict"]["reason"]
    assert rows["models_returned"]["estimate"] == 2
    assert rows["picks.slot_3@model=m@latest 2"]["estimate"] == 1
    assert rows["picks.slot_1@model=m-2025-11-01"]["estimate"] > 0.6
    assert rows["accuracy@model=m@latest 2"]["n_calls"] == 24
    assert rows["accuracy@model=m-2025-11-01"]["n_calls"] == 48


def test_each_part_has_all_quantities_of_a_whole_cell(study) -> None:
    _, alone = cell_rows(study, lambda place, reply: None)
    _, rows = cell_rows(study, drift)
    parts = {name.partition("@model=")[0] for name in rows if name.endswith("@model=m-2025-11-01")}
    assert parts == alone.keys() - {"verdict"}


def test_numbers_over_the_mixture_decide_nothing(study) -> None:
    estimates, rows = cell_rows(study, drift)
    plain = [row for name, row in rows.items() if "@model=" not in name and name not in ("verdict", "models_returned")]
    assert {row["status"] for row in plain} <= {"not_measurable", "undefined"}
    assert all(row["p"] is None and row["p_adjusted"] is None and row["label"] is None for row in plain)
    # The planned tests were not made, and they still count in the family.
    assert [name for name, row in rows.items() if row["family"]] == ["relabelling.accuracy", "relabelling.picks"]
    said = [
        {"id": "P1", **PLACE, "quantity": "picks.slot_1", "rule": "at_least", "value": 0.1},
        {"id": "P2", **PLACE, "quantity": "relabelling.picks", "rule": "p_below", "value": 0.05},
        {"id": "P3", **PLACE, "quantity": "shape.label", "rule": "label_is", "value": "first"},
        {"id": "P4", **PLACE, "quantity": "verdict", "rule": "label_is", "value": "bias"},
    ]
    judged = judge(PREDICTIONS.validate_python(said), estimates).to_pylist()
    assert [row["verdict"] for row in judged] == ["not_evaluable"] * 4
    assert "more than one model" in judged[0]["reason"]


def test_one_model_or_a_changed_fingerprint_splits_nothing(study) -> None:
    def renew(place, reply):
        reply["fingerprint"] = f"fp-{place % 3}"

    _, rows = cell_rows(study, renew)
    assert rows["verdict"]["label"] == "bias"
    assert not [name for name in rows if "@model=" in name or name == "models_returned"]


def test_replies_that_name_no_model_are_counted_and_belong_to_no_part(study) -> None:
    def forget(place, reply):
        drift(place, reply)
        if place % 10 == 0:
            reply["model_returned"] = None

    _, rows = cell_rows(study, forget)
    assert "8 by a model that the reply does not name" in rows["verdict"]["reason"]
    parts = [row["n_calls"] for name, row in rows.items() if name.startswith("status.ok@model=")]
    assert sum(parts) == 72 - 8


def test_the_names_of_parts_have_meanings() -> None:
    assert describe("accuracy.slot_1@k=3@model=m@latest").endswith("Only calls that m@latest answered.")
    assert "items with 3 options" in describe("accuracy@k=3@model=x")
    for name in ("accuracy@model=", "accuracy@k=x", "accuracy@other=1"):
        with pytest.raises(InputError, match="mcq has no quantity"):
            describe(name)


def test_the_estimates_of_a_mixed_cell_fit_the_schema(study, tmp_path) -> None:
    from counterbalance.artifacts import write_table

    estimates, _ = cell_rows(study, drift)
    path = tmp_path / "estimates.parquet"
    write_table(path, estimates, SCHEMAS["estimates"])
    assert read_table(path, SCHEMAS["estimates"]).equals(estimates)
