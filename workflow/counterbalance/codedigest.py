"""A digest of the code that a stage runs, so that editing the report does not score again."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from counterbalance.canonical import sha256_bytes, sha256_json

_PACKAGE = "counterbalance"
_FOLDER = Path(__file__).parent


def stage_digest(*modules: str) -> str:
    """Digest of modules and of everything in this package that they import, directly or not.

    Parameters
    ----------
    modules
        Dotted names below the package, for example ``stages.score``.

    Returns
    -------
    str
        `sha256:<hex>` over the reached files' names and contents.
    """
    reached = sorted(reachable(frozenset(f"{_PACKAGE}.{name}" for name in modules)))
    return sha256_json({name: sha256_bytes(path.read_bytes()) for name in reached if (path := _find(name))})


@cache
def reachable(start: frozenset[str]) -> frozenset[str]:
    """Return the dotted names of all modules of this package that the given ones import, themselves included."""
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in seen or _find(name) is None:
            continue
        seen.add(name)
        waiting.extend(_imports(name))
    return frozenset(seen)


def _imports(name: str) -> list[str]:
    path = _find(name)
    found: list[str] = []
    if path is None:
        return found
    for node in _executed(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.append(node.module)
            found.extend(f"{node.module}.{alias.name}" for alias in node.names)
    return [entry for entry in found if entry.split(".")[0] == _PACKAGE]


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes but those that only a type checker sees."""
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield from _executed(child)


def _find(name: str) -> Path | None:
    base = _FOLDER.joinpath(*name.split(".")[1:])
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None
