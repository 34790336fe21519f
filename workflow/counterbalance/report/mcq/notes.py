"""The sentences that say what a cell's numbers mean."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.config import Analysis
from counterbalance.report.mcq.parts import is_part
from counterbalance.report.mcq.slots import Slot
from counterbalance.report.numbers import CellNumbers, Number, mixture_of, show, verdict_of
from counterbalance.report.text import listing, p_equals, percent, proportion

VERDICTS = {
    "bias": "Bias",
    "no_bias_seen": "No bias seen",
    "not_measurable": "Not measurable",
    "degenerate": "Degenerate",
    "not_asked": "Not asked",
}
DETECTABLE = "detectable_V.family"
"""The smallest V that a cell would have shown at the level at which its verdict is taken."""
MIXED = "mixed"
"""Stands for the verdict of a cell that more than one model answered, where cells are counted."""

_NO_VERDICT = "No verdict"
_ANSWERS = {
    "bias": "Answers by position: yes.",
    "no_bias_seen": "Answers by position: not seen.",
    "not_measurable": "Answers by position: cannot be told.",
    "degenerate": "Answers by position: nothing to test.",
    "not_asked": "Answers by position: not asked.",
}


@dataclass(frozen=True)
class Context:
    """What a sentence needs besides the cell's numbers: the plan, and the share of an even split over slots."""

    analysis: Analysis
    even: float | None


def verdict_words(verdict: str) -> str:
    """Return a verdict as the report names it."""
    return VERDICTS.get(verdict) or verdict.replace("_", " ") or _NO_VERDICT


def lead(verdict: str) -> str:
    """Return the first words of a cell's line."""
    return _ANSWERS.get(verdict, "No verdict was reached.")


def sentence(cell: CellNumbers, slots: Sequence[Slot], context: Context) -> str:
    """Say after the first words what was found in one cell, for somebody who reads nothing else."""
    verdict = verdict_of(cell)
    if mixture := mixture_of(cell):
        return _as_sentence(mixture)
    parts = []
    if verdict not in ("bias", "no_bias_seen"):
        parts.append(_why(cell))
    if verdict != "degenerate":
        parts.append(_preference(slots, context))
        if verdict == "bias":
            parts += [_accuracies(slots), _where(cell)]
    parts.append(_numbers(cell))
    if verdict == "no_bias_seen":
        parts.append(_could_have_seen(cell, context))
    parts += [_floor(cell), caution(cell)]
    return " ".join(part for part in parts if part)


def _why(cell: CellNumbers) -> str:
    verdict = cell.get("verdict")
    reasons = [number.reason for number in (verdict, cell.get("V.corrected")) if number and number.reason]
    said = _as_sentence(reasons[0]) if reasons else "The estimates give no reason."
    no_evidence = verdict is not None and verdict.label == "not_measurable"
    return f"{said} This is no evidence that there is no bias." if no_evidence else said


def _where(cell: CellNumbers) -> str:
    """Say which part of the cell a bias was found in, and whether answers are missing by position."""
    reason = cell["verdict"].reason or ""
    return _as_sentence(reason) if "among the items" in reason or "go missing" in reason else ""


def _preference(slots: Sequence[Slot], context: Context) -> str:
    found = _extremes(slots, "picks")
    if found is None:
        return ""
    _, (slot, share) = found
    even = f" (an even split would be {percent(context.even)})" if context.even is not None else ""
    return f"Picks slot {slot.label} in {percent(share)} of its answers{even}."


def _accuracies(slots: Sequence[Slot]) -> str:
    found = _extremes(slots, "accuracy")
    if found is None or found[0][1] == found[1][1]:
        return ""
    (worst, low), (best, high) = found
    return (
        f"Right in {percent(high)} of answers when the correct option is in slot {best.label}, in {percent(low)} when "
        f"it is in slot {worst.label}."
    )


def _extremes(slots: Sequence[Slot], name: str) -> tuple[tuple[Slot, float], tuple[Slot, float]] | None:
    values = [
        (slot, number.estimate)
        for slot in slots
        if (number := slot.series(name)) is not None and number.estimate is not None
    ]
    if not values:
        return None
    return min(values, key=lambda pair: pair[1]), max(values, key=lambda pair: pair[1])


def _numbers(cell: CellNumbers) -> str:
    parts = []
    v = cell.get("V.corrected")
    if v is not None and v.estimate is not None:
        shown = show(v)
        parts.append(f"V\u00a0{shown.text} {shown.interval}".strip())
    tests = [
        f"{p_equals(number.p_adjusted)} on {name}{f' ({size} options)' if size else ''}"
        for name, size, number in tests_of(cell)
        if number.p_adjusted is not None
    ]
    if tests:
        parts.append(f"Holm {listing(tests)}")
    return f"{'; '.join(parts)}." if parts else ""


def tests_of(cell: CellNumbers) -> list[tuple[str, str, Number]]:
    """Return the tests that decide, of every number of options: what is tested, that number, and the test."""
    split = ((*name.partition("@k=")[::2], number) for name, number in cell.items() if not is_part(name))
    named = {f"relabelling.{what}": what for what in ("accuracy", "picks")}
    return [(named[name], size, number) for name, size, number in split if name in named]


def _floor(cell: CellNumbers) -> str:
    """Put the effect of order beside what the model does when the order stays."""
    same, other = cell.get("disagreement.same_order"), cell.get("disagreement.other_order")
    if same is None or same.estimate is None or other is None or other.estimate is None:
        return ""
    first = f"in {percent(same.estimate)} of repeats"
    if same.estimate == 0 and same.high is not None:
        first = f"in no repeat (at most {percent(same.high)})"
    return f"The model disagrees with itself {first}; with another order in {percent(other.estimate)}."


def caution(cell: CellNumbers) -> str:
    """Warn where a bias was found that the model's own disagreement might account for."""
    excess = cell.get("disagreement.excess")
    if verdict_of(cell) != "bias" or excess is None or excess.estimate is None or excess.low is None:
        return ""
    if excess.low > 0:
        return ""
    shown = show(excess)
    return (
        f"Caution: that two orders disagree more often than the same order asked twice is not shown ({shown.text} "
        f"{shown.interval}); more repeats would tell."
    )


def _could_have_seen(cell: CellNumbers, context: Context) -> str:
    detectable = cell.get(DETECTABLE)
    if detectable is None or detectable.estimate is None:
        return "How small a bias would have been seen is not known."
    if any(size for _, size, _ in tests_of(cell)):
        return _as_sentence(cell["verdict"].reason or "")
    return (
        f"A V of {proportion(detectable.estimate)} or more would have been seen with "
        f"{percent(context.analysis.detectable_power)} power, the correction for all tests included."
    )


def headline(verdicts: Sequence[str], analysis: Analysis) -> str:
    """Say in one sentence what an experiment found over its cells."""
    counts = Counter(verdict if verdict in (*VERDICTS, MIXED) else "" for verdict in verdicts)
    total = len(verdicts)
    seen = f"V ≥ {proportion(analysis.measurable_v, 2)} with {percent(analysis.detectable_power)} power"
    phrases = {
        "bias": ("answers by position", "answer by position"),
        "no_bias_seen": (f"shows no bias and would have shown {seen}", f"show no bias and would have shown {seen}"),
        "not_measurable": ("could not have shown it either way",) * 2,
        "degenerate": ("has nothing to test", "have nothing to test"),
        "not_asked": ("was not asked after its scout", "were not asked after their scouts"),
        MIXED: ("was answered by more than one model", "were answered by more than one model"),
        "": ("has no verdict", "have no verdict"),
    }
    if total == 1:
        return f"The one cell {phrases[next(iter(counts))][0]}."
    parts = [] if counts["bias"] else [f"None of {total} cells is seen to answer by position"]
    for verdict, (one, many) in phrases.items():
        number = counts[verdict]
        if number:
            who = str(number) if parts else f"{number} of {total} cells"
            parts.append(f"{who} {one if number == 1 else many}")
    return f"{'; '.join(parts)}."


def _as_sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")
