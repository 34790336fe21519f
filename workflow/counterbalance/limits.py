"""Where a run stops before it costs too much."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.config import Cell, Study
from counterbalance.config.models import ApiModel
from counterbalance.errors import ConfigError, InputError, VendorError
from counterbalance.scouting.trials import reused

WATCHED_REPLIES = 50
"""The first replies of a cell, by which it is judged whether the rest is worth buying."""

_NOTHING_TO_READ = ("empty", "unknown", "unavailable")


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


class FirstReplies:
    """Stops a cell whose first 50 replies are of too little use: the rest would be bought in vain.

    Those cut at the output limit are judged at the 50th, those in which there is nothing to read as soon as they are
    too many for the 50; the latter only where replies cost money.

    Parameters
    ----------
    seen
        Statuses of replies that earlier sessions bought, in the order of sending.
    """

    def __init__(self, cell: Cell, study: Study, seen: Sequence[str]) -> None:
        self._cell, self._study = cell, study
        self._most = study.config.limits.max_truncated_share * WATCHED_REPLIES
        self._seen = list(seen)
        self._judge()

    def __call__(self, status: str) -> None:
        """Take one reply in.

        Raises
        ------
        VendorError
            If too many of the first 50 were cut, or hold nothing to read.
        """
        if len(self._seen) < WATCHED_REPLIES:
            self._seen.append(status)
            self._judge()

    def _judge(self) -> None:
        cut, seen = self._seen.count("truncated"), len(self._seen)
        read = f"experiments.{self._cell.experiment.id}.read"
        share = f"limits.max_truncated_share: {self._study.config.limits.max_truncated_share}"
        if seen >= WATCHED_REPLIES and cut > self._most:
            raise VendorError(
                f"{self._cell.name}: {cut} of the first {seen} replies were cut at the output limit, more "
                f"than {share}; raise {read}.max_tokens in {self._study.path}, or that share, and amend the "
                "preregistration. The replies bought so far are kept"
            )
        vain = {status: n for status in _NOTHING_TO_READ if (n := self._seen.count(status))}
        if isinstance(self._cell.model, ApiModel) and sum(vain.values()) > self._most:
            counted = ", ".join(f"{n} {status}" for status, n in vain.items())
            raise VendorError(
                f"{self._cell.name}: in {sum(vain.values())} of the first {seen} replies there is nothing to read "
                f"({counted}; docs/vendors.md says what that means), more than {share} allows of "
                f"{WATCHED_REPLIES}; change the model's settings or {read} in {self._study.path}, leave the model "
                "out, or raise that share, and amend the preregistration. The replies bought so far are kept"
            )


def _count_rows(path: str) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: not a readable Parquet file ({error}); run expand again") from error
