"""One cell of a crossing as the report shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.config import Cell
from counterbalance.designs.crossing.conditions import CELL_BLOCKS, CONDITIONS, Condition
from counterbalance.report.crossing.words import kind_of, lead, sentence, verdict_of, verdict_words
from counterbalance.report.numbers import USABLE, CellNumbers, Number, Shown
from counterbalance.report.text import MISSING, count, interval, p_value, percent, plural, signed

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
class ContrastRow:
    """One planned contrast on both sets."""

    name: str
    expression: str
    status: str
    kept: Shown
    whole: Shown
    p: str
    adjusted: str
    tost: str
    negative: str
    notes: Sequence[str]
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
    size: str
    mixture: str
    effects: Sequence[tuple[str, Sequence[EffectRow]]]
    contrasts: Sequence[ContrastRow]
    differing: Sequence[str]
    left_out: Sequence[tuple[str, str]]
    statuses: Sequence[tuple[str, str, Sequence[str]]]
    answered: str
    mass: Sequence[tuple[str, str]]


def view_cell(cell: Cell, numbers: CellNumbers, contrasts: Sequence[str]) -> CellView:
    """Format one cell's estimates; `contrasts` are the ids of the planned ones, in the plan's order."""
    verdict = verdict_of(numbers)
    mixture = numbers.get("models_returned")
    probability = cell.experiment.read.kind == "generate"
    asked = asked_conditions(numbers)
    differing = _differing(numbers)
    names = (cell.experiment.id, cell.model.id, cell.dataset.id)
    return CellView(
        anchor=f"cell-{'.'.join(names)}",
        model=cell.model.id,
        subset=cell.dataset.id,
        verdict=verdict,
        kind=kind_of(verdict),
        words=verdict_words(verdict),
        lead=lead(verdict),
        sentence=sentence(numbers),
        unit="probability" if probability else "nats",
        probability=probability,
        size=_size(numbers),
        mixture=(mixture.reason or "more than one model answered") if mixture else "",
        effects=[
            (name, [_effect_row(numbers, condition, suffix, differing) for condition in asked]) for name, suffix in SETS
        ],
        contrasts=_contrasts(numbers, contrasts, differing),
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


def amount(number: Number | None) -> Shown:
    """Write an effect with its interval, three digits and a sign, or say why there is none."""
    if number is None:
        return Shown(MISSING, note="not computed for this cell")
    note = "" if number.status in USABLE else number.reason or number.status.replace("_", " ")
    if number.estimate is None:
        return Shown(MISSING, note=note or "not computed for this cell")
    return Shown(signed(number.estimate, 3), _ends(number), note)


def _ends(number: Number | None) -> str:
    if number is None or number.low is None or number.high is None:
        return ""
    return interval(signed(number.low, 3), signed(number.high, 3))


def _effect_row(numbers: CellNumbers, condition: Condition, suffix: str, differing: Sequence[str]) -> EffectRow:
    name = condition.name
    serial, tost = numbers[f"serial.{name}{suffix}"], numbers.get(f"tost.serial.{name}{suffix}")
    return EffectRow(
        condition=name,
        dials=f"{condition.header} · {condition.body} · {condition.cues}",
        items=count(serial.n_items),
        token=amount(numbers.get(f"token.{name}{suffix}")),
        role=amount(numbers.get(f"role.{name}{suffix}")),
        role_null=_null(numbers, f"null.role.{name}{suffix}"),
        order=amount(numbers.get(f"order.{name}{suffix}")),
        order_null=_null(numbers, f"null.order.{name}{suffix}"),
        serial=amount(serial),
        narrow=_ends(tost),
        p=_p(serial.p),
        adjusted=_p(serial.p_adjusted) if not suffix else "",
        tost=_p(tost.p if tost else None),
        negative=_negative(numbers, f"serial.{name}{suffix}"),
        differs=any(text.startswith(f"serial.{name} ") for text in differing),
    )


def _contrasts(numbers: CellNumbers, names: Sequence[str], differing: Sequence[str]) -> list[ContrastRow]:
    rows = []
    for name in names:
        quantity = f"contrast.{name}"
        number = numbers.get(quantity)
        if number is None:
            continue
        expression = number.method.partition(": ")[0]
        notes = [text for text in (number.reason or "").split("; ") if text]
        rows.append(
            ContrastRow(
                name=name,
                expression=expression,
                status=notes[0] if number.status == "descriptive" and notes else "inferential",
                kept=amount(number),
                whole=amount(numbers.get(f"{quantity}@all")),
                p=_p(number.p),
                adjusted=_p(number.p_adjusted),
                tost=_p(_p_of(numbers, f"tost.{quantity}")),
                negative=_negative(numbers, quantity),
                notes=notes[1:] if number.status == "descriptive" else notes,
                differs=any(text.startswith(f"{quantity} ") for text in differing),
            )
        )
    return rows


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


def _size(numbers: Mapping[str, Number]) -> str:
    kept, every = numbers.get("items.kept"), numbers.get("items.all")
    if kept is None or every is None or kept.estimate is None or every.estimate is None:
        return MISSING
    return (
        f"{count(round(kept.estimate))} of {plural(round(every.estimate), 'item')} kept, {count(every.n_calls)} calls"
    )


def _null(numbers: CellNumbers, name: str) -> str:
    number = numbers.get(name)
    label = number.label if number and number.label else "not_evaluable"
    return {"pass": "pass", "fail": "FAIL", "not_applicable": "n/a"}.get(label, "?")


def _negative(numbers: CellNumbers, name: str) -> str:
    number = numbers.get(f"negative.{name}")
    if number is None or number.estimate is None:
        return MISSING
    return f"{round(number.estimate)}/{number.n_items}"


def _p_of(numbers: CellNumbers, name: str) -> float | None:
    number = numbers.get(name)
    return number.p if number else None


def _p(value: float | None) -> str:
    return MISSING if value is None else p_value(value)


def _share(number: Number | None) -> str:
    return MISSING if number is None or number.estimate is None else percent(number.estimate)
