"""The one word for a cell, from its estimates after the correction for the number of cells."""

from collections.abc import Mapping
from typing import Any

from counterbalance.config import Analysis
from counterbalance.designs.mcq.quantities import CONFIRMATORY
from counterbalance.stats.estimate import Result

Row = Mapping[str, Any]


def verdict(analysis: Analysis, rows: Mapping[str, Row]) -> Result:
    """Say what a cell shows.

    Parameters
    ----------
    analysis
        The frozen analysis plan.
    rows
        The cell's rows of the estimates table by quantity, with `p_adjusted`.

    Returns
    -------
    Result
        `label` is ``bias`` (a co-primary test rejects after correction), ``no_bias_seen`` (none rejects, and V as
        small as planned would have been seen), ``not_measurable`` (none rejects, and it could not have been seen) or
        ``degenerate`` (no item's answers change with the slot at all).
    """
    tests = [rows[name] for name in CONFIRMATORY]
    n = {"n_items": max(row["n_items"] for row in tests), "n_calls": max(row["n_calls"] for row in tests)}
    method = f"co-primary slot-relabelling tests, Holm-corrected, at {analysis.alpha:g}"
    found = [row for row in tests if row["p_adjusted"] is not None and row["p_adjusted"] < analysis.alpha]
    if found:
        where = " and ".join(row["quantity"].removeprefix("relabelling.") for row in found)
        return Result(method=method, label="bias", status="ok", reason=f"{where} differ between slots", **n)
    if all(row["status"] == "degenerate" for row in tests):
        reason = "no item's answers change with the slot, so there is nothing to test"
        return Result(method=method, label="degenerate", status="degenerate", reason=reason, **n)
    detectable = rows["detectable_V"]
    if detectable["status"] == "ok" and detectable["estimate"] is not None:
        reason = f"V of {detectable['estimate']:.3f} would have been seen with power {analysis.detectable_power:g}"
        return Result(method=method, label="no_bias_seen", status="ok", reason=reason, **n)
    reason = detectable["reason"] or "the smallest V that could have been seen is not known"
    if detectable["estimate"] is not None:
        reason = (
            f"only a V of {detectable['estimate']:.3f} or more would have been seen with power "
            f"{analysis.detectable_power:g}; planned was {analysis.measurable_v:g}"
        )
    return Result(method=method, label="not_measurable", status="not_measurable", reason=reason, **n)
