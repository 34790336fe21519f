"""Recognise a reply that declines to answer; asked only when no answer was found."""

from typing import Final

from counterbalance.reading.grammar import Grammar

_REACH: Final = 400


def is_refusal(text: str, grammar: Grammar, *, cut: bool) -> bool:
    """Whether a flattened reply refuses within its first few sentences.

    A cut reply needs the whole phrase, "I cannot help": "I'm sorry, but I cannot" might have gone on with
    "be sure, but it is B".
    """
    start = text[:_REACH]
    if grammar.refused.search(start):
        return True
    return not cut and grammar.sorry_unable.search(start) is not None
