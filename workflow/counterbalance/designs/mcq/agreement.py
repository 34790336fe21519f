"""Do two ways of reading one model agree: log-probabilities of the labels and generated letters, prompt by prompt."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.config import Analysis
from counterbalance.errors import InputError
from counterbalance.stats.estimate import Result
from counterbalance.stats.proportions import clustered_shares

_KEY = ("item_id", "arrangement", "repeat")
_METHOD = "share of prompts for which both reads choose the same slot"


def agreement(analysis: Analysis, first: pa.Table, second: pa.Table) -> Result:
    """Estimate how often two experiments chose the same slot for the same options in the same order.

    Parameters
    ----------
    analysis
        For the level of the interval.
    first, second
        Outcomes of one model on one data set in two experiments, tables of the declared schema.

    Returns
    -------
    Result
        Interval over groups. ``undefined`` where no prompt was answered in both; the reason counts prompts that were
        answered in one of them only.

    Raises
    ------
    InputError
        If an item belongs to different groups in the two tables.
    """
    ours, theirs = _answers(first), _answers(second)
    both = [key for key in ours if key in theirs]
    alone = len(ours) + len(theirs) - 2 * len(both)
    if not both:
        reason = "no item was answered in the same order in both experiments"
        return Result(method=_METHOD, n_items=0, n_calls=0, status="undefined", reason=reason)
    moved = next((key[0] for key in both if ours[key][1] != theirs[key][1]), None)
    if moved is not None:
        raise InputError(f"item {moved} is in another group in the other experiment; prepare both from the same items")
    groups, place = np.unique([ours[key][1] for key in both], return_inverse=True)
    same = np.array([ours[key][0] == theirs[key][0] for key in both], dtype=np.float64)

    def by_group(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.bincount(place, weights=values, minlength=len(groups)).reshape(-1, 1).astype(np.float64)

    found = clustered_shares(by_group(same), by_group(np.ones(len(both))), level=analysis.level)[0]
    notes = [found.reason, f"{alone} prompts were answered in one of the two only" if alone else None]
    return replace(found, method=f"{_METHOD}; {found.method}", reason="; ".join(note for note in notes if note) or None)


def _answers(outcomes: pa.Table) -> dict[tuple[str, tuple[str, ...], int], tuple[int, str]]:
    """Return slot and group of every answered prompt, without calls that were asked once more."""
    known = pc.and_(outcomes.column("slot").is_valid(), outcomes.column("arrangement").is_valid())
    rows = outcomes.filter(pc.and_(known, pc.invert(outcomes.column("extra"))))
    columns = (rows.column(name).to_pylist() for name in (*_KEY, "slot", "group_id"))
    return {
        (item, tuple(order), repeat): (slot, group) for item, order, repeat, slot, group in zip(*columns, strict=True)
    }
