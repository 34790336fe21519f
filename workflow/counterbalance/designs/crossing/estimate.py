"""Outcomes of a cell to its estimates: half-effects by condition, null controls and planned contrasts, on both sets."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from counterbalance.config import Analysis
from counterbalance.contrasts import Condition as Known
from counterbalance.contrasts import ContrastPlan, Estimate, Resampling
from counterbalance.contrasts.plan import plan_contrasts
from counterbalance.contrasts.results import contrast_results, mean_results, method_words
from counterbalance.designs.crossing.analysis import ALL_SET, KEPT_SET, CrossingAnalysis, SetAnalysis, analyse_tables
from counterbalance.designs.crossing.conditions import CONDITIONS
from counterbalance.designs.crossing.effects import BOUND_NATS, CELLS, EFFECTS, FLAG_ORDER, FLAG_TOKEN
from counterbalance.designs.crossing.measure import Measured, measure
from counterbalance.stats.estimate import Result

# Slope of the logistic curve at even odds: what a small amount in nats makes of a probability of one half.
_SLOPE = 0.25
_SHOWN = 20


def estimate(analysis: Analysis, outcomes: pa.Table) -> dict[str, Result]:
    """Return every number of a cell by the name of its quantity.

    Parameters
    ----------
    analysis
        The frozen analysis plan: levels, draws, seed, contrasts.
    outcomes
        Table of the declared schema; at least one row.

    Returns
    -------
    dict
        Quantities of `quantities.py`. The plain names are those of the kept items; those of all items end in
        ``@all``.
    """
    measured = measure(outcomes)
    unit = 1.0 if measured.scale == "nats" else _SLOPE
    known = known_conditions(analysis, published=measured.published)
    plan = planned(analysis, known, unit)
    resampling = Resampling(
        levels=(analysis.level, 1 - 2 * analysis.alpha),
        n_resamples=analysis.resamples,
        seed=analysis.seed,
        stream=analysis.stream,
    )
    bound = (BOUND_NATS if analysis.contrasts is None else analysis.contrasts.bound) * unit
    found = analyse_tables(
        measured.table(measured.kept), measured.table(measured.items), plan, known, bound, resampling
    )
    writer = _Writer(measured, analysis, resampling)
    results: dict[str, Result] = dict(writer.bookkeeping())
    for part in (found.kept, found.all_items):
        suffix = f"@{ALL_SET}" if part.name == ALL_SET else ""
        results |= {f"{name}{suffix}": result for name, result in writer.set_results(part)}
    results["sets_differ"] = writer.differing(found)
    return results


def planned(analysis: Analysis, known: Mapping[str, Known], unit: float = 1.0) -> ContrastPlan | None:
    """Return the checked contrasts of an analysis plan, their bounds multiplied by a unit, or None without any."""
    file = analysis.contrasts
    if file is None:
        return None
    plan = plan_contrasts(file.model_dump(mode="json", by_alias=True), {}, source="analysis.contrasts", effects=EFFECTS)
    return replace(
        plan,
        file=file.model_copy(update={"conditions": known}),
        contrasts=tuple(replace(entry, bound=entry.bound * unit) for entry in plan.contrasts),
    )


def known_conditions(analysis: Analysis, *, published: bool) -> dict[str, Known]:
    """Return what is known of the conditions: their dials; of published cells only what the file of contrasts says."""
    if published:
        return dict((analysis.contrasts.conditions if analysis.contrasts else None) or {})
    return {
        name: Known(header=condition.header, body=condition.body, cues=condition.cues)
        for name, condition in CONDITIONS.items()
    }


class _Writer:
    """Turns the numbers of a cell into rows of the estimates table."""

    def __init__(self, measured: Measured, analysis: Analysis, resampling: Resampling) -> None:
        self._measured, self._analysis = measured, analysis
        self._kept = measured.kept
        unit = "nats" if measured.scale == "nats" else "probability (share of answers, not nats)"
        self._mean = method_words(unit, resampling)

    def bookkeeping(self) -> Iterator[tuple[str, Result]]:
        """Yield what was asked, answered, flagged and left out."""
        measured = self._measured
        asked = len(measured.items)
        yield "items.all", self._count(asked, "items asked", None)
        out = [item for item in measured.items if item not in self._kept]
        rule = f"|token| > {FLAG_TOKEN} or |order| > {FLAG_ORDER} nats in any condition, or incomplete in one"
        if measured.scale != "nats":
            rule = "incomplete in any condition; the rule for flags is in nats and does not apply"
        if measured.marked is not None:
            rule = "marked as left out in the file of published cells"
        yield "items.kept", self._count(len(self._kept), f"items that are not {rule}", _listed("left out", out))
        for condition in measured.conditions:
            flagged = measured.flagged(condition)
            yield f"flagged.{condition}", self._count(len(flagged), "items flagged", _listed("flagged", flagged))
            missing = [f"{item} ({why})" for item, why in measured.missing[condition].items()]
            yield f"incomplete.{condition}", self._count(len(missing), "items incomplete", _listed("", missing))
            mass = measured.mass[condition]
            yield (
                f"answer_mass.{condition}",
                self._plain(mass, "mean probability of both answers together", condition)
                if mass is not None
                else Result(
                    method="mean probability of both answers together",
                    n_items=asked,
                    n_calls=0,
                    status="undefined",
                    reason="the read gives no probability of the answers",
                ),
            )
        yield from self._statuses()

    def set_results(self, part: SetAnalysis) -> Iterator[tuple[str, Result]]:
        """Yield effects, null controls and contrasts on one set of items."""
        items = self._measured.items if part.name == ALL_SET else self._kept
        for condition, by_effect in part.effects.items():
            calls = self._calls([condition], items)
            for effect, number in by_effect.items():
                yield from mean_results(f"{effect}.{condition}", number, method=self._mean, n_calls=calls)
            for effect, verdict in part.nulls[condition].items():
                yield f"null.{effect}.{condition}", self._null(by_effect[effect], verdict, calls)
        for found in part.contrasts:
            calls = self._calls(found.planned.conditions, items)
            for name, result in contrast_results(found, method=self._mean, n_calls=calls):
                yield name, result if result.n_items else replace(result, n_calls=0)

    def differing(self, found: CrossingAnalysis) -> Result:
        """Return how many verdicts differ between the sets, and which."""
        words = {KEPT_SET: "the kept items", ALL_SET: "all items"}
        names = [
            f"{f'contrast.{name}' if effect is None else f'{effect}.{name}'} excludes zero on {words[only]} only"
            for (name, effect), only in found.differing.items()
        ]
        return self._count(len(names), "effects and contrasts whose verdict differs between sets", "; ".join(names))

    def _null(self, number: Estimate, verdict: str, calls: int) -> Result:
        reason = {
            "not_applicable": "a loaded body carries its role, so role is no null control here",
            "not_evaluable": number.reason or "no interval",
            "fail": f"{number.reason}, and the value is not zero" if number.evaluation == "degenerate" else None,
        }.get(verdict)
        return Result(
            method=f"null control: {self._analysis.level:.0%} interval covers zero",
            label=verdict,
            n_items=number.n,
            n_calls=calls,
            status="undefined" if verdict == "not_evaluable" else "ok",
            reason=reason,
        )

    def _statuses(self) -> Iterator[tuple[str, Result]]:
        by_cell: dict[str, Counter[str]] = {cell: Counter() for cell in CELLS}
        for cells in self._measured.statuses.values():
            for cell, counts in cells.items():
                by_cell[cell] += counts
        total = sum(by_cell.values(), Counter[str]())
        method = "share of calls with this outcome"
        for status in sorted({*total, "ok"}):
            for name, counts in (("", total), *((f".{cell}", by_cell[cell]) for cell in CELLS)):
                n = counts.total()
                yield (
                    f"status.{status}{name}",
                    Result(
                        method=method,
                        estimate=counts[status] / n if n else None,
                        n_items=len(self._measured.items),
                        n_calls=n,
                        status="descriptive" if n else "undefined",
                        reason="a count of calls, without an interval" if n else "no calls",
                    ),
                )

    def _count(self, number: int, method: str, note: str | None) -> Result:
        calls = sum(counts.total() for cells in self._measured.statuses.values() for counts in cells.values())
        reason = f"a count; {note}" if note else "a count"
        n_items = len(self._measured.items)
        return Result(
            method=method, estimate=number, n_items=n_items, n_calls=calls, status="descriptive", reason=reason
        )

    def _plain(self, value: float, method: str, condition: str) -> Result:
        return Result(
            method=method,
            estimate=value,
            n_items=len(self._measured.items),
            n_calls=sum(self._measured.calls[condition].values()),
            status="descriptive",
            reason="a mean over calls, without an interval",
        )

    def _calls(self, conditions: Collection[str], items: Iterable[str]) -> int:
        """Count the calls behind a number: those of the items that all its conditions have."""
        cells, calls = self._measured.cells, self._measured.calls
        common = [item for item in items if all(item in cells.get(name, ()) for name in conditions)]
        return sum(calls[name][item] for item in common for name in conditions)


def _listed(what: str, items: Iterable[str]) -> str | None:
    names = list(items)
    if not names:
        return None
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what + ': ' if what else ''}{', '.join(names[:_SHOWN])}{more}"
