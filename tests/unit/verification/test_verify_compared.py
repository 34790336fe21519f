"""Two experiments that read one model: compared by the stages, predicted, judged, shown and derived again."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from counterbalance.artifacts import read_record
from counterbalance.designs.pairs import compared_cells
from counterbalance.errors import ConfigError, VerificationError
from counterbalance.prereg.plan import load_predictions
from counterbalance.progress import SilentProgress
from counterbalance.scouting.outcome import CellDecision
from counterbalance.stages.contrast import combine_estimates, compare_cells, estimate_cell
from counterbalance.stages.expand import expand_trials
from counterbalance.stages.freeze import freeze
from counterbalance.stages.prepare import prepare_items
from counterbalance.stages.query import query_replies
from counterbalance.stages.report import render_report
from counterbalance.stages.resolve import resolve_study
from counterbalance.stages.score import score_replies
from counterbalance.stages.verify import verify, write_manifest

EXPERIMENTS = ("letters", "probabilities")
SECOND = """\
  - id: probabilities
    design: mcq
    datasets: [sums]
    models: [biased]
    prompt: {template: config/prompts/planted.j2, style: plain}
    read: {kind: logprob, top: 20}
"""
PLACE = "experiment: probabilities, model: biased, subset: sums"
PLAN = f"""\
```yaml predictions
- {{id: P1, {PLACE}, quantity: agreement@with=letters, rule: at_least, value: 0.5}}
- {{id: P2, {PLACE}, quantity: agreement.kappa@with=letters, rule: at_most, value: -0.5}}
```
"""
OUTCOMES = "results/planted/outcomes/{}/biased/sums.parquet"
ESTIMATES = "results/planted/estimates.parquet"


def make(finished: Any, root: Path, plan: str = PLAN) -> Any:
    """Copy the sources of the finished study, with a second experiment and another plan."""
    for name in ("Snakefile", "config/studies/planted.yaml", "config/items/sums.csv", "config/prompts/planted.j2"):
        text = (finished.root / name).read_text(encoding="utf-8")
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("analysis:", SECOND + "analysis:"), encoding="utf-8")
    (root / "preregistration").mkdir()
    (root / "preregistration/planted.md").write_text(plan, encoding="utf-8")
    return type(finished)(root)


@pytest.fixture(scope="module")
def compared(finished: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    project = make(finished, tmp_path_factory.mktemp("compared") / "p")
    study = project.study
    resolve_study(study)
    prepare_items(study, "sums")
    for experiment in EXPERIMENTS:
        expand_trials(study, experiment, "sums")
    freeze(study)
    for experiment in EXPERIMENTS:
        query_replies(study, experiment, "biased", "sums", SilentProgress())
        score_replies(study, experiment, "biased", "sums")
        estimate_cell(study, experiment, "biased", "sums")
    combine_estimates(study)
    render_report(study)
    write_manifest(study)
    return project


def agreements(project: Any) -> dict[str, dict[str, object]]:
    rows = project.rows(ESTIMATES, "estimates")
    return {row["quantity"]: row for row in rows if row["quantity"].startswith("agreement")}


def test_the_share_is_that_of_equal_slots_in_the_tables_of_outcomes(compared: Any) -> None:
    chosen = [
        {
            row["trial_id"]: row["slot"]
            for row in compared.rows(f"results/planted/outcomes/{name}/biased/sums.parquet", "outcomes")
        }
        for name in EXPERIMENTS
    ]
    same = [chosen[0][trial] == chosen[1][trial] for trial in chosen[0]]
    found = agreements(compared)["agreement@with=letters"]
    assert len(same) == found["n_calls"] == 30
    assert found["estimate"] == pytest.approx(sum(same) / 30)
    assert {row["experiment"] for row in agreements(compared).values()} == {"probabilities"}


def test_its_inputs_are_recorded_and_declared_alike(compared: Any) -> None:
    made_from = {entry.path for entry in read_record(compared.path(ESTIMATES)).materials}
    declared = [cell.name for cell in compared_cells(compared.study, list(compared.study.cells()))]
    assert declared == ["letters/biased/sums", "probabilities/biased/sums"]
    assert {f"results/planted/outcomes/{name}.parquet" for name in declared} <= made_from


def test_predictions_of_it_are_judged(compared: Any) -> None:
    judged = {row["prediction"]: row for row in compared.rows("results/planted/predictions.parquet", "predictions")}
    assert (judged["P1"]["verdict"], judged["P2"]["verdict"]) == ("confirmed", "falsified")


def test_the_report_shows_it_beside_the_cell(compared: Any) -> None:
    page = (compared.results / "report.html").read_text(encoding="utf-8")
    assert "Likeliest label is the letter generated in letters" in page
    assert "Cohen’s kappa with letters" in page


def test_it_is_derived_again_and_a_forged_one_is_found(compared: Any, tmp_path: Path) -> None:
    verify(compared.results)
    copy = type(compared)(tmp_path / "copy")
    shutil.copytree(compared.root, copy.root)

    def lift(rows: list[dict[str, object]]) -> None:
        row = next(row for row in rows if row["quantity"] == "agreement@with=letters")
        row["estimate"] = 0.123

    copy.forge(ESTIMATES, "estimates", lift)
    with pytest.raises(VerificationError, match=r"estimates\.parquet.*agreement@with=letters"):
        verify(copy.results)


def test_a_partner_that_its_scout_left_out_is_named(compared: Any) -> None:
    cell = "letters/biased/sums"
    left_out = CellDecision(cell, "skip", "accuracy 1 is above max_accuracy 0.95", 1.0, "high", 5, 10, 20, None)
    rows = compare_cells(compared.study, {cell: left_out}).to_pylist()
    assert {row["quantity"] for row in rows} == agreements(compared).keys()
    assert {(row["status"], row["estimate"], row["n_calls"]) for row in rows} == {("undefined", None, 0)}
    assert all("was not asked: accuracy 1 is above max_accuracy 0.95" in row["reason"] for row in rows)
    # A cell that is itself left out has no estimates at all.
    assert compare_cells(compared.study, {"probabilities/biased/sums": left_out}).num_rows == 0


def test_agreement_with_an_experiment_that_reads_no_letters_is_refused_before_freezing(
    finished: Any, tmp_path: Path
) -> None:
    wrong = make(finished, tmp_path / "p", PLAN.replace("agreement@with=letters", "agreement@with=probabilities"))
    with pytest.raises(ConfigError, match=r"no experiment 'probabilities' to compare this one with; there are letters"):
        load_predictions(wrong.study)
