"""Find any of many plain phrases at a place or in a whole text, in time linear in the text.

The phrases become one pattern shaped like a trie, so that a character is compared once for all phrases that
share it. Texts are given in small letters (see `small_letters`): ignoring case inside the pattern would be
several times slower.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from counterbalance.reading.normalise import LOOKALIKES

# Scripts written without spaces: a Latin letter next to them still stands alone.
_UNSPACED_SCRIPTS: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff"
WORD: Final = rf"[^\W_{_UNSPACED_SCRIPTS}]"
"""One character of a word in a script that separates words by spaces."""

NOT_PART_OF_NUMBER: Final = r"(?<!\d[.,])(?<![-+\u2013\u00b1$\u20ac\u00a3\u00a5])"
"""What must hold before a digit for it to start a number: no sign, currency or decimal point."""

_GAP: Final = r"[ \n]"
_NEVER: Final = r"(?!)"
_LONE_CAPITAL: Final = re.compile(rf"(?<!{WORD})[A-Z{''.join(c for c in LOOKALIKES if c.isupper())}](?!{WORD}|'{WORD})")
WORD_CHARACTER: Final = re.compile(WORD)
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

    def __init__(self, spaced: Collection[str], unspaced: Iterable[str] = ()) -> None:
        spaced, unspaced = _capitals(spaced), _capitals(unspaced)
        open_ended = [p for p in spaced if not WORD_CHARACTER.match(p[-1])]
        closed = [p for p in spaced if WORD_CHARACTER.match(p[-1])]
        parts = [_parts(open_ended, after=""), _parts(closed, after=rf"(?!{WORD})"), _branch(_trie(unspaced))]
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
    """Give `text` in small letters, character by character, so that places in it stay the same.

    Capitals that stand alone are kept: they may be labels, while "a", "e", "o" and "y" are words of some
    language each ("A y C" is a list, "A Y C" is not).
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = "".join(small if len(small := char.lower()) == 1 else char for char in text)
    if lowered == text:
        return text
    letters = list(lowered)
    for found in _LONE_CAPITAL.finditer(text):
        letters[found.start()] = found.group()
    return "".join(letters)


def _capitals(phrases: Iterable[str]) -> list[str]:
    """Add "I think" to "i think": a word of one letter within a phrase may be written either way."""
    known = list(phrases)
    for phrase in known[:]:
        words = [w.upper() if len(w) == 1 else w for w in phrase.split(" ")]
        if len(words) > 1:
            known.append(" ".join(words))
    return known


def _parts(phrases: Iterable[str], *, after: str) -> str:
    """Give the pattern of phrases with one kind of end; those that start with a letter start a word."""
    worded = _trie(p for p in phrases if WORD_CHARACTER.match(p))
    others = _trie(p for p in phrases if not WORD_CHARACTER.match(p))
    # a class this wide is costly to compile, so it stands once outside the trie and not at each phrase
    parts = [
        _starts(worded) + rf"(?<!{WORD})" + _branch(worded) + after if worded else "",
        _branch(others) + after if others else "",
    ]
    return "|".join(part for part in parts if part)


def _trie(phrases: Iterable[str]) -> _Trie:
    root: _Trie = {}
    for phrase in sorted(set(phrases)):
        node = root
        for char in phrase:
            node = node.setdefault(char, {})
        node[_END] = {}
    return root


def _starts(node: _Trie) -> str:
    return f"(?=[{''.join(map(re.escape, node))}])"


def _branch(node: _Trie) -> str:
    """Spell a node's children as alternatives, the end of a phrase last: the longest phrase wins."""
    options = [
        (_GAP if char == " " else re.escape(char)) + _branch(child) for char, child in node.items() if char != _END
    ]
    if _END in node and options:
        options.append("")
    return options[0] if len(options) == 1 else f"(?:{'|'.join(options)})" if options else ""
