"""Cells that were bought in several sessions: whether the replies before and after an interruption differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.config import Analysis
from counterbalance.report.bought import Bought, in_random_order, sessions_of
from counterbalance.report.text import anchor_of, count, interval, listing, p_equals, percent, plural, signed
from counterbalance.stats.estimate import FEW_ITEMS, Result
from counterbalance.stats.interruption import Half, Interruption, compare_halves
from counterbalance.stats.multiplicity import holm

_FEW_CALLS = 30


@dataclass(frozen=True)
class InterruptionView:
    """One cell's comparison: a difference under each head of its table, and what follows from them in words."""

    cell: str
    anchor: str
    before: str
    after: str
    differences: Sequence[str]
    words: str


@dataclass(frozen=True)
class InterruptionTable:
    """The cells of one design, with what is compared in it."""

    heads: Sequence[str]
    rows: Sequence[InterruptionView]


@dataclass(frozen=True)
class _Terms:
    """What a design calls the things compared; `right` is None where no answer is right or wrong."""

    right: str | None
    picks: str
    picks_head: str


_TERMS = {
    "mcq": _Terms("accuracy", "slot picks", "Picks by slot"),
    "crossing": _Terms(None, "choices of block", "Choices of block"),
}
_OTHER = _Terms(None, "picks", "Picks by place")
_BLOCKS = ("first block", "second block")


@dataclass(frozen=True)
class _Compared:
    bought: Bought
    why: str
    before: Half
    after: Half
    found: Interruption

    @property
    def n_calls(self) -> tuple[int, int]:
        return int(self.before.picks.sum()), int(self.after.picks.sum())

    @property
    def few(self) -> bool:
        items = [int((half.picks.sum(axis=1) > 0).sum()) for half in (self.before, self.after)]
        return min(self.n_calls) < _FEW_CALLS or min(items) < FEW_ITEMS

    @property
    def tests(self) -> list[float | None]:
        """P-values that may be read: of a random order, and on enough calls."""
        if self.few or not in_random_order(self.bought):
            return [None, None]
        return [self.found.accuracy.p if self.terms.right else None, self.found.picks_test.p]

    @property
    def terms(self) -> _Terms:
        return _TERMS.get(self.bought.cell.experiment.design, _OTHER)


def view_interruptions(cells: Iterable[Bought], analysis: Analysis) -> list[InterruptionTable]:
    """Compare the calls before and after the first interruption of every cell that had one, design by design.

    A first session of a single call is the preflight's and no interruption. Holm's correction runs over all tests of
    this note.
    """
    compared = [found for bought in cells if (found := _compare(bought, analysis)) is not None]
    tests = [p for entry in compared for p in entry.tests if p is not None]
    adjusted = iter(holm(tests))
    rows: dict[str, list[InterruptionView]] = {}
    for entry in compared:
        mine = [None if p is None else next(adjusted) for p in entry.tests]
        rows.setdefault(entry.bought.cell.experiment.design, []).append(_view(entry, mine, analysis))
    return [InterruptionTable(_heads(_TERMS.get(design, _OTHER)), views) for design, views in rows.items()]


def _compare(bought: Bought, analysis: Analysis) -> _Compared | None:
    last = _first_interrupted(bought)
    if last is None or bought.answers is None:
        return None
    table = bought.answers.filter(pc.invert(bought.answers.column("extra")))
    earlier = table.column("session").to_numpy() <= last
    units = _codes(table)
    before, after = _half(table, units, earlier), _half(table, units, ~earlier)
    found = compare_halves(before, after, level=analysis.level, n_resamples=analysis.resamples, seed=analysis.seed)
    why = next((entry["ended_because"] for entry in sessions_of(bought) if entry["session"] == last), None)
    return _Compared(bought, why or "not written down, as when the process was killed", before, after, found)


def _first_interrupted(bought: Bought) -> int | None:
    """Return the session after which the calls are split; None if the cell was bought in one go."""
    sessions = sorted(bought.sessions)
    first = next((session for session in sessions if bought.sessions[session] > 1), None)
    return None if first is None or first == sessions[-1] else first


def _codes(table: pa.Table) -> npt.NDArray[np.int64]:
    codes = table.column("group_id").combine_chunks().dictionary_encode().indices
    return np.asarray(codes.to_numpy(), dtype=np.int64)


def _half(table: pa.Table, units: npt.NDArray[np.int64], mine: npt.NDArray[np.bool_]) -> Half:
    n_units = int(units.max(initial=-1)) + 1
    slots = int(pc.max(table.column("n_options")).as_py() or 0)
    slot = np.asarray(pc.fill_null(table.column("slot"), -1).to_numpy(), dtype=np.int64)
    gold = np.asarray(pc.fill_null(table.column("gold_slot"), -1).to_numpy(), dtype=np.int64)
    answered = mine & (slot >= 0)
    scored = answered & (gold >= 0)
    picks = np.zeros((n_units, slots))
    np.add.at(picks, (units[answered], slot[answered]), 1.0)
    right = scored & (slot == gold)
    return Half(
        correct=np.bincount(units[right], minlength=n_units).astype(np.float64),
        scored=np.bincount(units[scored], minlength=n_units).astype(np.float64),
        picks=picks,
    )


def _view(entry: _Compared, adjusted: Sequence[float | None], analysis: Analysis) -> InterruptionView:
    cell = entry.bought.cell
    slots = zip(_slots(entry), entry.found.picks, strict=True)
    picks = "; ".join(f"{name} {_difference(result)}" for name, result in slots)
    return InterruptionView(
        cell=f"{cell.experiment.id} · {cell.model.id} · {cell.dataset.id}",
        anchor=anchor_of(cell.name),
        before=_describe(entry.before),
        after=_describe(entry.after),
        differences=[*([_difference(entry.found.accuracy)] if entry.terms.right else []), picks],
        words=_words(entry, adjusted, analysis),
    )


def _heads(terms: _Terms) -> list[str]:
    return [*([terms.right.capitalize()] if terms.right else []), terms.picks_head]


def _slots(entry: _Compared) -> list[str]:
    """Return what the slots of a cell are called."""
    cell, n = entry.bought.cell, len(entry.found.picks)
    labels = cell.experiment.prompt.labels or list(ascii_uppercase)
    if cell.experiment.design == "crossing":
        labels = list(_BLOCKS)
    return [labels[slot] if slot < len(labels) else str(slot + 1) for slot in range(n)]


def _describe(half: Half) -> str:
    answered, items = half.picks.sum(), int((half.picks.sum(axis=1) > 0).sum())
    scored = half.scored.sum()
    right = f", {percent(half.correct.sum() / scored)} correct" if scored else ""
    return f"{plural(int(answered), 'answer')} on {plural(items, 'item')}{right}"


def _difference(result: Result) -> str:
    if result.estimate is None or result.low is None or result.high is None:
        return result.reason or "not computed"
    ends = interval(_points(result.low), _points(result.high))
    return f"{_points(result.estimate)} {ends}"


def _points(share: float) -> str:
    return signed(100 * share, 1)


def _words(entry: _Compared, adjusted: Sequence[float | None], analysis: Analysis) -> str:
    start = f"First interruption: {entry.why.rstrip('.')}."
    if entry.few:
        return (
            f"{start} Too few answers on one side ({' and '.join(count(n) for n in entry.n_calls)}) to tell whether "
            "the interruption changed anything."
        )
    if not in_random_order(entry.bought):
        return (
            f"{start} The calls were asked one item after the other, so the two parts hold different items and their "
            "difference says nothing about the interruption; no test is made."
        )
    names = (entry.terms.right or "", entry.terms.picks)
    raw = [entry.found.accuracy.p, entry.found.picks_test.p]
    told = [f"{p_equals(p)} for {name}" for p, name in zip(raw, names, strict=True) if p is not None and name]
    differ = [name for p, name in zip(adjusted, names, strict=True) if p is not None and p < analysis.alpha]
    random = "The calls were asked in an order drawn by the seed, so chance alone decided which came first"
    if differ:
        return (
            f"{start} {random}, and yet {listing(differ)} differ between the parts ({', '.join(told)}): something "
            "changed with the interruption, and the cell mixes both."
        )
    return (
        f"{start} {random}, and the parts differ no more than chance makes them ({', '.join(told)}). The intervals say "
        "how large a change could have stayed unseen."
    )
