"""A planted respondent is recovered, broken counterbalancing shows in the control, and nothing is silent."""

import json
import math
import random
from dataclasses import replace

import pyarrow as pa
import pytest
from crossing_cases import (
    Planted,
    estimates_of,
    lean,
    make_outcomes,
    make_replies,
    make_study,
    make_trials,
    run_cell,
    the_cell,
)

from counterbalance.artifacts import SCHEMAS
from counterbalance.designs import get_design
from counterbalance.designs.crossing.conditions import CONDITIONS
from counterbalance.errors import ConfigError, InputError
from counterbalance.prereg.judge import judge
from counterbalance.prereg.plan import parse_plan
from counterbalance.prereg.predictions import PREDICTIONS
from counterbalance.stages.contrast import combine_tables, estimate_cell_table
from counterbalance.verification.differences import compare

SERIAL = {
    "T1": -0.5,
    "T1c": -0.9,
    "T2": -0.4,
    "T2c": -0.6,
    "T3": -0.7,
    "T3c": -0.6,
    "T4": -0.2,
    "T4c": -0.5,
    "T5": -0.2,
}
PLANTED = Planted(token=-0.3, role={"T5": 0.5, "T5b": 1.0}, serial=SERIAL, wording=0.4, item_sd=0.15)
CONTRASTS = {
    "contrasts": [
        {
            "id": "A1",
            "expression": "T1c.serial - T1.serial",
            "status": "inferential",
            "family": "A",
            "about_cues": True,
        },
        {
            "id": "A2",
            "expression": "T3c.serial - T3.serial",
            "status": "inferential",
            "family": "A",
            "about_cues": True,
        },
        {"id": "pooled", "expression": "mean(A1, A2)", "status": "descriptive", "about_cues": True},
        {
            "id": "C3",
            "expression": "(T4c.serial - T2c.serial) - (T3c.serial - T1c.serial)",
            "status": "inferential",
        },
        {"id": "B1", "expression": "T2.serial - T1.serial", "status": "confounded"},
        {"id": "D", "expression": "T5b.role / T5b.token", "status": "descriptive"},
    ]
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return run_cell(make_study(tmp_path_factory.mktemp("planted"), contrasts=CONTRASTS), PLANTED)


@pytest.mark.parametrize("effect", ["token", "role", "order", "serial"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_planted_effect_is_recovered_with_an_interval_of_the_right_width(rows, effect, condition) -> None:
    planted = {
        "token": PLANTED.token,
        "order": 0.0,
        "role": PLANTED.role.get(condition, 0.0),
        "serial": SERIAL.get(condition, 0.0),
    }[effect]
    row = rows[f"{effect}.{condition}"]
    assert row["status"] == "ok"
    assert row["n_items"] == 14
    # What was planted: 14 items of SD .15, none of them in order, and the noise of four calls or eight.
    items_sd = 0.0 if effect == "order" else PLANTED.item_sd
    error = math.sqrt((items_sd**2 + 0.05**2 / (4 * len(CONDITIONS[condition].assignments))) / 14)
    assert abs(row["estimate"] - planted) < 4 * error
    # 1.8 of them if SD were known; that of 14 items is within a factor of two of it.
    assert row["low"] < row["estimate"] < row["high"]
    assert 0.9 * error < (row["high"] - row["low"]) / 2 < 3.6 * error


def test_intervals_cover_what_was_planted_as_often_as_they_say(tmp_path) -> None:
    study = make_study(tmp_path, crossing={"conditions": [{"header": "framed", "body": "mixed", "cues": 2}]})
    trials = make_trials(study)
    expected = {"token": 0.2, "role": 0.1, "order": 0.05, "serial": -0.3}
    covered = dict.fromkeys(expected, 0)
    for seed in range(40):
        planted = Planted(token=0.2, role={"T4c": 0.1}, order=0.05, serial={"T4c": -0.3}, wording=0.5, seed=seed)
        found = estimates_of(study, make_outcomes(study, trials, make_replies(trials, lean(planted, trials))))
        for effect, value in expected.items():
            row = found[f"{effect}.T4c"]
            covered[effect] += row["low"] <= value <= row["high"]
    # At n = 14 a 95% BCa interval covers about .91 (docs/contrasts.md): 32 or fewer of 40 would be p < .04.
    assert min(covered.values()) > 32, covered


def test_the_interaction_of_serial_with_wording_is_recovered_by_its_contrast(rows) -> None:
    expected = (SERIAL["T4c"] - SERIAL["T2c"]) - (SERIAL["T3c"] - SERIAL["T1c"])
    row = rows["contrast.C3"]
    assert row["low"] < expected < row["high"]
    assert (row["status"], row["n_items"]) == ("ok", 14)
    assert rows["contrast.A1"]["low"] < -0.4 < rows["contrast.A1"]["high"]


def test_a_lean_to_one_wording_of_a_mixed_pair_is_averaged_out(rows) -> None:
    assert [rows[f"null.role.{name}"]["label"] for name in ("T2", "T4")] == ["pass", "pass"]
    assert abs(rows["role.T2"]["estimate"]) < 0.2 < PLANTED.wording


def test_statuses_families_and_warnings_of_contrasts_reach_the_table(rows) -> None:
    a1, a2 = rows["contrast.A1"], rows["contrast.A2"]
    assert a1["family"] == a2["family"] == "contrasts of family A, in this cell"
    # Holm over two: the smaller p doubled, and none above the other.
    assert a1["p_adjusted"] == pytest.approx(min(1, 2 * min(a1["p"], a2["p"])))
    assert rows["contrast.C3"]["p_adjusted"] is None
    assert (rows["contrast.B1"]["status"], rows["contrast.pooled"]["status"]) == ("descriptive", "descriptive")
    assert rows["contrast.B1"]["reason"].startswith("confounded; cue counts differ (T2 1, T1 0)")
    assert "pools A1 and A2, which differ" in rows["contrast.pooled"]["reason"]
    assert rows["ratio_of_means.D"]["estimate"] == pytest.approx(
        rows["role.T5b"]["estimate"] / rows["token.T5b"]["estimate"]
    )


def test_role_is_no_control_where_the_body_is_loaded(rows) -> None:
    labels = {name: rows[f"null.role.{name}"]["label"] for name in CONDITIONS}
    assert {name for name, label in labels.items() if label == "not_applicable"} == {"T5", "T5b"}
    assert set(labels.values()) <= {"pass", "fail", "not_applicable"}


def test_the_serial_effects_of_all_conditions_are_one_family(rows) -> None:
    family = [name for name, row in rows.items() if row["family"] == "notes: confirmatory tests"]
    assert sorted(family) == sorted(f"serial.{name}" for name in CONDITIONS)
    smallest = min(rows[name]["p"] for name in family)
    assert rows["serial.T1c"]["p_adjusted"] == pytest.approx(10 * smallest)
    assert (rows["verdict"]["label"], rows["verdict"]["status"]) == ("primacy", "ok")


@pytest.mark.parametrize(
    ("planted", "kept"),
    [
        (PLANTED, range(9, 15)),
        # So large that broken items are flagged for their order effect: most of what shows the fault is not kept.
        (replace(PLANTED, serial={**SERIAL, "T1c": -1.05}, item_sd=0.2), range(1, 9)),
    ],
)
def test_broken_counterbalancing_fails_the_order_control(tmp_path, planted, kept) -> None:
    study = make_study(tmp_path)
    trials = make_trials(study)
    leans = lean(planted, trials)
    # The printer forgot to exchange the blocks in e3: the recent block stands first there as well, so that the reply
    # is one to the prompt of e4.
    rows = trials.to_pylist()
    place = {(row["item_id"], row["condition"], row["arrangement_index"]): n for n, row in enumerate(rows)}
    broken = [
        leans[place[row["item_id"], row["condition"], row["arrangement_index"] + (row["arrangement_index"] % 4 == 2)]]
        for row in rows
    ]
    sound = estimates_of(study, make_outcomes(study, trials, make_replies(trials, leans)))
    found = estimates_of(study, make_outcomes(study, trials, make_replies(trials, broken)))
    for name in ("T1", "T1c", "T3"):
        assert sound[f"null.order.{name}"]["label"] == "pass"
        assert found[f"null.order.{name}"]["label"] == "fail"
        # With e3 = e4, order is (e1 - e2) / 4, and e1 - e2 = 2 (order + serial).
        expected = (sound[f"order.{name}@all"]["estimate"] + sound[f"serial.{name}@all"]["estimate"]) / 2
        assert found[f"order.{name}@all"]["estimate"] == pytest.approx(expected)
    assert (sound["verdict"]["label"], found["verdict"]["label"]) == ("primacy", "control_failed")
    assert "T1c" in found["verdict"]["reason"]
    assert found["items.kept"]["estimate"] in kept


def test_the_order_control_has_the_smaller_p_of_both_sets_doubled_where_they_differ(tmp_path) -> None:
    """An item that is not kept makes two tests of one: 6 kept items, all on one side, are enough for one only."""
    dials = [{"header": "neutral", "body": "verbatim", "cues": 0}]
    labels = []
    for n_items, odd in ((6, 0), (6, 1), (7, 0), (7, 1)):
        root = tmp_path / f"{n_items}-{odd}"
        root.mkdir()
        study = make_study(root, items=n_items + odd, crossing={"conditions": dials})
        trials = make_trials(study)
        leans = lean(Planted(order=0.3), trials)
        last = f"door{n_items + odd:02d}"
        for place, row in enumerate(trials.to_pylist()):
            if odd and row["item_id"] == last:
                leans[place] = 2.5
        found = estimates_of(study, make_outcomes(study, trials, make_replies(trials, leans)))
        assert found["items.kept"]["estimate"] == n_items
        assert found["order.T1"]["p"] == pytest.approx(2 / 2**n_items)
        labels.append(found["verdict"]["label"])
    # 6 items: p = .031, doubled .062; 7 items: .016, doubled .031.
    assert labels == ["control_failed", "no_serial_effect", "control_failed", "control_failed"]


def test_a_control_that_is_off_by_the_same_in_every_item_fails(tmp_path) -> None:
    study = make_study(tmp_path)
    trials = make_trials(study)
    signs = (1, -1, 1, -1)
    labels = {}
    for order in (0.0, 0.25):
        leans = [0.5 + order * signs[row["arrangement_index"] % 4] for row in trials.to_pylist()]
        found = estimates_of(study, make_outcomes(study, trials, make_replies(trials, leans)))
        assert found["order.T1"]["status"] == "degenerate"
        labels[order] = (found["null.order.T1"]["label"], found["verdict"]["label"])
    assert labels == {0.0: ("not_evaluable", "degenerate"), 0.25: ("fail", "control_failed")}
    assert found["null.order.T1"]["reason"].startswith("all 14 items have the same value")


def test_items_of_one_source_weigh_as_items_and_resample_as_one(tmp_path) -> None:
    study = make_study(tmp_path, contrasts=CONTRASTS)
    trials = make_trials(study)
    outcomes = make_outcomes(study, trials, make_replies(trials, lean(replace(PLANTED, item_sd=0.4), trials)))
    shared = {"door01", "door02", "door03", "door04"}
    groups = ["shared" if item in shared else item for item in outcomes.column("item_id").to_pylist()]
    column = outcomes.schema.get_field_index("group_id")
    grouped = outcomes.set_column(column, outcomes.schema.field(column), pa.array(groups))
    alone, joined = estimates_of(study, outcomes), estimates_of(study, grouped)
    for name in ("serial.T1@all", "role.T5b@all", "contrast.C3@all", "token.T2"):
        assert joined[name]["estimate"] == pytest.approx(alone[name]["estimate"])
        assert joined[name]["low"] != alone[name]["low"]
        assert (alone[name]["n_items"] - joined[name]["n_items"], joined[name]["n_calls"]) == (
            3,
            alone[name]["n_calls"],
        )


def test_calls_are_counted_of_the_items_behind_a_number(tmp_path) -> None:
    def spoil(replies):
        for reply in replies:
            if reply["trial_id"].startswith("door02.T1.0001"):
                reply |= {"status": "refused", "option_logprobs": None}

    entries = [
        {"id": "A", "expression": "T1c.serial - T1.serial", "status": "descriptive"},
        {"id": "B", "expression": "T5.serial", "status": "descriptive"},
        {"id": "R", "expression": "T1.serial / (T1.role - T1.role)", "status": "descriptive"},
    ]
    dials = [{"header": "neutral", "body": "verbatim", "cues": cues} for cues in (0, 2)]
    study = make_study(tmp_path, contrasts={"contrasts": entries}, crossing={"conditions": dials})
    found = run_cell(study, PLANTED, spoil)
    numbers = {name: (found[name]["n_items"], found[name]["n_calls"]) for name in found if name.endswith("@all")}
    assert numbers["serial.T1@all"] == (13, 13 * 4)
    assert numbers["serial.T1c@all"] == (14, 14 * 4)
    assert numbers["contrast.A@all"] == (13, 13 * 8)
    assert numbers["contrast.B@all"] == numbers["contrast.R@all"] == (0, 0)
    assert found["answer_mass.T1"]["n_calls"] == 14 * 4 - 1
    assert "ratio" not in found["contrast.R@all"]["reason"]


def test_what_differs_between_the_sets_is_listed(tmp_path) -> None:
    study = make_study(tmp_path, contrasts=CONTRASTS)
    trials = make_trials(study)
    leans = lean(Planted(serial={"T1": -0.15}, item_sd=0.08), trials)
    signs = (1, -1, -1, 1)
    for n, row in enumerate(trials.to_pylist()):
        if row["item_id"] == "door14":
            # One item with a huge token effect, so that it is flagged, and a serial effect against the others.
            leans[n] = 3.0 + (signs[row["arrangement_index"] % 4] * 2.0 if row["condition"] == "T1" else 0.0)
    found = estimates_of(study, make_outcomes(study, trials, make_replies(trials, leans)))
    assert found["items.kept"]["estimate"] == 13
    assert "left out: door14" in found["items.kept"]["reason"]
    assert found["flagged.T1"]["reason"].endswith("flagged: door14")
    kept, whole = found["serial.T1"], found["serial.T1@all"]
    assert (kept["n_items"], whole["n_items"]) == (13, 14)
    differ = [
        name.removesuffix("@all")
        for name, row in found.items()
        if name.endswith("@all") and name.split(".")[0] in ("token", "role", "order", "serial", "contrast")
        if _excludes(row) != _excludes(found[name.removesuffix("@all")])
    ]
    assert "serial.T1" in differ
    assert found["sets_differ"]["estimate"] == len(differ)
    assert all(f"{name} excludes zero on " in found["sets_differ"]["reason"] for name in differ)


def _excludes(row):
    return None if row["low"] is None else row["low"] > 0 or row["high"] < 0


def test_a_written_answer_is_analysed_on_the_probability_scale_and_says_so(tmp_path) -> None:
    study = make_study(tmp_path, read={"kind": "generate"}, repeats=4, contrasts=CONTRASTS)
    found = run_cell(study, Planted(serial=dict.fromkeys(CONDITIONS, -1.0)))
    row = found["serial.T1"]
    assert "probability (share of answers, not nats)" in row["method"]
    # P(B) is 1 / (1 + exp(±1)) by cell: half-effects of .231.
    assert row["estimate"] == pytest.approx(-(1 / (1 + math.exp(-1)) - 0.5), abs=0.08)
    assert found["tost.serial.T1"]["method"] == "two one-sided t tests against ±0.0375"
    assert "does not apply" in found["items.kept"]["method"]
    assert found["verdict"]["label"] == "primacy"


@pytest.mark.parametrize(
    ("planted", "items", "label"),
    [
        (Planted(serial=dict.fromkeys(CONDITIONS, 0.4)), 14, "recency"),
        (Planted(serial={**dict.fromkeys(CONDITIONS, 0.4), "T1": -0.6}), 14, "both_ways"),
        (Planted(item_sd=0.02), 14, "no_serial_effect"),
        (Planted(item_sd=0.8), 14, "undecided"),
        (Planted(serial=dict.fromkeys(CONDITIONS, -0.5)), 5, "not_measurable"),
        (Planted(order=0.3), 14, "control_failed"),
    ],
)
def test_the_word_for_a_cell(tmp_path, planted, items, label) -> None:
    found = run_cell(make_study(tmp_path, items=items), planted)
    assert found["verdict"]["label"] == label
    assert (found["verdict"]["status"] == "ok") == (label not in ("undecided", "not_measurable"))


def test_items_that_do_not_vary_are_degenerate(tmp_path) -> None:
    study = make_study(tmp_path)
    trials = make_trials(study)
    found = estimates_of(study, make_outcomes(study, trials, make_replies(trials, [0.25] * trials.num_rows)))
    assert found["verdict"]["label"] == "degenerate"
    assert found["serial.T1"]["status"] == "degenerate"


def test_a_cell_without_any_answer_has_reasons_and_no_numbers(tmp_path) -> None:
    def refuse(replies):
        for reply in replies:
            reply |= {"status": "refused", "option_logprobs": None}

    found = run_cell(make_study(tmp_path, items=6, contrasts=CONTRASTS), PLANTED, refuse)
    assert found["verdict"]["label"] == "not_measurable"
    assert found["status.refused"]["estimate"] == 1
    assert found["items.kept"]["estimate"] == 0
    for name, row in found.items():
        if name.startswith(("serial.", "contrast.")):
            assert row["estimate"] is None
            assert row["status"] == "undefined"
            assert row["reason"]


def test_answers_of_several_tokens_are_listed_per_model(tmp_path) -> None:
    def split(replies):
        for reply in replies:
            if reply["trial_id"].startswith(("door03.", "door07.")):
                reply["option_tokens"] = [2, 1]

    found = run_cell(make_study(tmp_path), PLANTED, split)
    assert found["items.kept"]["estimate"] == 12
    assert "door03 (4 several tokens of 4 calls), door07" in found["incomplete.T1"]["reason"]
    assert found["serial.T1"]["n_items"] == found["serial.T1@all"]["n_items"] == 12


def test_every_quantity_has_a_meaning_and_no_other_has(rows) -> None:
    design = get_design("crossing")
    for name in rows:
        assert design.describe(name).endswith(".")
        assert design.describe(f"{name}@model=m-1").endswith("m-1 answered.")
    for name in ("serial.T6", "serial", "null.serial.T1", "accuracy", "serial.T1@k=3", "verdict@all", "contrast.", "x"):
        with pytest.raises(InputError, match="crossing has no quantity"):
            design.describe(name)


def test_predictions_name_effects_controls_contrasts_and_the_verdict(tmp_path) -> None:
    study = make_study(tmp_path, contrasts=CONTRASTS)
    trials = make_trials(study)
    outcomes = make_outcomes(study, trials, make_replies(trials, lean(PLANTED, trials)))
    table = combine_tables(study, [estimate_cell_table(study, the_cell(study), outcomes)])[0]
    place = {"experiment": "notes", "model": "planted", "subset": "doors"}
    said = [
        {"id": "P1", **place, "quantity": "contrast.A1", "rule": "interval_below", "value": 0},
        {"id": "P2", **place, "quantity": "null.order.T1", "rule": "label_is", "value": "pass"},
        {"id": "P3", **place, "quantity": "serial.T1@all", "rule": "between", "low": -0.7, "high": -0.3},
        {"id": "P4", **place, "quantity": "contrast.A1", "rule": "p_below", "value": 0.05},
        {"id": "P5", **place, "quantity": "verdict", "rule": "label_is", "value": "recency"},
        {"id": "P6", **place, "quantity": "tost.serial.T5b", "rule": "p_below", "value": 0.05},
    ]
    judged = {row["prediction"]: row for row in judge(PREDICTIONS.validate_python(said), table).to_pylist()}
    assert [judged[f"P{n}"]["verdict"] for n in range(1, 7)] == ["confirmed"] * 4 + ["falsified", "confirmed"]
    assert "adjusted" in judged["P4"]["reason"]


def test_estimates_do_not_depend_on_the_order_of_replies(tmp_path) -> None:
    study = make_study(tmp_path, contrasts=CONTRASTS)
    trials = make_trials(study)
    replies = make_replies(trials, lean(PLANTED, trials))
    first = estimate_cell_table(study, the_cell(study), make_outcomes(study, trials, replies))
    random.Random(3).shuffle(replies)
    second = estimate_cell_table(study, the_cell(study), make_outcomes(study, trials, replies))
    assert compare(first, second, SCHEMAS["estimates"]).text is None
    assert first.equals(second)


def test_a_cell_that_two_models_answered_decides_nothing(tmp_path) -> None:
    def rename(replies):
        for reply in replies[400:]:
            reply["model_returned"] = "other"

    found = run_cell(make_study(tmp_path, contrasts=CONTRASTS), PLANTED, rename)
    assert found["verdict"]["label"] == "not_measurable"
    assert found["contrast.A1"]["p_adjusted"] is None
    assert found["serial.T1@model=planted"]["n_items"] >= 6


@pytest.mark.parametrize(
    ("quantity", "reason"),
    [
        ("contrast.A9", "no contrast 'A9' is planned; there are A1, A2"),
        ("tost.contrast.A9@all", "no contrast 'A9'"),
        ("ratio_of_means.A9", "no contrast 'A9'"),
        ("serial.T5b", "condition T5b is not asked; there are T1, T4c"),
        ("flagged.T2", "condition T2 is not asked"),
        ("contrast.A1", None),
        ("tost.serial.T4c@all", None),
        ("verdict", None),
        ("status.ok.e1", None),
    ],
)
def test_what_will_not_be_there_is_known_before_the_freeze(tmp_path, quantity, reason) -> None:
    asked = [
        {"header": "neutral", "body": "verbatim", "cues": 0},
        {"header": "framed", "body": "mixed", "cues": 2},
    ]
    study = make_study(tmp_path, contrasts=CONTRASTS, crossing={"conditions": asked})
    line = {"id": "P1", "experiment": "notes", "model": "planted", "subset": "doors", "quantity": quantity}
    line |= {"rule": "label_is", "value": "x"}
    text = f"```yaml predictions\n[{json.dumps(line)}]\n```\n".encode()
    if reason is None:
        assert len(parse_plan(text, study, source="plan.md")) == 1
    else:
        with pytest.raises(ConfigError, match=reason):
            parse_plan(text, study, source="plan.md")
