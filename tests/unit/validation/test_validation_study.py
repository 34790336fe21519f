"""The calibration study: the same numbers as the estimates, counted rightly, and named rightly."""

import json

import pytest

from counterbalance.config import Analysis
from counterbalance.designs import get_design
from counterbalance.designs.mcq.counts import count_strata
from counterbalance.errors import ConfigError, InputError
from counterbalance.simulation.cells import planted_cell
from counterbalance.simulation.scenarios import NULLS, SCENARIOS, read_settings
from counterbalance.stats.estimate import Result
from counterbalance.validation.collect import collect_study
from counterbalance.validation.docs import BEGIN, END, renew_docs
from counterbalance.validation.jobs import SIZES, Size, job_names, run_job, size_named
from counterbalance.validation.measure import REJECTIONS, measure, truths
from counterbalance.validation.replicates import Coverage, run_scenario
from counterbalance.validation.rows import JOINT, coverage_rows, rejection_rows, right_and_wrong, standing
from counterbalance.validation.shapes import shape_labels
from counterbalance.validation.text import study_markdown

LITTLE = Size("little", ("N0", "C8"), (), doors=2, nulls=6, planted=4, shapes=2, cells=0, detected=0, resamples=99)


@pytest.mark.parametrize("name", ["N3b", "C8"])
def test_what_is_measured_are_the_estimates(name):
    scenario = SCENARIOS[name]
    cell = planted_cell(scenario.scheme, n_items=20, read=read_settings(scenario.read))
    outcomes = cell.outcomes(scenario.respondent, seed=4)
    analysis = Analysis(seed=8, resamples=199, run_resamples=199)
    (counts,) = count_strata(outcomes)
    estimates, found = get_design("mcq").estimate(analysis, outcomes), measure(analysis, counts)
    assert set(found) <= set(estimates)
    for quantity, result in found.items():
        for column in ("estimate", "low", "high", "p", "label"):
            assert getattr(result, column) == getattr(estimates[quantity], column), (quantity, column)


@pytest.mark.parametrize("name", ["N3b", "N6", "N11", "C8"])
def test_every_test_and_interval_of_a_cell_is_measured(name):
    """What has an interval has a truth to compare it with; the mass of the labels is a constant of the respondent.

    The smallest detectable V is compared with what the test finds, in a table of its own.
    """
    scenario = SCENARIOS[name]
    cell = planted_cell(scenario.scheme, n_items=25, read=read_settings(scenario.read), repeats=scenario.repeats)
    outcomes = cell.outcomes(scenario.respondent, seed=4, refusal_rate=scenario.refusal_rate)
    (counts,) = count_strata(outcomes)
    analysis = Analysis(resamples=99, run_resamples=99)
    found, truth = measure(analysis, counts), truths(scenario, cell.orders)
    assert set(truth) <= set(found)
    for quantity, result in get_design("mcq").estimate(analysis, outcomes).items():
        if result.p is not None:
            assert quantity in found
        if result.low is not None and quantity not in ("label_mass", "detectable_V", "detectable_V.family"):
            constant = quantity.startswith("status.ok") and not scenario.refusal_rate
            refused = scenario.refusal_rate and quantity in ("consistency", "flip_rate", "usual_share")
            assert quantity in truth or constant or refused, quantity


def test_nothing_is_found_where_nothing_varies():
    found = run_scenario(SCENARIOS["N0"], 3, through_doors=3, resamples=99).as_json()
    assert found["rejected"] == dict.fromkeys(REJECTIONS, 0)
    assert found["unstable"] == 0
    assert found["coverage"]["V.corrected"]["absent"] == 3


def test_a_large_bias_is_found_by_every_calibrated_test():
    found = run_scenario(SCENARIOS["P2"], 6, through_doors=2, resamples=199).as_json()
    assert found["through_doors"] == 2
    for name in ("relabelling.accuracy", "relabelling.picks", "bias", "recentred.accuracy"):
        assert found["rejected"][name] == 6


def test_equal_seeds_give_equal_counts():
    first, second = (run_scenario(SCENARIOS["N7"], 4, through_doors=2, resamples=99).as_json() for _ in range(2))
    assert first == second


def test_coverage_counts_both_sides_and_absence():
    coverage = Coverage(truth=0.5)
    ends = [(0.4, 0.6), (0.5, 0.7), (0.1, 0.2), (0.8, 0.9), None]
    covers = [
        coverage.add(
            Result(method="m", estimate=0.5)
            if pair is None
            else Result(method="m", estimate=0.5, low=pair[0], high=pair[1], level=0.95)
        )
        for pair in ends
    ]
    assert covers == [True, True, False, False, None]
    assert (coverage.n, coverage.covered, coverage.below, coverage.above, coverage.absent) == (4, 2, 1, 1, 1)
    assert coverage.width == pytest.approx(0.2 + 0.2 + 0.1 + 0.1)


@pytest.mark.parametrize(
    ("rate", "low", "high", "word"),
    [
        (0.05, 0.04, 0.06, "holds"),
        (0.03, 0.01, 0.05, "holds"),
        (0.08, 0.06, 0.10, "unclear"),
        (0.10, 0.08, 0.12, "liberal"),
        (0.01, 0.00, 0.02, "conservative"),
        (0.02, 0.01, 0.04, "unclear"),
    ],
)
def test_words_for_a_rate(rate, low, high, word):
    assert standing(rate, low, high, (0.03, 0.07), ("conservative", "liberal")) == word


def counted(name, rejected, coverage=None):
    return {
        "name": name,
        "replicates": 1000,
        "through_doors": 100,
        "rejected": dict.fromkeys(REJECTIONS, 50) | rejected,
        "coverage": coverage or {},
        "jointly": {"n": 1000, "covered": 950},
        "labels": {},
        "accuracy": 0.75,
        "unstable": 0.5,
    }


def test_a_known_exception_is_named_and_others_are_not_excused():
    rows = {
        (row.scenario, row.test): row.word
        for row in rejection_rows(
            [
                counted("N5", {"relabelling.accuracy": 110, "recentred.accuracy": 110}),
                counted("N3b", {"relabelling.accuracy": 110}),
                counted("P1", {"relabelling.accuracy": 800}),
            ]
        )
    }
    assert rows["N5", "relabelling.accuracy"] == "exception"
    assert rows["N5", "recentred.accuracy"] == "liberal"
    assert rows["N3b", "relabelling.accuracy"] == "liberal"
    assert rows["N3b", "relabelling.picks"] == "holds"
    assert rows["P1", "relabelling.accuracy"] == "power"


def test_slots_are_pooled_and_count_as_one():
    def part(covered):
        return {"truth": 0.5, "n": 1000, "covered": covered, "below": 20, "above": 1000 - covered - 20, "absent": 0} | {
            "width": 100.0,
            "estimate": 500.0,
            "estimates": 1000,
        }

    coverage = {f"accuracy.slot_{slot + 1}": part(covered) for slot, covered in enumerate((900, 880, 920, 900))}
    rows = {row.quantity: row for row in coverage_rows([counted("N3b", {}, coverage)])}
    assert rows["accuracy.slot"].rate == pytest.approx(0.9)
    assert rows["accuracy.slot"].n == 1000
    assert rows["accuracy.slot"].word == "too narrow"
    assert rows[JOINT].rate == pytest.approx(0.95)
    assert rows[JOINT].word == "holds"


def test_jobs_are_joined_into_a_report(tmp_path):
    paths = []
    for name in job_names(LITTLE):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(run_job(name, LITTLE)), encoding="utf-8")
    study = collect_study(LITTLE, paths, tmp_path / "out")
    stored = json.loads((tmp_path / "out" / "validation.json").read_text(encoding="utf-8"))
    assert study_markdown(stored) == study_markdown(study)
    assert study_markdown(stored) in (tmp_path / "out" / "validation.md").read_text(encoding="utf-8")
    assert [found["name"] for found in stored["scenarios"]] == ["N0", "C8"]
    assert sorted(path.name for path in (tmp_path / "out" / "figures").iterdir()) == [
        "coverage.svg",
        "type_one_error.svg",
    ]


def test_a_run_is_put_between_the_marks_of_the_page(tmp_path):
    run, docs = tmp_path / "run", tmp_path / "docs"
    study = collect_study(LITTLE, [], run)
    docs.mkdir()
    (docs / "validation.md").write_text(f"before\n{BEGIN}old\n{END}\nafter\n", encoding="utf-8")
    written = renew_docs(run, docs)
    assert (docs / "validation.md").read_text(
        encoding="utf-8"
    ) == f"before\n{BEGIN}{study_markdown(study)}{END}\nafter\n"
    assert (docs / "validation.json").read_bytes() == (run / "validation.json").read_bytes()
    figures = {"validation-coverage.svg", "validation-type-one-error.svg"}
    assert {path.name for path in written} == figures | {"validation.md", "validation.json"}


def test_a_page_without_marks_is_left_alone(tmp_path):
    collect_study(LITTLE, [], tmp_path)
    page = tmp_path / "validation.md"
    with pytest.raises(InputError, match="expected the marks"):
        renew_docs(tmp_path, tmp_path)
    assert BEGIN not in page.read_text(encoding="utf-8")


def test_right_and_wrong_labels():
    labels = {"first_boost": 5, "inactive": 3, "undetermined": 2, "other_shape": 1, "linear_decline": 4}
    assert right_and_wrong({"shape": "first_boost", "labels": labels}) == (5, 5)
    assert right_and_wrong({"shape": "null", "labels": labels}) == (3, 12)


def test_a_foreign_file_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="not the counts of a validation job"):
        collect_study(LITTLE, [tmp_path / "x.json"], tmp_path)


def test_unknown_sizes_and_jobs_are_refused():
    with pytest.raises(ConfigError, match="there are small, full"):
        size_named("huge")
    with pytest.raises(ConfigError, match="no job 'N99'"):
        run_job("N99", LITTLE)


def test_the_full_study_has_every_scenario_and_its_nulls_are_null():
    assert set(SIZES["full"].scenarios) == set(SCENARIOS)
    assert all(scenario.is_null for scenario in NULLS)
    assert not any(SCENARIOS[name].is_null for name in ("P1", "C1", "C8"))


def test_shapes_of_many_items_get_their_names():
    rows = {(row["shape"], row["size"]): row["labels"] for row in shape_labels(100, 2, resamples=199)}
    assert rows["monotone", 1.0].get("linear_decline", 0) + rows["monotone", 1.0].get("undetermined", 0) >= 1
    assert "linear_decline" not in rows["last_drop", 1.0]
