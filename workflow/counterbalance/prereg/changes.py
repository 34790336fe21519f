"""What differs between a frozen plan and the present one, in words that a person can act on."""

from collections.abc import Iterator, Mapping
from typing import Any

from counterbalance.canonical import Json, canonical_json
from counterbalance.config import Study
from counterbalance.prereg.predictions import PREDICTIONS, Prediction
from counterbalance.prereg.record import FrozenBody, Hashes, Parts, crlf_note

_ABSENT = object()
_LONGEST = 80


def plan_changes(study: Study, frozen: FrozenBody, now: Parts, predictions: tuple[Prediction, ...]) -> list[str]:
    """Return a line or more for every part of the plan that changed, each with old and new hash."""
    old = frozen.parts
    lines: list[str] = []
    if old.plan_text != now.plan_text:
        name = study.config.preregistration or frozen.config.get("preregistration")
        lines.append(f"plan text changed, {name}: {_hashes(old.plan_text, now.plan_text)}")
        lines[-1] += _line_ends(study, study.config.preregistration, old.plan_text)
    if old.predictions != now.predictions:
        lines.append(f"predictions changed: {_hashes(old.predictions, now.predictions)}")
        lines += _indent(
            value_changes(_dump(frozen.predictions), _dump(predictions), "predictions"), "order of the predictions"
        )
    for key, before, after in _differing(old.settings, now.settings):
        lines.append(f"settings.{key} changed: {_hashes(before, after)}")
        pair = (frozen.config.get(key, _ABSENT), study.resolved.get(key, _ABSENT))
        lines += _indent(value_changes(*pair, f"settings.{key}"), "order of the entries")
    for key, before, after in _differing(old.prompts, now.prompts):
        lines.append(f"prompt file changed, {key}: {_hashes(before, after)}{_line_ends(study, key, before)}")
    paths = {entry.id: entry.path for entry in study.config.datasets}
    for key, before, after in _differing(old.data, now.data):
        note = _line_ends(study, paths.get(key), before)
        lines.append(f"data set {key} changed, {paths.get(key, 'no longer used')}: {_hashes(before, after)}{note}")
    return lines


def table_changes(kind: str, frozen: Hashes, now: Mapping[str, str]) -> list[str]:
    """Return a line for every table in `now` whose content is not the frozen one."""
    pairs = ((key, frozen.get(key), digest) for key, digest in now.items())
    return [f"{kind} of {key} changed: {_hashes(old, new)} (content digests)" for key, old, new in pairs if old != new]


def value_changes(old: Json, new: Json, at: str) -> Iterator[str]:
    """Yield `key.path: old -> new` for every value that differs; entries of lists are named by their ids."""
    before, after = _children(old), _children(new)
    if before is None or after is None:
        if old is _ABSENT or new is _ABSENT or canonical_json(old) != canonical_json(new):
            yield f"{at}: {_shown(old)} -> {_shown(new)}"
        return
    for key in [*before, *(key for key in after if key not in before)]:
        yield from value_changes(before.get(key, _ABSENT), after.get(key, _ABSENT), f"{at}.{key}")


def _children(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list) and value and all(isinstance(entry, Mapping) and "id" in entry for entry in value):
        return {str(entry["id"]): entry for entry in value}
    return None


def _differing(old: Hashes, new: Hashes) -> Iterator[tuple[str, str | None, str | None]]:
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield key, old.get(key), new.get(key)


def _indent(lines: Iterator[str], otherwise: str) -> list[str]:
    return [f"  {line}" for line in lines] or [f"  {otherwise} changed"]


def _hashes(old: str | None, new: str | None) -> str:
    return f"{old or 'nothing'} -> {new or 'nothing'}"


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "(not there)"
    text = canonical_json(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def _line_ends(study: Study, name: str | None, expected: str | None) -> str:
    path = study.root / name if name and not name.startswith("hf://") else None
    return crlf_note(path.read_bytes(), expected) if path is not None and expected and path.is_file() else ""


def _dump(predictions: tuple[Prediction, ...]) -> list[Json]:
    return list(PREDICTIONS.dump_python(predictions, mode="json"))
