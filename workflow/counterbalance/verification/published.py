"""Whether the numbers of a cell are those that stand in the file of published cells."""

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.artifacts.records import relative
from counterbalance.calls import TRIAL_COLUMNS, iter_trials
from counterbalance.config import Cell, Study
from counterbalance.config.models import CellsModel
from counterbalance.vendors.cells import CellsVendor


def differing_numbers(study: Study, cell: Cell, model: CellsModel) -> list[str]:
    """Return where replies are not what the file holds now.

    Raises
    ------
    InputError
        If a table or the file cannot be read.
    VendorError
        If the file lacks a number.
    """
    layout, names = study.layout, (cell.experiment.id, cell.model.id, cell.dataset.id)
    path = layout.replies(*names)
    replies = read_table(path, SCHEMAS["replies"], ["trial_id", "text"]).to_pylist()
    found = {row["trial_id"]: row["text"] for row in replies}
    trials = read_table(layout.trials(cell.experiment.id, cell.dataset.id), SCHEMAS["trials"], list(TRIAL_COLUMNS))
    vendor = CellsVendor(model, cell.experiment, study)
    held = {trial.trial_id: vendor.text(trial) for trial in iter_trials(trials, range(trials.num_rows), cell)}
    table, file = relative(path, study.root), cell.dataset.path
    return [
        f"{table} trial {name}: {found.get(name)!r} is there, and {file} holds {text!r}"
        for name, text in held.items()
        if found.get(name) != text
    ]
