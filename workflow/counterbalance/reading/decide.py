"""Choose among the cues of one reply, or decline to."""

from dataclasses import dataclass, replace
from typing import Final

from counterbalance.reading.cues import FINAL, PLAIN, TENTATIVE, Cue
from counterbalance.reading.model import Status
from counterbalance.reading.values import Source, Value, retractions

_SENTENCE_ENDS: Final = ".!?\n\u3002\u2026\u2014"


@dataclass(frozen=True)
class Verdict:
    """What the cues amount to; `value` is the one that prevailed."""

    status: Status
    rule: str
    value: Value | None = None
    notes: tuple[str, ...] = ()


def decide(src: Source, cues: list[Cue]) -> Verdict | None:
    """Weigh the cues of one reply; None if none of them asserts anything.

    The last cue prevails if all others agree with it or left several options open of which it names one, if
    the reply took the others back before it, or if it is put more firmly than those that differ. A tentative
    cue at the end does not shake a firmer one. Otherwise the reply is ambiguous.
    """
    live = [cue for cue in cues if not cue.value.denied]
    if not live:
        return None
    first = _after_retraction(src, live)
    standing, dropped = live[first:], live[:first]
    winner = _prevailing(standing)
    if winner is None:
        return Verdict("ambiguous", "conflicting_cues")
    agreeing = [cue for cue in standing if _key(cue) == _key(winner)]
    overruled = any(_key(cue) != _key(winner) for cue in live)
    if _withdrawn(src, live[-1].value.end):
        return Verdict("ambiguous", "withdrawn")
    doubtful = all(cue.strength == TENTATIVE for cue in standing)
    if doubtful and any(cue.strength != TENTATIVE and _key(cue) != _key(winner) for cue in dropped):
        return Verdict("ambiguous", "doubtful_correction")
    notes = list(dict.fromkeys(note for cue in agreeing for note in cue.value.notes))
    if overruled:
        notes.append("retracted" if dropped else "overruled")
    if all(cue.value.hedged for cue in agreeing):
        notes.append("hedged")
    return _verdict(winner, agreeing, tuple(notes))


def _verdict(winner: Cue, agreeing: list[Cue], notes: tuple[str, ...]) -> Verdict:
    value = winner.value
    if any(cue.value.clash for cue in agreeing):
        return Verdict("ambiguous", "conflicting_text", value, notes)
    if value.kind == "none":
        return Verdict("unparsed", "none", value, notes)
    if value.kind in ("both", "equal"):
        return Verdict("multiple", value.kind, value, notes)
    rule = "option_text" if value.kind == "text" else winner.rule
    return Verdict("ok" if len(value.slots) == 1 else "multiple", rule, value, notes)


def _key(cue: Cue) -> tuple[int, ...] | str:
    return tuple(sorted(cue.value.slots)) or cue.value.kind


def _after_retraction(src: Source, live: list[Cue]) -> int:
    """Index of the first cue after the last retraction."""
    for i in range(len(live) - 1, 0, -1):
        if live[i].rule == "correction" or any(retractions(src, live[i - 1].value.end, live[i].start)):
            return i
    return 0


def _prevailing(cues: list[Cue]) -> Cue | None:
    last, top = cues[-1], max(cue.strength for cue in cues)
    if len({_key(cue) for cue in cues}) == 1:
        return last
    others = [set(cue.value.slots) for cue in cues if _key(cue) != _key(last)]
    if len(last.value.slots) == 1 and all(set(last.value.slots) < slots for slots in others):
        return last  # "B or C" first, then C alone: narrowed down, not contradicted
    if last.strength == FINAL and last.rule != "correction" and cues[0].rule == "correction":
        # What a correction took back is gone already; it is no firmer than others against a later "final answer".
        cues = [replace(cues[0], strength=min(cues[0].strength, PLAIN)), *cues[1:]]
    firmest = [cue for cue in cues if cue.strength == top]
    if len({_key(cue) for cue in firmest}) > 1:
        return None
    if _key(last) == _key(firmest[-1]) or last.strength == TENTATIVE:
        return firmest[-1]
    return None


def _withdrawn(src: Source, position: int) -> bool:
    """Whether a later sentence opens by taking the answer back."""
    for found in src.grammar["withdrawals"].finditer(src.small, position):
        before = src.text[max(position, found.start() - 8) : found.start()].rstrip(" \"'(*-")
        if before[-1:] in _SENTENCE_ENDS and before:
            return True
    return False
