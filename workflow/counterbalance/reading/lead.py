"""Read a reply that opens with its answer, and tell it from one that opens with an article or a list of options."""

import re
from dataclasses import replace
from typing import Final

from counterbalance.reading.values import Source, Value, closers_end, read_labels, text_value

_OPENING: Final = re.compile(r"(?:[-\u2022] )?[\"'(\[{<$*_ ]*")
_STOP: Final = re.compile(r"[.:!?;)\]}]|\n|$| [-\u2013\u2014=\u2192](?= )| ?\u2014| ?[(\[|]")
_LINE_END: Final = re.compile(r"[.!]?(?:\n|$)")
_PAUSE: Final = re.compile(r"[,.:!]{0,2}")
_COMMA: Final = re.compile(r", ?")


def opening(src: Source) -> int:
    """Where the reply proper starts, past brackets, "sure" and a word such as "option"."""
    start = _end(_OPENING, src.text, 0)
    preface = src.grammar["prefaces"].match(src.small, start)
    if preface and src.labels.match(src.text, start) is None:
        start = _end(_OPENING, src.text, _end(_PAUSE, src.text, preface.end()))
    for field in ("items", "nouns"):
        found = src.grammar[field].match(src.small, start)
        if found and src.text.startswith(" ", found.end()):
            return _end(_OPENING, src.text, found.end())
    return start


def read_lead(src: Source) -> Value | None:
    """Read the label that the reply begins with, if a delimiter or "because" follows it.

    "B. A lens bends light" gives B, "A lens bends light" nothing. A list of the options with their labels is
    no answer. After "B:" the label may be the heading of a remark, so it is only tentative unless the option's
    own text follows.
    """
    start = opening(src)
    value = read_labels(src, start)
    if value is None or len(value.slots) > 1 or value.denied or not value.exact:
        return None
    label = src.labels.match(src.text, value.start)
    if label is None or not _delimited(src, label.end) or _lists_options(src, value, label.end):
        return None
    heading = src.text.startswith(":", value.end) and not _own_text(src, value.end + 1, value.slots[0])
    return replace(value, hedged=value.hedged or heading)


def _delimited(src: Source, position: int) -> bool:
    end = closers_end(src, position)
    if _STOP.match(src.text, end) or src.text[position:end].strip("\"'*_$"):
        return True
    beside = text_value(src, end + 1)
    if beside is not None and src.text.startswith(" ", end):
        return True  # a text that is not the label's own has been found to clash by now
    start = _end(_COMMA, src.text, end)
    if start > end and src.labels.words:
        return True
    start = start if start > end else end + src.text.startswith(" ", end)
    words = src.grammar
    closing = words["closing"].match(src.small, start)
    if closing and _LINE_END.match(src.text, closing.end()):
        return True
    return any(words[field].match(src.small, start) for field in ("because", "contrasts", "negations"))


def _lists_options(src: Source, value: Value, position: int) -> bool:
    """Whether other labels stand in the text as this one does: at a line's start, or before their own text."""
    delimiter = src.text[position : position + 1]
    if delimiter not in ".):]":
        return False
    for found in src.labels.pattern.finditer(src.text, position):
        if not src.text.startswith(delimiter, found.end()):
            continue
        hit = src.labels.hit(found)
        if hit.slot == value.slots[0]:
            continue
        before = src.small[max(0, hit.start - 16) : hit.start].rstrip(" ([*")
        if src.grammar["negations"].ends(before):
            continue
        if before.endswith("\n") or _own_text(src, hit.end + 1, hit.slot):
            return True
    return False


def _own_text(src: Source, position: int, slot: int) -> bool:
    if src.texts is None:
        return False
    start = position + src.text.startswith(" ", position)
    return slot in src.texts.at(src.text, start)[1]


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position
