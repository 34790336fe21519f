"""The phrases of the chosen languages, compiled once into patterns whose cost is linear in the text."""

import re
from dataclasses import dataclass, fields
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

# Scripts written without spaces: a Latin letter next to them still stands alone.
_UNSPACED_SCRIPTS: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff"
WORD: Final = rf"[^\W_{_UNSPACED_SCRIPTS}]"
"""One character of a word in a script that separates words by spaces."""

_GAP: Final = r"[ \n]"
_NEVER: Final = r"(?!)"
_JOIN_MARK: Final = r"[,;/&+|\u3001]"


@dataclass(frozen=True)
class Grammar:
    """One pattern for each field of `Lexicon`, and some that join several."""

    words: dict[str, re.Pattern[str]]
    tags: re.Pattern[str]
    cue_nouns: re.Pattern[str]
    affirmed: re.Pattern[str]
    denied: re.Pattern[str]
    aside: re.Pattern[str]
    taken_back: re.Pattern[str]
    join: re.Pattern[str]
    dangling: re.Pattern[str]
    pivot: re.Pattern[str]
    refused: re.Pattern[str]
    sorry_unable: re.Pattern[str]

    def __getitem__(self, field: str) -> re.Pattern[str]:
        return self.words[field]


@lru_cache(maxsize=32)
def grammar(languages: tuple[str, ...]) -> Grammar:
    """Compile the phrases of `languages`.

    Raises
    ------
    InputError
        For a language code that is not known.
    """
    unknown = [code for code in languages if code not in LEXICONS and code not in CUE_NOUNS]
    if unknown:
        known = ", ".join([*LEXICONS, *CUE_NOUNS])
        raise InputError(f"reader option 'languages': unknown code {unknown[0]!r}; expected some of: {known}")
    lexicons = [LEXICONS[code] for code in languages if code in LEXICONS]
    minor = [CUE_NOUNS[code] for code in languages if code in CUE_NOUNS]
    source = {f.name: _source(lexicons, f.name) for f in fields(Lexicon) if f.name != "spaced"}
    copula, filler = source["copulas"], source["fillers"]
    verdict = rf"(?:{copula})(?:{_GAP}?(?:{filler})){{0,3}}{_GAP}?"
    unable, joins = source["unable"], source["joins"]
    return Grammar(
        words={name: _compile(pattern) for name, pattern in source.items()},
        tags=_compile(_tag_source(languages)),
        cue_nouns=_compile("|".join(_phrase(p, spaced=True) for p in _split(minor)) or _NEVER),
        affirmed=_compile(rf"{_GAP}?(?:{verdict}(?:{source['good']})|(?:{source['affirm']}))(?!-)"),
        denied=_compile(rf"{_GAP}?(?:{verdict}(?:{source['bad']})|(?:{source['deny']}))"),
        aside=_compile(rf" (?:{source['asides']})(?: [^\s.,;:!?()]{{1,40}}){{0,8}}?(?= (?:{copula}))"),
        taken_back=_compile(
            rf"(?:{source['negations']}|{source['disowned']}|{source['others']})"
            rf"(?:{_GAP}?(?:{source['attitudes']}|{filler}|{source['good']})){{0,5}}{_GAP}?$"
        ),
        join=_compile(rf" ?\(?(?:{_JOIN_MARK} ?(?:(?:{joins}) ?)?|(?:{joins}) ?)"),
        dangling=_compile(rf"[ \n]*(?:{_JOIN_MARK}[ \n]*)?(?:{joins})?[ \n]*$"),
        pivot=_compile(rf"[,;]? ?(?:(?:{source['pivots']}) ?){{1,2}}"),
        refused=_compile(
            rf"(?:{source['refusals']})|(?:{unable})(?:{_GAP}?[^\s.!?]{{1,30}}){{0,4}}?{_GAP}?(?:{source['deeds']})"
        ),
        sorry_unable=_compile(rf"(?:{source['sorry']})[^.!?]{{0,80}}?(?:{unable})"),
    )


def _compile(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)


def _split(lists: list[str]) -> list[str]:
    phrases = {phrase for joined in lists for phrase in joined.split("|") if phrase}
    return sorted(phrases, key=lambda phrase: (-len(phrase), phrase))


def _source(lexicons: list[Lexicon], field: str) -> str:
    """Longest phrase first, so that "final answer" is preferred to "final"."""
    spaced = {p: True for p in _split([getattr(x, field) for x in lexicons if x.spaced])}
    unspaced = {p: False for p in _split([getattr(x, field) for x in lexicons if not x.spaced])}
    phrases = sorted((spaced | unspaced).items(), key=lambda item: (-len(item[0]), item[0]))
    return "|".join(_phrase(p, spaced=s) for p, s in phrases) or _NEVER


def _phrase(phrase: str, *, spaced: bool) -> str:
    body = re.escape(phrase).replace(r"\ ", _GAP)
    before = rf"(?<!{WORD})" if spaced and phrase[0].isalnum() else ""
    after = rf"(?!{WORD})" if spaced and phrase[-1].isalnum() else ""
    return before + body + after


def _tag_source(languages: tuple[str, ...]) -> str:
    """Tags such as ``<answer>`` or ``[FINAL_ANSWER]``, whose content is the answer."""
    names = ["answer", "final_answer", "finalanswer", "final", "choice", "verdict", "option", "selection"]
    for code in languages:
        if code in LEXICONS:
            names += [n for n in LEXICONS[code].nouns.split("|") if " " not in n]
    body = "|".join(re.escape(n) for n in dict.fromkeys(names))
    return rf"<(?:{body})>|\[(?:{body})\]"
