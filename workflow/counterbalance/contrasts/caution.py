"""Warnings: places where a contrast that is computed correctly is easily read wrongly."""

from collections.abc import Mapping

from counterbalance.config.contrasts import Condition
from counterbalance.contrasts.estimate import Estimate
from counterbalance.contrasts.plan import PlannedContrast


def pool_warning(arms: tuple[str, str], difference: Estimate) -> str | None:
    """Return a warning where the difference of two pooled arms excludes zero."""
    if not difference.excludes_zero:
        return None
    first = difference.intervals[0]
    return (
        f"pools {arms[0]} and {arms[1]}, which differ by {difference.estimate:+.3f} "
        f"[{first.low:+.3f}, {first.high:+.3f}] ({first.level:.0%}, excludes zero): their mean may describe neither"
    )


def cue_warnings(planned: PlannedContrast, conditions: Mapping[str, Condition]) -> list[str]:
    """Return warnings where the compared conditions differ in their number of cues, or where that is not known."""
    if planned.contrast.about_cues:
        return []
    counts = {name: conditions[name].cues for name in planned.conditions if name in conditions}
    known = {name: count for name, count in counts.items() if count is not None}
    warnings = []
    if len(set(known.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in known.items())
        warnings.append(f"cue counts differ ({listed}): the number of cues is confounded with what is compared")
    unknown = [name for name in counts if name not in known]
    if unknown and any(condition.cues is not None for condition in conditions.values()):
        warnings.append(f"cue counts of {', '.join(unknown)} not declared: not checked")
    return warnings


def ratio_warning(mean_of_ratios: float | None, ratio_of_means: float | None) -> str:
    """Return the two readings of a ratio side by side: they are different quantities."""
    first = "undefined" if mean_of_ratios is None else f"{mean_of_ratios:.3f}"
    second = "undefined" if ratio_of_means is None else f"{ratio_of_means:.3f}"
    return f"mean of the items' ratios {first}, ratio of the means {second}: say which one is quoted"
