"""What only the items can tell is told before the freeze: slots that no item has, in contrasts and in predictions."""

import pytest

from counterbalance.designs import get_design
from counterbalance.errors import ConfigError, InputError
from counterbalance.prereg.plan import load_plan
from counterbalance.prereg.record import read_chain
from counterbalance.stages.freeze import freeze

CONTRASTS = """\
schema: counterbalance/contrasts/1
contrasts:
  - {id: fine, expression: accuracy.slot_1 - accuracy.slot_2, status: inferential}
  - id: late
    expression: accuracy.slot_1 - accuracy.slot_7
    status: inferential
"""


def with_contrasts(project, text):
    project.write("slots.yaml", text)
    project.edit("tiny.yaml", "alpha: 0.05", "alpha: 0.05, slot_contrasts: slots.yaml")
    project.make_tables()
    return project.study


def predicting(project, quantity, more="rule: at_most, value: 0.5"):
    line = f"- {{id: P1, experiment: letters, model: fair, subset: sums, quantity: {quantity}, {more}}}"
    project.write("preregistration/tiny.md", f"```yaml predictions\n{line}\n```\n")
    return project.study


def test_a_contrast_of_a_slot_that_no_item_has_stops_before_the_freeze(project) -> None:
    study = with_contrasts(project, CONTRASTS)
    with pytest.raises(ConfigError) as caught:
        freeze(study)
    assert str(caught.value) == (
        "slots.yaml line 5, contrast late, column 19: no item has a slot_7: items of sums have 2 options, so there are "
        "slot_1 to slot_2; correct the expression, or remove the contrast"
    )
    assert read_chain(study.layout) == []


def test_slots_that_the_items_have_are_frozen(project) -> None:
    assert freeze(with_contrasts(project, CONTRASTS.replace("slot_7", "slot_2"))).created


def test_a_plan_that_is_frozen_already_stays_so(project, monkeypatch) -> None:
    study = with_contrasts(project, CONTRASTS)
    with monkeypatch.context() as patch:
        patch.setattr("counterbalance.stages.freeze.require_possible", lambda study, predictions: None)
        first = freeze(study)
    assert freeze(study).sha256 == first.sha256


@pytest.mark.parametrize(
    ("quantity", "message"),
    [
        ("accuracy.slot_7", "no item has a slot_7; the items have 2 options, so there are slot_1 to slot_2"),
        ("status.ok.slot_3", "no item has a slot_3"),
        ("accuracy@k=5", "no item has 5 options; the items have 2"),
        ("status.refusd", r"no call has the outcome 'refusd'; there are ok, refused, .* \(did you mean 'refused'\?\)"),
    ],
)
def test_a_prediction_of_what_no_item_has_stops_before_the_freeze(project, quantity, message) -> None:
    study = predicting(project, quantity)
    assert load_plan(study) is not None
    where = rf"preregistration/tiny\.md, prediction P1: {quantity} on data set sums: {message}.*; correct the quantity"
    with pytest.raises(ConfigError, match=where):
        freeze(study)
    assert read_chain(study.layout) == []


def test_the_other_side_of_a_comparison_is_looked_at(project) -> None:
    other = "{experiment: letters, model: planted, subset: sums, quantity: picks.slot_3}"
    with pytest.raises(ConfigError, match=r"picks\.slot_3 on data set sums: no item has a slot_3"):
        freeze(predicting(project, "picks.slot_1", f"rule: less_than, than: {other}"))


@pytest.mark.parametrize("quantity", ["accuracy.slot_2", "status.refused", "accuracy@k=2", "verdict", "V.corrected"])
def test_what_there_will_be_is_frozen(project, quantity) -> None:
    assert freeze(predicting(project, quantity)).created


@pytest.mark.parametrize(
    ("quantity", "hint"),
    [
        ("acuracy.slot_1", "did you mean 'accuracy.slot_1'?"),
        ("accuracy.slot", "did you mean 'accuracy.slot_1'?"),
        ("accuracy.slot_0", "did you mean 'accuracy.slot_1"),
        ("status", "there are "),
    ],
)
def test_an_unknown_quantity_lists_what_exists_and_the_nearest(project, quantity, hint) -> None:
    with pytest.raises(ConfigError) as caught:
        load_plan(predicting(project, quantity))
    message = str(caught.value)
    assert message.startswith(
        f"preregistration/tiny.md line 2, prediction P1, key quantity: mcq has no quantity {quantity!r}"
    )
    assert hint in message
    for name in (
        "accuracy, accuracy.slot_1",
        "agreement@with=EXPERIMENT",
        "status.ok, status.ok.slot_1",
        "contrast.ID",
    ):
        assert name in message


@pytest.mark.parametrize(
    ("quantity", "hint"),
    [
        ("seriel.T1c", "did you mean 'serial.T1c'?"),
        ("nul.order.T2@all", "did you mean 'null.order.T2'?"),
        ("serial", "did you mean 'serial.T1'?"),
        ("item.kept", "did you mean 'items.kept'?"),
        ("accuracy", "there are token.T1, role.T1, order.T1, serial.T1, tost.token.T1"),
    ],
)
def test_an_unknown_quantity_of_a_crossing_lists_what_exists_and_the_nearest(quantity, hint) -> None:
    with pytest.raises(InputError) as caught:
        get_design("crossing").describe(quantity)
    assert hint in str(caught.value)
    assert "null.order.T1, flagged.T1, incomplete.T1, answer_mass.T1, status.ok, status.ok.e1" in str(caught.value)
    assert "the other conditions (T1c, T2, T2c, T3, T3c, T4, T4c, T5, T5b)" in str(caught.value)
