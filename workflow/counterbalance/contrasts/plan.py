"""Loading a file of contrasts: strictly read, parsed, every name and definition checked before any data is touched."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from counterbalance.config.contrasts import Contrast, ContrastFile
from counterbalance.config.names import find_collision
from counterbalance.config.yaml import parse_yaml
from counterbalance.contrasts.grammar import (
    Effect,
    ExpressionError,
    Node,
    Operation,
    Reference,
    parse_expression,
    walk,
)
from counterbalance.errors import ConfigError

_HINTS = {
    "extra_forbidden": "no such key; the keys are listed in docs/contrasts.md",
    "missing": "this key is needed; see docs/contrasts.md",
    "string_type": "expected text; put it in quotes if it is meant as text",
    "string_pattern_mismatch": "expected a letter or '_', then letters, digits or '_' (at most 64)",
    "int_type": "expected a whole number without quotes",
    "float_type": "expected a number without quotes",
    "bool_type": "expected true or false",
}
_WHERE_TO_START = "start from config/contrasts/ad_series.yaml"


@dataclass(frozen=True)
class PlannedContrast:
    """One checked contrast.

    Attributes
    ----------
    contrast
        As written.
    tree
        Its parsed expression.
    conditions
        Conditions that it rests on, through other contrasts too.
    bound
        Bound of its equivalence test.
    """

    contrast: Contrast
    tree: Node
    conditions: tuple[str, ...]
    bound: float

    @property
    def id(self) -> str:
        return self.contrast.id

    @property
    def is_ratio(self) -> bool:
        return isinstance(self.tree, Operation) and self.tree.is_ratio


@dataclass(frozen=True)
class ContrastPlan:
    """A checked file of contrasts.

    Attributes
    ----------
    source
        Name of the file, for messages.
    file
        As written.
    contrasts
        In the file's order.
    order
        Ids in an order in which every contrast follows those that it refers to.
    """

    source: str
    file: ContrastFile
    contrasts: tuple[PlannedContrast, ...]
    order: tuple[str, ...]


def load_contrasts(path: Path, *, effects: Sequence[str]) -> ContrastPlan:
    """Read and check a file of contrasts.

    Parameters
    ----------
    path
        YAML in UTF-8; its form is in docs/contrasts.md.
    effects
        Names of the effects that the design has.

    Raises
    ------
    ConfigError
        With file, line and contrast of everything that is wrong: unknown keys, effects, conditions and contrasts,
        ids given twice, circular definitions, expressions that cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as a file of contrasts in UTF-8: {error}") from error
    if not text.strip():
        raise ConfigError(f"{path}: the file is empty; {_WHERE_TO_START}")
    return plan_contrasts(*parse_yaml(text, source=str(path)), source=str(path), effects=effects)


def plan_contrasts(
    value: Any, lines: Mapping[tuple[str | int, ...], int], *, source: str, effects: Sequence[str]
) -> ContrastPlan:
    """Check the content of a file of contrasts, as `parse_yaml` returns it; see `load_contrasts`."""
    try:
        file = ContrastFile.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise ConfigError(_explain(error, source, value, lines)) from None
    found = {entry.id: lines.get(("contrasts", index, "expression")) for index, entry in enumerate(file.contrasts)}
    # Without lines the source is a key of a study, into which the file was read.
    places = {name: f"{source}{f' line {line}' if line else ''}, contrast {name}" for name, line in found.items()}
    pair = find_collision([entry.id for entry in file.contrasts])
    if pair:
        raise ConfigError(f"{places[pair[1]]}: the ids {pair[0]!r} and {pair[1]!r} are the same; rename one of them")
    trees = _parse(file, places)
    problems = _unknown_names(file, trees, places, effects)
    if problems:
        raise ConfigError("\n".join(problems))
    order = _order(trees, places)
    conditions = _conditions(trees, order)
    planned = tuple(
        PlannedContrast(entry, trees[entry.id], conditions[entry.id], entry.bound or file.bound)
        for entry in file.contrasts
    )
    return ContrastPlan(source, file, planned, order)


def references(tree: Node) -> list[Reference]:
    """Return the references to other contrasts in an expression, left to right."""
    return [node for node in walk(tree) if isinstance(node, Reference)]


def _parse(file: ContrastFile, places: Mapping[str, str]) -> dict[str, Node]:
    trees, problems = {}, []
    for entry in file.contrasts:
        try:
            trees[entry.id] = parse_expression(entry.expression)
        except ExpressionError as error:
            problems.append(f"{places[entry.id]}, {error}\n  {entry.expression}")
    if problems:
        raise ConfigError("\n".join(problems))
    return trees


def _unknown_names(
    file: ContrastFile, trees: Mapping[str, Node], places: Mapping[str, str], effects: Sequence[str]
) -> list[str]:
    ratios = {name for name, tree in trees.items() if isinstance(tree, Operation) and tree.is_ratio}
    problems = []
    for name, tree in trees.items():
        for node in walk(tree):
            fault = None
            if isinstance(node, Effect):
                if file.conditions is not None and node.condition not in file.conditions:
                    fault = (
                        f"no condition {node.condition!r}; `conditions` has {_known(node.condition, file.conditions)}"
                    )
                elif node.effect not in effects:
                    fault = f"no effect {node.effect!r}; there are {_known(node.effect, effects)}"
            elif isinstance(node, Reference):
                if node.name not in trees:
                    fault = (
                        f"no contrast {node.name!r}; there are {_known(node.name, trees)}. An effect is written as "
                        "condition.effect, such as T1.serial"
                    )
                elif node.name in ratios:
                    fault = f"contrast {node.name!r} is a ratio; a ratio cannot be part of another contrast"
            if fault is not None and isinstance(node, Effect | Reference):
                problems.append(f"{places[name]}, column {node.column}: {fault}")
    return problems


def _known(name: str, names: Iterable[str]) -> str:
    listed = list(names)
    close = difflib.get_close_matches(name, listed, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return ", ".join(listed) + hint


def _order(trees: Mapping[str, Node], places: Mapping[str, str]) -> tuple[str, ...]:
    graph = {name: {reference.name for reference in references(tree)} for name, tree in trees.items()}
    try:
        return tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        # graphlib lists each node before the one that needs it; read backwards it is "is defined by".
        cycle = list(reversed(error.args[1]))
        raise ConfigError(
            f"{places[cycle[0]]}: circular definition {' -> '.join(cycle)}; write one of them out in effects"
        ) from None


def _conditions(trees: Mapping[str, Node], order: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in order:
        used: dict[str, None] = {}
        for node in walk(trees[name]):
            if isinstance(node, Effect):
                used[node.condition] = None
            elif isinstance(node, Reference):
                used |= dict.fromkeys(found[node.name])
        found[name] = tuple(used)
    return found


def _explain(error: ValidationError, source: str, value: Any, lines: Mapping[tuple[str | int, ...], int]) -> str:
    messages = []
    for problem in error.errors():
        location = problem["loc"]
        known = max((location[:n] for n in range(len(location) + 1) if location[:n] in lines), key=len, default=())
        text = _HINTS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
        given = "" if problem["type"] in {"missing", "value_error"} else f" (found {problem['input']!r})"
        key = ".".join(str(part) for part in location) or "(whole file)"
        messages.append(f"{source} line {lines.get(known, 1)}, {_contrast_of(location, value)}key {key}: {text}{given}")
    return "\n".join(messages)


def _contrast_of(location: Sequence[str | int], value: Any) -> str:
    if len(location) > 1 and location[0] == "contrasts" and isinstance(location[1], int):
        entry = value["contrasts"][location[1]]
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            return f"contrast {entry['id']}, "
    return ""
