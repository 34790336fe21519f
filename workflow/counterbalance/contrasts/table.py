"""Effects of items in conditions: what every contrast is evaluated on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError
from counterbalance.stats.counts import Array

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class EffectTable:
    """Per-item effects by condition.

    Attributes
    ----------
    items
        In the order that a seed reproduces.
    effects
        By condition and effect, shape (items,). What stands where an item is absent has no meaning.
    present
        By condition, which items it has.
    units
        Name of the source of each item, where some share one: such items are one unit of all intervals and tests. None:
        every item is its own.
    """

    items: tuple[str, ...]
    effects: Mapping[str, Mapping[str, Array]]
    present: Mapping[str, Flags]
    units: tuple[str, ...] | None = None

    @classmethod
    def build(
        cls,
        items: Sequence[str],
        by_condition: Mapping[str, Mapping[str, Mapping[str, float]]],
        units: Sequence[str] | None = None,
    ) -> "EffectTable":
        """Build a table from values by condition, effect and item.

        Raises
        ------
        InputError
            For an item listed twice or unknown, for a number that is not finite, and for effects of one condition
            that do not have the same items; unless there is one unit for each item.
        """
        if units is not None and len(units) != len(items):
            raise InputError(f"effects: {len(units)} units for {len(items)} items; expected one for each item")
        place = {item: index for index, item in enumerate(items)}
        if len(place) != len(items):
            raise InputError("effects: an item is listed twice; expected every item once")
        effects: dict[str, dict[str, Array]] = {}
        present: dict[str, Flags] = {}
        for condition, by_effect in by_condition.items():
            here: Flags | None = None
            effects[condition] = {}
            for effect, values in by_effect.items():
                row, has = _row(f"{condition}.{effect}", values, place)
                if here is not None and (here != has).any():
                    raise InputError(f"{condition}.{effect}: has other items than the condition's other effects")
                here = has
                effects[condition][effect] = row
            present[condition] = np.zeros(len(items), dtype=bool) if here is None else here
        return cls(tuple(items), effects, present, None if units is None else tuple(units))

    def subset(self, keep: Flags) -> "EffectTable":
        """Return the table of some of the items, in the same order."""
        return EffectTable(
            tuple(item for item, kept in zip(self.items, keep, strict=True) if kept),
            {name: {key: row[keep] for key, row in rows.items()} for name, rows in self.effects.items()},
            {name: row[keep] for name, row in self.present.items()},
            None if self.units is None else tuple(np.array(self.units, dtype=object)[keep]),
        )

    def by_unit(self, values: Array, common: Flags) -> tuple[Array, Array | None]:
        """Return the means of the units of some items, in order of appearance, and how many items each holds.

        Parameters
        ----------
        values
            One for each item in `common`.
        common
            Which items these are, shape (items,).
        """
        if self.units is None:
            return values, None
        names = [unit for unit, has in zip(self.units, common, strict=True) if has]
        place = {name: index for index, name in enumerate(dict.fromkeys(names))}
        codes = np.array([place[name] for name in names], dtype=np.intp)
        sizes = np.bincount(codes, minlength=len(place)).astype(np.float64)
        return np.bincount(codes, weights=values, minlength=len(place)) / np.maximum(sizes, 1), sizes


def _row(name: str, values: Mapping[str, float], place: Mapping[str, int]) -> tuple[Array, Flags]:
    row, has = np.zeros(len(place)), np.zeros(len(place), dtype=bool)
    for item, value in values.items():
        if item not in place:
            raise InputError(f"{name}: item {item!r} is not among the table's items")
        if not np.isfinite(value):
            raise InputError(f"{name}, item {item!r}: found {value}; expected a finite number, or no entry at all")
        row[place[item]], has[place[item]] = value, True
    return row, has
