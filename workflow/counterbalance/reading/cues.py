"""Find the places where a reply says which option it means."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from counterbalance.reading.lead import read_lead
from counterbalance.reading.values import Source, Value, closers_end, read_labels, read_value, retractions

TENTATIVE, PLAIN, CONCLUDING, FINAL = -1, 0, 1, 2
"""How firmly a cue is put; of two that differ, only a firmer one prevails."""

_TOKEN: Final = re.compile(r"\[\[(?=[^\[\]\n]{1,80}\]\])|\\(?:boxed|fbox) ?\{")
_SENTENCE: Final = re.compile(r"[.!?\u3002](?=[ \n\"')]|$)|\n")
_CLAUSE: Final = re.compile(r"[,;:()\u2014\uff0c\u3001]")
_AFTER_RETRACTION: Final = re.compile(r"[ ,.:;!\u2014\u2013-]{0,6}")
_BEFORE_SUBJECT: Final = re.compile(r"(?:^|[^\w\s/&+]|\n)[ \"'(\[{*_]*$")
_COLON: Final = re.compile(r"[ *]*[:\n]")
_LINE_END: Final = re.compile(r"[.!]?(?:\n|$)")
_ENDS_SENTENCE: Final = re.compile(r"[.!?\u3002]|\n|$")
_WINDOW: Final = 160


@dataclass(frozen=True)
class Cue:
    """One statement about the answer: from `start`, with `value`, as firm as `strength`."""

    start: int
    value: Value
    strength: int
    rule: str


def find_cues(src: Source) -> list[Cue]:
    """Give the cues of a reply in the order of their values, one for each value."""
    merged: list[Cue] = []
    for cue in sorted(_all_cues(src), key=lambda c: (c.value.start, c.start)):
        if merged and cue.value.start < merged[-1].value.end:
            merged[-1] = _merge(merged[-1], cue)
        else:
            merged.append(cue)
    return merged


def _clause_before(src: Source, position: int) -> tuple[str, str]:
    """The sentence up to `position`, and its last clause, each from a window of bounded length."""
    window = src.small[max(0, position - _WINDOW) : position]
    sentence = window[_last_end(_SENTENCE, window) :]
    clause = sentence[_last_end(_CLAUSE, sentence) :]
    return sentence, clause[max((m.end() for m in src.grammar["clause_breaks"].finditer(clause)), default=0) :]


def _all_cues(src: Source) -> Iterator[Cue]:
    yield from _noun_cues(src)
    yield from _word_cues(src)
    yield from _token_cues(src)
    yield from _subject_cues(src)
    yield from _corrections(src)
    lead = read_lead(src)
    if lead is not None:
        yield Cue(lead.start, lead, TENTATIVE if lead.hedged else PLAIN, "lead_label")


def _noun_cues(src: Source) -> Iterator[Cue]:
    for found in src.grammar["nouns"].finditer(src.small):
        values = read_value(src, found.end(), linked=False, noun=True)
        if not values and not src.grammar["items"].fullmatch(found.group()):
            values = _bare_heading(src, found)
        yield from _cues(src, found, values, "cue")
    for found in src.grammar["tags"].finditer(src.small):
        yield from _cues(src, found, read_value(src, found.end(), linked=True), "tag")
    for found in src.grammar["cue_nouns"].finditer(src.small):
        link = _COLON.match(src.text, found.end())
        if link:
            yield from _cues(src, found, read_value(src, link.end(), linked=True), "cue")


def _bare_heading(src: Source, found: re.Match[str]) -> tuple[Value, ...]:
    """Read "Answer B" where it is a line of its own."""
    text = src.text
    if found.start() > 0 and text[found.start() - 1] != "\n":
        return ()
    value = read_labels(src, found.end() + 1) if text.startswith(" ", found.end()) else None
    if value is None or not _LINE_END.match(text, value.end):
        return ()
    return (value,)


def _word_cues(src: Source) -> Iterator[Cue]:
    for found in src.grammar["picks"].finditer(src.small):
        yield from _cues(src, found, read_value(src, found.end(), linked=True), "pick")
    if src.labels.numeric:
        return  # "it is 5" is a number as often as a label
    for found in src.grammar["statements"].finditer(src.small):
        if _starts_clause(src, found.start()):
            yield from _cues(src, found, _said_at_once(src, found), "statement")
    for found in src.grammar["concluding"].finditer(src.small):
        values = tuple(v for v in _said_at_once(src, found) if v.tail == "end")
        yield from _cues(src, found, values, "conclusion")


def _token_cues(src: Source) -> Iterator[Cue]:
    for found in _TOKEN.finditer(src.text):
        yield from _cues(src, found, read_value(src, found.end(), linked=True), "verdict_token")


def _subject_cues(src: Source) -> Iterator[Cue]:
    """Read "B is correct" and "A and C are right"."""
    done = 0
    for found in src.labels.pattern.finditer(src.text):
        if found.start() < done:
            continue
        hit = src.labels.hit(found)
        end = closers_end(src, hit.end)
        # most labels in prose are articles; this is the cheap test that they are no subject
        if src.grammar.affirms(src.small, end) is None and src.grammar.after_join(src.small, end) is None:
            continue
        if not hit.exact or not _starts_clause(src, hit.start):
            continue
        listed = read_labels(src, hit.start)
        value = listed or Value("labels", (hit.slot,), hit.start, end)
        done = value.end
        verdict = src.grammar.affirms(src.small, done)
        if verdict is None or value.denied:
            continue
        done = verdict
        asked = src.text.startswith("?", done)
        notes = (hit.note,) if hit.note else ()
        value = replace(value, hedged=asked, notes=value.notes or notes, tail="word")
        yield from _cues(src, found, (value,), "predicate")


def _corrections(src: Source) -> Iterator[Cue]:
    """Read "wait, B." and "no, C": a label right after a word that takes the last one back."""
    for found in retractions(src, 0, len(src.text)):
        if found.group()[-1] in ".!;:":
            continue  # "A. No. B. Yes." goes through the options
        gap = _AFTER_RETRACTION.match(src.text, found.end())
        for value in _said_at_once(src, found, gap.end() if gap else None):
            if value.tail == "end" and _ENDS_SENTENCE.match(src.text, value.end):
                yield Cue(found.start(), value, TENTATIVE if value.hedged else FINAL, "correction")


def _cues(src: Source, found: re.Match[str], values: tuple[Value, ...], rule: str) -> Iterator[Cue]:
    """Weigh what was said before the cue: who says it, how firmly, or whether it is taken back."""
    if not values:
        return
    sentence, clause = _clause_before(src, found.start())
    words = src.grammar
    sure = words["unsure"].remove(clause)
    taken_back = words.takes_back(sure)
    said = sure + src.small[found.start() : values[0].start]
    spoken = sentence + src.small[found.start() : values[0].start]
    hedged = sure != clause or words["hedges"].search(said) is not None
    firm = PLAIN
    if words["final"].search(spoken):
        firm = FINAL
    elif words["concluding"].search(spoken):
        firm = CONCLUDING
    for value in values:
        tentative = (hedged or value.hedged) and firm != FINAL
        # a denial in the clause reaches the first value only: "not B but C"
        denied = value.denied or (taken_back and value is values[0])
        yield Cue(
            found.start(),
            replace(value, denied=denied, hedged=hedged or value.hedged),
            TENTATIVE if tentative else firm,
            rule,
        )


def _merge(first: Cue, second: Cue) -> Cue:
    """Join two cues that point at the same value, such as "final answer" and a verdict token."""
    tentative = TENTATIVE in (first.strength, second.strength)
    strength = max(first.strength, second.strength)
    value = replace(
        first.value,
        denied=first.value.denied or second.value.denied,
        hedged=first.value.hedged or second.value.hedged,
        clash=first.value.clash or second.value.clash,
    )
    return Cue(
        min(first.start, second.start),
        value,
        TENTATIVE if tentative and strength < FINAL else strength,
        first.rule,
    )


def _said_at_once(src: Source, found: re.Match[str], position: int | None = None) -> tuple[Value, ...]:
    """Give the labels that follow in the same line, as spelled: weak cues are read strictly."""
    values = read_value(src, found.end() if position is None else position, linked=True)
    return tuple(v for v in values if v.kind == "labels" and v.exact and "\n" not in src.text[found.end() : v.start])


def _starts_clause(src: Source, position: int) -> bool:
    window = src.small[max(0, position - 24) : position]
    if position > 24:
        window = "x" + window
    if _BEFORE_SUBJECT.search(window):
        return True
    return src.grammar["subjects"].ends(window.rstrip(" \"'([{*_"))


def _last_end(pattern: re.Pattern[str], text: str) -> int:
    end = 0
    for found in pattern.finditer(text):
        end = found.end()
    return end
