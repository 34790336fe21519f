"""Reading a preregistration: a person's markdown with one block of predictions that a program can judge."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from counterbalance.config import Study
from counterbalance.config.names import find_collision
from counterbalance.config.yaml import parse_yaml
from counterbalance.designs import get_design
from counterbalance.errors import ConfigError, InputError
from counterbalance.prereg.predictions import PREDICTIONS, Comparison, Prediction, Target

INFO = "yaml predictions"
_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>.*)")
_HINTS = {
    "extra_forbidden": "no such key for this rule; see docs/preregistration.md",
    "missing": "this key is needed; see docs/preregistration.md",
    "union_tag_not_found": "`rule` is needed; the rules are listed in docs/preregistration.md",
    "string_type": "expected text; put it in quotes if it is meant as text",
    "float_type": "expected a number without quotes",
    "string_pattern_mismatch": "expected a word without spaces",
}
_Lines = dict[tuple[str | int, ...], int]


@dataclass(frozen=True)
class Plan:
    """A preregistration as read: its file, its bytes, and the predictions in the order written."""

    path: Path
    data: bytes
    predictions: tuple[Prediction, ...]


def load_plan(study: Study) -> Plan | None:
    """Read a study's preregistration and check every prediction against the study.

    Returns
    -------
    Plan or None
        None for a study that declares itself exploratory (`preregistration: null`).

    Raises
    ------
    ConfigError
        With file, line, prediction and what to do.
    """
    if study.config.preregistration is None:
        return None
    path = study.root / study.config.preregistration
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigError(
            f"{study.config.preregistration}: the preregistration that {study.path.name} names is not there; "
            "write it, or set `preregistration: null` to stamp the study exploratory"
        ) from error
    return Plan(path, data, parse_plan(data, study, source=study.config.preregistration))


def load_predictions(study: Study) -> tuple[Prediction, ...]:
    """Return the study's predictions; none for an exploratory study."""
    plan = load_plan(study)
    return () if plan is None else plan.predictions


def parse_plan(data: bytes, study: Study, *, source: str) -> tuple[Prediction, ...]:
    """Parse the predictions of a preregistration's text and check them against the study."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: not UTF-8 ({error}); save it as UTF-8") from error
    start, block = _find_block(text, source)
    if not block.strip():
        raise ConfigError(f"{source} line {start}: the block of predictions is empty; write [] if there are none")
    # Blank lines in front keep the numbers of the lines those of the file.
    value, lines = parse_yaml("\n" * start + block, source=source)
    if not isinstance(value, list):
        raise ConfigError(f"{source} line {start + 1}: expected a list of predictions, each starting with '- '")
    try:
        predictions = PREDICTIONS.validate_json(json.dumps(value))
    except ValidationError as error:
        raise ConfigError(_explain(error, value, lines, source)) from None
    problems = list(_misfits(predictions, study, lines, source))
    if problems:
        raise ConfigError("\n".join(problems))
    return predictions


def _find_block(text: str, source: str) -> tuple[int, str]:
    """Return the line of the opening fence (from 1) and the text of the one block of predictions."""
    found = []
    for line, info, block in _fenced(text, source):
        if info == INFO:
            found.append((line, block))
        elif "prediction" in info.lower():
            raise ConfigError(f"{source} line {line}: ```{info} is not read as predictions; write ```{INFO}")
    if len(found) != 1:
        where = ", ".join(str(line) for line, _ in found)
        count = f"{len(found)} blocks (lines {where})" if found else "no block"
        raise ConfigError(f"{source}: {count} of predictions found; exactly one is needed, opened by ```{INFO}")
    return found[0]


def _fenced(text: str, source: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, info string and content of every fenced block; a fence inside another block is content."""
    opened: tuple[int, str, str] | None = None
    content: list[str] = []
    # Only these two end a line in markdown; splitlines() knows more.
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        match = _FENCE.fullmatch(line)
        if opened is None:
            if match and not (match["mark"][0] == "`" and "`" in match["info"]):
                opened, content = (number, match["mark"], match["info"].strip()), []
        elif match and match["mark"].startswith(opened[1]) and not match["info"].strip():
            yield opened[0], opened[2], "\n".join(content)
            opened = None
        else:
            content.append(line)
    if opened is not None and "prediction" in opened[2].lower():
        raise ConfigError(f"{source} line {opened[0]}: the block of predictions is never closed; end it with ```")


def _explain(error: ValidationError, value: Sequence[Any], lines: _Lines, source: str) -> str:
    messages = []
    for problem in error.errors():
        index, *rest = problem["loc"]
        # The union's branch is named by the rule; it is no key of the file.
        keys = tuple(part for position, part in enumerate(rest) if position or part != _rule(value[int(index)]))
        known: tuple[str | int, ...] = (index,)
        for part in keys:
            known = (*known, part) if (*known, part) in lines else known
        text = _HINTS.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
        given = "" if problem["type"] in {"missing", "value_error"} else f" (found {problem['input']!r})"
        key = f", key {'.'.join(map(str, keys))}" if keys else ""
        messages.append(f"{source} line {lines[known]}, {_title(value[int(index)], int(index))}{key}: {text}{given}")
    return "\n".join(messages)


def _rule(entry: Any) -> Any:
    return entry.get("rule") if isinstance(entry, dict) else None


def _title(entry: Any, index: int) -> str:
    return f"prediction {entry['id']}" if isinstance(entry, dict) and "id" in entry else f"prediction {index + 1}"


def _misfits(predictions: Sequence[Prediction], study: Study, lines: _Lines, source: str) -> Iterator[str]:
    pair = find_collision([entry.id for entry in predictions])
    if pair:
        line = lines[max(i for i, entry in enumerate(predictions) if entry.id in pair), "id"]
        yield f"{source} line {line}: ids {pair[0]!r} and {pair[1]!r} are the same to a reader; rename one of them"
    for index, entry in enumerate(predictions):
        targets: list[tuple[tuple[str, ...], Target]] = [((), entry)]
        if isinstance(entry, Comparison):
            targets.append((("than",), entry.than))
        for place, target in targets:
            for key, why in _unknown(target, study):
                line = lines[(index, *place, key)]
                yield f"{source} line {line}, prediction {entry.id}, key {'.'.join((*place, key))}: {why}"


def _unknown(target: Target, study: Study) -> Iterator[tuple[str, str]]:
    experiments = {entry.id: entry for entry in study.config.experiments}
    if target.experiment not in experiments:
        yield "experiment", f"{target.experiment!r} is not in the study; there are {', '.join(experiments)}"
        return
    experiment = experiments[target.experiment]
    for key, given, known in (
        ("model", target.model, experiment.models),
        ("subset", target.subset, experiment.datasets),
    ):
        if given not in known:
            yield key, f"{given!r} is not in experiment {experiment.id}; there are {', '.join(known)}"
    design = get_design(experiment.design)
    try:
        design.describe(target.quantity)
    except InputError as error:
        yield "quantity", str(error)
        return
    if (reason := design.unplanned(study, experiment, target.quantity)) is not None:
        yield "quantity", reason
