"""Estimates of the engine as rows of a cell's results, the same for every design."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from counterbalance.contrasts.estimate import Estimate, Interval, Resampling
from counterbalance.contrasts.family import ContrastEstimate
from counterbalance.stats.estimate import Result, Status

STATUS: Mapping[str, Status] = {
    "ok": "ok",
    "too_few": "not_measurable",
    "degenerate": "degenerate",
    "undefined": "undefined",
    "not_evaluable": "undefined",
}
"""What an evaluation of the engine is among the statuses of all results."""


@dataclass(frozen=True, kw_only=True)
class PlannedResult(Result):
    """A contrast, with the correction over the family that its plan declares, within the cell."""

    p_adjusted: float | None = None
    family: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p is None:
            object.__setattr__(self, "p_adjusted", None)


def method_words(unit: str, resampling: Resampling) -> str:
    """Return how means over items are estimated, for their rows."""
    draws = f"{resampling.n_resamples:,} resamples"
    stream = "" if resampling.stream == "modern" else f", {resampling.stream} stream"
    return f"mean over items in {unit}; BCa interval, {draws}{stream}; p: sign-flip test"


def mean_results(
    name: str, found: Estimate, *, method: str, n_calls: int, note: str | None = None
) -> Iterator[tuple[str, Result]]:
    """Yield the rows of one mean under its name, and with ``tost.``, ``sd.`` and ``negative.`` before it.

    Parameters
    ----------
    found
        With two intervals: the first belongs to the mean, the second to the equivalence test.
    note
        Makes an ``ok`` result descriptive, and is given as the reason.
    """
    status = STATUS[found.evaluation]
    reason = "; ".join(text for text in (found.reason, note) if text) or None
    if status == "ok" and note:
        status = "descriptive"
    wide, narrow = found.intervals
    plain = Result(method=method, n_items=found.n, n_calls=n_calls, status=status, reason=reason)
    yield name, _with_interval(plain, found, wide, found.p)
    yield f"tost.{name}", _with_interval(replace(plain, method=_tost_words(found)), found, narrow, found.p_tost)
    yield f"sd.{name}", replace(plain, method="standard deviation over items (n - 1)", estimate=found.sd)
    yield f"negative.{name}", replace(plain, method="items below zero", estimate=found.n_negative)


def contrast_results(found: ContrastEstimate, *, method: str, n_calls: int) -> Iterator[tuple[str, Result]]:
    """Yield the rows of one planned contrast, named ``contrast.ID``, and of a ratio also ``ratio_of_means.ID``."""
    contrast = found.planned.contrast
    name, note = f"contrast.{contrast.id}", None if contrast.status == "inferential" else contrast.status
    expression = " ".join(contrast.expression.split())
    rows = dict(mean_results(name, found.estimate, method=method, n_calls=n_calls, note=note))
    main = rows.pop(name)
    family = contrast.family and f"contrasts of family {contrast.family}, in this cell"
    reason = "; ".join(text for text in (main.reason, *found.warnings) if text) or None
    values = vars(main) | {"reason": reason, "method": f"{expression}: {main.method}"}
    yield name, PlannedResult(**values, p_adjusted=found.p_adjusted, family=family)
    yield from rows.items()
    if found.planned.is_ratio:
        ratio = found.ratio_of_means
        absent = "the denominator's mean is 0, or there are no items"
        yield (
            f"ratio_of_means.{contrast.id}",
            Result(
                method=f"{expression}: mean of the numerator over mean of the denominator",
                estimate=ratio,
                n_items=found.n_items,
                n_calls=n_calls,
                status="undefined" if ratio is None else "descriptive",
                reason=absent if ratio is None else "a point value without an interval",
            ),
        )


def _with_interval(plain: Result, found: Estimate, interval: Interval, p: float | None) -> Result:
    level = None if interval.low is None else interval.level
    return replace(plain, estimate=found.estimate, low=interval.low, high=interval.high, level=level, p=p)


def _tost_words(found: Estimate) -> str:
    return f"two one-sided t tests against ±{found.bound:g}" if found.bound else "no bound: a ratio"
