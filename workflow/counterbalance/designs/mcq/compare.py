"""Two cells of one model on one data set: do label probabilities and generated letters choose the same option?"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.config import Analysis
from counterbalance.designs.mcq.quantities import AGREEMENT, WITH
from counterbalance.stats.agreement import agreement
from counterbalance.stats.estimate import Result

_METHOD = "same item, same order of options: likeliest label against the letter that was generated"
# Separators of fields and of parts, which no printable id holds.
_FIELD, _PART = "\x1e", "\x1f"

Ints = npt.NDArray[np.int64]


def compare(analysis: Analysis, other: str, own: pa.Table, theirs: pa.Table) -> dict[str, Result]:
    """Estimate how often two experiments chose the same slot for the same options in the same order.

    Calls that were asked once more for the repeat floor have no part.

    Parameters
    ----------
    analysis
        For the level of the intervals.
    other
        The experiment that generates letters.
    own, theirs
        Outcomes of this cell and of that experiment's, tables of the declared schema; at least one row each.

    Returns
    -------
    dict
        Results under ``NAME@with=OTHER``; where items differ in their number of options those of the most frequent
        number, and the others under ``NAME@with=OTHER@k=K``. ``undefined`` where no prompt was answered in both;
        ``not_measurable`` where the replies name more than one model.
    """
    mixture = _mixture(own, theirs)
    results: dict[str, Result] = {}
    for index, k in enumerate(_sizes(own)):
        suffix = "" if index == 0 else f"@k={k}"
        found = _stratum(analysis, other, k, _of_size(own, k), _of_size(theirs, k), suffix)
        results |= {name: _unfit(result, mixture) for name, result in found.items()}
    return results


def uncompared(other: str, why: str, suffix: str = "") -> dict[str, Result]:
    """Return the same quantities where there is nothing to compare, with the reason."""
    nothing = Result(method=_METHOD, n_items=0, n_calls=0, status="undefined", reason=why)
    return {f"{name}{WITH}{other}{suffix}": nothing for name in AGREEMENT}


@dataclass(frozen=True)
class _Asked:
    """One experiment's calls: which prompt each asks, and the slot it chose, or -1."""

    prompt: Ints
    slot: Ints
    outcome: list[str]

    def picks(self, n_prompts: int, k: int) -> Ints:
        answered = self.slot >= 0
        code = self.prompt[answered] * k + self.slot[answered]
        return np.bincount(code, minlength=n_prompts * k).reshape(n_prompts, k).astype(np.int64)

    def unanswered(self, shared: npt.NDArray[np.bool_]) -> str:
        """Return how many calls on shared prompts chose nothing, by outcome, most frequent first."""
        rows = np.flatnonzero((self.slot < 0) & shared[self.prompt])
        counts = Counter(self.outcome[row] for row in rows)
        return ", ".join(f"{n} {name}" for name, n in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _stratum(analysis: Analysis, other: str, k: int, own: pa.Table, theirs: pa.Table, suffix: str) -> dict[str, Result]:
    chunks = [*_names(own).chunks, *_names(theirs).chunks]
    names = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    code, n_prompts = names.indices.to_numpy().astype(np.int64), len(names.dictionary)
    ours, others = _asked(own, code[: own.num_rows]), _asked(theirs, code[own.num_rows :])
    here, there = (np.bincount(asked.prompt, minlength=n_prompts) > 0 for asked in (ours, others))
    shared = here & there
    first, second = ours.picks(n_prompts, k), others.picks(n_prompts, k)
    both = first.any(axis=1) & second.any(axis=1)
    reason = "; ".join(_left_out(other, here, there, ours.unanswered(shared), others.unanswered(shared)))
    if not both.any():
        why = f"no prompt was answered in both experiments; {reason}"
        return uncompared(other, why if shared.any() else _unpaired(other), suffix)
    item, unit = _items_of(own, ours.prompt, n_prompts)
    found = agreement(item[both], unit, first[both], second[both], level=analysis.level)
    results = zip(AGREEMENT, (found.share, found.every_order, found.kappa), strict=True)
    return {
        f"{name}{WITH}{other}{suffix}": replace(
            result, reason="; ".join(text for text in (result.reason, reason) if text) or None
        )
        for name, result in results
    }


def _left_out(
    other: str, here: npt.NDArray[np.bool_], there: npt.NDArray[np.bool_], ours: str, theirs: str
) -> Iterator[str]:
    alone, missing = int((here & ~there).sum()), int((there & ~here).sum())
    if alone:
        yield f"{alone} prompts have no counterpart in {other}, which does not ask these orders or items"
    if missing:
        yield f"{missing} prompts of {other} have no counterpart here"
    if ours:
        yield f"calls without a likeliest label: {ours}"
    if theirs:
        yield f"calls of {other} without a letter: {theirs}"


def _unpaired(other: str) -> str:
    return f"no item is asked in the same order here and in {other}; give both experiments the same `arrangement`"


def _mixture(own: pa.Table, theirs: pa.Table) -> str:
    named = {name for table in (own, theirs) for name in table.column("model_returned").drop_null().to_pylist()}
    return f"the replies of the two name more than one model: {', '.join(sorted(named))}" if len(named) > 1 else ""


def _unfit(result: Result, mixture: str) -> Result:
    if not mixture or result.status == "undefined":
        return result
    return replace(result, status="not_measurable", reason=mixture)


def _sizes(table: pa.Table) -> list[int]:
    """Return the numbers of options, the one that most items have first."""
    items = table.group_by("item_id").aggregate([("n_options", "min")])
    counts = Counter(items.column("n_options_min").to_pylist())
    return sorted(counts, key=lambda k: (-counts[k], k))


def _of_size(table: pa.Table, k: int) -> pa.Table:
    known = pc.and_(pc.equal(table.column("n_options"), k), table.column("arrangement").is_valid())
    return table.filter(pc.and_(known, pc.invert(table.column("extra"))))


def _names(table: pa.Table) -> pa.ChunkedArray:
    """Name every prompt by item and order of options."""
    orders = pc.binary_join(table.column("arrangement"), _PART)
    return pc.binary_join_element_wise(table.column("item_id"), orders, _FIELD)


def _asked(table: pa.Table, prompt: Ints) -> _Asked:
    slot = pc.fill_null(table.column("slot"), -1).to_numpy().astype(np.int64)
    return _Asked(prompt, slot, table.column("outcome").to_pylist())


def _items_of(table: pa.Table, prompt: Ints, n_prompts: int) -> tuple[Ints, Ints]:
    """Return the item of every prompt that the table asks, and the group of every item, each from 0."""
    codes, groups = (table.column(name).combine_chunks().dictionary_encode() for name in ("item_id", "group_id"))
    of_call = codes.indices.to_numpy().astype(np.int64)
    item = np.zeros(n_prompts, dtype=np.int64)
    item[prompt] = of_call
    unit = np.zeros(len(codes.dictionary), dtype=np.int64)
    unit[of_call] = groups.indices.to_numpy()
    return item, unit
