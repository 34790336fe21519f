"""Real questions, planted respondents: five MMLU subjects, 50 items each in 24 orders.

The files are not ours to ship. They are looked for in ``shared/data/mmlu`` beside the project's folder; without them
this test has nothing to read and says so.
"""

from pathlib import Path

import pytest
from planted_project import REPOSITORY, Project, make_project

from counterbalance.artifacts import SCHEMAS, read_table

MMLU = REPOSITORY.parent / "shared" / "data" / "mmlu"
SUBJECTS = ("elementary_mathematics", "college_mathematics", "philosophy", "formal_logic", "professional_medicine")

pytestmark = pytest.mark.skipif(not MMLU.is_dir(), reason="shared/data/mmlu is not beside the project's folder")


def study_text() -> str:
    datasets = "".join(
        f"""\
  - id: {subject}
    path: config/items/{subject}_test.csv
    format: csv_headerless
    columns: {{question: column_1, options: [column_2, column_3, column_4, column_5], key: column_6}}
    key: {{type: letter}}
    exclude: [option_refers_to_others, duplicate_options, duplicate_items]
    take: {{n: 50, how: random}}
    licence: MIT
    source: Hendrycks et al. (2021)
"""
        for subject in SUBJECTS
    )
    return f"""\
schema: counterbalance/study/1
id: planted
title: MMLU with planted respondents
question: Is a planted bias found on real questions, and a planted null not?
seed: 2
preregistration: null
models:
  - {{id: biased, vendor: simulated, seed: 1, ability_mean: 2.0, slot_bonus: [0.9, 0.6, 0.3, 0.0], call_noise: 0.3,
     item_slot_sd: 0.3}}
  - {{id: fair, vendor: simulated, seed: 2, ability_mean: 2.0, slot_bonus: [0.0], call_noise: 0.3, item_slot_sd: 0.3}}
datasets:
{datasets}experiments:
  - id: letters
    design: mcq
    datasets: [{", ".join(SUBJECTS)}]
    models: [biased, fair]
    prompt: {{template: config/prompts/planted.j2, style: plain}}
    read: {{kind: generate}}
analysis: {{resamples: 1999, run_resamples: 199}}
"""


@pytest.fixture(scope="module")
def mmlu(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_project(tmp_path_factory.mktemp("mmlu") / "real questions é")
    for subject in SUBJECTS:
        name = f"{subject}_test.csv"
        (project.root / "config/items" / name).write_bytes((MMLU / name).read_bytes())
    (project.root / "config/studies/planted.yaml").write_text(study_text(), encoding="utf-8")
    project.snakemake("freeze_preregistration")
    project.snakemake()
    return project


def labels(project: Project, quantity: str, model: str) -> dict[str, str]:
    rows = read_table(project.root / "results/planted/estimates.parquet", SCHEMAS["estimates"]).to_pylist()
    return {row["subset"]: row["label"] for row in rows if (row["quantity"], row["model"]) == (quantity, model)}


def test_each_subject_has_50_items_in_24_orders(mmlu: Project) -> None:
    for subject in SUBJECTS:
        trials = read_table(mmlu.root / f"results/planted/trials/letters/{subject}.parquet", SCHEMAS["trials"])
        assert trials.num_rows == 50 * 24
        assert len(set(trials.column("item_id").to_pylist())) == 50


def test_the_planted_bias_is_found_in_every_subject(mmlu: Project) -> None:
    assert labels(mmlu, "verdict", "biased") == dict.fromkeys(SUBJECTS, "bias")


def test_the_planted_null_is_not_called_a_bias(mmlu: Project) -> None:
    found = labels(mmlu, "verdict", "fair")
    assert set(found) == set(SUBJECTS)
    assert "bias" not in found.values()


def test_without_a_preregistration_the_report_is_stamped_exploratory(mmlu: Project) -> None:
    html = Path(mmlu.root / "results/planted/report.html").read_text(encoding="utf-8")
    assert "xploratory" in html
