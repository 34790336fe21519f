"""The vendor `cells`: no model, but the numbers of a published file, each as it is written there."""

from dataclasses import dataclass
from types import TracebackType
from typing import Self

from counterbalance.config import Dataset, Experiment, Study
from counterbalance.config.models import CellsModel
from counterbalance.designs.crossing.published import address_of, reply_text
from counterbalance.errors import VendorError
from counterbalance.items.cells import CellRow, read_cell_file
from counterbalance.items.source import read_source
from counterbalance.vendors.base import Reply, Request, Trial


@dataclass(frozen=True)
class _Published:
    sha256: str
    kept_column: str | None
    rows: dict[tuple[str, str], CellRow]


class CellsVendor:
    """Numbers from the data set's file; a trial's prompt says which one it is."""

    max_in_flight = 32
    shares_prefixes = True

    def __init__(self, model: CellsModel, experiment: Experiment, study: Study) -> None:
        self._model, self._study = model, study
        self._files: dict[str, _Published] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.clear()

    def request(self, trial: Trial) -> Request:
        """Build the request: the file's hash belongs to it, so another file's numbers are other calls."""
        parameters = {"cells_sha256": self._file(trial.subset).sha256}
        return Request("cells", None, self._model.id, parameters, trial.prompt, None, trial.repeat)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        """Return the number as it is written in the file.

        Raises
        ------
        VendorError
            If the file does not hold it.
        """
        return Reply("ok", text=self.text(trial))

    def text(self, trial: Trial) -> str:
        """Return what the file holds for a trial; see `ask`."""
        file, address = self._file(trial.subset), address_of(trial.prompt)
        row = None if address is None else file.rows.get((address["condition"], address["item"]))
        if address is None or row is None or row.line != address["line"]:
            raise VendorError(
                f"{self._study.dataset(trial.subset).path}: no number for trial {trial.trial_id}; the trials were made "
                "from another file, run the stages from prepare on again"
            )
        return reply_text(row, address["cell"], file.kept_column)

    def _file(self, subset: str) -> _Published:
        if subset not in self._files:
            self._files[subset] = _read(self._study.dataset(subset), self._study)
        return self._files[subset]


def _read(dataset: Dataset, study: Study) -> _Published:
    source = read_source(dataset, study.root)
    file = read_cell_file(source.data, dataset.path, kept_column=dataset.kept_column)
    return _Published(source.sha256, file.kept_column, {(row.condition, row.item): row for row in file.rows})
