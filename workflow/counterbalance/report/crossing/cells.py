"""One cell of a crossing as the report shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.config import Analysis, Cell
from counterbalance.contrasts import Condition as Known
from counterbalance.designs.crossing.conditions import CELL_BLOCKS, CONDITIONS, Condition
from counterbalance.designs.crossing.effects import EFFECTS
from counterbalance.designs.crossing.estimate import known_conditions
from counterbalance.report.crossing.words import kind_of, lead, sentence, verdict_words
from counterbalance.report.numbers import CellNumbers, Number, Shown, mixture_of, verdict_of
from counterbalance.report.planned import ContrastRow, amount, contrast_notes, contrast_rows, ends, negative, p_words
from counterbalance.report.published import is_published
from counterbalance.report.text import MISSING, anchor_of, count, listing, percent, plural

SETS = (("kept", ""), ("all", "@all"))


@dataclass(frozen=True)
class EffectRow:
    """One condition on one set of items."""

    condition: str
    dials: str
    items: str
    token: Shown
    role: Shown
    role_null: str
    order: Shown
    order_null: str
    serial: Shown
    narrow: str
    p: str
    adjusted: str
    tost: str
    negative: str
    differs: bool


@dataclass(frozen=True)
class CellView:
    """What the page shows of a cell."""

    anchor: str
    model: str
    subset: str
    verdict: str
    kind: str
    words: str
    lead: str
    sentence: str
    unit: str
    probability: bool
    published: bool
    size: str
    mixture: str
    effects: Sequence[tuple[str, Sequence[EffectRow], Sequence[str]]]
    """By set of items: a row for each condition, and what has to be said of numbers in them."""
    contrasts: Sequence[tuple[ContrastRow, bool]]
    """Each with whether its verdict differs between the sets."""
    contrast_notes: Sequence[tuple[str, str]]
    differing: Sequence[str]
    left_out: Sequence[tuple[str, str]]
    statuses: Sequence[tuple[str, str, Sequence[str]]]
    answered: str
    mass: Sequence[tuple[str, str]]


def view_cell(cell: Cell, numbers: CellNumbers, analysis: Analysis) -> CellView:
    """Format one cell's estimates; planned contrasts in the plan's order."""
    verdict = verdict_of(numbers)
    probability = cell.experiment.read.kind == "generate"
    asked = asked_conditions(numbers)
    differing = _differing(numbers)
    published = is_published(cell)
    known = known_conditions(analysis, published=published)
    contrasts = contrast_rows(numbers, analysis.contrasts)
    return CellView(
        anchor=anchor_of(cell.name),
        model=cell.model.id,
        subset=cell.dataset.id,
        verdict=verdict,
        kind=kind_of(verdict),
        words=verdict_words(verdict),
        lead=lead(verdict),
        sentence=sentence(numbers),
        unit="probability" if probability else "nats",
        probability=probability,
        published=published,
        size=_size(numbers, "number" if published else "call"),
        mixture=mixture_of(numbers),
        effects=[
            (
                name,
                [_effect_row(numbers, condition, known, suffix, differing) for condition in asked],
                _effect_notes(numbers, [condition.name for condition in asked], suffix),
            )
            for name, suffix in SETS
        ],
        contrasts=[(row, any(text.startswith(f"contrast.{row.name} ") for text in differing)) for row in contrasts],
        contrast_notes=contrast_notes(contrasts),
        differing=differing,
        left_out=_left_out(numbers),
        statuses=_statuses(numbers),
        answered=_share(numbers.get("status.ok")),
        mass=[
            (condition.name, percent(number.estimate))
            for condition in asked
            if (number := numbers.get(f"answer_mass.{condition.name}")) and number.estimate is not None
        ],
    )


def asked_conditions(numbers: CellNumbers) -> list[Condition]:
    """Return the conditions that a cell was asked in."""
    return [condition for name, condition in CONDITIONS.items() if f"serial.{name}" in numbers]


def dials(known: Known | None) -> str:
    """Write what is known of a condition."""
    if known is None:
        return "dials not known"
    cues = "cues not known" if known.cues is None else str(known.cues)
    return f"{known.header or 'header not known'} · {known.body or 'body not known'} · {cues}"


def _effect_row(
    numbers: CellNumbers, condition: Condition, known: Mapping[str, Known], suffix: str, differing: Sequence[str]
) -> EffectRow:
    name = condition.name
    serial, tost = numbers[f"serial.{name}{suffix}"], numbers.get(f"tost.serial.{name}{suffix}")
    return EffectRow(
        condition=name,
        dials=dials(known.get(name)),
        items=count(serial.n_items),
        token=amount(numbers.get(f"token.{name}{suffix}")),
        role=amount(numbers.get(f"role.{name}{suffix}")),
        role_null=_null(numbers, f"null.role.{name}{suffix}"),
        order=amount(numbers.get(f"order.{name}{suffix}")),
        order_null=_null(numbers, f"null.order.{name}{suffix}"),
        serial=amount(serial),
        narrow=ends(tost),
        p=p_words(serial.p),
        adjusted=p_words(serial.p_adjusted) if not suffix else "",
        tost=p_words(tost.p if tost else None),
        negative=negative(numbers, f"serial.{name}{suffix}"),
        differs=any(text.startswith(f"serial.{name} ") for text in differing),
    )


def _effect_notes(numbers: CellNumbers, asked: Sequence[str], suffix: str) -> list[str]:
    """Say which effects have no interval or no verdict, or a caveat, and why: a sentence for each reason."""
    where: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for effect in EFFECTS:
        reasons: dict[str, list[str]] = {}
        for name in asked:
            number = numbers.get(f"{effect}.{name}{suffix}")
            if number is not None and number.reason:
                reasons.setdefault(number.reason, []).append(name)
        for reason, found in reasons.items():
            where.setdefault((reason, tuple(found)), []).append(effect)
    notes = []
    for (reason, conditions), effects in where.items():
        place = "every condition" if list(conditions) == list(asked) else listing(list(conditions))
        notes.append(f"{listing(effects).capitalize()} in {place}: {reason}.")
    return notes


def _differing(numbers: CellNumbers) -> list[str]:
    number = numbers.get("sets_differ")
    text = (number.reason or "") if number else ""
    return [entry for entry in text.split("; ") if "excludes zero" in entry]


def _left_out(numbers: CellNumbers) -> list[tuple[str, str]]:
    found = []
    for quantity, number in numbers.items():
        kind, _, condition = quantity.partition(".")
        if kind in ("flagged", "incomplete") and "@" not in condition and number.estimate:
            text = (number.reason or "").partition("; ")[2].removeprefix("flagged: ")
            found.append((f"{condition}, {kind}", text))
    return found


def _statuses(numbers: CellNumbers) -> list[tuple[str, str, list[str]]]:
    """Return outcome, share of all calls and shares by cell, for everything but ``ok``."""
    rows = []
    for quantity, number in numbers.items():
        parts = quantity.split(".")
        if parts[0] == "status" and len(parts) == 2 and parts[1] != "ok" and "@" not in parts[1]:
            shares = [_share(numbers.get(f"{quantity}.{cell}")) for cell in CELL_BLOCKS]
            rows.append((parts[1].replace("_", " "), _share(number), shares))
    return rows


def _size(numbers: Mapping[str, Number], unit: str) -> str:
    kept, every = numbers.get("items.kept"), numbers.get("items.all")
    if kept is None or every is None or kept.estimate is None or every.estimate is None:
        return MISSING
    size = plural(every.n_calls, unit)
    return f"{count(round(kept.estimate))} of {plural(round(every.estimate), 'item')} kept, {size}"


def _null(numbers: CellNumbers, name: str) -> str:
    number = numbers.get(name)
    label = number.label if number and number.label else "not_evaluable"
    return {"pass": "pass", "fail": "FAIL", "not_applicable": "n/a"}.get(label, "not evaluable")


def _share(number: Number | None) -> str:
    return MISSING if number is None or number.estimate is None else percent(number.estimate)
