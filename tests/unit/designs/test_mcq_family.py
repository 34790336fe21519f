"""The family of tests: planned from the items, corrected, and the level at which a null is claimed."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from planted import make_items, make_study, the_cell

from counterbalance.artifacts import SCHEMAS, table_from_rows, write_table
from counterbalance.config import Analysis
from counterbalance.designs import get_design
from counterbalance.designs.family import family_size, other_datasets, planned_tests, too_few_draws
from counterbalance.designs.mcq.estimate import estimate
from counterbalance.designs.mcq.verdict import verdict
from counterbalance.errors import ConfigError
from counterbalance.prereg.possible import require_possible
from counterbalance.rerun import settings_sha256
from counterbalance.stages.contrast import combine_tables, estimate_cell_table
from counterbalance.stats.multiplicity import holm

QUICK = Analysis(resamples=999, run_resamples=99)
TESTS = ["relabelling.accuracy", "relabelling.picks"]


def outcomes(n_items, k, *, bonus=0.0, refused=0.0, all_refused=False, seed=1):
    """Outcomes of items in all rotations and their reverses; `bonus` for the last slot, refusals where it is right."""
    rng = np.random.default_rng(seed)
    turns = [[(slot + turn) % k for slot in range(k)] for turn in range(k)]
    rows = []
    for item in range(n_items):
        worth = np.append(rng.normal(2.4, 2), rng.normal(0, 1, k - 1))
        own = rng.normal(0, 0.3, k)
        for index, order in enumerate([*turns, *(turn[::-1] for turn in turns)] * 3):
            slots = worth[order] + own + bonus * (np.arange(k) == k - 1) + rng.gumbel(0, 0.3, k)
            slot, gold = int(slots.argmax()), order.index(0)
            lost = all_refused or (gold == k - 1 and rng.random() < refused)
            named = {"trial_id": f"k{k}i{item:03d}.{index:03d}", "item_id": f"k{k}i{item:03d}"}
            rows.append(
                {
                    **dict.fromkeys(SCHEMAS["outcomes"].arrow.names),
                    **named,
                    "group_id": named["item_id"],
                    "condition": "mcq",
                    "arrangement_index": index,
                    "repeat": 0,
                    "extra": False,
                    "n_options": k,
                    "arrangement": [f"o{option}" for option in order],
                    "gold_slot": gold,
                    "outcome": "refused" if lost else "ok",
                    "slot": None if lost else slot,
                    "option_id": None if lost else f"o{order[slot]}",
                    "correct": None if lost else slot == gold,
                    "candidates": [],
                    "rule": "none",
                    "parser": "none",
                    "model_returned": "m",
                }
            )
    return table_from_rows(rows, SCHEMAS["outcomes"])


def judged(table, tests=None):
    """Rows and verdict of a cell that is a family of its own."""
    found = estimate(QUICK, table, tests)
    rows = {name: vars(result) | {"quantity": name, "p_adjusted": None} for name, result in found.items()}
    members = [row for name, row in rows.items() if get_design("mcq").is_test(name)]
    for row, p in zip(members, holm([row["p"] for row in members]), strict=True):
        row["p_adjusted"] = p
    return rows, verdict(QUICK, rows)


@pytest.fixture
def study(tmp_path):
    return make_study(tmp_path, respondent={})


def test_bias_among_the_fewer_items_is_tested_and_named(study) -> None:
    mixed = pa.concat_tables([outcomes(30, 4), outcomes(20, 5, bonus=-3.0)])
    cell = the_cell(study)
    assert family_size(study, cell, mixed) == 4
    estimates, _ = combine_tables(study, [estimate_cell_table(study, cell, mixed)])
    rows = {row["quantity"]: row for row in estimates.to_pylist()}
    family = {name for name, row in rows.items() if row["family"] == "letters: confirmatory tests"}
    assert family == {*TESTS, *(f"{name}@k=5" for name in TESTS)}
    p = [rows[name]["p"] for name in rows if rows[name]["family"]]
    assert [row["p_adjusted"] for row in rows.values() if row["family"]] == pytest.approx(holm(p))
    assert rows["relabelling.accuracy"]["p_adjusted"] > 0.05
    assert rows["verdict"]["label"] == "bias"
    assert "among the items with 5 options" in rows["verdict"]["reason"]
    assert "with 4 options" not in rows["verdict"]["reason"]
    assert rows["verdict"]["n_items"] == 50
    assert "in a family of 4 tests" in rows["detectable_V.family"]["method"]


def test_the_planned_tests_follow_from_the_items(study) -> None:
    design = get_design("mcq")
    assert design.tests([4, 3]) == [*TESTS, "relabelling.accuracy@k=3", "relabelling.picks@k=3"]
    assert design.is_test("relabelling.picks@k=3")
    assert not design.is_test("relabelling.picks@k=3@model=m")
    assert not design.is_test("relabelling.unanswered")
    assert not get_design("crossing").is_test("relabelling.picks@k=3")
    rows = make_items(3).to_pylist()
    rows[0] |= {"option_ids": ["o1", "o2"], "option_texts": ["a", "b"]}
    path = study.layout.items("sums")
    write_table(path, table_from_rows(rows, SCHEMAS["items"]), SCHEMAS["items"])
    assert planned_tests(study, the_cell(study)) == [*TESTS, "relabelling.accuracy@k=2", "relabelling.picks@k=2"]


def test_the_items_of_other_data_sets_count_in_the_family(study) -> None:
    config, experiment = study.config, study.experiment("letters")
    more = study.dataset("sums").model_copy(update={"id": "more"})
    asked = experiment.model_copy(update={"datasets": ["sums", "more"]})
    config = config.model_copy(update={"datasets": [*config.datasets, more], "experiments": [asked]})
    wider = replace(study, config=config)
    rows = make_items(3).to_pylist()
    rows[0] |= {"option_ids": ["o1", "o2"], "option_texts": ["a", "b"]}
    write_table(wider.layout.items("more"), table_from_rows(rows, SCHEMAS["items"]), SCHEMAS["items"])
    cell = wider.cell("letters", "planted", "sums")
    assert other_datasets(wider, cell) == ["more"]
    # Two tests of these items, and two for each number of options of the others.
    assert family_size(wider, cell, outcomes(3, 4)) == 6
    assert other_datasets(study, the_cell(study)) == []
    names = {"experiment": "letters", "model": "planted", "dataset": "sums"}
    assert settings_sha256(wider, "contrast", **names) != settings_sha256(study, "contrast", **names)


def test_draws_that_cannot_reach_the_corrected_level_are_refused(study) -> None:
    """199 draws give p = .005 at best; two tests at .05 need one below .025, at .01 one below .005."""
    write_table(study.layout.items("sums"), make_items(3), SCHEMAS["items"])
    assert list(too_few_draws(study)) == []
    analysis = study.config.analysis.model_copy(update={"alpha": 0.01})
    strict = replace(study, config=study.config.model_copy(update={"analysis": analysis}))
    (text,) = too_few_draws(strict)
    assert "analysis.resamples is 199" in text
    assert "`resamples: 200` or more" in text
    assert "'letters: confirmatory tests' has 2 tests" in text
    require_possible(study, ())
    with pytest.raises(ConfigError, match="resamples: 200"):
        require_possible(strict, ())


def test_a_null_is_claimed_at_the_level_of_the_family() -> None:
    """What one test alone would have seen, the first of many that Holm corrects would not."""
    table = outcomes(40, 4, seed=5)
    found = {tests: estimate(QUICK, table, tests) for tests in (2, 49, 50)}
    alone = found[2]["detectable_V"].estimate
    family = [found[tests]["detectable_V.family"].estimate for tests in (2, 49)]
    assert alone < family[0] < family[1]
    rows, null = judged(table)
    assert f"V of {rows['detectable_V.family']['estimate']:.3f}" in null.reason
    # 999 draws give no p below .05 / 50; nothing could then have been seen.
    hopeless = found[50]["detectable_V.family"]
    assert (hopeless.status, hopeless.estimate) == ("not_measurable", None)
    assert "999 random relabellings cannot" in hopeless.reason
    assert found[50]["detectable_V"].estimate == alone


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_answers_missing_by_position_do_not_pass_for_bias(rate) -> None:
    """No slot has a bonus; refused are calls whose correct option is last, so that picks of it are missing."""
    found = [judged(outcomes(40, 4, refused=rate, seed=seed)) for seed in range(3)]
    assert [whole.label for _, whole in found].count("bias") <= 1
    for rows, whole in found:
        assert "answers go missing by position" in whole.reason
        assert rows["relabelling.unanswered"]["p"] < 0.05
        picks = rows["relabelling.picks"]
        assert (picks["status"], picks["p"], picks["p_adjusted"]) == ("not_measurable", None, None)
        refused = round(rows["status.refused"]["estimate"] * 40 * 24)
        assert f"{refused} of 960 calls have no usable answer" in picks["reason"]


def test_answers_missing_at_random_leave_the_test_of_picks() -> None:
    table = outcomes(40, 4, bonus=-2.0).to_pylist()
    for row in itertools.islice(table, 0, None, 7):
        row |= {"outcome": "refused", "slot": None, "option_id": None, "correct": None}
    rows, whole = judged(table_from_rows(table, SCHEMAS["outcomes"]))
    assert rows["relabelling.unanswered"]["p"] >= 0.05
    assert rows["relabelling.picks"]["p_adjusted"] < 0.05
    assert whole.label == "bias"


def test_a_cell_without_any_answer_says_so_everywhere() -> None:
    rows, whole = judged(outcomes(5, 4, all_refused=True))
    said = "no usable answer: of 120 calls 120 refused"
    assert (whole.label, whole.reason) == ("not_measurable", said)
    for name, row in rows.items():
        if not name.startswith("status.") and name not in ("relabelling.unanswered", "unstable_items"):
            assert row["status"] in ("undefined", "not_measurable"), name
            assert (row["estimate"], row["p"]) == (None, None), name
            assert row["reason"] == said, name
