"""What the reader is told and what it gives back."""

from dataclasses import dataclass
from typing import Final, Literal

from counterbalance.reading.lexicon import CUE_NOUNS

READER_VERSION: Final = "2"
"""Raised whenever some reply would be read differently; stored with every outcome."""

Status = Literal["ok", "refused", "blocked", "empty", "truncated", "incomplete", "multiple", "ambiguous", "unparsed"]

THINKING_NAMES: Final = (
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "scratchpad",
    "analysis",
    "cot",
    "seed:think",
)
THINKING_PAIRS: Final = (
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<unused94>", "<unused95>"),
)
FULL_LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "zh", "ja", "ko")
CUE_ONLY_LANGUAGES: Final = tuple(CUE_NOUNS)


@dataclass(frozen=True)
class ReaderOptions:
    """How replies are read.

    Parameters
    ----------
    thinking_names
        Tag names that enclose deliberation. Each is known as ``<name>``, ``[name]``, ``<|name|>``
        and with Kimi's triangles, in any case, with ``/`` before the name in the closer.
    thinking_pairs
        Further literal (opener, closer) pairs.
    channels
        Whether ``<|channel|>name<|message|>`` marks are honoured: only ``final`` is then the reply.
    languages
        Languages whose cue words are known. The last group (`CUE_ONLY_LANGUAGES`) has nouns such as
        "answer" only, and needs a colon after them.
    option_text
        ``exact``: an option's text, restated whole, counts as that option, and a label beside another
        option's text is a conflict. ``off``: option texts are not consulted at all.
    """

    thinking_names: tuple[str, ...] = THINKING_NAMES
    thinking_pairs: tuple[tuple[str, str], ...] = THINKING_PAIRS
    channels: bool = True
    languages: tuple[str, ...] = (*FULL_LANGUAGES, *CUE_ONLY_LANGUAGES)
    option_text: Literal["exact", "off"] = "exact"


@dataclass(frozen=True)
class Reading:
    """What one reply says.

    Attributes
    ----------
    status
        ``ok`` only when exactly one option was chosen. ``blocked`` is a vendor's word and never comes
        from reading a text.
    slot
        Position of the chosen label in the label set, only with ``ok``.
    candidates
        Every label that was considered, in the order of the text, retracted and denied ones included.
    rule
        The rule that decided.
    notes
        What a reader of the results should know: look-alike letters, a cut reply, a retraction.
    """

    status: Status
    slot: int | None
    candidates: tuple[str, ...]
    rule: str
    notes: tuple[str, ...] = ()
