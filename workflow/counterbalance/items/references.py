"""Options that speak of other options or of their places, and so change meaning when options are reordered.

Three kinds count:

* phrases such as "none of the above", "both of these", "todas las anteriores", "以上皆非";
* a bare word that stands for the other options, such as "both" or "neither";
* letters of other options, such as "both A and C" or "Antwort B", unless the stem itself lists those letters
  ("(a) ... (b) ..."), or the options that they would mean are letters themselves ("A and D" beside "B and C").

Numerals ("(1) and (2)", "I and II only") are taken as numbers of statements in the stem, never as options, unless a
word such as "options" stands before them; where the stem lists such statements, "both" and "none of these" mean them
too. "None" or "all" alone are answers like any other.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from counterbalance.items import reference_phrases as words
from counterbalance.items.folding import fold_text

_MOST_LETTERS = 6


def _plain(text: str) -> str:
    """Fold case and accents, keeping the marks of Japanese kana."""
    decomposed = unicodedata.normalize("NFD", fold_text(text).casefold())
    bare = "".join(char for char in decomposed if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", bare).replace("’", "'")


def _any(*groups: Sequence[str]) -> str:
    return "(?:" + "|".join(_plain(pattern) for group in groups for pattern in group) + ")"


_LETTER = rf"[(\[{{\"'«„“]*([a-z{words.CYRILLIC_LETTERS}])[)\]}}.:\"'»”“]*"
_NOUN = rf"(?:{_any(words.NOUNS)} ?)"
_LEAD = rf"(?:{_any(words.NOUNS, words.LEADS, words.ONLY)} ?)"
_JOIN = rf"(?: ?[{words.JOINERS}] ?(?:{_any(words.CONNECTIVES)} )?| (?:{_any(words.CONNECTIVES)} )+)"
_TAIL = rf"(?:,? ?{_any(words.TAILS)})"
_COMBINATIONS = [
    re.compile(rf"{_LEAD}*{_LETTER}" + rf"{_JOIN}{_LEAD}*{_LETTER}" * more + rf"{_TAIL}*\W*")
    for more in range(1, _MOST_LETTERS)
]
_ALONE = [
    re.compile(rf"{_LEAD}*{_NOUN}{_LETTER}{_TAIL}*\W*"),
    re.compile(rf"{_any(words.ONLY)} {_LETTER}{_TAIL}*\W*"),
    re.compile(rf"{_LETTER}{_TAIL}+\W*"),
]
_SINGLE = re.compile(rf"{_LETTER}\W*")
_NUMERAL = r"[(\[]?(?:[ivx]{1,4}|[0-9]{1,2})[)\].]?"
_NUMERALS = rf"{_NUMERAL}(?:{_JOIN}{_NUMERAL})*{_TAIL}*\W*"
_NUMBERED = re.compile(rf"{_LEAD}*{_NOUN}{_NUMERALS}")
_STATEMENTS = re.compile(rf"{_LEAD}*{_NUMERALS}")
_LISTED = re.compile(rf"(?:^|\s|[(\[])([a-z{words.CYRILLIC_LETTERS}]|[ivx]{{1,4}}|[0-9]{{1,2}})[)\].:](?=\s|$)")
_PHRASE = re.compile(rf"{_any(words.ANYWHERE)}|^{_any(words.WHOLE)}{_TAIL}*\W*$")
_VAGUE = re.compile(rf"{_any(words.VAGUE)}{_TAIL}*\W*")
_PARTITIVE = re.compile(rf"{_any(words.QUANTIFIERS)}\b(?: of (?:these|those|them|it))?\W*")
_FEMININE = re.compile(rf"{_any(words.BARE_FEMININE)}\W*")
_QUANTITY = re.compile(rf"(?:[0-9]|{_any(words.QUANTIFIERS)}\b)")


def find_references(options: Sequence[str], stem: str) -> list[int]:
    """Return the indices of the options that refer to other options or to their places.

    Parameters
    ----------
    options
        Option texts in the file's order, in which the first is A.
    stem
        The question; letters and numbers that it lists itself are not taken for options.
    """
    texts = [_plain(option) for option in options]
    return [
        index
        for index, text in enumerate(texts)
        if _PHRASE.search(text)
        or _NUMBERED.fullmatch(text)
        or _is_vague_reference(text, texts, stem)
        or _names_letters(index, texts, stem)
    ]


def _is_vague_reference(text: str, texts: Sequence[str], stem: str) -> bool:
    others = [other for other in texts if other != text]
    if _VAGUE.fullmatch(text):
        means_statements = len(_listed(stem)) > 1 and any(_STATEMENTS.fullmatch(other) for other in others)
        return not means_statements and not any(_PARTITIVE.fullmatch(other) for other in others)
    return bool(_FEMININE.fullmatch(text)) and not any(
        _QUANTITY.match(other) and not _PHRASE.search(other) for other in others
    )


def _names_letters(index: int, texts: Sequence[str], stem: str) -> bool:
    meant = _letters(texts[index])
    others = meant - {index}
    if not others or max(meant) >= len(texts):
        return False
    if any(_letters(texts[other]) or _SINGLE.fullmatch(texts[other]) for other in others):
        return False
    return not meant <= {_position(mark) for mark in _listed(stem) if len(mark) == 1}


@lru_cache(maxsize=4096)
def _letters(text: str) -> frozenset[int]:
    """Return which letters (A is 0) an option names, if it does nothing else."""
    for pattern in (*_COMBINATIONS, *_ALONE):
        found = pattern.fullmatch(text)
        if found:
            return frozenset(_position(letter) for letter in found.groups())
    return frozenset()


@lru_cache(maxsize=256)
def _listed(stem: str) -> frozenset[str]:
    return frozenset(_LISTED.findall(_plain(stem)))


def _position(letter: str) -> int:
    cyrillic = words.CYRILLIC_LETTERS.find(letter)
    return cyrillic if cyrillic >= 0 else ord(letter) - ord("a")
