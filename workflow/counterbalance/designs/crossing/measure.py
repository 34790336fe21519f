"""Outcomes of a cell to e1 to e4 of every item in every condition."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from counterbalance.contrasts.table import EffectTable
from counterbalance.designs.crossing.conditions import CONDITIONS
from counterbalance.designs.crossing.effects import CELLS, flagged, half_effects
from counterbalance.designs.crossing.published import KEPT_RULE, RULE, RULES

Scale = Literal["nats", "probability"]

MEASURED = ("first_token", "answer_token", "vendor_status", *RULES)
"""Rules of outcomes that are in nats; `vendor_status` says nothing about the scale."""

Row = Mapping[str, Any]
Quad = tuple[float, ...]


@dataclass(frozen=True)
class Measured:
    """The cells of one model on one data set.

    Attributes
    ----------
    scale
        ``nats``: e is log P(B) - log P(A); ``probability``: e is the share of answers that are B, less one half.
    conditions
        In the order of their names.
    groups
        By item, in the items' order, the source that it shares with others: the unit of all intervals.
    cells
        By condition and item, e1 to e4; only where every cell and assignment has an answer.
    missing
        By condition and item without them, what the calls came to in words.
    statuses
        By condition and cell (e1, ...), calls by outcome.
    calls
        By condition and item, calls with an answer.
    mass
        By condition, the mean probability that both answers have together; None where the read does not tell.
    published
        Whether the cells were taken from a file: one number each, assignments already averaged.
    marked
        By item, whether the file has it in the filtered set; None where no file says so.
    """

    scale: Scale
    conditions: tuple[str, ...]
    groups: Mapping[str, str]
    cells: Mapping[str, Mapping[str, Quad]]
    missing: Mapping[str, Mapping[str, str]]
    statuses: Mapping[str, Mapping[str, Counter[str]]]
    calls: Mapping[str, Mapping[str, int]]
    mass: Mapping[str, float | None]
    published: bool = False
    marked: Mapping[str, bool] | None = None

    @property
    def items(self) -> tuple[str, ...]:
        return tuple(self.groups)

    def effects(self, condition: str) -> dict[str, dict[str, float]]:
        """Return a condition's half-effects by effect and item."""
        cells = self.cells[condition]
        found = half_effects(np.array(list(cells.values())).reshape(len(cells), len(CELLS)))
        return {name: dict(zip(cells, values.tolist(), strict=True)) for name, values in found.items()}

    def flagged(self, condition: str) -> tuple[str, ...]:
        """Return the items that are flagged in a condition; the rule is in nats, so none is on the other scale."""
        if self.scale != "nats":
            return ()
        by_effect = self.effects(condition)
        token, order = (np.array(list(by_effect[name].values())) for name in ("token", "order"))
        return tuple(item for item, out in zip(self.cells[condition], flagged(token, order), strict=True) if out)

    @property
    def kept(self) -> tuple[str, ...]:
        """Items that are complete and unflagged in every condition, or that a file of cells has marked."""
        if self.marked is not None:
            return tuple(item for item in self.items if self.marked[item])
        out = {item for condition in self.conditions for item in self.flagged(condition)}
        out |= {item for condition in self.conditions for item in self.missing[condition]}
        return tuple(item for item in self.items if item not in out)

    def table(self, items: Iterable[str]) -> EffectTable:
        """Return the half-effects of some items, with their sources as units where some share one."""
        wanted = set(items)
        sources = {item: group for item, group in self.groups.items() if item in wanted}
        shared = len(set(sources.values())) < len(sources)
        return EffectTable.build(
            tuple(sources),
            {
                condition: {
                    effect: {item: value for item, value in values.items() if item in wanted}
                    for effect, values in self.effects(condition).items()
                }
                for condition in self.conditions
            },
            tuple(sources.values()) if shared else None,
        )


def measure(outcomes: pa.Table) -> Measured:
    """Gather a cell's outcomes.

    Parameters
    ----------
    outcomes
        Table of the declared schema, in key order. Repeats are averaged first, then the assignments of wordings.
    """
    columns = ["item_id", "group_id", "condition", "arrangement_index", "arrangement", "outcome", "rule", "option_id"]
    rows = outcomes.select([*columns, "slot_logprobs", "label_mass", "candidates"]).to_pylist()
    published = all(row["rule"] in RULES for row in rows)
    scale: Scale = "nats" if all(row["rule"] in MEASURED for row in rows) else "probability"
    present = {row["condition"] for row in rows}
    conditions = tuple(name for name in CONDITIONS if name in present)
    groups = {row["item_id"]: row["group_id"] for row in rows}
    calls: dict[tuple[str, str], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        calls[row["condition"], row["item_id"]][row["arrangement_index"]].append(row)
    cells: dict[str, dict[str, Quad]] = {name: {} for name in conditions}
    missing: dict[str, dict[str, str]] = {name: {} for name in conditions}
    usable: dict[str, dict[str, int]] = {name: {} for name in conditions}
    for condition in conditions:
        places = len(CELLS) * (1 if published else len(CONDITIONS[condition].assignments))
        for item in groups:
            asked = calls[condition, item]
            values = [[v for row in asked[place] if (v := _value(row, scale)) is not None] for place in range(places)]
            usable[condition][item] = sum(map(len, values))
            if all(values):
                means = [fmean(entries) for entries in values]
                cells[condition][item] = tuple(fmean(means[cell :: len(CELLS)]) for cell in range(len(CELLS)))
            else:
                missing[condition][item] = _why(row for entries in asked.values() for row in entries)
    return Measured(
        scale,
        conditions,
        groups,
        cells,
        missing,
        _statuses(rows, conditions),
        usable,
        _mass(rows, conditions),
        published,
        _marked(rows) if published else None,
    )


def _value(row: Row, scale: Scale) -> float | None:
    """Return how far a call leans to answer B, whose option is the item's second one."""
    if row["outcome"] != "ok":
        return None
    if scale == "probability":
        return None if row["option_id"] is None else (0.5 if row["option_id"] == "o2" else -0.5)
    if row["rule"] in RULES:
        return float(row["candidates"][0])
    b = row["arrangement"].index("o2")
    found: Sequence[float] = row["slot_logprobs"]
    return float(found[b] - found[1 - b])


def _marked(rows: Iterable[Row]) -> dict[str, bool] | None:
    found = {row["item_id"]: row["rule"] for row in rows}
    return None if RULE in found.values() else {item: rule == KEPT_RULE for item, rule in found.items()}


def _why(rows: Iterable[Row]) -> str:
    counts = Counter(row["outcome"] for row in rows)
    if not counts:
        return "not in the file"
    failed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(counts.items()) if name != "ok")
    return f"{failed or 'calls missing'} of {counts.total()} calls"


def _statuses(rows: Iterable[Row], conditions: Iterable[str]) -> dict[str, dict[str, Counter[str]]]:
    found: dict[str, dict[str, Counter[str]]] = {name: {cell: Counter() for cell in CELLS} for name in conditions}
    for row in rows:
        found[row["condition"]][CELLS[row["arrangement_index"] % len(CELLS)]][row["outcome"]] += 1
    return found


def _mass(rows: Iterable[Row], conditions: Iterable[str]) -> dict[str, float | None]:
    values: dict[str, list[float]] = {name: [] for name in conditions}
    for row in rows:
        if row["label_mass"] is not None:
            values[row["condition"]].append(row["label_mass"])
    return {name: fmean(found) if found else None for name, found in values.items()}
