"""A strict reader of YAML: one meaning for every scalar, no key twice, a line number for every complaint."""

import re
from pathlib import Path
from typing import Any

import yaml

from counterbalance.errors import ConfigError
from counterbalance.keys import redact

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_REAL = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


def parse_yaml(text: str, *, source: str) -> tuple[Any, dict[tuple[str | int, ...], int]]:
    """Parse one YAML document.

    Parameters
    ----------
    text
        The document.
    source
        Its name, for messages.

    Returns
    -------
    value
        Dicts, lists, strings, integers, reals, booleans, None.
    lines
        Line number (from 1) of every key path.

    Raises
    ------
    ConfigError
        For broken syntax, a key given twice, an anchor or tag, and a bare word that YAML readers take differently
        (`no`, `007`, `2026_01`, `12:30`, a date). What looks like a secret key is not repeated.
    """
    trouble: ConfigError | None = None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        trouble = _syntax_error(error, source)
    # Not raised above: the parser's own error quotes the file, and would be shown with a traceback.
    if trouble is not None:
        raise trouble
    if node is None:
        raise ConfigError(f"{source}: the file is empty; start from config/studies/demo.yaml")
    lines: dict[tuple[str | int, ...], int] = {}
    return _build(node, (), lines, source), lines


def read_yaml(path: Path) -> tuple[Any, dict[tuple[str | int, ...], int]]:
    """Parse a YAML file (UTF-8); see `parse_yaml`."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file; give the path of a study file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 ({error}); save it as UTF-8") from error
    return parse_yaml(text, source=str(path))


def _syntax_error(error: yaml.YAMLError, source: str) -> ConfigError:
    """Say what is wrong and where, without the parser's excerpt: there may be part of a secret key in it."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return ConfigError(redact(f"{source}: not valid YAML: {error}"))
    mark = error.problem_mark
    what = ", ".join(part for part in (error.context, error.problem) if part)
    return ConfigError(
        f"{source} line {mark.line + 1}, column {mark.column + 1}: not valid YAML: {redact(what)}; look for a missing "
        "quote, colon or bracket, or a wrong indentation, there or just above"
    )


def _build(node: yaml.Node, at: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int], source: str) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(at, line)
    if isinstance(node, yaml.MappingNode):
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node, source)
            where = f"{source} line {key_node.start_mark.line + 1}"
            if not isinstance(key, str):
                raise ConfigError(f"{where}: key {key!r} is not text; keys are words")
            if key in result:
                raise ConfigError(f"{where}: key {redact(repr(key))} is there twice; keep one")
            lines[(*at, key)] = key_node.start_mark.line + 1
            result[key] = _build(value_node, (*at, key), lines, source)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, (*at, index), lines, source) for index, child in enumerate(node.value)]
    return _scalar(node, source)


def _scalar(node: yaml.Node, source: str) -> Any:
    where = f"{source} line {node.start_mark.line + 1}"
    if not isinstance(node, yaml.ScalarNode):
        raise ConfigError(f"{where}: a key must be a word, not a list or mapping")
    text: str = node.value
    if node.style is not None:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    if node.tag != "tag:yaml.org,2002:str":
        kind = node.tag.rsplit(":", 1)[-1]
        quoted = redact(repr(text))
        raise ConfigError(
            f"{where}: {quoted} is read as {kind} by some YAML readers and as text by others; "
            f"write {quoted} in quotes if it is text, or as a plain number, true, false or null if it is not"
        )
    return text
