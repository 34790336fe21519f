"""Find an item's option texts in a reply: restated whole, or standing where a label could stand."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from counterbalance.reading.normalise import collapse, normalise
from counterbalance.reading.phrases import NOT_PART_OF_NUMBER, WORD
from counterbalance.reading.wrappers import plain

_EDGE: Final = " \n.,;:!?\u3002\u3001"


@dataclass(frozen=True)
class OptionTexts:
    """The option texts of one item in three spellings, from strict to lenient, and as patterns."""

    spellings: tuple[tuple[str, ...], ...]
    patterns: tuple[re.Pattern[str] | None, ...]

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
        for slot, pattern in enumerate(self.patterns):
            found = pattern.match(text, position) if pattern else None
            if found and found.end() > best:
                best, slots = found.end(), (slot,)
            elif found and found.end() == best:
                slots = (*slots, slot)
        return best, slots

    def may_go_on(self, slot: int) -> bool:
        """Whether another option's text begins with this one's, so that a cut reply may mean either."""
        mine = self.spellings[-1][slot]
        return any(i != slot and text.startswith(mine) for i, text in enumerate(self.spellings[-1]))


@lru_cache(maxsize=4096)
def option_texts(texts: tuple[str, ...]) -> OptionTexts:
    """Prepare the option texts of one item."""
    spelled = [_spellings(normalise(text)) for text in texts]
    return OptionTexts(
        spellings=tuple(tuple(s[level] for s in spelled) for level in range(3)),
        patterns=tuple(_pattern(text) for text in texts),
    )


@lru_cache(maxsize=16384)
def _spellings(text: str) -> tuple[str, str, str]:
    exact = " ".join(text.split())
    bare = " ".join(plain(text)[0].split())
    return exact, exact.casefold().rstrip(_EDGE), bare.casefold().rstrip(_EDGE)


def _pattern(text: str) -> re.Pattern[str] | None:
    bare = collapse(plain(normalise(text))[0]).rstrip(_EDGE)
    if not bare:
        return None
    body = r"[ \n]".join(map(re.escape, bare.split()))
    before = rf"(?<!{WORD})" if re.match(WORD, bare) else ""
    after = rf"(?!{WORD})" if re.match(WORD, bare[-1]) else ""
    if bare[0].isdigit():
        before += NOT_PART_OF_NUMBER
    return re.compile(before + body + after, re.IGNORECASE)
