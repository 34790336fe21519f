"""Take the answer fields out of a reply that is a JSON object."""

import json
import re
from typing import Any, Final

from counterbalance.reading.grammar import Grammar

_FENCED: Final = re.compile(r"```[A-Za-z]*\s*(\{.*\})\s*```", re.DOTALL)
_MAX_DEPTH: Final = 4


def json_answers(reply: str, grammar: Grammar) -> tuple[str, ...]:
    """Give the values of the fields that are named like an answer ("answer", "final_choice", "respuesta").

    The other fields of the object are deliberation or comment and are not read. Empty if the reply is no JSON
    object or has no such field.
    """
    text = reply.strip()
    fenced = _FENCED.fullmatch(text) if text.startswith("```") else None
    text = fenced.group(1) if fenced else text
    if not (text.startswith("{") and text.endswith("}")):
        return ()
    try:
        # pairs, so that a key given twice is seen twice
        return tuple(_answers(json.loads(text, object_pairs_hook=_Pairs), grammar, depth=0))
    except (ValueError, RecursionError):
        return ()


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as the list of its pairs."""


def _answers(pairs: Any, grammar: Grammar, *, depth: int) -> list[str]:
    found: list[str] = []
    if not isinstance(pairs, _Pairs) or depth > _MAX_DEPTH:
        return found
    for key, value in pairs:
        if grammar["nouns"].fullmatch(" ".join(re.split(r"[\s_-]+", key.strip().lower()))) is None:
            continue
        if isinstance(value, _Pairs):
            found += _answers(value, grammar, depth=depth + 1)
        else:
            found.append(_spell(value))
    return found


def _spell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_spell(v) for v in value if not isinstance(v, _Pairs))
    return value if isinstance(value, str) else str(value) if value is not None else ""
