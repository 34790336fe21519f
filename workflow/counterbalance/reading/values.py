"""Read what stands after a cue: one label, several, an option's text, or words such as "both" and "none"."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal

from counterbalance.reading.grammar import Grammar
from counterbalance.reading.labelset import LabelHit, LabelSet
from counterbalance.reading.phrases import WORD, small_letters
from counterbalance.reading.texts import OptionTexts

Kind = Literal["labels", "text", "both", "none", "equal"]
Tail = Literal["end", "comma", "word"]

_OPENERS: Final = re.compile(
    r"""(?:[ "'(\[{<$*_|\u00ab\u2039\u300c\u300e\u3010\u3014\u3008\u300a\u2022]|\\[A-Za-z]{2,20}\*? ?\{){1,12}"""
)
_CLOSERS: Final = re.compile(r"""(?:[)\]}>"'$\u00bb\u203a\u300d\u300f\u3011\u3015\u3009\u300b]|\*\*|__){0,12}""")
_LINK: Final = re.compile(r" ?(?::|=>?|->|\u2192|\u21d2|\u2014(?!\d)|[\u2013-](?= ))")
_ECHO: Final = re.compile(r" ?[(\[]([^()\[\]\n]{1,80})[)\]](?= ?[:=])")
_BULLET: Final = re.compile(r"(?:[-*\u2022] )?[\"'(\[{<*_]{0,8}")
_REST: Final = re.compile(r"""(?:[.):,;!?]| ?[-\u2013\u2014=](?= )| (?=[(\["'\u00ab]))?[ "'(\[\u00ab]*""")
_TEXT_END: Final = re.compile(r"[.!?;\u3002]+(?=[ \n]|$)|(?=\n)|$")
_BRACKET: Final = re.compile(r" ?[(\[]")
_SENTENCE_START: Final = re.compile(r"[A-Z][a-z]")
_LINE_END: Final = re.compile(r"[.!?]?(?=\n|$)")
_MAX_STEPS: Final = 20
_MAX_LABELS: Final = 32


@dataclass(frozen=True)
class Source:
    """A flattened reply and all that is needed to read it."""

    text: str
    small: str
    labels: LabelSet
    texts: OptionTexts | None
    grammar: Grammar

    @classmethod
    def of(cls, text: str, labels: LabelSet, texts: OptionTexts | None, grammar: Grammar) -> "Source":
        """Prepare a flattened reply."""
        return cls(text, small_letters(text), labels, texts, grammar)


@dataclass(frozen=True)
class Value:
    """What one cue points to.

    `denied`: the reply says that it is not this. `hedged`: it says so tentatively. `clash`: the label stands
    beside the text of another option. `tail`: how the value ends.
    """

    kind: Kind
    slots: tuple[int, ...]
    start: int
    end: int
    tail: Tail = "end"
    exact: bool = True
    denied: bool = False
    hedged: bool = False
    clash: bool = False
    notes: tuple[str, ...] = ()


def read_value(
    src: Source, position: int, *, linked: bool, noun: bool = False, pivots: bool = True
) -> tuple[Value, ...]:
    """Read the value that starts at or shortly after `position`.

    Parameters
    ----------
    linked
        Whether a link (a colon, "is") was already seen; without one nothing is read.
    noun
        Whether `position` follows a cue noun, which may be followed by an aside or an echo of the prompt.
    pivots
        Whether a denied value may be followed by "but" and the right one.

    Returns
    -------
    Usually one value; two for "not B but C"; none when something else follows.
    """
    if noun:
        position = _skip_aside(src, position)
    denied = hedged = crossed = False
    for _ in range(_MAX_STEPS):
        value = _value_at(src, position) if linked else None
        if value is not None:
            break
        step = _step(src, position, linked=linked, crossed=crossed)
        if step is None:
            return ()
        position, what = step
        linked |= what in ("link", "line", "negation")
        crossed |= what == "line"
        denied |= what == "negation"
        hedged |= what == "hedge"
    else:
        return ()
    if crossed and value.kind == "labels":
        value = _with_next_lines(src, value)
    value = replace(value, denied=value.denied or denied, hedged=value.hedged or hedged)
    if not value.denied or not pivots:
        return (value,)
    turn = src.grammar.after_pivot(src.small, value.end)
    return (value, *(read_value(src, turn, linked=True, pivots=False) if turn is not None else ()))


def read_labels(src: Source, position: int) -> Value | None:
    """Read a label, or labels joined by "and", "or", a comma or a slash, at exactly `position`."""
    first = src.labels.match(src.text, position)
    if first is None:
        return None
    hits = _label_list(src, first)
    end = closers_end(src, hits[-1].end)
    slots = tuple(dict.fromkeys(hit.slot for hit in hits))
    notes = tuple(hit.note for hit in hits if hit.note)
    value = Value("labels", slots, first.start, end, exact=all(hit.exact for hit in hits), notes=notes)
    if _is_denied(src, hits[0], hits[-1], end):
        return replace(value, denied=True)
    if len(hits) > 1 and len(slots) == 1 and src.labels.numeric:
        return None  # "2 + 2"
    tail = tail_at(src, hits[-1].end) or ("word" if len(hits) > 1 or _own_text_follows(src, first, end) else None)
    if tail is None or (tail == "word" and not value.exact):
        return None
    hedged = src.text.startswith("?", end) or bool(src.grammar["hedges"].match(src.small, end + 1))
    return replace(value, tail=tail, hedged=hedged, clash=len(slots) == 1 and _clashes(src, hits[0], end))


def tail_at(src: Source, position: int) -> Tail | None:
    """How a label ends at `position`: at a stop, a comma, a word that may follow it, or not at all."""
    text = src.text
    end = closers_end(src, position)
    if end >= len(text) or text[end] == "\n":
        return "end"
    char, after = text[end], text[end + 1 : end + 2]
    bracketed = end > position and text[end - 1] in ")]}\u00bb\u300d\u300f\u3011"
    if char in ".,;:!?\u3002\u3001":
        kind: Tail = "comma" if char in ",\u3001" else "end"
        if not after or not re.match(WORD, after):
            return kind
        glued = char == ":" or (char == "." and _SENTENCE_START.match(text, end + 1) is not None)
        return kind if glued and not after.isdigit() else None
    if char in "\u2013\u2014\u2192\u21d2|\\<" or unicodedata.category(char) == "So":
        return "end"
    if char in "([":
        return None if src.labels.numeric else "end"
    if bracketed and not char.isdigit():
        return "end"
    return _tail_word(src, end)


def retractions(src: Source, start: int, end: int) -> Iterator[re.Match[str]]:
    """Find words that take back what was said, unless the item uses them as labels ("No")."""
    for found in src.grammar["retractions"].finditer(src.small, start, end):
        if src.labels.match(src.text, found.start()) is None:
            yield found


def closers_end(src: Source, position: int) -> int:
    """Where the closing quotes and brackets at `position` end."""
    found = _CLOSERS.match(src.text, position)
    return found.end() if found else position


def text_value(src: Source, position: int) -> Value | None:
    """Read an option's text at exactly `position`; it must end its clause."""
    if src.texts is None:
        return None
    end, slots = src.texts.at(src.text, position)
    if not slots or not _ends_text(src, end):
        return None
    opener = _BRACKET.match(src.text, end)
    beside = src.labels.match(src.text, opener.end()) if opener else None
    clash = len(slots) > 1 or (beside is not None and beside.slot not in slots)
    return Value("text", slots, position, end, clash=clash)


def _value_at(src: Source, position: int) -> Value | None:
    value = read_labels(src, position)
    if value is not None:
        # an option called "E. coli" is named by that text and not by the label E
        text = text_value(src, position)
        longer = text is not None and len(text.slots) == 1 and text.end > value.end and value.clash
        return text if longer else value
    for kind in ("both", "none", "equal"):
        found = src.grammar[kind].match(src.text, position)
        if found and tail_at(src, found.end()) in ("end", "comma"):
            special = text_value(src, position)
            return special or Value(kind, (), position, found.end())
    return text_value(src, position)


def _skip_aside(src: Source, position: int) -> int:
    echo = _ECHO.match(src.text, position)
    if echo and src.labels.whole(echo.group(1).strip(" .*\"'")) is None:
        return echo.end()
    return src.grammar.after_aside(src.small, position)


def _step(src: Source, position: int, *, linked: bool, crossed: bool) -> tuple[int, str] | None:
    """Pass over one thing that may stand between a cue and its value."""
    text, small, words = src.text, src.small, src.grammar
    if position >= len(text):
        return None
    if text[position] == "\n":
        return None if crossed else (position + 1, "line")
    if text[position] == "," and linked:
        return position + 1, "pause"
    found = _LINK.match(text, position)
    if found:
        return found.end(), "link"
    if text[position] == " ":
        return position + 1, "opener"  # alone, as an option's text may start with a bracket
    found = _OPENERS.match(text, position)
    if found:
        return found.end(), "opener"
    for field, what in (
        ("negations", "negation"),
        ("copulas", "link"),
        ("hedges", "hedge"),
        ("fillers", "filler"),
    ):
        found = words[field].match(small, position)
        if found:
            return found.end(), what
    return None


def _label_list(src: Source, first: LabelHit) -> list[LabelHit]:
    """Follow a list of labels, and drop from its end what the text shows to be no member of it."""
    hits = [first]
    while len(hits) < _MAX_LABELS:
        joined = src.grammar.after_join(src.small, closers_end(src, hits[-1].end))
        hit = src.labels.match(src.text, _to_label(src, joined)) if joined is not None else None
        if hit is None:
            break
        hits.append(hit)
    while len(hits) > 1 and not _ends_list(src, hits[-1].end):
        hits.pop()
    return hits


def _ends_list(src: Source, position: int) -> bool:
    """Tell "B and C." and "B and C are right" from "B, and C is wrong" and "B, a lens"."""
    if tail_at(src, position) is not None:
        return True
    end = closers_end(src, position)
    return any(src.grammar["plural"].match(src.small, start) for start in (end, end + 1))


def _to_label(src: Source, position: int) -> int:
    """Pass over brackets and words such as "option" in front of a label."""
    opened = _OPENERS.match(src.text, position)
    position = opened.end() if opened else position
    item = src.grammar["items"].match(src.small, position)
    if item:
        opened = _OPENERS.match(src.text, item.end())
        position = opened.end() if opened else item.end()
    return position


def _tail_word(src: Source, end: int) -> Tail | None:
    text, small, words = src.text, src.small, src.grammar
    spaced = text[end] == " "
    start = end + 1 if spaced else end
    following = text[start : start + 1]
    if spaced:
        if following in "-\u2013\u2014=|" and text[start + 1 : start + 2] in (" ", ""):
            return "end"
        if following in "([{\"'\u00ab\u201c\u2192\u21d2<" or unicodedata.category(following) == "So":
            return "end"
        negated = words["negations"].match(small, start)
        if negated and _label_follows(src, negated.end()):
            return "word"
    if words["because"].match(small, start) or words["contrasts"].match(small, start):
        return "word"
    if not src.labels.numeric and words["going_on"].match(small, start):
        return "word"
    closing = words["closing"].match(small, start)
    if closing and (closing.end() >= len(text) or text[closing.end()] in ".,!?\n"):
        return "word"
    return None


def _is_denied(src: Source, first: LabelHit, last: LabelHit, end: int) -> bool:
    """Tell "C is wrong" and "(C) is wrong" from "C) is wrong to do", "C is not B" and an option that is so worded."""
    denial = src.grammar.denies(src.small, end)
    if denial is None or _label_follows(src, denial) or _own_text_follows(src, last, end):
        return False
    opened = src.text[first.start - 1 : first.start] in tuple("([{<\"'")
    return opened or end == last.end


def _own_text_follows(src: Source, hit: LabelHit, end: int) -> bool:
    """Whether the label's own text follows without a delimiter, as in "B the lens"."""
    beside = text_value(src, end + 1) if src.text.startswith(" ", end) else None
    return beside is not None and beside.slots == (hit.slot,)


def _label_follows(src: Source, position: int) -> bool:
    hit = src.labels.match(src.text, _to_label(src, position))
    return hit is not None and hit.exact


def _clashes(src: Source, hit: LabelHit, end: int) -> bool:
    """Whether the reply beside the label names another option."""
    if src.texts is not None:
        text_end, slots = src.texts.at(src.text, hit.start)
        if slots and hit.slot not in slots and text_end >= hit.end:
            return True
    joined = src.grammar.after_join(src.small, end)
    alternative = text_value(src, joined) if joined is not None else None
    if alternative is not None and hit.slot not in alternative.slots:
        return True
    found = _REST.match(src.text, end)
    start = found.end() if found else end
    if start == end and start < len(src.text):
        return False
    other = text_value(src, start)
    if other is not None:
        return hit.slot not in other.slots
    label = src.labels.match(src.text, start)
    if label is None or label.slot == hit.slot or not label.exact:
        return False
    return _LINE_END.match(src.text, closers_end(src, label.end)) is not None


def _ends_text(src: Source, position: int) -> bool:
    end = closers_end(src, position)
    if _TEXT_END.match(src.text, end) or _BRACKET.match(src.text, end):
        return True
    return src.grammar["because"].match(src.small, end + 1) is not None


def _with_next_lines(src: Source, value: Value) -> Value:
    """Add the labels that head the next lines: an answer that is a list, or the options repeated."""
    slots, position = list(value.slots), value.end
    while len(slots) < _MAX_LABELS and (line := src.text.find("\n", position)) >= 0:
        bullet = _BULLET.match(src.text, line + 1)
        hit = src.labels.match(src.text, bullet.end() if bullet else line + 1)
        if hit is None or tail_at(src, hit.end) != "end":
            break
        slots.append(hit.slot)
        position = hit.end
    return replace(value, slots=tuple(dict.fromkeys(slots)))
