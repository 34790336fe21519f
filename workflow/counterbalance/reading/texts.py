"""Find an item's option texts in a reply: restated whole, or standing where a label could stand."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from counterbalance.reading.normalise import collapse, normalise
from counterbalance.reading.phrases import NOT_PART_OF_NUMBER, WORD_CHARACTER
from counterbalance.reading.wrappers import plain

_FREE_NUMBER: Final = re.compile(NOT_PART_OF_NUMBER)
_EDGE: Final = " \n.,;:!?\u3002\u3001"


@dataclass(frozen=True)
class OptionTexts:
    """The option texts of one item in three spellings, from strict to lenient, and as phrases."""

    spellings: tuple[tuple[str, ...], ...]
    phrases: tuple["_Phrase | None", ...]

    def whole(self, reply: str) -> tuple[int, ...]:
        """Slots of the options that a normalised `reply` restates.

        The strictest spelling that matches any option decides: two options that differ by case or by a
        bracket are told apart where the reply allows it.
        """
        for mine, theirs in zip(_spellings(reply), self.spellings, strict=False):
            slots = tuple(slot for slot, text in enumerate(theirs) if text and text == mine)
            if slots:
                return slots
        return ()

    def at(self, text: str, position: int) -> tuple[int, tuple[int, ...]]:
        """End and slots of the longest option text that starts at `position` of a flattened text."""
        best = position
        slots: tuple[int, ...] = ()
        for slot, phrase in enumerate(self.phrases):
            end = phrase.end(text, position) if phrase else None
            if end is not None and end > best:
                best, slots = end, (slot,)
            elif end is not None and end == best:
                slots = (*slots, slot)
        return best, slots

    def may_go_on(self, slot: int) -> bool:
        """Whether another option's text begins with this one's, so that a cut reply may mean either."""
        mine = self.spellings[-1][slot]
        return any(i != slot and text.startswith(mine) for i, text in enumerate(self.spellings[-1]))


@lru_cache(maxsize=4096)
def option_texts(texts: tuple[str, ...]) -> OptionTexts:
    """Prepare the option texts of one item."""
    spelled = [_option_spellings(text) for text in texts]
    return OptionTexts(
        spellings=tuple(tuple(s[level] for s in spelled) for level in range(3)),
        phrases=tuple(_phrase(text) for text in texts),
    )


@lru_cache(maxsize=16384)
def _spellings(text: str) -> tuple[str, str, str]:
    exact = " ".join(text.split())
    bare = " ".join(plain(text)[0].split())
    return exact, exact.casefold().rstrip(_EDGE), bare.casefold().rstrip(_EDGE)


@dataclass(frozen=True)
class _Phrase:
    """An option's text where it stands as words of its own.

    Its neighbours are looked at apart from the pattern: the class of all letters, compiled into each option's pattern,
    would cost a thousand times the rest.
    """

    bare: str

    def end(self, text: str, position: int) -> int | None:
        """Return where the phrase that starts at `position` ends, or None."""
        found = _body(self.bare).match(text, position)
        if found is None:
            return None
        end = found.end()
        if WORD_CHARACTER.match(self.bare) and position and WORD_CHARACTER.match(text[position - 1]):
            return None
        if WORD_CHARACTER.match(self.bare[-1]) and WORD_CHARACTER.match(text, end):
            return None
        return None if self.bare[0].isdigit() and not _FREE_NUMBER.match(text, position) else end


@lru_cache(maxsize=16384)
def _body(bare: str) -> re.Pattern[str]:
    return re.compile(r"[ \n]".join(map(re.escape, bare.split())), re.IGNORECASE)


@lru_cache(maxsize=16384)
def _option_spellings(text: str) -> tuple[str, str, str]:
    return _spellings(normalise(text))


@lru_cache(maxsize=16384)
def _phrase(text: str) -> _Phrase | None:
    bare = collapse(plain(normalise(text))[0]).rstrip(_EDGE)
    return _Phrase(bare) if bare else None
