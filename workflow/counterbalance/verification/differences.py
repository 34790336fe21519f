"""Where two tables of one schema first differ, in words."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import ArtifactSchema, logical_digest
from counterbalance.canonical import Json

TOLERANCE = 1e-9
"""Largest relative difference of reals that another processor or library version may make."""


@dataclass(frozen=True)
class Difference:
    """Nothing (`text` is None), only the last digits of reals (`rounding` > 0), or the first row that differs."""

    text: str | None
    rounding: float = 0.0


def compare(found: pa.Table, derived: pa.Table, schema: ArtifactSchema) -> Difference:
    """Compare a published table with the one derived again, volatile columns left out."""
    columns = [name for name in schema.arrow.names if name not in schema.volatile]
    if logical_digest(found, columns) == logical_digest(derived, columns):
        return Difference(None)
    rounding = 0.0
    pairs = zip(found.select(columns).to_pylist(), derived.select(columns).to_pylist(), strict=False)
    for index, (ours, theirs) in enumerate(pairs):
        key, other = _key(ours, schema), _key(theirs, schema)
        if key != other:
            return Difference(f"row {index}: {key} is there, derived again it is {other}")
        for name in columns:
            gap = _gap(ours[name], theirs[name])
            if gap > TOLERANCE:
                text = f"row {index} ({key}), column {name!r}: {ours[name]!r} is there, derived again it is "
                return Difference(f"{text}{theirs[name]!r}")
            rounding = max(rounding, gap)
    if found.num_rows != derived.num_rows:
        index = min(found.num_rows, derived.num_rows)
        longer, what = (found, "surplus") if found.num_rows > derived.num_rows else (derived, "missing")
        return Difference(f"row {index}: {_key(longer.slice(index, 1).to_pylist()[0], schema)} is {what}")
    return Difference(None, rounding)


def differing_values(found: Json, derived: Json, at: str = "") -> Iterator[str]:
    """Yield every value of a JSON document that is another one when derived again; reals as in `compare`."""
    if isinstance(found, Mapping) and isinstance(derived, Mapping):
        for key in sorted(found.keys() | derived.keys()):
            yield from differing_values(found.get(key), derived.get(key), f"{at}.{key}" if at else str(key))
    elif isinstance(found, list) and isinstance(derived, list) and len(found) == len(derived):
        for index, pair in enumerate(zip(found, derived, strict=True)):
            yield from differing_values(*pair, f"{at}[{index}]")
    elif _gap(found, derived) > TOLERANCE or isinstance(found, bool) != isinstance(derived, bool):
        yield f"key {at or '(whole file)'}: {found!r} is there, derived again it is {derived!r}"


def _key(row: dict[str, Any], schema: ArtifactSchema) -> str:
    return ", ".join(f"{name} {row[name]!r}" for name in schema.key)


def _gap(ours: Any, theirs: Any) -> float:
    """Return 0 for equal values, a relative difference for reals, infinity for anything else."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return 0.0 if ours == theirs else abs(ours - theirs) / max(abs(ours), abs(theirs))
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return max((_gap(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)
    return 0.0 if ours == theirs else math.inf
