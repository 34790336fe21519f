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
from counterbalance.scouting.outcome import skipped_cells

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
        Trials by the session that bought their reply; those of the cell's scout left out.
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
    """Read it for every cell of a study, in the study's order; of a skipped cell there is the scout alone.

    Raises
    ------
    InputError
        If a table or its record is missing or malformed.
    """
    skipped = skipped_cells(study)
    return [_read(study, cell, scout_alone=cell.name in skipped) for cell in study.cells()]


def bought_paths(study: Study) -> list[Path]:
    """Return the tables that `read_bought` reads."""
    layout = study.layout
    cells, skipped = list(study.cells()), skipped_cells(study)
    paths = [layout.scout_summary] if any(study.scouted_cells()) else []
    for cell in cells:
        names = (cell.experiment.id, cell.model.id, cell.dataset.id)
        if cell.name in skipped:
            paths += [layout.scout_replies(*names), layout.scout_decision(*names)]
        else:
            paths += [layout.replies(*names), layout.outcomes(*names)]
    return paths


def _read(study: Study, cell: Cell, *, scout_alone: bool) -> Bought:
    names = (cell.experiment.id, cell.model.id, cell.dataset.id)
    path = study.layout.scout_replies(*names) if scout_alone else study.layout.replies(*names)
    replies = read_table(path, SCHEMAS["replies"], _CIRCUMSTANCES)
    swept = replies if cell.experiment.scout is None else _without_scout(study, cell, replies)
    sessions = _counts(swept, "session")
    answers = None
    if len(sessions) > 1:
        outcomes = read_table(study.layout.outcomes(*names), SCHEMAS["outcomes"], _ANSWERS)
        mine = pc.is_in(outcomes.column("trial_id"), value_set=swept.column("trial_id").combine_chunks())
        outcomes = outcomes.filter(mine)
        order = pc.index_in(outcomes.column("trial_id"), value_set=swept.column("trial_id").combine_chunks())
        answers = outcomes.append_column("session", swept.column("session").take(order))
    return Bought(
        cell=cell,
        facts=read_record(path).facts,
        calls=replies.num_rows,
        models=_counts(replies, "model_returned"),
        fingerprints=_counts(replies, "fingerprint"),
        sessions=sessions,
        answers=answers,
    )


def _without_scout(study: Study, cell: Cell, replies: pa.Table) -> pa.Table:
    """Return the replies that the sweep bought: a scout comes before it by plan, which is no interruption."""
    path = study.layout.scout_trials(cell.experiment.id, cell.dataset.id)
    scout = read_table(path, SCHEMAS["trials"], ["trial_id"]).column("trial_id").combine_chunks()
    return replies.filter(pc.invert(pc.is_in(replies.column("trial_id"), value_set=scout)))


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
