"""The one word for a cell, from its estimates after the correction for the number of conditions and cells."""

from collections.abc import Mapping

from counterbalance.config import Analysis
from counterbalance.designs.crossing.conditions import CONDITIONS
from counterbalance.designs.verdicts import Row, below, extent
from counterbalance.stats.estimate import Result, Status
from counterbalance.stats.multiplicity import holm


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
        `label` is ``control_failed`` (the order control is not zero on the kept or on all items, so the crossing is
        not balanced),
        ``primacy``, ``recency`` or ``both_ways`` (serial effects that hold after correction, by their sign),
        ``no_serial_effect`` (none holds, and all are within the bound), ``undecided`` (none holds, and one may be
        larger than the bound), ``not_measurable`` (too few items) or ``degenerate`` (items do not vary).
    """
    serial = {name: rows[f"serial.{name}"] for name in CONDITIONS if f"serial.{name}" in rows}
    n = extent(serial.values())
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
    holds = {name: row for name, row in usable.items() if below(row["p_adjusted"], analysis.alpha)}
    negative = [name for name, row in holds.items() if row["estimate"] < 0]
    positive = [name for name in holds if name not in negative]
    told = [f"{word} in {', '.join(names)}" for word, names in (("primacy", negative), ("recency", positive)) if names]
    if told:
        label = "both_ways" if len(told) == 2 else "primacy" if negative else "recency"
        return say(label, f"{'; '.join(told)}, of {len(serial)} conditions")
    wide = [name for name in serial if not below(rows[f"tost.serial.{name}"]["p"], analysis.alpha)]
    if wide:
        return say("undecided", f"no serial effect holds, and in {', '.join(wide)} one may be there", decided=False)
    return say("no_serial_effect", "equivalent to zero within the bound in every condition")


def _failed_controls(analysis: Analysis, rows: Mapping[str, Row], serial: Mapping[str, Row]) -> list[str]:
    # With ten conditions one interval often misses zero by chance; the word for the cell rests on corrected tests.
    adjusted = holm([_order_p(rows, name) for name in serial])
    return [name for name, p in zip(serial, adjusted, strict=True) if below(p, analysis.alpha)]


def _order_p(rows: Mapping[str, Row], name: str) -> float | None:
    """Return the p of a condition's order control: the smaller one of both sets, doubled where these differ.

    Items are kept only if their own order effect is small, so the kept ones alone would hide what all of them show.
    """
    kept, whole = f"order.{name}", f"order.{name}@all"
    tests: list[float] = [rows[key]["p"] for key in (kept, whole) if _tested(rows, key)]
    if not tests:
        return None
    differ = rows[kept]["n_calls"] != rows[whole]["n_calls"]
    return min(1.0, min(tests) * (2.0 if differ else 1.0))


def _tested(rows: Mapping[str, Row], key: str) -> bool:
    # Where all items have the same value there is no interval, and the control may still fail.
    return bool(rows[key]["status"] == "ok" or rows[f"null.{key}"]["label"] == "fail")
