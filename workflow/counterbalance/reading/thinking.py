"""Separate deliberation, which is never an answer, from the reply proper.

Decisions
---------
- A closing tag without an opener means that all text before it was deliberation.
- An opening tag without a closer means that the reply proper never came: `Deliberation.complete` is false.
- Nesting is not counted. The first closer ends a block, and a stray second closer swallows what came
  between, so both ``<think>a <think> b</think>`` and true nesting end with the right remainder.
- A tag that is quoted by itself (a back-tick or quote directly before and directly after it, as in
  ``"</think>"``) is a mention, not a tag. Inside a block this exception does not hold: there a quoted closer
  ends the block, and the real closer that follows swallows the rest.
- An unquoted mention of a tag in the reply proper cannot be told from a tag and is treated as one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from counterbalance.reading.model import ReaderOptions

_CHANNEL: Final = re.compile(r"<\|channel\|>([^<\n]{0,80})<\|message\|>", re.IGNORECASE)
_CHANNEL_MARK: Final = "<|channel|>"
_CHANNEL_END: Final = re.compile(r"<\|(?:end|return|start|call|channel)\|>", re.IGNORECASE)
_QUOTES: Final = "`\"'"


@dataclass(frozen=True)
class Deliberation:
    """The reply proper, whether any deliberation was taken out, and whether the reply was reached."""

    reply: str
    found: bool
    complete: bool


def strip_thinking(text: str, options: ReaderOptions) -> Deliberation:
    """Take deliberation out of a normalised `text`."""
    found = False
    if options.channels and _CHANNEL_MARK in text.lower():
        final = _final_channel(text)
        if final is None:
            return Deliberation("", found=True, complete=False)
        text, found = final, True
    tags = _tag_pattern(options.thinking_names, options.thinking_pairs)
    if tags is None:
        return Deliberation(text, found, complete=True)
    kept: list[str] = []
    position, inside = 0, ""
    for family, closing, start, end in _tags(tags, text):
        if inside:
            if closing and family == inside:
                position, inside = end, ""
            continue
        # what precedes belongs to the reply only from `position` on, and so does a quote around the tag
        if _quoted(text, start, end, position):
            continue
        found = True
        if closing:
            kept.clear()
            position = end
        else:
            kept.append(text[position:start])
            inside = family
    if inside:
        return Deliberation("\n".join(kept), found, complete=False)
    kept.append(text[position:])
    return Deliberation("\n".join(kept), found, complete=True)


def _final_channel(text: str) -> str | None:
    parts = []
    for mark in _CHANNEL.finditer(text):
        if mark.group(1).strip().lower().startswith("final"):
            end = _CHANNEL_END.search(text, mark.end())
            parts.append(text[mark.end() : end.start() if end else len(text)])
    return "\n".join(parts) if parts else None


def _quoted(text: str, start: int, end: int, floor: int) -> bool:
    return start > floor and end < len(text) and text[start - 1] in _QUOTES and text[start - 1] == text[end]


def _tags(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, bool, int, int]]:
    for match in pattern.finditer(text):
        kind = match.lastgroup or ""
        if kind in ("name", "bracket", "triangle", "bar"):
            slash = match.group(f"{kind}_slash")
            yield match.group(kind).lower(), bool(slash), match.start(), match.end()
        else:
            yield kind[1:], kind.startswith("c"), match.start(), match.end()


@lru_cache(maxsize=64)
def _tag_pattern(names: tuple[str, ...], pairs: tuple[tuple[str, str], ...]) -> re.Pattern[str] | None:
    any_name = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    parts: list[str] = []
    if names:
        parts = [
            rf"<(?P<name_slash>/?) ?(?P<name>{any_name})(?=[ />])[^<>\n]{{0,80}}>",
            rf"\[(?P<bracket_slash>/?)(?P<bracket>{any_name})\]",
            rf"\u25c1(?P<triangle_slash>/?)(?P<triangle>{any_name})\u25b7",
            rf"<\|(?P<bar_slash>/?)(?P<bar>{any_name})\|>",
        ]
    for i, (opener, closer) in enumerate(pairs):
        parts += [rf"(?P<o{i}>{re.escape(opener)})", rf"(?P<c{i}>{re.escape(closer)})"]
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None
