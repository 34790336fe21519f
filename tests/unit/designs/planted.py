"""A whole cell in memory: planted items, expanded, answered by a simulated respondent, and scored."""

from pathlib import Path

import pyarrow as pa
from small_study import TEMPLATE, study_body, sums_csv, write_files, write_study

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.calls import TRIAL_COLUMNS, iter_trials
from counterbalance.config import Cell, Study, load_study
from counterbalance.designs import get_design
from counterbalance.stages.score import score_slices
from counterbalance.vendors.simulated import SimulatedVendor


def make_study(root: Path, *, respondent: dict[str, object], **experiment: object) -> Study:
    """Write a study with one cell; further keys of the experiment and of the respondent as given."""
    body = study_body(
        [{"id": "planted", "vendor": "simulated", **respondent}],
        experiment=experiment,
        analysis={"resamples": 199, "run_resamples": 99},
    )
    write_files(root, {"letter.j2": TEMPLATE, "sums.csv": sums_csv(0)})
    return load_study(write_study(root, body))


def make_items(n: int) -> pa.Table:
    return table_from_rows(
        [
            {
                "item_id": f"i{number:03d}",
                "group_id": f"i{number:03d}",
                "stem": f"question {number}?",
                "option_ids": ["o1", "o2", "o3"],
                "option_texts": [f"{number} one", f"{number} two", f"{number} three"],
                "gold_option_id": "o2",
                "strata": "{}",
                "source_row": number,
            }
            for number in range(1, n + 1)
        ],
        SCHEMAS["items"],
    )


def make_trials(study: Study, items: pa.Table) -> pa.Table:
    cell = the_cell(study)
    design = get_design(cell.experiment.design)
    return pa.concat_tables(design.expand(study, cell.experiment, cell.dataset, items))


def the_cell(study: Study) -> Cell:
    return study.cell("letters", "planted", "sums")


def make_replies(study: Study, trials: pa.Table) -> list[dict[str, object]]:
    """Let the respondent answer every trial; rows of the replies table, in the trials' order."""
    cell = the_cell(study)
    vendor = SimulatedVendor(cell.model, cell.experiment)
    empty = dict.fromkeys(SCHEMAS["replies"].arrow.names)
    table = trials.select(list(TRIAL_COLUMNS))
    return [
        {
            **empty,
            **{name: value for name, value in vendor.answer(trial).body().items() if name in empty},
            "trial_id": trial.trial_id,
            "call_sha256": vendor.request(trial).sha256,
            "attempts": 1,
            "call_order": place,
            "session": 1,
            "started_at": "2026-01-01T00:00:00Z",
        }
        for place, trial in enumerate(iter_trials(table, range(table.num_rows), cell))
    ]


def make_outcomes(study: Study, trials: pa.Table, replies: list[dict[str, object]]) -> pa.Table:
    return pa.concat_tables(score_slices(study, "letters", trials, table_from_rows(replies, SCHEMAS["replies"])))
