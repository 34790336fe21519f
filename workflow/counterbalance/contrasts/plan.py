"""Loading a file of contrasts: strictly read, parsed, every name and definition checked before any data is touched."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
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
from counterbalance.contrasts.words import CROSSING, Words, with_hint
from counterbalance.errors import ConfigError

_HINTS = {
    "extra_forbidden": "no such key; the keys are listed in docs/contrasts.md",
    "missing": "this key is needed; see docs/contrasts.md",
    "string_type": "expected text; put it in quotes if it is meant as text",
    "string_pattern_mismatch": "expected a letter or '_', then letters, digits or '_' (at most 64)",
    "int_type": "expected a whole number without quotes",
    "float_type": "expected a number without quotes",
    "bool_type": "expected true or false",
    "greater_than": "expected a number greater than {gt}, such as 0.15",
    "greater_than_equal": "expected a number that is at least {ge}",
    "finite_number": "expected a finite number, such as 0.15",
    "literal_error": "expected {expected}",
    "too_short": "expected at least 1 item, such as {{id: A1, expression: T1c.serial - T1.serial, status: legacy}}",
    "list_type": "expected a list",
    "dict_type": "expected keys with values",
    "model_type": "expected keys with values; see docs/contrasts.md",
    "model_attributes_type": "expected keys with values; see docs/contrasts.md",
    "string_too_short": "expected a name of at least 1 letter",
    "string_too_long": "expected a name of at most {max_length} letters",
}
"""What is said in place of pydantic's words, filled with what the type of the problem knows."""
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
    words
        Those of the design, for messages.
    """

    source: str
    file: ContrastFile
    contrasts: tuple[PlannedContrast, ...]
    order: tuple[str, ...]
    words: Words = CROSSING


def load_contrasts(path: Path, *, effects: Sequence[str], conditions: Collection[str] | None = None) -> ContrastPlan:
    """Read and check a file of contrasts.

    Parameters
    ----------
    path
        YAML in UTF-8; its form is in docs/contrasts.md.
    effects
        Names of the effects that the design has.
    conditions
        Those that the data have: a file that does not declare its own can name no other. None: any.

    Raises
    ------
    ConfigError
        With file, line and contrast of everything that is wrong: unknown keys, effects, conditions and contrasts,
        ids given twice, circular definitions, expressions that cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); {_WHERE_TO_START}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8: {error}; save it as UTF-8") from error
    if not text.strip():
        raise ConfigError(f"{path}: the file is empty; {_WHERE_TO_START}")
    value, lines = parse_yaml(text, source=str(path))
    plan = plan_contrasts(value, lines, source=str(path), effects=effects)
    if conditions is not None and plan.file.conditions is None:
        _check_conditions(plan, _places(plan.file, str(path), lines), conditions)
    return plan


def plan_contrasts(
    value: Any,
    lines: Mapping[tuple[str | int, ...], int],
    *,
    source: str,
    effects: Sequence[str],
    conditions: Collection[str] | None = None,
    words: Words = CROSSING,
) -> ContrastPlan:
    """Check the content of a file of contrasts, as `parse_yaml` returns it; see `load_contrasts`.

    Parameters
    ----------
    conditions
        Those that the design has; None where the data decide.
    words
        What messages call conditions and effects.
    """
    try:
        file = ContrastFile.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise ConfigError(_explain(error, source, value, lines)) from None
    places = _places(file, source, lines)
    pair = find_collision([entry.id for entry in file.contrasts])
    if pair:
        raise ConfigError(f"{places[pair[1]]}: the ids {pair[0]!r} and {pair[1]!r} are the same; rename one of them")
    trees = _parse(file, places, words)
    known = _Known(file.conditions, conditions, effects, words)
    problems = list(_unknown_names(trees, places, known))
    if problems:
        raise ConfigError("\n".join(problems))
    order = _order(trees, places, words)
    used = _conditions(trees, order)
    planned = tuple(
        PlannedContrast(entry, trees[entry.id], used[entry.id], entry.bound or file.bound) for entry in file.contrasts
    )
    return ContrastPlan(source, file, planned, order, words)


def _places(file: ContrastFile, source: str, lines: Mapping[tuple[str | int, ...], int]) -> dict[str, str]:
    found = {entry.id: lines.get(("contrasts", index, "expression")) for index, entry in enumerate(file.contrasts)}
    # Without lines the source is a key of a study, into which the file was read.
    return {name: f"{source}{f' line {line}' if line else ''}, contrast {name}" for name, line in found.items()}


def _check_conditions(plan: ContrastPlan, places: Mapping[str, str], conditions: Collection[str]) -> None:
    """Refuse conditions that are neither in the data nor declared: such a name is more likely misspelt than absent."""
    absent = [
        f"{places[entry.id]}, column {node.column}: no condition {node.condition!r} in the data, which have "
        f"{with_hint(node.condition, conditions)}"
        for entry in plan.contrasts
        for node in walk(entry.tree)
        if isinstance(node, Effect) and node.condition not in conditions
    ]
    if absent:
        advice = "correct the name, or list under `conditions` all that such data may have (docs/contrasts.md)"
        raise ConfigError("\n".join([*absent, advice]))


def references(tree: Node) -> list[Reference]:
    """Return the references to other contrasts in an expression, left to right."""
    return [node for node in walk(tree) if isinstance(node, Reference)]


@dataclass(frozen=True)
class _Known:
    """What expressions may name: conditions by the file's own list and by the design's, and effects."""

    declared: Collection[str] | None
    conditions: Collection[str] | None
    effects: Collection[str]
    words: Words

    def fault(self, node: Effect) -> str | None:
        """Say what is wrong with an operand, None if nothing is."""
        words = self.words
        if self.conditions is not None and node.condition not in self.conditions:
            listed = with_hint(node.condition, self.conditions)
            return f"no {words.first} {node.condition!r}; there are {listed}"
        if self.declared is not None and node.condition not in self.declared:
            listed = with_hint(node.condition, self.declared)
            return f"no {words.first} {node.condition!r}; `conditions` has {listed}"
        if node.effect not in self.effects:
            return f"no {words.second} {node.effect!r}; there are {with_hint(node.effect, self.effects, words.seconds)}"
        return None


def _parse(file: ContrastFile, places: Mapping[str, str], words: Words) -> dict[str, Node]:
    trees, problems = {}, []
    for entry in file.contrasts:
        try:
            trees[entry.id] = parse_expression(entry.expression, words)
        except ExpressionError as error:
            problems.append(f"{places[entry.id]}, {error}\n  {entry.expression}")
    if problems:
        raise ConfigError("\n".join(problems))
    return trees


def _unknown_names(trees: Mapping[str, Node], places: Mapping[str, str], known: _Known) -> Iterator[str]:
    ratios = {name for name, tree in trees.items() if isinstance(tree, Operation) and tree.is_ratio}
    words = known.words
    for name, tree in trees.items():
        for node in walk(tree):
            fault = None
            if isinstance(node, Effect):
                fault = known.fault(node)
            elif isinstance(node, Reference) and node.name not in trees:
                form = f"{words.operands} are written as {words.first}.{words.second}, such as {words.example}"
                fault = f"no contrast {node.name!r}; there are {with_hint(node.name, trees)}; {form}"
            elif isinstance(node, Reference) and node.name in ratios:
                fault = f"contrast {node.name!r} is a ratio; a ratio cannot be part of another contrast"
            if fault is not None and isinstance(node, Effect | Reference):
                yield f"{places[name]}, column {node.column}: {fault}"


def _order(trees: Mapping[str, Node], places: Mapping[str, str], words: Words) -> tuple[str, ...]:
    graph = {name: {reference.name for reference in references(tree)} for name, tree in trees.items()}
    try:
        return tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        # graphlib lists each node before the one that needs it; read backwards it is "is defined by".
        cycle = list(reversed(error.args[1]))
        raise ConfigError(
            f"{places[cycle[0]]}: circular definition {' -> '.join(cycle)}; write one of them out in {words.operands}"
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
        hint = _HINTS.get(problem["type"])
        text = hint.format(**problem.get("ctx", {})) if hint else problem["msg"].removeprefix("Value error, ")
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
