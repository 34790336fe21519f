"""Power as text and as JSON values."""

from collections.abc import Sequence
from dataclasses import asdict

from counterbalance.canonical import Json
from counterbalance.config import Study
from counterbalance.power.advice import Advice, holm_factor
from counterbalance.power.facts import CHARACTERS_PER_TOKEN
from counterbalance.power.grid import ROUGH_ITEM_SLOT_SD, Assumed, Group, Row
from counterbalance.power.search import DesignPower, Found

SCHEMA = "counterbalance/power/1"

Judged = tuple[Group, Sequence[Row], Advice, DesignPower | None]
"""A group, its designs, the advice, and the advised design with rougher items."""


def table(study: Study, group: Group, rows: Sequence[Row]) -> list[str]:
    """Return a group's designs, a line each, one column per accuracy."""
    v = study.config.analysis.measurable_v
    levels = sorted({row.accuracy for row in rows})
    cost = f"{'US$':>9}  " if group.price is not None else ""
    head = f"{'scheme':<11} {'orders':>6} {'items':>6} {'calls':>7}  {cost}"
    head += "  ".join(f"{f'accuracy {level:g}':<20}" for level in levels)
    lines = [head.rstrip()]
    designs: dict[tuple[str, int, int], dict[float, Row]] = {}
    for row in rows:
        designs.setdefault((row.scheme, row.orders, row.n_items), {})[row.accuracy] = row
    for found in designs.values():
        first = next(iter(found.values()))
        price = "" if first.cost is None else f"{first.cost:>9.2f}  "
        line = f"{first.scheme:<11} {first.orders:>6} {first.n_items:>6} {first.calls:>7}  {price}"
        line += "  ".join(f"{_pair(found[level].found, v):<20}" for level in levels)
        lines.append(line.rstrip() + ("  <- the study's own" if first.own else ""))
    return lines


def notes(study: Study, group: Group, rows: Sequence[Row], assumed: Assumed, cells: int) -> list[str]:
    """Return what the table means and supposes."""
    analysis = study.config.analysis
    tests, factor = holm_factor(study, group.k)
    lines = [
        f"In each cell of the table: smallest V found with {analysis.detectable_power:.0%} power at alpha "
        f"{analysis.alpha:g} by slot relabelling of accuracy, +- its simulation error (one standard error, {cells} "
        f"simulated cells), / the same by picks. *: at most V = {analysis.measurable_v:g}, what the plan wants to see.",
        f"Supposed: {group.k} options; a slot effect that declines in equal steps; the wrong options' utilities have "
        f"spread 1, the correct one's 2, each item's own slot effects {assumed.item_slot_sd:g}, the noise of a call "
        f"{assumed.call_noise:g}. Accuracy is what it would be without the slot effect.",
        f"One test alone. With Holm over the family's {tests} tests the first to be found needs a V about "
        f"{factor:.2f} times as large.",
    ]
    if any(row.found.accuracy.v is None for row in rows):
        lines.append("-: no slot effect is found that often; too few items change with the slot.")
    if group.extra:
        lines.append(
            f"Calls hold the {group.extra:.3g} of all prompts that are asked once more, on average; the seed draws a "
            "few more or fewer."
        )
    if group.mixed:
        lines.append(
            f"Numbers of options differ: {'; '.join(group.mixed)}. Those with other numbers are tested apart: the "
            f"table is about the items with {group.k}, and the others are neither in its calls nor in its cost."
        )
    if group.grouped:
        lines.append(
            f"Items form groups: {'; '.join(group.grouped)}. The tests take a group as one, the table takes each item "
            "by itself: the V that will be seen lies between that of the items' row and that of as many items as there "
            "are groups."
        )
    if group.price is not None:
        lines.append(
            f"US$ for all {group.n_cells} cells: input at {CHARACTERS_PER_TOKEN:g} characters a token, uncached, "
            "output at its limit; retries are extra."
        )
    if group.price is not None and group.unpriced:
        lines.append(f"Without a price, and counted as free: {', '.join(group.unpriced)}.")
    if group.unread:
        lines.append(f"Items not here yet, so not counted in cost or own designs: {', '.join(group.unread)}.")
    return lines


def rough_line(row: Row, found: DesignPower) -> str:
    """Return what the cheapest design would show if its items were rougher than supposed."""
    seen = "none" if found.accuracy.v is None else f"V = {found.accuracy.v:.3f}"
    return (
        f"If items have slot effects of their own with spread {ROUGH_ITEM_SLOT_SD:g} and calls no noise, the same "
        f"design at accuracy {row.accuracy:g} shows {seen}, in place of V = {row.found.accuracy.v or 0:.3f}: a "
        "scout of your own items tells which it is."
    )


def as_json(
    study: Study,
    groups: Sequence[tuple[Group, Sequence[Row], Advice, DesignPower | None]],
    assumed: Assumed,
    cells: int,
) -> Json:
    """Return everything as JSON values."""
    analysis = study.config.analysis
    return {
        "schema": SCHEMA,
        "study": study.config.id,
        "alpha": analysis.alpha,
        "power": analysis.detectable_power,
        "measurable_v": analysis.measurable_v,
        "seed": analysis.seed,
        "cells": cells,
        "assumed": asdict(assumed),
        "groups": [
            {
                "options": group.k,
                "repeats": group.repeats,
                "experiments": list(group.experiments),
                "study_cells": group.n_cells,
                "holm": dict(zip(("tests", "v_factor"), holm_factor(study, group.k), strict=True)),
                "designs": [asdict(row) for row in rows],
                "cheapest": asdict(advice.rows[0]) if advice.rows else None,
                "advice": advice.sentence,
                "rough": None if rough is None else asdict(rough),
            }
            for group, rows, advice, rough in groups
        ],
    }


def _pair(found: DesignPower, v: float) -> str:
    star = "*" if found.accuracy.v is not None and found.accuracy.v <= v else " "
    return f"{_number(found.accuracy)}{star} / {_value(found.picks)}"


def _number(found: Found) -> str:
    if found.v is None or found.error is None:
        return f"{'-':<9}"
    return f"{_value(found)}+-{f'{found.error:.3f}'.removeprefix('0')}"


def _value(found: Found) -> str:
    return "-" if found.v is None else f"{found.v:.3f}".removeprefix("0")
