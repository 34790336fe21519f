"""The words of a crossing's part of the report."""

from collections import Counter
from collections.abc import Sequence

from counterbalance.report.numbers import CellNumbers
from counterbalance.report.text import plural

VERDICTS = {
    "primacy": "Primacy",
    "recency": "Recency",
    "both_ways": "Both ways",
    "no_serial_effect": "No serial effect",
    "undecided": "Undecided",
    "control_failed": "Control failed",
    "not_measurable": "Not measurable",
    "degenerate": "Degenerate",
}
_KIND = {
    "primacy": "bias",
    "recency": "bias",
    "both_ways": "bias",
    "no_serial_effect": "no_bias_seen",
    "control_failed": "degenerate",
    "degenerate": "degenerate",
}
_LEADS = {
    "primacy": "Leans to the block printed first.",
    "recency": "Leans to the block printed last.",
    "both_ways": "Leans to the first block in some conditions and to the last in others.",
    "no_serial_effect": "Leans to neither place.",
    "undecided": "Whether it leans to a place cannot be told.",
    "control_failed": "The order control fails: the numbers of this cell cannot be trusted.",
    "not_measurable": "Too few complete items to tell.",
    "degenerate": "The items do not vary, so there is nothing to test.",
}
_COUNTED = {
    "primacy": ("leans to the first block", "lean to the first block"),
    "recency": ("leans to the last block", "lean to the last block"),
    "both_ways": ("leans to either, by condition", "lean to either, by condition"),
    "no_serial_effect": ("leans to neither", "lean to neither"),
    "undecided": ("is undecided", "are undecided"),
    "control_failed": ("fails its order control", "fail their order control"),
}
_ELSE = ("could not be measured", "could not be measured")

# Term, quantity names, meaning.
GLOSSARY = (
    ("Block", "", "One of the two sources as it is printed: a header and a sentence that names one answer."),
    (
        "Condition",
        "T1 ... T5b",
        "A setting of three dials: header (neutral or framed), body (verbatim: the same words in both blocks; mixed: "
        "two wordings, in both assignments; loaded: the wording says which source is recent) and number of cues.",
    ),
    (
        "Half-effects",
        "token.C, role.C, order.C, serial.C",
        "From the four cells e1 to e4, each the lean to answer B. Token: lean to B itself. Role: lean to the recent "
        "source. Order: a contrast that nothing in the design causes. Serial: lean to the block printed last; "
        "negative is primacy.",
    ),
    (
        "Null controls",
        "null.role.C, null.order.C",
        "Order ought to be zero everywhere, role wherever the wording does not say which source is recent. A control "
        "passes if its interval covers zero; of ten, one or so fails by chance.",
    ),
    (
        "Kept and all",
        "…, …@all",
        "Kept: items that are complete and, in every condition, within |token| ≤ 2.0 and |order| ≤ 0.50 nats; of "
        "published cells with a column for it, the items that it marks. Both sets are analysed; what excludes zero on "
        "one of them only is listed.",
    ),
    (
        "TOST",
        "tost.serial.C",
        "Two one-sided t tests: a small p says that the effect is within the bound on both sides.",
    ),
    (
        "Planned contrast",
        "contrast.ID",
        "A question put to several conditions at once, item by item, written down before the run.",
    ),
)


def kind_of(verdict: str) -> str:
    """Return the class of the style sheet that a verdict is shown in."""
    kind = _KIND.get(verdict, "not_measurable")
    return kind if kind == verdict else f"{kind} {verdict}".strip()


CHIPS = {kind_of(verdict): words for verdict, words in VERDICTS.items()}


def verdict_words(verdict: str) -> str:
    """Return a verdict as the report names it."""
    return VERDICTS.get(verdict) or verdict.replace("_", " ") or "No verdict"


def lead(verdict: str) -> str:
    """Return the first words of a cell's line."""
    return _LEADS.get(verdict, "No verdict was reached.")


def sentence(cell: CellNumbers) -> str:
    """Return why a cell has its verdict."""
    number = cell.get("verdict")
    text = (number.reason or "") if number else ""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def headline(verdicts: Sequence[str]) -> str:
    """Say in one sentence what an experiment found over its cells."""
    counts = Counter(_COUNTED.get(verdict, _ELSE) for verdict in verdicts)
    total = plural(len(verdicts), "cell")
    if len(verdicts) == 1:
        return f"The one cell {next(iter(counts))[0]}."
    parts = [f"{number} {one if number == 1 else many}" for (one, many), number in counts.items()]
    return f"Of {total}, {'; '.join(parts)}."
