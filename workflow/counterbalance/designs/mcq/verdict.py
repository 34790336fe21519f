"""The one word for a cell, from its estimates after the correction for the number of cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.config import Analysis
from counterbalance.designs.mcq.quantities import CONFIRMATORY
from counterbalance.designs.verdicts import Row, below, extent
from counterbalance.stats.estimate import Result


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
        `label` is ``bias`` (a co-primary test rejects after correction, among the items with any number of options),
        ``no_bias_seen`` (none rejects, and V as small as planned would have been seen at the corrected level among
        the items with every number of options), ``not_measurable`` (none rejects, and it could not have been seen, or
        answers are missing by position) or ``degenerate`` (no item's answers change with the slot at all).
    """
    strata = _strata(rows)
    n = {name: sum(extent(stratum.tests)[name] for stratum in strata) for name in ("n_items", "n_calls")}
    method = f"co-primary slot-relabelling tests, Holm-corrected, at {analysis.alpha:g}"
    missing = [text for stratum in strata if (text := _missing(analysis, stratum))]
    found = [text for stratum in strata if (text := _bias(analysis, stratum))]
    if found:
        return Result(method=method, label="bias", status="ok", reason="; ".join([*found, *missing]), **n)
    if all(stratum.degenerate for stratum in strata):
        reason = "no item's answers change with the slot, so there is nothing to test"
        return Result(method=method, label="degenerate", status="degenerate", reason=reason, **n)
    unseen = [text for stratum in strata if (text := _unseen(analysis, stratum))]
    if unseen or missing:
        reason = "; ".join([*missing, *unseen])
        return Result(method=method, label="not_measurable", status="not_measurable", reason=reason, **n)
    values = " and ".join(f"V of {stratum.detectable['estimate']:.3f}{stratum.where}" for stratum in strata)
    reason = f"{values} would have been seen with power {analysis.detectable_power:g}, at the corrected level"
    return Result(method=method, label="no_bias_seen", status="ok", reason=reason, **n)


@dataclass(frozen=True)
class _Stratum:
    """The items of a cell with one number of options."""

    tests: Sequence[Row]
    detectable: Row
    missing: Row | None
    where: str
    """In words, empty where there is one stratum only."""

    @property
    def degenerate(self) -> bool:
        return all(row["status"] == "degenerate" for row in self.tests)


def _strata(rows: Mapping[str, Row]) -> list[_Stratum]:
    first = CONFIRMATORY[0]
    marks = [name.removeprefix(first) for name in rows if name == first or name.startswith(f"{first}@k=")]
    marks = [mark for mark in marks if "@model=" not in mark]
    slots = sum(name.startswith("accuracy.slot_") and "@" not in name for name in rows)
    return [
        _Stratum(
            tests=[rows[f"{name}{mark}"] for name in CONFIRMATORY],
            detectable=rows[f"detectable_V.family{mark}"],
            missing=rows.get(f"relabelling.unanswered{mark}"),
            where=f" among the items with {mark.removeprefix('@k=') or slots} options" if len(marks) > 1 else "",
        )
        for mark in marks
    ]


def _bias(analysis: Analysis, stratum: _Stratum) -> str:
    found = [row["quantity"] for row in stratum.tests if below(row["p_adjusted"], analysis.alpha)]
    names = [name.partition("@")[0].removeprefix("relabelling.") for name in found]
    verb = "differs" if names == ["accuracy"] else "differ"
    return f"{' and '.join(names)} {verb} between slots{stratum.where}" if names else ""


def _missing(analysis: Analysis, stratum: _Stratum) -> str:
    """Say that answers are missing by position, where they are."""
    row = stratum.missing
    if row is None or not below(row["p"], analysis.alpha):
        return ""
    picks = stratum.tests[CONFIRMATORY.index("relabelling.picks")]
    return f"answers go missing by position{stratum.where}, so that picks cannot be tested: {picks['reason']}"


def _unseen(analysis: Analysis, stratum: _Stratum) -> str:
    """Say why a V as small as planned would not have been seen; nothing where it would."""
    row = stratum.detectable
    if stratum.degenerate:
        return f"no item's answers change with the slot{stratum.where}, so there is nothing to test"
    if row["status"] == "ok" and row["estimate"] is not None:
        return ""
    if row["estimate"] is None:
        return f"{row['reason'] or 'the smallest V that could have been seen is not known'}{stratum.where}"
    return (
        f"only a V of {row['estimate']:.3f} or more{stratum.where} would have been seen with power "
        f"{analysis.detectable_power:g} at the corrected level; planned was {analysis.measurable_v:g}"
    )
