"""Planned contrasts by slot, and nats by slot, through the engine: by hand, planted, refused, predicted, shown."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from planted import make_items, make_outcomes, make_replies, make_study, make_trials

from counterbalance.artifacts import SCHEMAS
from counterbalance.config import Analysis, load_study
from counterbalance.config.contrasts import ContrastFile
from counterbalance.contrasts.nats import label_logprobs
from counterbalance.designs import get_design
from counterbalance.designs.mcq.contrasts import effects_by_slot
from counterbalance.designs.mcq.counts import count_strata
from counterbalance.designs.mcq.estimate import estimate
from counterbalance.errors import ConfigError
from counterbalance.prereg.judge import judge
from counterbalance.prereg.plan import parse_plan
from counterbalance.stages.contrast import combine_tables, estimate_cell_table

PLAN = {
    "schema": "counterbalance/contrasts/1",
    "bound": 0.1,
    "contrasts": [
        {
            "id": "first",
            "expression": "accuracy.slot_1 - mean(accuracy.slot_2, accuracy.slot_3)",
            "status": "inferential",
            "family": "place",
        },
        {"id": "last", "expression": "picks.slot_3 - picks.slot_1", "status": "inferential", "family": "place"},
        {"id": "nats", "expression": "slot_bonus.slot_1 - slot_bonus.slot_3", "status": "post hoc"},
        {"id": "none", "expression": "picks.slot_4", "status": "descriptive"},
    ],
}
RESPONDENT = {"ability_mean": 0.8, "call_noise": 0.5, "slot_bonus": [1.2, 0.0], "item_slot_sd": 0.3}
LOGPROB = {"kind": "logprob", "top": 20}


def with_plan(root, plan=PLAN, **more):
    study = make_study(root, respondent=RESPONDENT, **more)
    settings = json.loads((root / "tiny.yaml").read_text(encoding="utf-8"))
    settings["analysis"] = {"resamples": 499, "run_resamples": 99, "slot_contrasts": "plan.yaml"}
    (root / "plan.yaml").write_text(json.dumps(plan), encoding="utf-8")
    (root / "tiny.yaml").write_text(json.dumps(settings), encoding="utf-8")
    return load_study(study.path)


def outcomes_of(study, n=20) -> pa.Table:
    trials = make_trials(study, make_items(n))
    return make_outcomes(study, trials, make_replies(study, trials))


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    study = with_plan(tmp_path_factory.mktemp("cell"), read=LOGPROB)
    outcomes = outcomes_of(study)
    return study, outcomes, estimate(study.config.analysis, outcomes)


def test_accuracy_by_slot_is_that_of_each_item(cell) -> None:
    _, outcomes, found = cell
    rows = outcomes.to_pylist()
    values = []
    for item in dict.fromkeys(row["item_id"] for row in rows):
        mine = [row for row in rows if row["item_id"] == item]
        right = [np.mean([row["correct"] for row in mine if row["gold_slot"] == slot]) for slot in range(3)]
        values.append(right[0] - (right[1] + right[2]) / 2)
    first = found["contrast.first"]
    assert first.estimate == pytest.approx(np.mean(values))
    assert found["sd.contrast.first"].estimate == pytest.approx(np.std(values, ddof=1))
    assert found["negative.contrast.first"].estimate == sum(value < 0 for value in values)
    # All orders are asked, so the mean over items is the difference of the cell's own accuracies.
    shares = [found[f"accuracy.slot_{slot}"].estimate for slot in (1, 2, 3)]
    assert first.estimate == pytest.approx(shares[0] - (shares[1] + shares[2]) / 2)


def test_a_planted_bonus_is_found_with_all_that_a_contrast_has(cell) -> None:
    found = cell[2]
    first = found["contrast.first"]
    assert first.low > 0
    assert (first.status, first.level, first.n_items, first.n_calls) == ("ok", 0.95, 20, 120)
    assert first.p < first.p_adjusted < 0.05
    assert first.family == "contrasts of family place, in this cell"
    assert found["tost.contrast.first"].level == pytest.approx(0.9)
    assert found["tost.contrast.first"].p > 0.5
    # 1.2 nats are planted on the first slot; item and call noise around it are 0.3 and 0.5.
    nats = found["contrast.nats"]
    assert nats.low < 1.2 < nats.high
    assert (nats.status, nats.reason) == ("descriptive", "post hoc")
    assert nats.estimate == pytest.approx(found["slot_bonus.slot_1"].estimate - found["slot_bonus.slot_3"].estimate)
    absent = found["contrast.none"]
    assert (absent.estimate, absent.status) == (None, "undefined")
    assert absent.reason == "slot picks.slot_4 not in the data, which have slot_1, slot_2, slot_3; descriptive"


def test_nats_by_slot_are_those_of_the_engine_alone(cell) -> None:
    study, outcomes, found = cell
    (counts,) = count_strata(outcomes)
    nats, analysis = counts.nats, study.config.analysis
    alone = label_logprobs(
        nats.item,
        nats.option,
        nats.logprobs,
        nats.censored,
        units=nats.unit,
        n_resamples=analysis.resamples,
        seed=analysis.seed,
    )
    for slot in range(3):
        for name, results in (("label_logprob", alone.mean), ("slot_bonus", alone.bonus), ("label_prior", alone.prior)):
            assert found[f"{name}.slot_{slot + 1}"] == results[slot]


def test_the_stream_moves_ends_and_no_mean(cell) -> None:
    study, outcomes, modern = cell
    legacy = estimate(study.config.analysis.model_copy(update={"stream": "legacy"}), outcomes)
    for name in ("slot_bonus.slot_1", "contrast.first", "contrast.last"):
        assert legacy[name].estimate == modern[name].estimate
        assert 0 < abs(legacy[name].low - modern[name].low) < 0.2
        assert "legacy stream" in legacy[name].method


def test_copies_in_one_group_are_one_unit(tmp_path) -> None:
    study = with_plan(tmp_path, read=LOGPROB)
    once = outcomes_of(study, 12)
    rows = [
        {**row, "item_id": f"{row['item_id']}-{copy}", "group_id": row["item_id"]}
        for row in once.to_pylist()
        for copy in range(3)
    ]
    grouped = pa.Table.from_pylist(sorted(rows, key=lambda row: row["item_id"]), schema=SCHEMAS["outcomes"].arrow)
    single, joined = (estimate(study.config.analysis, table) for table in (once, grouped))
    for name in ("contrast.first", "tost.contrast.first", "contrast.nats", "negative.contrast.last"):
        a, b = single[name], joined[name]
        assert (b.low, b.high, b.p) == pytest.approx((a.low, a.high, a.p), abs=1e-9), name
        assert (a.n_items, b.n_items) == (12, 36)


def test_an_item_without_an_answer_in_some_slot_has_no_part_in_that_quantity(cell) -> None:
    outcomes = cell[1]
    item = outcomes.column("item_id")[0].as_py()
    gone = pc.and_(pc.equal(outcomes.column("item_id"), item), pc.equal(outcomes.column("gold_slot"), 2))
    table = outcomes.filter(pc.invert(gone))
    effects = effects_by_slot(table, 3, None)
    place = effects.items.index(item)
    assert not effects.present["accuracy"][place]
    assert effects.present["picks"][place]
    assert effects.present["accuracy"].sum() == len(effects.items) - 1


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (
            "accuracy.slot_1 - acuracy.slot_2",
            r"column 19: no quantity 'acuracy'; there are accuracy, picks, .* \(did you mean 'accuracy'\?\)",
        ),
        ("accuracy.slot_27", "no slot 'slot_27'; there are slot_1, the first, to slot_26"),
        ("accuracy.A", "no slot 'A'; there are slot_1"),
        ("T1.serial", "no quantity 'T1'; there are accuracy"),
        ("accuracy. - picks.slot_1", "expected the slot after 'accuracy' and the point, as in accuracy.slot_1"),
        ("0.5", "only a number; expected quantities by slot, such as accuracy.slot_1"),
        ("accuracy.slot_1 * picks.slot_1", "quantities by slot times quantities by slot"),
        ("1 / accuracy.slot_1", "a number divided by quantities by slot"),
        ("mean(2, accuracy.slot_1)", "expected quantities by slot or contrasts"),
        ("accuracy", "no contrast 'accuracy'; .* written as quantity.slot, such as accuracy.slot_1"),
        ("(picks.slot_1 / picks.slot_2) + 1", "only be the whole expression, such as picks.slot_1 / picks.slot_4"),
        ("accuracy.slot_1 +", "expected a quantity.slot such as accuracy.slot_1, the id of another contrast"),
    ],
)
def test_wrong_names_stop_before_anything_is_frozen(tmp_path, expression, message) -> None:
    plan = {**PLAN, "contrasts": [{"id": "odd", "expression": expression, "status": "descriptive"}]}
    study = with_plan(tmp_path, plan)
    with pytest.raises(ConfigError, match=message) as caught:
        make_trials(study, make_items(2))
    said = str(caught.value)
    assert said.startswith("plan.yaml line 1, contrast odd, column ")
    assert not re.search(r"\b(condition|effect)s?\b", said)


def test_without_the_file_the_study_is_named(tmp_path) -> None:
    plan = {**PLAN, "contrasts": [{"id": "odd", "expression": "accuracy.A", "status": "descriptive"}]}
    study = with_plan(tmp_path, plan)
    (tmp_path / "plan.yaml").unlink()
    with pytest.raises(ConfigError, match=r"tiny\.yaml: analysis\.slot_contrasts, contrast odd, column 1: no slot 'A'"):
        make_trials(study, make_items(2))


def test_predictions_of_contrasts_are_checked_and_judged(tmp_path) -> None:
    study = with_plan(tmp_path)
    place = "id: P1, experiment: letters, model: planted, subset: sums"

    def predictions(quantity):
        line = f"- {{{place}, quantity: {quantity}, rule: interval_above, value: 0}}"
        text = f"```yaml predictions\n{line}\n```\n"
        return parse_plan(text.encode(), study, source="plan.md")

    for quantity, message in (
        ("contrast.nats", "needs slot_bonus, and the read 'generate' gives none"),
        ("contrast.absent", "no contrast 'absent' is planned; there are first, last"),
        ("contrast.absent@model=m1", "no contrast 'absent' is planned; there are first, last"),
        ("contrast.frist", "did you mean 'first'"),
        ("slot_bonus.slot_1@model=m1", "the read 'generate' gives no slot_bonus.slot_1; logprob and decide and option"),
        ("contrast", "mcq has no quantity"),
    ):
        with pytest.raises(ConfigError, match=message):
            predictions(quantity)
    cells = [estimate_cell_table(study, next(study.cells()), outcomes_of(study))]
    estimates = combine_tables(study, cells)[0]
    (row,) = judge(predictions("contrast.first"), estimates).to_pylist()
    assert row["verdict"] == "confirmed"


def test_every_row_has_words() -> None:
    describe = get_design("mcq").describe
    assert describe("contrast.first") == "Planned contrast first: mean over items with its interval."
    assert describe("tost.contrast.first@k=3").endswith("Only items with 3 options.")
    assert describe("ratio_of_means.r").startswith("Planned contrast r: mean of the numerator")


def test_without_a_plan_there_is_no_contrast(cell) -> None:
    found = estimate(Analysis(resamples=199, run_resamples=99), cell[1])
    assert not [name for name in found if "contrast" in name]
    assert ContrastFile.model_validate(PLAN | {"contrasts": PLAN["contrasts"][:1]}).bound == 0.1
