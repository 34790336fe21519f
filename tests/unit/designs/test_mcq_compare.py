"""Likeliest labels against generated letters: which calls are set against which, and what is said of the rest."""

import pyarrow as pa
import pytest
from planted import make_items, make_outcomes, make_replies, make_study, make_trials

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.config import Analysis
from counterbalance.designs import get_design
from counterbalance.designs.mcq.compare import compare
from counterbalance.designs.mcq.quantities import AGREEMENT, describe
from counterbalance.errors import InputError

NOISY = {"ability_mean": 0.8, "call_noise": 0.7, "slot_bonus": [0.8, 0.0]}
NAME = "agreement@with=letters"


def cell(root, name, items=10, **experiment) -> pa.Table:
    (root / name).mkdir()
    study = make_study(root / name, respondent=NOISY, **experiment)
    trials = make_trials(study, make_items(items))
    return make_outcomes(study, trials, make_replies(study, trials))


def changed(outcomes: pa.Table, changes: dict[int, dict[str, object]]) -> pa.Table:
    rows = outcomes.to_pylist()
    for place, new in changes.items():
        rows[place] = rows[place] | new
    return table_from_rows(rows, SCHEMAS["outcomes"])


def moved(outcomes: pa.Table, places: range) -> dict[int, dict[str, object]]:
    return {place: {"slot": (outcomes.column("slot")[place].as_py() + 1) % 3} for place in places}


def test_every_call_is_set_against_the_one_of_the_same_item_in_the_same_order(tmp_path) -> None:
    first = cell(tmp_path, "cell")
    same = compare(Analysis(), "letters", first, first)
    assert list(same) == [f"{name}@with=letters" for name in AGREEMENT]
    assert (same[NAME].estimate, same[NAME].n_items, same[NAME].n_calls) == (1.0, 10, 60)
    # One answer of every item moved to another slot.
    second = changed(first, moved(first, range(0, 60, 6)))
    found = compare(Analysis(), "letters", first, second)
    assert found[NAME].estimate == pytest.approx(50 / 60)
    assert found["agreement.every_order@with=letters"].estimate == 0
    assert found[NAME].reason is None or "10 items" in found[NAME].reason
    shuffled = second.take(list(range(59, -1, -1)))
    assert compare(Analysis(), "letters", first, shuffled)[NAME] == found[NAME]


def test_what_has_no_answer_is_left_out_and_counted_by_its_outcome(tmp_path) -> None:
    first = cell(tmp_path, "cell")
    nothing = {"slot": None, "option_id": None, "correct": None}
    own = changed(first, {0: nothing | {"outcome": "unusable"}, 1: nothing | {"outcome": "ambiguous"}})
    letters = changed(first, {place: nothing | {"outcome": "refused"} for place in (7, 8)})
    letters = changed(letters, moved(letters, range(2, 3)) | {9: nothing | {"outcome": "unparsed"}})
    found = compare(Analysis(), "letters", own, letters)[NAME]
    assert found.estimate == pytest.approx(54 / 55)
    assert found.n_calls == 55
    assert "calls without a likeliest label: 1 ambiguous, 1 unusable" in str(found.reason)
    assert "calls of letters without a letter: 2 refused, 1 unparsed" in str(found.reason)


def test_orders_that_only_one_experiment_asks_are_left_out_and_counted(tmp_path) -> None:
    every, some = cell(tmp_path, "every"), cell(tmp_path, "some", arrangement={"scheme": "identity_reverse"})
    found, turned = compare(Analysis(), "letters", every, some)[NAME], compare(Analysis(), "letters", some, every)[NAME]
    assert found.n_calls == turned.n_calls == 20
    assert "40 prompts have no counterpart in letters" in str(found.reason)
    assert "40 prompts of letters have no counterpart here" in str(turned.reason)


def test_calls_of_the_repeat_floor_have_no_part(tmp_path) -> None:
    plain, again = cell(tmp_path, "plain"), cell(tmp_path, "again", repeat_share=0.5)
    assert again.num_rows > plain.num_rows
    assert compare(Analysis(), "letters", plain, again)[NAME].n_calls == 60
    assert compare(Analysis(), "letters", again, plain)[NAME].n_calls == 60


@pytest.mark.parametrize(
    ("own", "theirs", "why"),
    [
        (slice(0, 6), slice(6, 12), "no item is asked in the same order here and in letters"),
        (slice(0, 6), slice(0, 6), "no prompt was answered in both experiments; calls of letters without a letter: 6"),
    ],
)
def test_where_nothing_can_be_compared_the_reason_stands(tmp_path, own, theirs, why) -> None:
    first = cell(tmp_path, "cell", 2)
    refused = {place: {"slot": None, "outcome": "refused"} for place in range(6)}
    second = changed(first, refused).slice(theirs.start, 6)
    found = compare(Analysis(), "letters", first.slice(own.start, 6), second)
    assert {result.status for result in found.values()} == {"undefined"}
    assert all(why in str(result.reason) for result in found.values())


def test_items_of_another_size_are_compared_apart(tmp_path) -> None:
    rows = cell(tmp_path, "cell", 3).to_pylist()
    for row in rows[:6]:
        row.update(n_options=2, arrangement=row["arrangement"][:2], slot=0, option_id=None)
    # Six orders of three options are not six of two; what is left are the orders of the first two.
    table = table_from_rows(rows, SCHEMAS["outcomes"])
    found = compare(Analysis(), "letters", table, table)
    assert found[NAME].n_items == 2
    assert found[f"{NAME}@k=2"].n_items == 1
    alone = compare(Analysis(), "letters", table, table.slice(6))
    assert alone[f"{NAME}@k=2"].status == "undefined"
    assert "Only items with 2 options." in describe(f"{NAME}@k=2")


def test_replies_of_another_model_make_the_comparison_one_of_models(tmp_path) -> None:
    first = changed(cell(tmp_path, "cell", 3), {place: {"model_returned": "m-may"} for place in range(18)})
    later = changed(first, {place: {"model_returned": "m-june"} for place in range(18)})
    found = compare(Analysis(), "letters", first, later)[NAME]
    assert found.status == "not_measurable"
    assert "m-june, m-may" in str(found.reason)
    assert compare(Analysis(), "letters", first, first)[NAME].status == "degenerate"


@pytest.mark.parametrize("name", ["agreement", "agreement@with=", "agreement@with=a@model=m", "accuracy@with=letters"])
def test_agreement_is_always_with_an_experiment_and_nothing_else_is(name) -> None:
    with pytest.raises(InputError, match="@with=EXPERIMENT"):
        describe(name)


def test_only_label_probabilities_are_compared_and_only_with_letters(tmp_path) -> None:
    study = make_study(tmp_path, respondent={})
    design = get_design("mcq")
    assert design.partners(study, study.cell("letters", "planted", "sums")) == []
    assert "there are none" in str(design.unplanned(study, study.experiment("letters"), NAME))
    assert get_design("crossing").partners(study, study.cell("letters", "planted", "sums")) == ()
