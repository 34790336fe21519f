"""Read which option a reply chooses. See `read_answer`."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from counterbalance.errors import InputError
from counterbalance.reading.cues import find_cues
from counterbalance.reading.decide import decide
from counterbalance.reading.grammar import grammar
from counterbalance.reading.labelset import LabelHit, LabelSet, label_set
from counterbalance.reading.lead import opening
from counterbalance.reading.model import ReaderOptions, Reading
from counterbalance.reading.normalise import OWN_ALPHABET, normalise
from counterbalance.reading.phrases import WORD, small_letters
from counterbalance.reading.refusals import is_refusal
from counterbalance.reading.structured import json_answers
from counterbalance.reading.texts import OptionTexts
from counterbalance.reading.texts import option_texts as prepare_texts
from counterbalance.reading.thinking import strip_thinking
from counterbalance.reading.values import Source, Value, read_labels, tail_at
from counterbalance.reading.wrappers import plain

CUT_REASONS: Final = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "max_length"})
"""Finish reasons, in small letters, that mean that the output limit was reached."""

DEFAULT_OPTIONS: Final = ReaderOptions()

_TRIM: Final = " \n.,:;!?`\"'()[]{}|\u00ab\u00bb\u3002\u3001"
_WRAPPERS: Final = " \n`\"'()[]{}*_$"
_SEPARATORS: Final = re.compile(r"[\s,;/|&+\u3001]+")
_OTHER_ALPHABET: Final = re.compile(rf"(?<!{WORD})[{OWN_ALPHABET}](?!{WORD})")
_JOIN_MARK: Final = re.compile(r"[,;/|&+\u3001]")
_SHORT: Final = 60


def read_answer(
    text: str | None,
    *,
    labels: Sequence[str],
    option_texts: Sequence[str],
    finish_reason: str | None,
    reader: ReaderOptions = DEFAULT_OPTIONS,
) -> Reading:
    """Read which of `labels` the reply `text` chooses; never guess.

    Parameters
    ----------
    text
        The raw reply; None if the vendor sent no text.
    labels
        The labels that the prompt showed, in slot order.
    option_texts
        The texts beside them in the same order, or empty where options have no texts.
    finish_reason
        Why generation stopped, as the vendor says. Those in `CUT_REASONS` mark a cut reply.
    reader
        How to read.

    Returns
    -------
    Reading
        ``ok`` with a slot, or the reason why there is none. Permuting the labels in the text and in the
        label set permutes the result and changes nothing else.

    Raises
    ------
    InputError
        For labels that cannot be told apart, or as many texts as there are not labels.
    """
    known = label_set(tuple(labels))
    if option_texts and len(option_texts) != len(labels):
        raise InputError(
            f"option_texts: {len(option_texts)} given for {len(labels)} labels; "
            "give one text per label, in the same order, or none at all"
        )
    texts = prepare_texts(tuple(option_texts)) if option_texts and reader.option_text == "exact" else None
    cut = (finish_reason or "").lower() in CUT_REASONS
    if text is not None and text in known.cores and not cut and not (texts and texts.whole(text)):
        slot = known.slots[text]
        return Reading("ok", slot, (known.labels[slot],), "whole_label")
    deliberation = strip_thinking(normalise(text or ""), reader)
    notes = ("thinking removed",) if deliberation.found else ()
    if not deliberation.complete:
        return Reading("incomplete", None, (), "open_thinking", (*notes, *(("cut",) if cut else ())))
    reading = _Reader(known, texts, reader, cut).read(deliberation.reply)
    return _finish(reading, notes, cut=cut)


def _finish(reading: Reading, notes: tuple[str, ...], *, cut: bool) -> Reading:
    status = reading.status
    if cut and status in ("empty", "ambiguous", "unparsed"):
        status = "truncated"
    notes = (*notes, *reading.notes, *(("cut",) if cut else ()))
    return Reading(status, reading.slot, reading.candidates, reading.rule, tuple(dict.fromkeys(notes)))


class _Reader:
    """The rules in their order, for one item."""

    def __init__(self, labels: LabelSet, texts: OptionTexts | None, reader: ReaderOptions, cut: bool) -> None:
        self.labels = labels
        self.texts = texts
        self.grammar = grammar(reader.languages)
        self.cut = cut

    def read(self, reply: str) -> Reading:
        """Read a reply without deliberation."""
        fields = json_answers(reply, self.grammar)
        if fields:
            return self._read_fields(fields)
        bare, struck = plain(reply)
        notes = ("struck text removed",) if struck else ()
        reading = self._whole(reply, bare) or self._cued(bare) or self._uncued(bare)
        if any(note.startswith("look-alike") for note in reading.notes) and _OTHER_ALPHABET.search(bare):
            reading = Reading("ambiguous", None, reading.candidates, "other_alphabet", reading.notes)
        return Reading(reading.status, reading.slot, reading.candidates, reading.rule, (*notes, *reading.notes))

    def _read_fields(self, fields: tuple[str, ...]) -> Reading:
        """Read the answer fields of a JSON object; those that say nothing do not count."""
        readings = [self.read(field) for field in fields]
        telling = [r for r in readings if r.status in ("ok", "multiple", "ambiguous")] or readings[:1]
        candidates = tuple(label for r in telling for label in r.candidates)
        if len({(r.status, r.slot) for r in telling}) > 1:
            return Reading("ambiguous", None, candidates, "conflicting_fields")
        return Reading(telling[0].status, telling[0].slot, candidates, "json_field", telling[0].notes)

    def _whole(self, reply: str, bare: str) -> Reading | None:
        """Read a reply that is one label, a list of labels, or an option's text, and nothing else."""
        hits = self._only_labels(bare)
        restated = self._restated_slots(reply, bare)
        if not hits:
            if not restated:
                return None if bare.strip(_WRAPPERS) else Reading("empty", None, (), "nothing")
            return self._option_text(restated)
        slots = tuple(dict.fromkeys(hit.slot for hit in hits))
        names = self._names(slots)
        if restated and slots[0] not in restated:
            return Reading("ambiguous", None, names, "conflicting_text")
        if len(slots) > 1:
            joined = _JOIN_MARK.search(bare) or self.grammar["joins"].search(small_letters(bare))
            return Reading("multiple" if joined else "ambiguous", None, names, "labels_listed")
        notes = tuple(dict.fromkeys(hit.note for hit in hits if hit.note))
        open_end = bare[-1:].isalnum() or (self.labels.numeric and bare.endswith("."))
        if self.cut and open_end and (not hits[0].exact or slots[0] in self.labels.prefixes):
            return Reading("truncated", None, names, "cut_inside_label", notes)
        return Reading("ok", slots[0], names, "whole_label", notes)

    def _restated_slots(self, reply: str, bare: str) -> tuple[int, ...]:
        if self.texts is None:
            return ()
        return self.texts.whole(reply.strip()) or self.texts.whole(self._without_item(bare))

    def _option_text(self, slots: tuple[int, ...]) -> Reading:
        names = self._names(slots)
        if len(slots) > 1:
            return Reading("ambiguous", None, names, "duplicate_option_text")
        if self.cut and self.texts and self.texts.may_go_on(slots[0]):
            return Reading("truncated", None, names, "cut_inside_text")
        return Reading("ok", slots[0], names, "option_text")

    def _only_labels(self, bare: str) -> list[LabelHit]:
        trimmed = self._without_item(bare)
        hit = self.labels.whole(trimmed)
        if hit is not None:
            return [hit]
        if self.labels.numeric and "+" in bare:
            return []  # a sum
        hits: list[LabelHit] = []
        for token in _SEPARATORS.split(_trim(bare, self.labels)):
            if self.grammar["joins"].fullmatch(token.lower()) and hits:
                continue
            hit = self.labels.whole(token.strip(_TRIM))
            if hit is None or not hit.exact:
                return []
            hits.append(hit)
        return hits

    def _without_item(self, bare: str) -> str:
        """Give the reply without a word such as "option" or "answer" at its start."""
        trimmed = _trim(bare, self.labels)
        for field in ("items", "nouns"):
            item = self.grammar[field].match(small_letters(trimmed))
            if item and item.end() < len(trimmed) and self.labels.match(trimmed, 0) is None:
                return _trim(trimmed[item.end() :], self.labels)
        return trimmed

    def _cued(self, bare: str) -> Reading | None:
        src = Source.of(bare, self.labels, self.texts, self.grammar)
        cues = find_cues(src)
        names = self._names(tuple(slot for cue in cues for slot in cue.value.slots))
        verdict = decide(src, cues)
        if verdict is None:
            if not cues:
                return None
            refused = is_refusal(src.small, self.grammar, cut=self.cut)
            return Reading("refused" if refused else "unparsed", None, names, "refusal" if refused else "denied")
        value = verdict.value
        if verdict.status != "ok" or value is None:
            return Reading(verdict.status, None, names, verdict.rule, verdict.notes)
        if self.cut and self._cut_inside(src, value):
            return Reading("truncated", None, names, "cut_inside_label", verdict.notes)
        return Reading("ok", value.slots[0], names, verdict.rule, verdict.notes)

    def _cut_inside(self, src: Source, value: Value) -> bool:
        """Whether a cut reply may have gone on with more of this label, or with "or B"."""
        if value.end >= len(src.text):
            if value.kind == "text":
                return bool(src.texts and src.texts.may_go_on(value.slots[0]))
            return not value.exact or value.slots[0] in self.labels.prefixes
        return src.grammar.dangles(src.small, value.end)

    def _uncued(self, bare: str) -> Reading:
        """Say why a reply without a cue gives no answer."""
        src = Source.of(bare, self.labels, self.texts, self.grammar)
        special = _special(src)
        if special == "none":
            return Reading("unparsed", None, (), "none")
        if special:
            return Reading("multiple", None, (), special)
        listed = _leading_list(src)
        if listed is not None:
            rule = "equal" if _said_equal(src, listed.end) else "labels_listed"
            return Reading("multiple", None, self._names(listed.slots), rule)
        if is_refusal(src.small, self.grammar, cut=self.cut):
            return Reading("refused", None, (), "refusal")
        foreign = self._without_item(bare)
        if len(foreign) <= 2 and foreign.isalpha() and not foreign.isascii():
            return Reading("unparsed", None, (), "unknown_script")
        return Reading("unparsed", None, (), "no_rule")

    def _names(self, slots: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(self.labels.labels[slot] for slot in slots)


def _trim(text: str, labels: LabelSet) -> str:
    """Take off what may stand around a label that is the whole reply."""
    text = text.lstrip("*_" + _TRIM).rstrip(_TRIM)
    if not labels.numeric:
        text = text.lstrip("$#>-\u2022*_" + _TRIM).rstrip("$" + _TRIM)
    end = len(text)
    while end > 1 and (text[end - 1] in _TRIM or unicodedata.category(text[end - 1]) == "So"):
        end -= 1
    text = text[:end]
    # one star may belong to the word ("A*"); two are what is left of bold type
    return text[:-2].rstrip(_TRIM) if text.endswith(("**", "__")) else text


def _special(src: Source) -> str | None:
    """Read "Both are fine", "None of them", "It's a tie" at the start of a short reply."""
    if len(src.text) > _SHORT:
        return None
    start = opening(src)
    statement = src.grammar["statements"].match(src.small, start)
    begin = statement.end() + 1 if statement else start
    for kind in ("none", "both", "equal"):
        found = src.grammar[kind].match(src.small, begin)
        if found is None:
            continue
        said = src.grammar.affirms(src.small, found.end()) or src.grammar["copulas"].match(src.small, found.end() + 1)
        sentence = found.group().split()[-1]
        verb = src.grammar["copulas"].fullmatch(sentence) or src.grammar["plural"].fullmatch(sentence)
        if said or verb or tail_at(src, found.end()) is not None:
            return kind
    return None


def _leading_list(src: Source) -> Value | None:
    """Read "A or B, sources differ" at the start of a reply."""
    start = opening(src)
    for _ in range(2):
        value = read_labels(src, start)
        if value is not None:
            return value if len(value.slots) > 1 and not value.denied else None
        filler = src.grammar["fillers"].match(src.small, start)
        if filler is None:
            return None
        start = filler.end() + src.text.startswith(" ", filler.end())
    return None


def _said_equal(src: Source, position: int) -> bool:
    return src.grammar["equal"].search(src.small, position, position + _SHORT) is not None
