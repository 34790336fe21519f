"""The published view of a cell: slot of the correct option against correct or not, calls counted as independent."""

import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from counterbalance.stats.counts import NO_CALLS, Array, SlotCounts, slot_counts
from counterbalance.stats.estimate import Result, Status

_V, _CORRECTED = "Cramer's V as published", "Cramer's V, Bergsma's correction"
_CAVEAT = "counts the calls of one item as independent; kept for comparison with published values"


@dataclass(frozen=True)
class Contingency:
    """Pearson's test of a k x 2 table and its effect sizes.

    Attributes
    ----------
    chi2
        Pearson's X2, with its p.
    v
        Cramer's V as published, without its interval.
    v_bergsma
        Cramer's V with Bergsma's correction for the bias of independent calls.
    """

    chi2: Result
    v: Result
    v_bergsma: Result


def contingency_test(correct: npt.ArrayLike, n: npt.ArrayLike) -> Contingency:
    """Test slot against correctness as if every call were independent.

    Parameters
    ----------
    correct, n
        Correct answers and scored calls, shape (items, slots).

    Returns
    -------
    Contingency
        A table with one non-empty row or column is ``degenerate``: X2 = 0, p = 1, V = 0. Slots without calls have no
        row, and the reason says so. Without any call all three are ``undefined``.

    Notes
    -----
    V of a k x 2 table is sqrt(X2 / N). Source of the corrected V: Bergsma (2013), Journal of the Korean Statistical
    Society 42, 323-328, section 2: phi2 and both table sides less their expectations under independence.
    """
    counts = slot_counts(correct, n)
    hits, calls = counts.correct.sum(axis=0), counts.n.sum(axis=0)
    total, rows = counts.n_calls, int((calls > 0).sum())
    if total == 0:
        return _no_table(counts)
    degenerate = rows < 2 or hits.sum() in {0, total}
    chi2 = 0.0 if degenerate else float(pearson_chi2(hits, calls))
    # A p that underflows is not zero: no correction for a family could ever raise it.
    p = 1.0 if degenerate else max(float(special.chdtrc(rows - 1, chi2)), sys.float_info.min)
    status: Status = "degenerate" if degenerate else "descriptive"
    reason = "; ".join(text for text in (_why_degenerate(rows, hits, total), counts.empty_slots, _CAVEAT) if text)

    def result(method: str, estimate: float, p: float | None = None) -> Result:
        return Result(
            method=method,
            estimate=estimate,
            p=p,
            n_items=counts.n_items,
            n_calls=total,
            status=status,
            reason=reason,
        )

    v = 0.0 if degenerate else float(np.sqrt(chi2 / total))
    return Contingency(
        result(f"Pearson X2, df {max(rows - 1, 0)}, calls as independent", chi2, p),
        result(_V, v),
        result(_CORRECTED, 0.0 if degenerate else float(bergsma_v(chi2, total, rows))),
    )


def _no_table(counts: SlotCounts) -> Contingency:
    chi2, v, corrected = (
        Result(method=method, **counts.size, status="undefined", reason=NO_CALLS)
        for method in ("Pearson X2, calls as independent", _V, _CORRECTED)
    )
    return Contingency(chi2, v, corrected)


def _why_degenerate(rows: int, hits: Array, total: int) -> str | None:
    if rows < 2:
        return "scored calls in one slot only"
    if hits.sum() == total:
        return "every call is correct"
    return "no call is correct" if hits.sum() == 0 else None


def pearson_chi2(hits: Array, calls: Array) -> Array:
    """Return Pearson's X2 of k x 2 tables given as hits and calls by slot, shape (..., slots) to (...).

    Rows without calls take no part; a table that is all hits or all misses has 0.
    """
    total = calls.sum(axis=-1, keepdims=True)
    share = hits.sum(axis=-1, keepdims=True) / np.maximum(total, 1)
    spread = calls * share * (1 - share)
    return np.asarray(
        np.divide((hits - calls * share) ** 2, spread, out=np.zeros_like(hits), where=spread > 0).sum(axis=-1)
    )


def bergsma_v(chi2: npt.ArrayLike, n_calls: npt.ArrayLike, n_slots: npt.ArrayLike) -> Array:
    """Return Bergsma's corrected Cramer's V of k x 2 tables with at least two calls; 0 where chance explains X2."""
    calls, slots = np.asarray(n_calls, dtype=np.float64), np.asarray(n_slots, dtype=np.float64)
    excess = np.maximum(0.0, np.asarray(chi2) / calls - (slots - 1) / (calls - 1))
    rows = slots - (slots - 1) ** 2 / (calls - 1)
    columns = 2 - 1 / (calls - 1)
    side = np.minimum(rows, columns) - 1
    return np.asarray(np.sqrt(np.divide(excess, side, out=np.zeros_like(excess + side), where=side > 0)))
