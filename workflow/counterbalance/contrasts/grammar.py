"""The language of contrasts: text to a tree, with the column of whatever is wrong."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from counterbalance.contrasts.words import CROSSING, Words
from counterbalance.errors import ConfigError

MAX_LENGTH = 1000
_MAX_DEPTH = 40

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |"(?P<quoted>[^"]+)"
    |(?P<sign>[-+*/(),.]))""",
    re.VERBOSE,
)


class ExpressionError(ConfigError):
    """An expression cannot be read; `column` counts from 1."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(f"column {column}: {message}")
        self.column = column


@dataclass(frozen=True)
class Number:
    """A plain number."""

    value: float


@dataclass(frozen=True)
class Effect:
    """An effect of one condition, one value for each item."""

    condition: str
    effect: str
    column: int


@dataclass(frozen=True)
class Reference:
    """Another contrast, by its id."""

    name: str
    column: int


@dataclass(frozen=True)
class Negative:
    """The negative, item by item."""

    of: "Node"


@dataclass(frozen=True)
class Absolute:
    """The absolute value, item by item: never that of the mean."""

    of: "Node"


@dataclass(frozen=True)
class Mean:
    """The mean of several arms, item by item."""

    arms: tuple["Node", ...]


@dataclass(frozen=True)
class Operation:
    """Two operands joined by ``+``, ``-``, ``*`` or ``/``, item by item."""

    sign: str
    left: "Node"
    right: "Node"
    column: int

    @property
    def is_ratio(self) -> bool:
        """Whether effects are divided by effects, and not by a number."""
        return self.sign == "/" and not isinstance(self.right, Number)


Node = Number | Effect | Reference | Negative | Absolute | Mean | Operation


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    column: int


def parse_expression(text: str, words: Words = CROSSING) -> Node:
    """Read one expression.

    Parameters
    ----------
    text
        Sums, differences, products with numbers and quotients of ``condition.effect`` and ids of contrasts; unary
        minus, parentheses, ``mean(a, b, ...)``, ``abs(a)``. Names that are not plain words stand in double quotes.
        Effects can be divided by effects only as the whole expression.
    words
        Those of the design, for messages.

    Raises
    ------
    ExpressionError
        With the column, what was found and what was expected.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"{len(text)} characters; at most {MAX_LENGTH} are read: name the parts as contrasts", MAX_LENGTH + 1
        )
    parser = _Parser(_tokens(text, words), words)
    tree = parser.expression(0)
    parser.expect_end()
    if isinstance(tree, Number):
        raise ExpressionError(f"the expression is only a number; expected {words.operands}, such as {words.example}", 1)
    for node in walk(tree):
        if isinstance(node, Operation) and node.is_ratio and node is not tree:
            raise ExpressionError(
                f"{words.operands} divided by {words.operands} can only be the whole expression, such as {words.ratio}",
                node.column,
            )
    return tree


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it, left to right."""
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: Node) -> tuple[Node, ...]:
    """Return what a node is made of."""
    match node:
        case Negative(of) | Absolute(of):
            return (of,)
        case Mean(arms):
            return arms
        case Operation(_, left, right, _):
            return (left, right)
        case _:
            return ()


def pooled_arms(node: Node) -> tuple[Node, ...]:
    """Return the arms that a node is the mean of, in whichever way it is written; none where it is no such mean.

    ``mean(a, b)``, ``(a + b) / 2``, ``0.5 * (a + b)`` and ``a / 2 + b / 2`` are the same. A sum over its number of arms
    is a mean, over any other number it is not.
    """
    if isinstance(node, Mean):
        return node.arms
    factor, inner = _scaled(node)
    arms = _summands(inner)
    if factor == 1.0 and len(arms) > 1:
        scaled = [_scaled(arm) for arm in arms]
        (factor, *others), arms = (each for each, _ in scaled), [arm for _, arm in scaled]
        if any(other != factor for other in others):
            return ()
    whole = len(arms) > 1 and math.isclose(factor * len(arms), 1.0)
    return tuple(arms) if whole and not any(isinstance(arm, Number) for arm in arms) else ()


def _scaled(node: Node) -> tuple[float, Node]:
    """Return the number that a node is multiplied with, and the rest."""
    match node:
        case Operation("/", left, Number(value), _):
            return 1 / value, left
        case Operation("*", Number(value), other, _) | Operation("*", other, Number(value), _):
            return value, other
        case _:
            return 1.0, node


def _summands(node: Node) -> list[Node]:
    match node:
        case Operation("+", left, right, _):
            return [*_summands(left), *_summands(right)]
        case _:
            return [node]


def _tokens(text: str, words: Words) -> list[_Token]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            column = at + len(text[at:]) - len(text[at:].lstrip()) + 1
            raise ExpressionError(f"found {text[column - 1]!r}; expected {words.operand}, or one of + - * /", column)
        kind = match.lastgroup
        start = match.start(kind) - (kind == "quoted")
        found.append(_Token(kind, match.group(kind), start + 1))
        at = match.end()
    found.append(_Token("end", "the end of the expression", end + 1))
    return found


class _Parser:
    """Recursive descent; every method leaves the position behind what it has read."""

    def __init__(self, tokens: list[_Token], words: Words) -> None:
        self._tokens = tokens
        self._words = words
        self._at = 0

    def expect_end(self) -> None:
        if self._next.kind != "end":
            raise self._wrong("one of + - * / or the end")

    def expression(self, depth: int) -> Node:
        node = self._product(depth)
        while self._is_sign("+", "-"):
            sign = self._take()
            node = _join(sign, node, self._product(depth), self._words)
        return node

    def _product(self, depth: int) -> Node:
        node = self._signed(depth)
        while self._is_sign("*", "/"):
            sign = self._take()
            node = _join(sign, node, self._signed(depth), self._words)
        return node

    def _signed(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise ExpressionError(f"nested more than {_MAX_DEPTH} deep; simplify", self._next.column)
        if self._is_sign("+", "-"):
            negative = self._take().text == "-"
            node = self._signed(depth + 1)
            if not negative:
                return node
            return Number(-node.value) if isinstance(node, Number) else Negative(node)
        return self._operand(depth)

    def _operand(self, depth: int) -> Node:
        token = self._next
        if token.kind == "number":
            return Number(_finite(float(self._take().text), token.column))
        if self._is_sign("("):
            self._take()
            node = self.expression(depth + 1)
            self._close()
            return node
        if token.kind not in {"name", "quoted"}:
            raise self._wrong(self._words.operand)
        self._take()
        if token.kind == "name" and self._is_sign("("):
            return self._function(token, depth)
        if not self._is_sign("."):
            return Reference(token.text, token.column)
        self._take()
        if self._next.kind not in {"name", "quoted"}:
            raise self._wrong(
                f"the {self._words.second} after {token.text!r} and the point, as in {self._words.example}"
            )
        return Effect(token.text, self._take().text, token.column)

    def _function(self, name: _Token, depth: int) -> Node:
        if name.text not in {"mean", "abs"}:
            raise ExpressionError(f"no function {name.text!r}; there are mean(a, b, ...) and abs(a)", name.column)
        self._take()
        parts = [self.expression(depth + 1)]
        while self._is_sign(","):
            self._take()
            parts.append(self.expression(depth + 1))
        self._close()
        if any(isinstance(part, Number) for part in parts):
            raise ExpressionError(
                f"{name.text}() of a number; expected {self._words.operands} or contrasts", name.column
            )
        if name.text == "mean":
            if len(parts) < 2:
                raise ExpressionError("mean() of one arm; expected two or more, separated by commas", name.column)
            return Mean(tuple(parts))
        if len(parts) != 1:
            raise ExpressionError(f"abs() of {len(parts)} parts; expected one", name.column)
        return Absolute(parts[0])

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _is_sign(self, *signs: str) -> bool:
        return self._next.kind == "sign" and self._next.text in signs

    def _close(self) -> None:
        if not self._is_sign(")"):
            raise self._wrong("')' or one of + - * /")
        self._take()

    def _wrong(self, expected: str) -> ExpressionError:
        token = self._next
        found = token.text if token.kind == "end" else repr(token.text)
        return ExpressionError(f"found {found}; expected {expected}", token.column)


def _join(sign: _Token, left: Node, right: Node, words: Words) -> Node:
    if isinstance(right, Number) and right.value == 0 and sign.text == "/":
        raise ExpressionError("division by 0", sign.column)
    if isinstance(left, Number) and isinstance(right, Number):
        a, b = left.value, right.value
        value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0.0}[sign.text]
        return Number(_finite(value, sign.column))
    if sign.text == "*" and not (isinstance(left, Number) or isinstance(right, Number)):
        raise ExpressionError(
            f"{words.operands} times {words.operands}; expected a number on one side of *", sign.column
        )
    if sign.text == "/" and isinstance(left, Number):
        raise ExpressionError(
            f"a number divided by {words.operands}; expected {words.operands} on the left of /", sign.column
        )
    return Operation(sign.text, left, right, sign.column)


def _finite(value: float, column: int) -> float:
    if not math.isfinite(value):
        raise ExpressionError("the number is too large", column)
    return value


def to_text(node: Node) -> str:
    """Return an expression that reads as the same tree."""
    match node:
        case Number(value):
            return f"{value:g}"
        case Effect(condition, effect, _):
            return f"{_quoted(condition)}.{_quoted(effect)}"
        case Reference(name, _):
            return _quoted(name)
        case Negative(of):
            return f"-{_grouped(of)}"
        case Absolute(of):
            return f"abs({to_text(of)})"
        case Mean(arms):
            return f"mean({', '.join(to_text(arm) for arm in arms)})"
        case Operation(sign, left, right, _):
            return f"{_grouped(left)} {sign} {_grouped(right)}"


def _grouped(node: Node) -> str:
    return f"({to_text(node)})" if isinstance(node, Operation | Negative) else to_text(node)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f'"{name}"'
