"""What is known about how a cell's replies were bought: the query's record, and circumstances of each reply."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.artifacts import SCHEMAS, read_record, read_table
from counterbalance.config import Cell, Study

_CIRCUMSTANCES = ["trial_id", "model_returned", "fingerprint", "session"]
_ANSWERS = ["trial_id", "group_id", "extra", "n_options", "gold_slot", "slot", "correct"]


@dataclass(frozen=True)
class Bought:
    """How one cell's replies came to be.

    Attributes
    ----------
    facts
        Facts of the query's record; those that an older release did not write are not there.
    calls
        Number of trials with a reply.
    models, fingerprints
        Trials by what their reply names; replies that name none are not counted.
    sessions
        Trials by the session that bought their reply.
    answers
        Only for cells bought in more than one session: session and outcome of each trial.
    """

    cell: Cell
    facts: Mapping[str, Any]
    calls: int
    models: Mapping[str, int]
    fingerprints: Mapping[str, int]
    sessions: Mapping[int, int]
    answers: pa.Table | None


def read_bought(study: Study) -> list[Bought]:
    """Read it for every cell of a study, in the study's order.

    Raises
    ------
    InputError
        If a table or its record is missing or malformed.
    """
    return [_read(study, cell) for cell in study.cells()]


def bought_paths(study: Study) -> list[Path]:
    """Return the tables that `read_bought` reads."""
    layout = study.layout
    names = [(cell.experiment.id, cell.model.id, cell.dataset.id) for cell in study.cells()]
    return [path for name in names for path in (layout.replies(*name), layout.outcomes(*name))]


def _read(study: Study, cell: Cell) -> Bought:
    names = (cell.experiment.id, cell.model.id, cell.dataset.id)
    path = study.layout.replies(*names)
    replies = read_table(path, SCHEMAS["replies"], _CIRCUMSTANCES)
    sessions = _counts(replies, "session")
    answers = None
    if len(sessions) > 1:
        outcomes = read_table(study.layout.outcomes(*names), SCHEMAS["outcomes"], _ANSWERS)
        order = pc.index_in(outcomes.column("trial_id"), value_set=replies.column("trial_id").combine_chunks())
        answers = outcomes.append_column("session", replies.column("session").take(order))
    return Bought(
        cell=cell,
        facts=read_record(path).facts,
        calls=replies.num_rows,
        models=_counts(replies, "model_returned"),
        fingerprints=_counts(replies, "fingerprint"),
        sessions=sessions,
        answers=answers,
    )


def _counts(table: pa.Table, column: str) -> dict[Any, int]:
    counts = Counter(table.column(column).drop_null().to_pylist())
    return {value: counts[value] for value in sorted(counts)}


def in_random_order(bought: Bought) -> bool:
    """Whether the cell's calls were asked in an order drawn by the seed; by the plan where the record does not say."""
    order = bought.facts.get("call_order") or bought.cell.experiment.call_order
    return bool(order == "interleaved" or (order == "auto" and bought.cell.model.vendor != "local"))


def sessions_of(bought: Bought) -> Sequence[Mapping[str, Any]]:
    """Return the record's sessions, or as much of them as the table of replies tells."""
    known = bought.facts.get("sessions")
    if known:
        return [dict(entry) for entry in known]
    return [{"session": session, "ended_because": None, "calls": calls} for session, calls in bought.sessions.items()]
