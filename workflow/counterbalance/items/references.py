"""Options that speak of other options or of their places, and so change meaning when options are reordered.

Three kinds count:

* phrases such as "none of the above", "both of these", "todas las anteriores", "以上皆非";
* a bare word that stands for the other options, such as "both" or "neither";
* letters of other options, such as "both A and C" or "Antwort B", unless the stem itself lists those letters as its
  own items ("(a) ... (b) ..."), or the options that the letters would mean are letters themselves.

Numerals ("(1) and (2)", "I and II only") are taken as numbers of statements in the stem, never as options, unless a
word such as "options" stands before them. "None", "all" or "always" alone are answers like any other.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from counterbalance.items.folding import fold_text
from counterbalance.items.reference_phrases import (
    ANYWHERE,
    BARE_FEMININE,
    CONNECTIVES,
    CYRILLIC_LETTERS,
    LEADS,
    NOUNS,
    QUANTIFIERS,
    TAILS,
    WHOLE,
)

_ARTICLE = r"(?:(?:la|el|le|l'|il|die|der|das|de|het|a|as|o|os) )?"
_LETTER = rf"{_ARTICLE}[(\[{{\"'«„“]*(?P<letter{{}}>[a-z{CYRILLIC_LETTERS}])[)\]}}.:\"'»”“]*"


def _plain(text: str) -> str:
    """Fold case and accents, keeping the marks of Japanese kana."""
    decomposed = unicodedata.normalize("NFD", fold_text(text).casefold())
    bare = "".join(char for char in decomposed if not "\u0300" <= char <= "\u036f")
    return unicodedata.normalize("NFC", bare).replace("’", "'")


def _any(patterns: Sequence[str]) -> str:
    return "(?:" + "|".join(sorted((_plain(pattern) for pattern in patterns), key=len, reverse=True)) + ")"


_ONE = _LETTER.replace("(?P<letter{}>", "(?:")
_LINK = rf"(?: ?[,;&、] ?(?:{_any(CONNECTIVES)} ?)?| ?{_any(CONNECTIVES)} ?)"
_LEAD = rf"(?:{_any(LEADS + NOUNS)} ?)"
_NOUN = rf"(?:{_any(NOUNS)} ?)"
_TAIL = rf"(?: ?{_any(TAILS)})"
_COMBINATION = re.compile(rf"{_LEAD}*{_ONE}(?:{_LINK}{_LEAD}*{_ONE})+{_TAIL}*\W*")
_NAMED = re.compile(rf"{_LEAD}*{_NOUN}{_ONE}(?:{_TAIL})*\W*|{_LEAD}*{_ONE}{_TAIL}+\W*|{_LEAD}+{_ONE}\W*")
_NUMBERED = re.compile(rf"{_LEAD}*{_NOUN}(?:\W*(?:[0-9]{{1,2}}|[ivx]{{1,4}})\W*(?:{_any(CONNECTIVES)}\W*)?)+{_TAIL}*\W*")
_SINGLE = re.compile(rf"[(\[{{\"'«]?([a-z{CYRILLIC_LETTERS}])[)\]}}.:\"'»]?")
_PHRASE = re.compile(rf"{_any(ANYWHERE)}|^{_any(WHOLE)}(?:,? {_any(TAILS)})*\W*$")
_FEMININE = re.compile(rf"{_any(BARE_FEMININE)}\W*")
_QUANTITY = re.compile(rf"(?:[0-9]|{_any(QUANTIFIERS)}\b)")


def find_references(options: Sequence[str], stem: str) -> list[int]:
    """Return the indices of the options that refer to other options or to their places.

    Parameters
    ----------
    options
        Option texts in the file's order, in which the first is A.
    stem
        The question; letters that it lists itself are not taken for options.
    """
    texts = [_plain(option) for option in options]
    letters = [_letters(text) for text in texts]
    listed = _listed_letters(_plain_stem(stem)) if any(letters) else frozenset()
    return [
        index
        for index, text in enumerate(texts)
        if _is_phrase(text, texts) or _means_options(index, letters, listed)
    ]


def _is_phrase(text: str, texts: Sequence[str]) -> bool:
    if _PHRASE.search(text) or _NUMBERED.fullmatch(text):
        return True
    # "Ninguna" agrees with "respuesta", unless the other options are quantities.
    return bool(_FEMININE.fullmatch(text)) and not any(_QUANTITY.match(other) for other in texts if other != text)


def _means_options(index: int, letters: Sequence[frozenset[int]], listed: frozenset[int]) -> bool:
    mine = letters[index]
    return (
        bool(mine)
        and all(other < len(letters) and other != index and not letters[other] for other in mine)
        and not mine <= listed
    )


@lru_cache(maxsize=4096)
def _letters(text: str) -> frozenset[int]:
    """Return the letters (A is 0) that an option consists of, apart from words that join them."""
    if _SINGLE.fullmatch(text):
        return _positions(text)
    if _COMBINATION.fullmatch(text) or _NAMED.fullmatch(text):
        return _positions(text)
    return frozenset()
