"""The one word for a cell, from its estimates after the correction for the number of conditions and cells."""

from collections.abc import Mapping
from typing import Any

from counterbalance.config import Analysis
from counterbalance.designs.crossing.conditions import CONDITIONS
from counterbalance.stats.estimate import Result, Status
from counterbalance.stats.multiplicity import holm

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
        `label` is ``control_failed`` (the order control is not zero, so the crossing is not balanced),
        ``primacy``, ``recency`` or ``both_ways`` (serial effects that hold after correction, by their sign),
        ``no_serial_effect`` (none holds, and all are within the bound), ``undecided`` (none holds, and one may be
        larger than the bound), ``not_measurable`` (too few items) or ``degenerate`` (items do not vary).
    """
    serial = {name: rows[f"serial.{name}"] for name in CONDITIONS if f"serial.{name}" in rows}
    n = {key: max(row[key] for row in serial.values()) for key in ("n_items", "n_calls")}
    method = f"sign-flip tests of serial by condition, Holm-corrected, at {analysis.alpha:g}"

    def say(label: str, reason: str | None, *, decided: bool = True) -> Result:
        return Result(method=method, label=label, status="ok" if decided else "not_measurable", reason=reason, **n)

    failed = _failed_controls(analysis, rows, serial)
    if failed:
        return say("control_failed", f"order is not zero in {', '.join(failed)}, which nothing in the design causes")
    usable = {name: row for name, row in serial.items() if row["status"] == "ok"}
    if not usable:
        kind: Status = (
            "degenerate" if all(row["status"] == "degenerate" for row in serial.values()) else "not_measurable"
        )
        why = next(row["reason"] for row in serial.values())
        return Result(method=method, label=kind, status=kind, reason=why, **n)
    holds = {name: row for name, row in usable.items() if _below(row["p_adjusted"], analysis.alpha)}
    negative = [name for name, row in holds.items() if row["estimate"] < 0]
    positive = [name for name in holds if name not in negative]
    told = [f"{word} in {', '.join(names)}" for word, names in (("primacy", negative), ("recency", positive)) if names]
    if told:
        label = "both_ways" if len(told) == 2 else "primacy" if negative else "recency"
        return say(label, f"{'; '.join(told)}, of {len(serial)} conditions")
    wide = [name for name in serial if not _below(rows[f"tost.serial.{name}"]["p"], analysis.alpha)]
    if wide:
        return say("undecided", f"no serial effect holds, and in {', '.join(wide)} one may be there", decided=False)
    return say("no_serial_effect", "equivalent to zero within the bound in every condition")


def _failed_controls(analysis: Analysis, rows: Mapping[str, Row], serial: Mapping[str, Row]) -> list[str]:
    # With ten conditions one interval often misses zero by chance; the word for the cell rests on corrected tests.
    names = list(serial)
    adjusted = holm([rows[f"order.{name}"]["p"] for name in names])
    usable = [rows[f"order.{name}"]["status"] == "ok" for name in names]
    return [name for name, p, ok in zip(names, adjusted, usable, strict=True) if ok and _below(p, analysis.alpha)]


def _below(p: float | None, alpha: float) -> bool:
    return p is not None and p < alpha
