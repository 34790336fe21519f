"""Real questions, planted respondents: four models on five MMLU subjects, 50 items each in 24 orders.

One slot bonus, its shape set per subject, is planted in three models of low, middle and very high accuracy. Only the
middle one can show it: noisy calls drown it in the first, and the third is nearly always right whatever the slot. The
fourth has the middle one's accuracy and no bonus.

The files are not ours to ship. They are looked for in ``shared/data/mmlu`` beside the project's folder; without them
this test has nothing to read and says so.
"""

import resource
from dataclasses import dataclass
from pathlib import Path

import pytest
from planted_project import REPOSITORY, Project, make_project

from counterbalance.artifacts import SCHEMAS, read_table

MMLU = REPOSITORY.parent / "shared" / "data" / "mmlu"
BONUS = {
    "elementary_mathematics": (1.2, 0.8, 0.4, 0.0),
    "college_mathematics": (0.8, 0.0, 0.0, 0.0),
    "philosophy": (0.0, 0.0, 0.0, -0.8),
    "formal_logic": (0.0, -0.8, 0.0, 0.0),
    "professional_medicine": (0.9, 0.6, 0.3, 0.0),
}
SUBJECTS = tuple(BONUS)
# Mean abilities that give accuracies of .90, .75, .80, .70 and .85 over many items; and of .98 and more.
MIDDLE = (3.79, 2.45, 2.81, 2.11, 3.25)
HIGH = (5.80, 5.60, 5.54, 5.60, 6.15)
MODELS = ("floor", "middle", "ceiling", "unbiased")
CPU_MINUTES = 7.5
"""Three quarters of what two cores have in five minutes."""

pytestmark = pytest.mark.skipif(not MMLU.is_dir(), reason="shared/data/mmlu is not beside the project's folder")


def model_text(name: str, seed: int, ability: tuple[float, ...], noise: float, *, biased: bool) -> str:
    means = ", ".join(f"{subject}: {mean}" for subject, mean in zip(SUBJECTS, ability, strict=True))
    bonuses = ", ".join(f"{subject}: {list(bonus if biased else (0.0,))}" for subject, bonus in BONUS.items())
    return f"""\
  - id: {name}
    vendor: simulated
    seed: {seed}
    ability_mean: {{{means}}}
    slot_bonus: {{{bonuses}}}
    call_noise: {noise}
    item_slot_sd: 0.3
"""


def dataset_text(subject: str) -> str:
    return f"""\
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


def study_text() -> str:
    floor, middle, ceiling, unbiased = (
        model_text("floor", 1, (2.4,) * 5, 5.0, biased=True),
        model_text("middle", 2, MIDDLE, 0.3, biased=True),
        model_text("ceiling", 3, HIGH, 0.3, biased=True),
        model_text("unbiased", 4, MIDDLE, 0.3, biased=False),
    )
    return f"""\
schema: counterbalance/study/1
id: planted
title: Where a planted bias can be seen
question: Is a slot bonus found at every accuracy, or only where a model is neither lost nor sure?
seed: 2
preregistration: null
models:
{floor}{middle}{ceiling}{unbiased}datasets:
{"".join(map(dataset_text, SUBJECTS))}experiments:
  - id: letters
    design: mcq
    datasets: [{", ".join(SUBJECTS)}]
    models: [{", ".join(MODELS)}]
    prompt: {{template: config/prompts/planted.j2, style: plain}}
    read: {{kind: generate}}
"""


@dataclass(frozen=True)
class Finished:
    project: Project
    cpu_minutes: float
    rows: dict[tuple[str, str, str], dict[str, object]]

    def labels(self, quantity: str, model: str) -> dict[str, object]:
        return {subject: self.rows[model, subject, quantity]["label"] for subject in SUBJECTS}


def make_mmlu(root: Path) -> Project:
    project = make_project(root)
    for subject in SUBJECTS:
        name = f"{subject}_test.csv"
        (project.root / "config/items" / name).write_bytes((MMLU / name).read_bytes())
    (project.root / "config/studies/planted.yaml").write_text(study_text(), encoding="utf-8")
    return project


def cpu_seconds() -> float:
    """Processor time of finished children, which depends less on what else the machine does than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def mmlu(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    project = make_mmlu(tmp_path_factory.mktemp("mmlu") / "real questions é")
    start = cpu_seconds()
    project.snakemake("freeze_preregistration")
    project.snakemake()
    minutes = (cpu_seconds() - start) / 60
    table = read_table(project.root / "results/planted/estimates.parquet", SCHEMAS["estimates"]).to_pylist()
    return Finished(project, minutes, {(row["model"], row["subset"], row["quantity"]): row for row in table})


def test_each_subject_has_50_items_in_24_orders(mmlu: Finished) -> None:
    for subject in SUBJECTS:
        trials = read_table(mmlu.project.root / f"results/planted/trials/letters/{subject}.parquet", SCHEMAS["trials"])
        assert trials.num_rows == 50 * 24
        assert len(set(trials.column("item_id").to_pylist())) == 50


def test_accuracies_lie_in_the_bands_that_were_planted(mmlu: Finished) -> None:
    bands = {model: set(mmlu.labels("band", model).values()) for model in MODELS}
    assert bands == {"floor": {"low"}, "middle": {"middle"}, "ceiling": {"high"}, "unbiased": {"middle"}}


def test_the_planted_bias_is_found_in_every_subject_of_the_middle(mmlu: Finished) -> None:
    assert mmlu.labels("verdict", "middle") == dict.fromkeys(SUBJECTS, "bias")


def test_where_there_is_none_or_it_cannot_be_seen_none_is_claimed(mmlu: Finished) -> None:
    found = {model: set(mmlu.labels("verdict", model).values()) for model in MODELS}
    for subject, label in mmlu.labels("verdict", "unbiased").items():
        alone, family = (mmlu.rows["unbiased", subject, f"detectable_V{level}"] for level in ("", ".family"))
        # Tested alone each of them would have shown V = .10; at the level of 40 tests few would.
        assert alone["status"] == "ok"
        assert label == ("no_bias_seen" if family["status"] == "ok" else "not_measurable")
    assert found["floor"] <= {"no_bias_seen", "not_measurable"}
    # All three cells' bonus is there; that it is not seen near the ceiling is no evidence of its absence.
    assert found["ceiling"] == {"not_measurable"}


def test_named_shapes_are_those_that_were_planted(mmlu: Finished) -> None:
    planted = ("linear_decline", "first_boost", "last_drop", "middle_drop", "linear_decline")
    unnamed = {"inactive", "undetermined", "other_shape"}
    found = mmlu.labels("shape.label", "middle")
    assert all(found[subject] in {shape, *unnamed} for subject, shape in zip(SUBJECTS, planted, strict=True))
    assert set(found.values()) - unnamed


def test_the_report_sums_up_all_cells_and_is_stamped_exploratory(mmlu: Finished) -> None:
    html = Path(mmlu.project.root / "results/planted/report.html").read_text(encoding="utf-8")
    assert "5 of 20 cells answer by position" in html
    assert "5 of 10 cells of middle accuracy" in html
    assert html.count('class="cell-point"') == 20
    assert "xploratory" in html


def test_from_items_to_report_in_time(mmlu: Finished) -> None:
    assert mmlu.cpu_minutes < CPU_MINUTES
