"""Recognise a reply that declines to answer; asked only when no answer was found."""

from typing import Final

from counterbalance.reading.grammar import Grammar

_REACH: Final = 400


def is_refusal(small: str, grammar: Grammar, *, cut: bool) -> bool:
    """Whether a flattened reply in small letters refuses within its first few sentences.

    A cut reply needs the whole phrase, "I cannot help": "I'm sorry, but I cannot" might have gone on with
    "be sure, but it is B".
    """
    start = small[:_REACH]
    return grammar.refuses(start) or (not cut and grammar.apologises(start))
