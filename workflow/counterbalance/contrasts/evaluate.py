"""From a plan and a table of effects to one value per item for every contrast."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from counterbalance.contrasts.grammar import (
    Absolute,
    Effect,
    Mean,
    Negative,
    Node,
    Number,
    Operation,
    Reference,
    pooled_arms,
    to_text,
    walk,
)
from counterbalance.contrasts.plan import ContrastPlan, PlannedContrast
from counterbalance.contrasts.table import EffectTable, Flags
from counterbalance.contrasts.words import Words
from counterbalance.stats.counts import Array

_LARGEST = 1e90
"""Beyond this, sums of squares and cubes would overflow."""


@dataclass(frozen=True)
class Pool:
    """Two arms that a contrast pools, and their difference item by item, shape (items,)."""

    arms: tuple[str, str]
    difference: Array


@dataclass(frozen=True)
class Evaluated:
    """One contrast on its common item set.

    Attributes
    ----------
    values
        One value for each item that all its conditions have, in the table's order; None where it cannot be evaluated.
    reason
        Why it cannot be.
    sides
        Of a ratio: numerator and denominator for each item.
    pools
        The pairs of arms under its means, those of contrasts it refers to included.
    common
        Which of the table's items these are; None where a condition is not in the data.
    """

    planned: PlannedContrast
    values: Array | None = None
    reason: str | None = None
    sides: tuple[Array, Array] | None = None
    pools: tuple[Pool, ...] = ()
    common: Flags | None = None


def evaluate(plan: ContrastPlan, table: EffectTable) -> list[Evaluated]:
    """Evaluate every contrast of a plan, in the file's order.

    A contrast whose conditions or effects are not in the table is returned with the reason; the others are evaluated.
    """
    by_id = {entry.id: entry for entry in plan.contrasts}
    trees = {name: entry.tree for name, entry in by_id.items()}
    values: dict[str, Array] = {}
    found: dict[str, Evaluated] = {}
    for name in plan.order:
        planned = by_id[name]
        reason = _why_not(planned, trees, table, plan.words)
        if reason is not None:
            found[name] = Evaluated(planned, reason=reason)
            continue
        if not planned.is_ratio:
            values[name] = _value(planned.tree, table, values)
        found[name] = _on_common_items(planned, trees, table, values)
    return [found[entry.id] for entry in plan.contrasts]


def _why_not(planned: PlannedContrast, trees: Mapping[str, Node], table: EffectTable, words: Words) -> str | None:
    absent = [name for name in planned.conditions if name not in table.effects]
    if absent:
        kind = words.first if len(absent) == 1 else words.firsts
        has = ", ".join(table.effects) or "none"
        return f"{kind} {', '.join(absent)} not in the data, which have {has}"
    for node in _through(planned.tree, trees):
        if isinstance(node, Effect) and node.effect not in table.effects[node.condition]:
            has = ", ".join(table.effects[node.condition]) or "none"
            return f"{words.second} {node.condition}.{node.effect} not in the data, which have {has}"
    return None


def _on_common_items(
    planned: PlannedContrast, trees: Mapping[str, Node], table: EffectTable, values: Mapping[str, Array]
) -> Evaluated:
    common: Flags = np.logical_and.reduce([table.present[name] for name in planned.conditions])
    pools = tuple(
        Pool((to_text(first), to_text(second)), (_value(first, table, values) - _value(second, table, values))[common])
        for node in _through(planned.tree, trees)
        for first, second in combinations(pooled_arms(node), 2)
    )
    tree = planned.tree
    if not (isinstance(tree, Operation) and tree.is_ratio):
        return _within_range(Evaluated(planned, values[planned.id][common], pools=pools, common=common))
    above, below = (_value(side, table, values)[common] for side in (tree.left, tree.right))
    if (below == 0).any():
        shared = [item for item, has in zip(table.items, common, strict=True) if has]
        zero = [item for item, none in zip(shared, below == 0, strict=True) if none]
        reason = f"the denominator is 0 for item {zero[0]!r}" + (f" and {len(zero) - 1} more" if zero[1:] else "")
        return _within_range(Evaluated(planned, reason=reason, sides=(above, below), pools=pools, common=common))
    with np.errstate(over="ignore"):
        ratio = above / below
    return _within_range(Evaluated(planned, ratio, sides=(above, below), pools=pools, common=common))


def _within_range(found: Evaluated) -> Evaluated:
    rows = [found.values, *(found.sides or ()), *(pool.difference for pool in found.pools)]
    # The comparison is false for NaN too, which an overflow may leave.
    if all(np.abs(row).max(initial=0.0) <= _LARGEST for row in rows if row is not None):
        return found
    return Evaluated(found.planned, reason=f"values beyond {_LARGEST:g}: too large to be averaged")


def _through(tree: Node, trees: Mapping[str, Node]) -> Iterator[Node]:
    """Walk an expression and those of the contrasts that it refers to, each once."""
    waiting, seen = [tree], set[str]()
    while waiting:
        for node in walk(waiting.pop()):
            yield node
            if isinstance(node, Reference) and node.name not in seen:
                seen.add(node.name)
                waiting.append(trees[node.name])


def _value(node: Node, table: EffectTable, values: Mapping[str, Array]) -> Array:
    match node:
        case Number(value):
            return np.full(len(table.items), value)
        case Effect(condition, effect, _):
            return table.effects[condition][effect]
        case Reference(name, _):
            return values[name]
        case Negative(of):
            return -_value(of, table, values)
        case Absolute(of):
            return np.abs(_value(of, table, values))
        case Mean(arms):
            return np.asarray(np.mean([_value(arm, table, values) for arm in arms], axis=0))
        case Operation(sign, left, right, _):
            return _operate(sign, _value(left, table, values), _value(right, table, values))


def _operate(sign: str, left: Array, right: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):  # the range is checked on the whole
        if sign == "+":
            return left + right
        if sign == "-":
            return left - right
        return left * right if sign == "*" else left / right
