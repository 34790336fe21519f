"""One cell as the report shows it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from counterbalance.config import Cell
from counterbalance.report.mcq.caveats import caveats
from counterbalance.report.mcq.kinds import shape_words
from counterbalance.report.mcq.notes import DETECTABLE, Context, lead, sentence, verdict_words
from counterbalance.report.mcq.parts import PartRow, is_part, part_rows
from counterbalance.report.mcq.slots import Slot, has_series, read_slots
from counterbalance.report.numbers import CellNumbers, Number, Shown, mixture_of, show, show_p, verdict_of
from counterbalance.report.text import MISSING, anchor_of, count, percent

_FACTS = (
    ("Accuracy", "accuracy"),
    ("Accuracy band", "band"),
    ("V, corrected", "V.corrected"),
    ("Smallest V it would have shown", DETECTABLE),
    ("Shape of the effect", "shape.label"),
    ("Same option in every order", "consistency"),
    ("Disagrees with itself, same order", "disagreement.same_order"),
    ("Disagrees with itself, another order", "disagreement.other_order"),
    ("Difference of the two", "disagreement.excess"),
    ("Items whose accuracy differs by slot", "unstable_items"),
)
# Shown where there is such a number; no read gives them all.
_FURTHER = (
    ("Shape that fits best", "shape.support"),
    ("Items whose option changes with the order", "flip_rate"),
    ("Share of an item's usual option", "usual_share"),
    ("Probability of all labels together", "label_mass"),
)
# Words around the experiment that a cell is compared with.
_COMPARED = {
    "agreement": "Likeliest label is the letter generated in {}",
    "agreement.every_order": "Items for which it is in every order",
    "agreement.kappa": "Cohen’s kappa with {}",
}
SERIES = (
    ("accuracy", "Accuracy"),
    ("picks", "Picks"),
    ("picks_when_wrong", "Picks when wrong"),
    ("label_logprob", "Log-probability, nats"),
    ("slot_bonus", "Slot bonus, nats"),
    ("label_prior", "Prior of the label"),
)
# A vendor's own choice probabilities are another instrument, and the page never calls them by the same name.
_CHOICE_HEADS = {
    "label_logprob": "Log of the vendor's choice probability, nats",
    "slot_bonus": "Slot bonus of choice probability, nats",
}
# Head of a column, then the lines of each entry: words in front, and what is shown.
_PUBLISHED = (
    ("χ²", (("", "chi2.published"), ("p ", "p:chi2.published"))),
    ("V", (("", "V.published"), ("by item ", "V.published.question"), ("Bergsma ", "V.bergsma"))),
    ("ρ", (("", "rho.published"),)),
    ("Mechanism", (("v0.1 ", "mechanism.v0_1"), ("v0.2 ", "mechanism.v0_2"))),
)
_CALIBRATED = (
    ("V", (("", "V.corrected"),)),
    (
        "Accuracy by slot",
        (
            ("p ", "p:relabelling.accuracy"),
            ("Holm ", "holm:relabelling.accuracy"),
            ("recentred ", "p:recentred.accuracy"),
        ),
    ),
    ("Picks by slot", (("p ", "p:relabelling.picks"), ("Holm ", "holm:relabelling.picks"))),
    ("Shape", (("", "shape.label"),)),
)
# Left out where there is no such number.
_OPTIONAL = ("V.published.question",)
PUBLISHED_HEADS = tuple(head for head, _ in _PUBLISHED)
CALIBRATED_HEADS = tuple(head for head, _ in _CALIBRATED)

Entry = Sequence[tuple[str, Shown]]
"""Lines of a table's entry: words in front, and the number."""


@dataclass(frozen=True)
class Bar:
    """One bar of the small picture in the matrix: place and size in its own units, 0 to 100."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Spark:
    """Picks by slot as small bars, with the numbers in words."""

    words: str
    bars: Sequence[Bar]
    even: float | None
    """Height of an even split."""


@dataclass(frozen=True)
class CellView:
    """What the page shows of a cell."""

    anchor: str
    model: str
    subset: str
    verdict: str
    words: str
    lead: str
    sentence: str
    size: str
    v: Shown
    v_note: str
    """Why V has no interval."""
    spark: Spark | None
    facts: Sequence[tuple[str, Shown]]
    accuracy: Shown
    band: Shown
    detectable: Shown
    absent: Sequence[str]
    """Facts that are not there, with the reason."""
    slots: Sequence[Slot]
    series: Sequence[tuple[str, Sequence[Shown]]]
    published: Sequence[Entry]
    calibrated: Sequence[Entry]
    gaps: Sequence[str]
    """Why numbers of either method are missing or unfit."""
    caveats: Sequence[str]
    mixture: str
    """Who answered, where it was more than one model."""
    parts: Sequence[PartRow]


def view_cell(cell: Cell, numbers: CellNumbers, labels: Sequence[str], context: Context) -> CellView:
    """Format one cell's estimates."""
    slots = read_slots(numbers, labels)
    verdict = verdict_of(numbers)
    mixture = mixture_of(numbers)
    facts = [(term, _fact(numbers.get(name), mixture)) for term, name in _FACTS]
    further = (*_FURTHER, *_compared(numbers))
    facts += [(term, _fact(numbers[name], mixture)) for term, name in further if name in numbers]
    published = [_lines(numbers, lines) for _, lines in _PUBLISHED]
    calibrated = [_lines(numbers, lines) for _, lines in _CALIBRATED]
    compared = [shown for entry in [*published, *calibrated] for _, shown in entry]
    heads = _CHOICE_HEADS if cell.experiment.read.kind == "decide" else {}
    v = show(numbers.get("V.corrected"))
    return CellView(
        anchor=anchor_of(cell.name),
        model=cell.model.id,
        subset=cell.dataset.id,
        verdict=verdict,
        words=verdict_words(verdict),
        lead=lead(verdict),
        sentence=sentence(numbers, slots, context),
        size=_size(numbers),
        v=v,
        v_note=_without_interval(numbers.get("V.corrected")),
        spark=_spark(slots, context.even),
        facts=[(term, shown) for term, shown in facts if shown.text != MISSING],
        absent=[] if verdict == "not_asked" else _absent(facts),
        accuracy=show(numbers.get("accuracy")),
        band=show(numbers.get("band")),
        detectable=show(numbers.get(DETECTABLE)),
        slots=slots,
        series=[
            (heads.get(name, head), [show(slot.series(name)) for slot in slots])
            for name, head in SERIES
            if has_series(slots, name)
        ],
        published=published,
        calibrated=calibrated,
        gaps=list(dict.fromkeys(shown.note for shown in compared if shown.note)),
        caveats=caveats(numbers),
        mixture=mixture,
        parts=part_rows(numbers),
    )


def _compared(numbers: CellNumbers) -> list[tuple[str, str]]:
    """Return terms and quantities of the comparison with other experiments, one after the other."""
    others = dict.fromkeys(name.partition("@with=")[2] for name in sorted(numbers) if "@with=" in name)
    return [(term.format(other), f"{name}@with={other}") for other in others for name, term in _COMPARED.items()]


def _without_interval(v: Number | None) -> str:
    if v is None or v.estimate is None or v.low is not None:
        return ""
    return "no interval: V is constant" if v.status == "degenerate" else "no interval"


def _fact(number: Number | None, mixture: str) -> Shown:
    if number is not None and number.label is not None and number.estimate is not None:
        return Shown(
            f"{shape_words(number.label)}, in {percent(number.estimate)} of resamples", note=number.reason or ""
        )
    shown = show(number)
    if mixture and shown.note == mixture and shown.text != MISSING:
        # Said once, at the top of the cell.
        return replace(shown, note="")
    if number is not None and number.label is not None and number.status == "ok" and number.reason:
        return replace(shown, note=number.reason)
    return shown


def _absent(facts: Sequence[tuple[str, Shown]]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for term, shown in facts:
        if shown.text == MISSING:
            reasons.setdefault(shown.note, []).append(term)
    return [f"{', '.join(terms)}: {reason}" for reason, terms in reasons.items()]


def _lines(numbers: CellNumbers, lines: Sequence[tuple[str, str]]) -> Entry:
    wanted = [(words, source) for words, source in lines if source not in _OPTIONAL or source in numbers]
    return [(words, _shown(numbers, source)) for words, source in wanted]


def _shown(numbers: CellNumbers, source: str) -> Shown:
    kind, _, name = source.rpartition(":")
    if kind:
        return show_p(numbers.get(name), adjusted=kind == "holm")
    return show(numbers.get(name))


def _size(numbers: CellNumbers) -> str:
    """The n of the whole cell: single quantities may rest on fewer."""
    if not numbers:
        return "no estimates"
    # One for each number of options.
    whole = [numbers[f"status.ok{mark}"] for mark in _marks(numbers)]
    items, calls = sum(number.n_items for number in whole), sum(number.n_calls for number in whole)
    if not calls:
        items, calls = (max(getattr(number, name) for number in numbers.values()) for name in ("n_items", "n_calls"))
    groups = numbers.get("groups")
    within = "" if groups is None or groups.estimate is None else f" in {count(int(groups.estimate))} groups"
    return f"{count(items)} items{within}, {count(calls)} calls"


def _marks(numbers: CellNumbers) -> list[str]:
    """Return what ends the names of each number of options: nothing for the usual one."""
    found = [name.removeprefix("status.ok") for name in numbers if name.startswith("status.ok") and not is_part(name)]
    return [mark for mark in found if not mark or mark.startswith("@k=")]


def _spark(slots: Sequence[Slot], even: float | None) -> Spark | None:
    if not has_series(slots, "picks"):
        return None
    step = 100 / len(slots)
    bars = [
        Bar(*(round(size, 2) for size in ((index + 0.1) * step, 100 - 100 * value, 0.8 * step, 100 * value)))
        for index, slot in enumerate(slots)
        if (value := _value(slot.picks)) is not None
    ]
    words = ", ".join(f"{slot.label} {percent(value)}" for slot in slots if (value := _value(slot.picks)) is not None)
    return Spark(f"Picks by slot: {words}", bars, None if even is None else round(100 - 100 * even, 2))


def _value(number: Number | None) -> float | None:
    return number.estimate if number else None


@dataclass(frozen=True)
class StatusRow:
    """How often one outcome happened in a cell: over all, and by the slot of the correct option."""

    cell: CellView
    outcome: str
    answered: str
    overall: str
    by_slot: Sequence[tuple[str, float]]
    """Each share as written, and as a number from 0 to 1 for its bar."""


def status_rows(view: CellView, numbers: CellNumbers) -> list[StatusRow]:
    """Return a cell's outcomes other than `ok` that happened at least once, most frequent first."""
    found = _outcomes(numbers)
    answered = percent(found["ok"]) if "ok" in found else MISSING
    rows = []
    for outcome, share in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])):
        if outcome != "ok" and share > 0:
            slots = [numbers.get(f"status.{outcome}.slot_{index}") for index in range(1, len(view.slots) + 1)]
            by_slot = [(show(number, as_percent=True).text, _value(number) or 0.0) for number in slots]
            rows.append(StatusRow(view, outcome.replace("_", " "), answered, percent(share), by_slot))
    return rows


def _outcomes(numbers: CellNumbers) -> dict[str, float]:
    """Return the share of each outcome, over the items with any number of options."""
    calls = {mark: numbers[f"status.ok{mark}"].n_calls for mark in _marks(numbers)}
    found: dict[str, float] = {}
    for quantity, number in numbers.items():
        name, mark, size = quantity.partition("@")
        weight = calls.get(f"{mark}{size}", 0) / max(1, sum(calls.values()))
        if name.startswith("status.") and ".slot_" not in name and weight:
            outcome = name.removeprefix("status.")
            found[outcome] = found.get(outcome, 0.0) + weight * (number.estimate or 0.0)
    return found


def counts_replies(numbers: CellNumbers) -> bool:
    """Whether the estimates say how many replies held an answer."""
    number = numbers.get("status.ok")
    return number is not None and number.estimate is not None
