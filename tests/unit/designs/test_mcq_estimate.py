"""A whole cell: groups as units, every number described and open to prediction, two reads of one model compared."""

import numpy as np
import pyarrow as pa
import pytest
from planted import make_items, make_outcomes, make_replies, make_study, make_trials

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.config import Analysis
from counterbalance.designs import get_design
from counterbalance.designs.mcq.estimate import estimate
from counterbalance.designs.mcq.quantities import describe
from counterbalance.errors import InputError
from counterbalance.prereg.judge import judge
from counterbalance.prereg.predictions import PREDICTIONS
from counterbalance.stats.proportions import wilson

QUICK = Analysis(resamples=199, run_resamples=99)
NOISY = {"ability_mean": 0.8, "call_noise": 0.7, "slot_bonus": [0.8, 0.0]}
LOGPROB = {"read": {"kind": "logprob", "top": 20}}
# What resamples single calls, corrects for their number, or is simulated with as many.
NOT_OVER_ITEMS = (
    "V.published",
    "V.bergsma",
    "rho.published",
    "V.bergsma.question",
    "detectable_V",
    "detectable_V.family",
)


def cell(root, name, items, respondent=NOISY, **more) -> pa.Table:
    (root / name).mkdir()
    study = make_study(root / name, respondent=respondent, **more)
    trials = make_trials(study, make_items(items))
    return make_outcomes(study, trials, make_replies(study, trials))


def copied(outcomes: pa.Table, times: int) -> pa.Table:
    """Every item several times over, all copies in one group."""
    rows = []
    for row in outcomes.to_pylist():
        for copy in range(times):
            name = f"{row['item_id']}-{copy}"
            rows.append({**row, "item_id": name, "trial_id": f"{name}.{row['trial_id']}", "group_id": row["item_id"]})
    return table_from_rows(rows, SCHEMAS["outcomes"])


@pytest.mark.parametrize("more", [{"repeat_share": 0.5}, LOGPROB])
def test_copies_of_items_in_one_group_move_no_limit(tmp_path, more) -> None:
    """Whatever interval a cell has must resample groups, so copies inside a group leave it where it was."""
    once = cell(tmp_path, "once", 16, **more)
    single, grouped = estimate(QUICK, once), estimate(QUICK, copied(once, 3))
    assert grouped.keys() - single.keys() == {"groups"}
    assert grouped["groups"].estimate == 16
    with_interval = [name for name in single if single[name].low is not None and name not in NOT_OVER_ITEMS]
    assert len(with_interval) > 25
    for name in with_interval:
        a, b = single[name], grouped[name]
        assert b.n_items == 3 * a.n_items, name
        assert "groups, which are the units" in b.reason, name
        # An item alone is one trial with Wilson's own interval; three in a group are a share, with t in place of z.
        close = 0.03 if name in ("consistency", "flip_rate") else 1e-6
        assert (b.estimate, b.low, b.high) == pytest.approx((a.estimate, a.low, a.high), abs=close), name
    for name in ("relabelling.accuracy", "relabelling.picks", "recentred.accuracy"):
        assert grouped[name].p == pytest.approx(single[name].p, abs=1e-9), name
    assert grouped["V.published"].high - grouped["V.published"].low < single["V.published"].high


@pytest.mark.parametrize("more", [{"repeat_share": 0.5}, LOGPROB])
def test_every_number_is_described_and_can_be_predicted_and_judged(tmp_path, more) -> None:
    found = estimate(QUICK, cell(tmp_path, "cell", 16, **more))
    place = {"experiment": "letters", "model": "planted", "subset": "sums"}
    rows = [{**place, "quantity": name, "p_adjusted": None, "family": None} | vars(r) for name, r in found.items()]
    entries = []
    for number, (name, result) in enumerate(found.items()):
        assert describe(name).endswith(".")
        rule = {"rule": "label_is", "value": result.label} if result.label else {"rule": "at_least", "value": -1e9}
        if result.estimate is None and result.p is not None:
            rule = {"rule": "p_below", "value": 0.999}
        entries.append({"id": f"P{number}", **place, "quantity": name, **rule})
    judged = judge(PREDICTIONS.validate_python(entries), table_from_rows(rows, SCHEMAS["estimates"])).to_pylist()
    for row in judged:
        result = found[row["quantity"]]
        if result.status in ("ok", "descriptive"):
            assert row["verdict"] == "confirmed", row
        else:
            assert row["reason"], row


def test_a_logprob_cell_has_prior_mass_and_bonus(tmp_path) -> None:
    """A bonus of .8 nats for the first of three slots, the same in every item: prior e^.8 / (e^.8 + 2)."""
    outcomes = cell(tmp_path, "cell", 12, respondent=NOISY | {"call_noise": 0.0}, **LOGPROB)
    found = estimate(QUICK, outcomes)
    odds = np.exp([0.8, 0.0, 0.0])
    for slot in range(3):
        assert found[f"label_prior.slot_{slot + 1}"].estimate == pytest.approx(odds[slot] / odds.sum())
        assert found[f"slot_bonus.slot_{slot + 1}"].estimate == pytest.approx(np.log(odds)[slot] - 0.8 / 3)
    assert found["label_mass"].estimate == pytest.approx(np.mean(outcomes.column("label_mass").to_pylist()))
    assert "label_mass" not in estimate(QUICK, cell(tmp_path, "letters", 4))


def test_what_a_read_cannot_give_is_refused_before_freezing(tmp_path) -> None:
    design = get_design("mcq")
    study = make_study(tmp_path, respondent={})
    experiment = study.experiment("letters")
    assert design.unplanned(study, experiment, "accuracy.slot_1") is None
    assert "generate" in str(design.unplanned(study, experiment, "label_prior.slot_1"))
    read = make_study(tmp_path, respondent={}, **LOGPROB)
    assert design.unplanned(read, read.experiment("letters"), "label_prior.slot_1@k=3") is None
    with pytest.raises(InputError):
        describe("accuracy.slot_first")


def test_consistency_of_lone_items_is_wilson_s(tmp_path) -> None:
    found = estimate(QUICK, cell(tmp_path, "cell", 16))
    same = found["consistency"]
    expected = wilson(round(same.estimate * 16), 16)
    assert (same.low, same.high) == pytest.approx((expected.low, expected.high))
    assert found["flip_rate"].estimate == pytest.approx(1 - same.estimate)
