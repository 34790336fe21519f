"""The phrases of the chosen languages, and the small constructions that join several of them."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from counterbalance.errors import InputError
from counterbalance.reading.lexicon import CUE_NOUNS, Lexicon
from counterbalance.reading.lexicon_cjk import CHINESE, JAPANESE, KOREAN
from counterbalance.reading.lexicon_en import ENGLISH
from counterbalance.reading.lexicon_more import (
    DUTCH,
    FRENCH,
    GERMAN,
    ITALIAN,
    POLISH,
    PORTUGUESE,
    RUSSIAN,
    SPANISH,
)
from counterbalance.reading.phrases import Phrases

LEXICONS: Final[dict[str, Lexicon]] = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "es": SPANISH,
    "it": ITALIAN,
    "pt": PORTUGUESE,
    "nl": DUTCH,
    "pl": POLISH,
    "ru": RUSSIAN,
    "zh": CHINESE,
    "ja": JAPANESE,
    "ko": KOREAN,
}

_TAG_NAMES: Final = (
    "answer",
    "final_answer",
    "finalanswer",
    "final",
    "choice",
    "verdict",
    "option",
    "selection",
)
_BLANKS: Final = " \n"
_JOIN_MARKS: Final = ",;/&+|\u3001"
_ASIDE_WORD: Final = re.compile(r" [^\s.,;:!?()]{1,40}")
_ASIDE_WORDS: Final = 9
_GAP_WORDS: Final = 4
_REACH: Final = 80
_SENTENCE_END: Final = re.compile(r"[.!?\u3002]")


@dataclass
class Grammar:
    """The phrases of some languages by field of `Lexicon`; all methods take texts in small letters."""

    languages: tuple[str, ...]
    _fields: dict[str, Phrases] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Phrases:
        """Give the phrases of one field, compiled when first asked for."""
        if name not in self._fields:
            self._fields[name] = self._compile(name)
        return self._fields[name]

    def _compile(self, name: str) -> Phrases:
        lexicons = [LEXICONS[code] for code in self.languages if code in LEXICONS]
        if name == "tags":
            names = {n for x in lexicons for n in x.nouns.split("|") if " " not in n} | set(_TAG_NAMES)
            return Phrases([], [f"{a}{n}{b}" for n in names for a, b in ("<>", "[]")])
        if name == "cue_nouns":
            return Phrases(_split([CUE_NOUNS[code] for code in self.languages if code in CUE_NOUNS]))
        spaced = _split([getattr(x, name) for x in lexicons if x.spaced])
        return Phrases(spaced, _split([getattr(x, name) for x in lexicons if not x.spaced]))

    def affirms(self, text: str, position: int) -> int | None:
        """Where "is the correct answer" or "wins" ends that starts at `position`, or None."""
        return self._predicate(text, position, "good", "affirm")

    def denies(self, text: str, position: int) -> int | None:
        """Where "is wrong" or "can be ruled out" ends that starts at `position`, or None."""
        return self._predicate(text, position, "bad", "deny")

    def _predicate(self, text: str, position: int, quality: str, direct: str) -> int | None:
        start = position + (text[position : position + 1] in ("\n", " "))
        whole = self[direct].match(text, start)
        verb = self["copulas"].match(text, start)
        end = verb.end() if verb else None
        for _ in range(4):
            if end is None:
                break
            end = _skip_blank(text, end)
            found = self[quality].match(text, end)
            if found and not text.startswith("-", found.end()):
                return found.end()
            filler = self["fillers"].match(text, end)
            end = filler.end() if filler else None
        return whole.end() if whole else None

    def takes_back(self, clause: str) -> bool:
        """Whether `clause` ends in "not", "people say" or "a wrong", so that it disowns what follows."""
        for name in ("negations", "disowned", "others"):
            for found in self[name].finditer(clause):
                end = _skip_blank(clause, found.end())
                for _ in range(5):
                    words = (self[n].match(clause, end) for n in ("attitudes", "fillers", "good"))
                    end = _skip_blank(clause, max((w.end() for w in words if w), default=end))
                if end >= len(clause):
                    return True
        return False

    def after_aside(self, text: str, position: int) -> int:
        """Pass over "to this question" if a link such as "is" follows."""
        if not (text.startswith(" ", position) and self["asides"].match(text, position + 1)):
            return position
        end = position
        for _ in range(_ASIDE_WORDS):
            word = _ASIDE_WORD.match(text, end)
            if word is None:
                break
            end = word.end()
            if text.startswith(" ", end) and self["copulas"].match(text, end + 1):
                return end
        return position

    def after_join(self, text: str, position: int) -> int | None:
        """Where "or", "and", a comma or a slash ends that joins what precedes to a further label."""
        start = _skip_blank(text, position)
        start += text.startswith("(", start)
        mark = text[start : start + 1] in tuple(_JOIN_MARKS)
        if mark:
            start = _skip_blank(text, start + 1)
        word = self["joins"].match(text, start)
        if not mark and word is None:
            return None
        return _skip_blank(text, word.end()) if word else start

    def dangles(self, text: str, position: int) -> bool:
        """Whether nothing but a join follows `position`, as in "A or"."""
        rest = text[position : position + 40].strip(_BLANKS)
        return rest == "" or (len(text) - position < 40 and self.after_join(rest, 0) == len(rest))

    def after_pivot(self, text: str, position: int) -> int | None:
        """Where "but rather" ends that turns from a denied value to the right one."""
        start = position + (text[position : position + 1] in (",", ";"))
        start = _skip_blank(text, start)
        end = None
        for _ in range(2):
            found = self["pivots"].match(text, start)
            if found is None:
                break
            end = start = _skip_blank(text, found.end())
        return end

    def refuses(self, text: str) -> bool:
        """Whether `text` holds a whole refusal: "I can't help", "I must decline"."""
        if self["refusals"].search(text):
            return True
        for found in self["unable"].finditer(text):
            rest = _SENTENCE_END.split(text[found.end() : found.end() + _REACH])[0]
            for deed in self["deeds"].finditer(rest):
                if len(rest[: deed.start()].split()) <= _GAP_WORDS:
                    return True
        return False

    def apologises(self, text: str) -> bool:
        """Whether `text` says sorry and goes on with "I cannot" in the same sentence."""
        for found in self["sorry"].finditer(text):
            rest = _SENTENCE_END.split(text[found.end() : found.end() + _REACH])[0]
            if self["unable"].search(rest):
                return True
        return False


@lru_cache(maxsize=32)
def grammar(languages: tuple[str, ...]) -> Grammar:
    """Give the grammar of `languages`.

    Raises
    ------
    InputError
        For a language code that is not known.
    """
    unknown = [code for code in languages if code not in LEXICONS and code not in CUE_NOUNS]
    if unknown:
        known = ", ".join([*LEXICONS, *CUE_NOUNS])
        raise InputError(f"reader option 'languages': unknown code {unknown[0]!r}; expected some of: {known}")
    return Grammar(languages)


def _split(lists: list[str]) -> list[str]:
    return [phrase for joined in lists for phrase in joined.split("|") if phrase]


def _skip_blank(text: str, position: int) -> int:
    return position + 1 if text[position : position + 1] in (" ", "\n") else position
