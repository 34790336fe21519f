"""Where a run stops before it costs too much."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.config import Cell, Study
from counterbalance.errors import ConfigError, InputError, VendorError
from counterbalance.scouting.trials import reused

WATCHED_REPLIES = 50
"""The first replies of a cell, by which it is judged whether the output limit is too low."""


def check_number_of_calls(study: Study) -> None:
    """Stop if the study's trials that are known by now need more calls than its limit.

    Raises
    ------
    ConfigError
        With the number and the limit.
    """
    counted = {}
    for cell in study.cells():
        path = study.layout.trials(cell.experiment.id, cell.dataset.id)
        if path.is_file():
            counted[cell.name] = _count_rows(str(path)) + count_scout_alone(study, cell)
    total, limit = sum(counted.values()), study.config.limits.max_calls
    if total > limit:
        largest = max(counted, key=counted.__getitem__)
        raise ConfigError(
            f"{study.path}: the study's trials need {total} calls, more than limits.max_calls: {limit} (largest cell "
            f"{largest}: {counted[largest]}); take fewer items or arrangements, or raise the limit"
        )


def count_scout_alone(study: Study, cell: Cell) -> int:
    """Return how many calls a cell's scout makes that its sweep does not, as far as they are known by now."""
    path = study.layout.scout_trials(cell.experiment.id, cell.dataset.id)
    if cell.experiment.scout is None or not path.is_file():
        return 0
    table = read_table(path, SCHEMAS["trials"], ["condition"])
    return int(table.num_rows) - reused(table)


class TruncationGuard:
    """Stops a cell whose first 50 replies are cut at the output limit too often: the rest would be bought in vain.

    Parameters
    ----------
    seen
        Statuses of replies that earlier sessions bought, in the order of sending.
    """

    def __init__(self, cell: Cell, study: Study, seen: Sequence[str]) -> None:
        self._cell, self._study = cell, study
        self._limit = study.config.limits.max_truncated_share
        self._seen = list(seen)
        if len(self._seen) >= WATCHED_REPLIES:
            self._judge()

    def __call__(self, status: str) -> None:
        """Take one reply in.

        Raises
        ------
        VendorError
            At the 50th reply, if too many were cut.
        """
        if len(self._seen) < WATCHED_REPLIES:
            self._seen.append(status)
            if len(self._seen) == WATCHED_REPLIES:
                self._judge()

    def _judge(self) -> None:
        cut = self._seen.count("truncated")
        if cut > self._limit * WATCHED_REPLIES:
            raise VendorError(
                f"{self._cell.name}: {cut} of the first {WATCHED_REPLIES} replies were cut at the output limit, more "
                f"than limits.max_truncated_share: {self._limit}; raise experiments.{self._cell.experiment.id}.read."
                f"max_tokens in {self._study.path}, or that share, and amend the preregistration. The replies bought "
                "so far are kept"
            )


def _count_rows(path: str) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); run expand again") from error
