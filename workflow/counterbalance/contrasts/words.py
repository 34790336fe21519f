"""What a design calls the two parts of FIRST.SECOND in its contrasts, so that messages speak as its users do."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Words:
    """The words of messages; unless set otherwise, those of a crossing.

    Attributes
    ----------
    first, firsts
        What stands before the point, one and several.
    second
        What stands behind it.
    seconds
        All that may stand there, where a list of them would be long.
    operands
        What expressions are made of.
    example, ratio
        One operand, and a quotient of two.
    """

    first: str = "condition"
    firsts: str = "conditions"
    second: str = "effect"
    seconds: str | None = None
    operands: str = "effects"
    example: str = "T1.serial"
    ratio: str = "abs(T1.role) / abs(T1.serial)"

    @property
    def operand(self) -> str:
        """What may stand where a value is expected."""
        return (
            f"a {self.first}.{self.second} such as {self.example}, the id of another contrast, a number, mean(...), "
            "abs(...) or a parenthesis"
        )


CROSSING = Words()

_NEAR = 0.6


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the known name that an unknown one is probably meant to be, as words to append; nothing if none is.

    Of several that are equally near the first one counts, where difflib's own function takes the last by alphabet.
    """
    near = {other: difflib.SequenceMatcher(None, other, name).ratio() for other in known}
    best = max(near, key=near.__getitem__, default="")
    return f" (did you mean {best!r}?)" if near.get(best, 0.0) >= _NEAR else ""


def with_hint(name: str, names: Iterable[str], listed: str | None = None) -> str:
    """List what there is, or say it in the given words, and what was probably meant by an unknown name."""
    known = list(names)
    return (listed or ", ".join(known) or "none") + did_you_mean(name, known)
