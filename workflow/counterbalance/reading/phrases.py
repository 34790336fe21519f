"""Find any of many plain phrases at a place or in a whole text, in time linear in the text.

The phrases become one pattern shaped like a trie, so that a character is compared once for all phrases that
share it. Texts are given in small letters (see `small_letters`): ignoring case inside the pattern would be
several times slower.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

# Scripts written without spaces: a Latin letter next to them still stands alone.
_UNSPACED_SCRIPTS: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff"
WORD: Final = rf"[^\W_{_UNSPACED_SCRIPTS}]"
"""One character of a word in a script that separates words by spaces."""

_GAP: Final = r"[ \n]"
_NEVER: Final = r"(?!)"
_WORD: Final = re.compile(WORD)
_END: Final = ""

_Trie = dict[str, "_Trie"]


class Phrases:
    """A set of phrases, of which the longest that fits is found.

    Parameters
    ----------
    spaced
        Phrases that must stand as whole words.
    unspaced
        Phrases that count inside a run of letters too.
    """

    def __init__(self, spaced: Iterable[str], unspaced: Iterable[str] = ()) -> None:
        spaced = set(spaced)
        worded = {p for p in spaced if _WORD.match(p)}
        parts = [
            _branch(_trie(worded), bounded=True, before=rf"(?<!{WORD})"),
            _branch(_trie(spaced - worded), bounded=True, before=""),
            _branch(_trie(set(unspaced)), bounded=False, before=""),
        ]
        self._pattern = re.compile("|".join(part for part in parts if part) or _NEVER)

    def match(self, text: str, position: int = 0) -> re.Match[str] | None:
        """Match at exactly `position`."""
        return self._pattern.match(text, position)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Match the whole of `text`."""
        return self._pattern.fullmatch(text)

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """Give the first match between `start` and `end`."""
        return self._pattern.search(text, start, len(text) if end is None else end)

    def finditer(self, text: str, start: int = 0, end: int | None = None) -> Iterator[re.Match[str]]:
        """Iterate over the matches between `start` and `end`."""
        return self._pattern.finditer(text, start, len(text) if end is None else end)

    def remove(self, text: str) -> str:
        """Give `text` with a blank in place of every match."""
        return self._pattern.sub(" ", text)

    def ends(self, text: str) -> bool:
        """Whether a match ends where `text` ends."""
        return any(found.end() == len(text) for found in self._pattern.finditer(text))


def small_letters(text: str) -> str:
    """Give `text` in small letters, character by character, so that places in it stay the same."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(small if len(small := char.lower()) == 1 else char for char in text)


def _trie(phrases: set[str]) -> _Trie:
    root: _Trie = {}
    for phrase in sorted(phrases):
        node = root
        for char in phrase:
            node = node.setdefault(char, {})
        node[_END] = {}
    return root


def _branch(node: _Trie, *, bounded: bool, before: str = "", last: str = "") -> str:
    """Spell a node's children as alternatives, the end of a phrase last: the longest phrase wins."""
    options = []
    for char, child in node.items():
        if char != _END:
            spelled = _GAP if char == " " else re.escape(char)
            options.append(spelled + _branch(child, bounded=bounded, last=char))
    if not options:
        return _boundary(last, bounded) if node else ""
    starts = "".join(re.escape(char) for char in node if char not in ("", " "))
    if _END in node:
        options.append(_boundary(last, bounded))
    elif before or not last:
        return f"(?=[{starts}]){before}(?:{'|'.join(options)})"
    return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"


def _boundary(last: str, bounded: bool) -> str:
    return rf"(?!{WORD})" if bounded and _WORD.match(last) else ""
