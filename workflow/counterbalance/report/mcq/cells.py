"""One cell as the report shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.config import Cell
from counterbalance.report.mcq.notes import Context, sentence, verdict_of, verdict_words
from counterbalance.report.mcq.slots import Slot, has_series, read_slots
from counterbalance.report.numbers import CellNumbers, Number, Shown, show, show_p
from counterbalance.report.text import MISSING, count, percent

_FACTS = (
    ("Accuracy", "accuracy"),
    ("Accuracy band", "band"),
    ("V, corrected", "V.corrected"),
    ("Smallest V it would have shown", "detectable_V"),
    ("Shape of the effect", "shape.label"),
    ("Same option in every order", "consistency"),
    ("Items whose answer depends on order", "unstable_items"),
)
SERIES = (
    ("accuracy", "Accuracy"),
    ("picks", "Picks"),
    ("picks_when_wrong", "Picks when wrong"),
    ("label_logprob", "Label log-probability, nats"),
    ("slot_bonus", "Slot bonus, nats"),
)
_PUBLISHED = (
    ("χ²", "chi2.published"),
    ("p", "p:chi2.published"),
    ("V", "V.published"),
    ("V, Bergsma", "V.bergsma"),
    ("ρ", "rho.published"),
    ("Mechanism v0.1", "mechanism.v0_1"),
    ("Mechanism v0.2", "mechanism.v0_2"),
)
_CALIBRATED = (
    ("V, corrected", "V.corrected"),
    ("p, accuracy", "p:relabelling.accuracy"),
    ("Holm p, accuracy", "holm:relabelling.accuracy"),
    ("p, picks", "p:relabelling.picks"),
    ("Holm p, picks", "holm:relabelling.picks"),
    ("p, recentred", "p:recentred.accuracy"),
    ("Shape", "shape.label"),
)
PUBLISHED_HEADS = tuple(head for head, _ in _PUBLISHED)
CALIBRATED_HEADS = tuple(head for head, _ in _CALIBRATED)


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


@dataclass(frozen=True)
class CellView:
    """What the page shows of a cell."""

    anchor: str
    model: str
    subset: str
    verdict: str
    words: str
    sentence: str
    size: str
    v: Shown
    p: Shown
    p_picks: Shown
    spark: Spark | None
    facts: Sequence[tuple[str, Shown]]
    slots: Sequence[Slot]
    series: Sequence[tuple[str, Sequence[Shown]]]
    published: Sequence[Shown]
    calibrated: Sequence[Shown]


def view_cell(cell: Cell, numbers: CellNumbers, labels: Sequence[str], context: Context) -> CellView:
    """Format one cell's estimates."""
    slots = read_slots(numbers, labels)
    verdict = verdict_of(numbers)
    return CellView(
        anchor=f"cell-{cell.name.replace('/', '.')}",
        model=cell.model.id,
        subset=cell.dataset.id,
        verdict=verdict,
        words=verdict_words(verdict),
        sentence=sentence(numbers, slots, context),
        size=_size(numbers),
        v=show(numbers.get("V.corrected")),
        p=show_p(numbers.get("relabelling.accuracy"), adjusted=True),
        p_picks=show_p(numbers.get("relabelling.picks"), adjusted=True),
        spark=_spark(slots),
        facts=[(term, show(numbers.get(name))) for term, name in _FACTS],
        slots=slots,
        series=[(head, [show(slot.series(name)) for slot in slots]) for name, head in SERIES if has_series(slots, name)],
        published=[_entry(numbers, source) for _, source in _PUBLISHED],
        calibrated=[_entry(numbers, source) for _, source in _CALIBRATED],
    )


def _entry(numbers: CellNumbers, source: str) -> Shown:
    kind, _, name = source.rpartition(":")
    if kind:
        return show_p(numbers.get(name), adjusted=kind == "holm")
    return show(numbers.get(name))


def _size(numbers: CellNumbers) -> str:
    """The largest n of the cell: single quantities may rest on fewer."""
    if not numbers:
        return "no estimates"
    items = max(number.n_items for number in numbers.values())
    calls = max(number.n_calls for number in numbers.values())
    return f"{count(items)} items, {count(calls)} calls"


def _spark(slots: Sequence[Slot]) -> Spark | None:
    if not has_series(slots, "picks"):
        return None
    step = 100 / len(slots)
    bars = [
        Bar(round(index * step + step * 0.1, 2), round(100 - 100 * value, 2), round(step * 0.8, 2), round(100 * value, 2))
        for index, slot in enumerate(slots)
        if (value := _value(slot.picks)) is not None
    ]
    words = ", ".join(f"{slot.label} {percent(value)}" for slot in slots if (value := _value(slot.picks)) is not None)
    return Spark(f"Picks by slot: {words}", bars)


def _value(number: Number | None) -> float | None:
    return number.estimate if number else None


@dataclass(frozen=True)
class StatusRow:
    """How often one outcome happened in a cell: over all, and by the slot of the correct option."""

    cell: CellView
    outcome: str
    overall: Shown
    by_slot: Sequence[tuple[Shown, float]]
    """Each share as written, and as a number from 0 to 1 for its bar."""


def status_rows(view: CellView, numbers: CellNumbers) -> list[StatusRow]:
    """Return a cell's outcomes other than `ok` that happened at least once, most frequent first."""
    found: Mapping[str, Number] = {
        quantity.removeprefix("status."): number
        for quantity, number in numbers.items()
        if quantity.startswith("status.") and ".slot_" not in quantity
    }
    rows = []
    for outcome, number in sorted(found.items(), key=lambda pair: (-(pair[1].estimate or 0.0), pair[0])):
        if outcome == "ok" or not number.estimate:
            continue
        shares = [numbers.get(f"status.{outcome}.slot_{index}") for index in range(1, len(view.slots) + 1)]
        by_slot = [(show(share, as_percent=True), _value(share) or 0.0) for share in shares]
        rows.append(StatusRow(view, outcome.replace("_", " "), show(number, as_percent=True), by_slot))
    return rows


def read_share(numbers: CellNumbers) -> str:
    """Return the share of replies with an answer, as written."""
    number = numbers.get("status.ok")
    return percent(number.estimate) if number is not None and number.estimate is not None else MISSING
