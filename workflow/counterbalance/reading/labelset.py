"""Find the labels of one item in a text, exactly as they are spelled or as they look."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from counterbalance.errors import InputError
from counterbalance.reading.normalise import LOOKALIKES, collapse, normalise, skeleton
from counterbalance.reading.phrases import NOT_PART_OF_NUMBER, WORD

_TWINS: Final[dict[str, str]] = {}
for _twin, _latin in LOOKALIKES.items():
    _TWINS[_latin] = _TWINS.get(_latin, "") + _twin

_DRESS: Final = " \t\n.,:;()[]{}<>\"'`*_"
_MARKS: Final = "\u0300-\u036f"


@dataclass(frozen=True)
class LabelHit:
    """A label found at one place; `exact` is false for a single letter in the other case."""

    slot: int
    start: int
    end: int
    exact: bool
    note: str | None


@dataclass(frozen=True)
class LabelSet:
    """The labels of one item, compiled.

    `numeric`: some label is a number, so that a number may also be a quantity. `prefixes`: slots whose label
    begins another label. `words`: all labels are words such as Yes and No.
    """

    labels: tuple[str, ...]
    cores: tuple[str, ...]
    pattern: re.Pattern[str]
    slots: dict[str, int]
    numeric: bool
    prefixes: frozenset[int]
    words: bool
    known: dict[str, tuple[int, bool, str | None]] = field(default_factory=dict, compare=False, repr=False)

    def match(self, text: str, position: int) -> LabelHit | None:
        """The label that starts exactly at `position`, the longest if several do."""
        found = self.pattern.match(text, position)
        return None if found is None else self.hit(found)

    def whole(self, text: str) -> LabelHit | None:
        """The label that `text` consists of."""
        found = self.pattern.fullmatch(text)
        return None if found is None else self.hit(found)

    def hit(self, found: re.Match[str]) -> LabelHit:
        """Say which label a match of `pattern` is."""
        slot, exact, note = self._identify(found.group())
        return LabelHit(slot, found.start(), found.end(), exact, note)

    def _identify(self, group: str) -> tuple[int, bool, str | None]:
        if group in self.known:
            return self.known[group]
        spelled = " ".join(group.split())
        slot = self._slot(spelled)
        core, note = self.cores[slot], None
        if spelled.casefold() != core.casefold():
            i = next(i for i, char in enumerate(spelled) if char.casefold() != core[i].casefold())
            note = f"look-alike U+{ord(spelled[i]):04X} read as {core[i]}"
        exact = len(spelled) > 1 or skeleton(spelled) == skeleton(core)
        self.known[group] = slot, exact, note
        return self.known[group]

    def _slot(self, spelled: str) -> int:
        for form in (spelled, skeleton(spelled), spelled.casefold()):
            if form in self.slots:
                return self.slots[form]
        return self.slots[skeleton(spelled).casefold()]


@lru_cache(maxsize=4096)
def label_set(labels: tuple[str, ...]) -> LabelSet:
    """Compile `labels`.

    A label is known by its core: the label in NFKC without brackets, quotes and stops around it. Letter case
    is ignored when no two cores differ by case alone, and look-alikes are accepted when no two cores look alike.

    Raises
    ------
    InputError
        For fewer than two labels, an empty label, or two labels with one core.
    """
    cores = tuple(_core(label) for label in labels)
    _check(labels, cores)
    folds = len({c.casefold() for c in cores}) == len(cores)
    looks = len({skeleton(c).casefold() if folds else skeleton(c) for c in cores}) == len(cores)
    slots = {core: slot for slot, core in enumerate(cores)}
    if folds:
        slots |= {core.casefold(): slot for slot, core in enumerate(cores)} | slots
    if looks:
        slots |= {skeleton(core): slot for slot, core in enumerate(cores)} | slots
        if folds:
            slots |= {skeleton(core).casefold(): slot for slot, core in enumerate(cores)} | slots
    by_length = sorted(cores, key=len, reverse=True)
    pattern = re.compile("|".join(_spelling(core, folds=folds, looks=looks) for core in by_length))
    lowered = [core.casefold() for core in cores]
    prefixes = frozenset(i for i, a in enumerate(lowered) if any(a != b and b.startswith(a) for b in lowered))
    numeric = any(core[0].isdigit() for core in cores)
    words = all(len(core) > 1 and core.isalpha() for core in cores)
    return LabelSet(labels, cores, pattern, slots, numeric, prefixes, words)


def _core(label: str) -> str:
    text = collapse(normalise(label))
    return text.strip(_DRESS) or text


def _check(labels: Sequence[str], cores: Sequence[str]) -> None:
    if len(labels) < 2:
        raise InputError(f"labels: {len(labels)} given; an item needs at least 2 labels to choose from")
    for i, core in enumerate(cores):
        if not core:
            raise InputError(f"labels: label {i + 1} ({labels[i]!r}) is empty; give each option a visible label")
        if core in cores[:i]:
            first = cores.index(core)
            raise InputError(
                f"labels: {labels[first]!r} and {labels[i]!r} (places {first + 1} and {i + 1}) differ only in "
                "brackets, stops or Unicode form; a reply could not tell them apart, so rename one"
            )


def _spelling(core: str, *, folds: bool, looks: bool) -> str:
    body = "".join(_character(c, folds=folds, looks=looks) for c in core)
    # a word character on the inner side of a boundary means that the label may not be part of a longer word
    before = rf"(?<!{WORD})" if re.match(WORD, core) else ""
    after = rf"(?!{WORD}|[{_MARKS}])" if re.match(WORD, core[-1]) else ""
    if core[0].isdigit():
        before += NOT_PART_OF_NUMBER
    return f"{before}{body}{after}"


def _character(char: str, *, folds: bool, looks: bool) -> str:
    if char == " ":
        return r"[ \n]"
    forms = {char}
    if folds:
        # a dotless i has a capital that folds to another letter
        forms |= {c for c in (char.lower(), char.upper()) if len(c) == 1 and c.casefold() == char.casefold()}
    if looks:
        latin = LOOKALIKES.get(char, char)
        forms |= {latin, *_TWINS.get(latin, "")}
    return re.escape(char) if len(forms) == 1 else f"[{''.join(sorted(map(re.escape, forms)))}]"
