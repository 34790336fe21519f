"""Read an answer from a list of log-probabilities instead of a text.

Which tokens count as a label
-----------------------------
A token counts if it equals the label once the leading space marks of tokenisers (U+2581, U+0120, U+010A) and
white space around it are taken off: ``A``, `` A`` and ``\\u2581A`` do, and their probabilities are added.
``A.``, ``(A``, ``**A`` and ``a`` do not: they are other answers in form, another label set may use them as
labels, and how much of their mass belongs to the label depends on what follows. `LabelReading.label_mass` shows
what that leaves out. One string may be listed twice, as some vocabularies have several tokens with one spelling.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from counterbalance.errors import InputError

LabelStatus = Literal["ok", "unusable", "unavailable"]

TIE_TOLERANCE: Final = 1e-12
"""Nats within which the two best labels count as equal."""

UNSEEN_SPELLINGS: Final = 2
"""Spellings of an unlisted label, bare and after a space, each of which may be as probable as the bound."""

PLACEHOLDER: Final = -9999.0
"""What some servers list where they have no value; as -inf, it is no measurement."""

_SPACE_MARKS: Final = "\u2581\u0120\u010a"
_SUM_TOLERANCE: Final = 1e-3


@dataclass(frozen=True)
class LabelReading:
    """The log-probabilities of one item's labels.

    Attributes
    ----------
    status
        ``ok``; ``unusable`` if the labels hold too little probability; ``unavailable`` without a list.
    logprobs
        Per slot, in nats. Where `censored`, the value is an upper bound, not a measurement.
    censored
        Per slot, whether no listed token is the label.
    label_mass
        Total probability of the labels that are not censored, in [0, 1].
    slot
        The most probable label; None unless `status` is ``ok`` and there is no tie.
    tie
        Whether the two most probable labels are equal.
    may_be_overturned
        Whether a censored label may really be as probable as the best one.
    bound
        The bound that stands in for censored labels; None if nothing is censored.
    notes
        Reservations, such as a label that begins another one.
    """

    status: LabelStatus
    logprobs: tuple[float | None, ...]
    censored: tuple[bool, ...]
    label_mass: float | None
    slot: int | None
    tie: bool
    may_be_overturned: bool
    bound: float | None
    notes: tuple[str, ...] = ()


def read_label_logprobs(
    top: Sequence[tuple[str, float]] | None,
    labels: Sequence[str],
    *,
    min_mass: float,
    censor_bound: float | None = None,
) -> LabelReading:
    """Read the labels' log-probabilities from the list that a vendor gives for the first answer token.

    Parameters
    ----------
    top
        Pairs of token and natural log-probability. None or empty means that the method is not available
        here; nothing is read from the text instead.
    labels
        The labels in slot order, compared exactly.
    min_mass
        Least total probability of the listed labels, in [0, 1], for the reading to count.
    censor_bound
        Upper bound in nats for a label that is not listed. By default the smallest listed log-probability:
        whatever a list of the k most probable tokens leaves out is at most as probable as its last entry.

    Raises
    ------
    InputError
        For a log-probability that is NaN or positive, probabilities that add up to more than one, a
        `min_mass` outside [0, 1], a bound that is not finite and negative or zero, or labels that
        are empty or equal.
    """
    _check_arguments(labels, min_mass, censor_bound)
    listed = _check_entries(top or ())
    n = len(labels)
    if not listed:
        nothing: tuple[None, ...] = (None,) * n
        return LabelReading("unavailable", nothing, (False,) * n, None, None, False, False, None)
    sums = _sums(listed, labels)
    censored = tuple(value is None for value in sums)
    bound = min(value for _, value in listed) if censor_bound is None else censor_bound
    logprobs = tuple(bound if value is None else value for value in sums)
    seen = [value for value in sums if value is not None]
    mass = min(1.0, math.fsum(math.exp(value) for value in seen))
    notes = _prefix_notes(labels)
    known_bound = bound if any(censored) else None
    if not seen or mass < min_mass:
        return LabelReading("unusable", logprobs, censored, mass, None, False, False, known_bound, notes)
    best = max(seen)
    leaders = [slot for slot, value in enumerate(sums) if value is not None and best - value <= TIE_TOLERANCE]
    tie = len(leaders) > 1
    overturned = any(censored) and bound + math.log(UNSEEN_SPELLINGS) >= best
    slot = None if tie else leaders[0]
    return LabelReading("ok", logprobs, censored, mass, slot, tie, overturned, known_bound, notes)


def _sums(listed: Sequence[tuple[str, float]], labels: Sequence[str]) -> tuple[float | None, ...]:
    """Give log(sum(exp(x))) over the tokens of each label, None where there is none."""
    places = {label: slot for slot, label in enumerate(labels)}
    found: list[list[float]] = [[] for _ in labels]
    for token, value in listed:
        slot = places.get(token.strip().lstrip(_SPACE_MARKS).strip())
        if slot is not None:
            found[slot].append(value)
    return tuple(_log_sum_exp(values) if values else None for values in found)


def _log_sum_exp(values: Sequence[float]) -> float:
    largest = max(values)
    # rounding may lift the sum of a label's own variants a hair above certainty
    return min(0.0, largest + math.log(math.fsum(math.exp(value - largest) for value in values)))


def _check_arguments(labels: Sequence[str], min_mass: float, censor_bound: float | None) -> None:
    for i, label in enumerate(labels):
        if not label or label in labels[:i]:
            raise InputError(f"labels: label {i + 1} ({label!r}) is empty or given twice; give distinct labels")
    if not 0.0 <= min_mass <= 1.0:
        raise InputError(f"min_mass: {min_mass!r} is no probability; expected a number from 0 to 1")
    if censor_bound is not None and not (math.isfinite(censor_bound) and censor_bound <= 0.0):
        raise InputError(f"censor_bound: {censor_bound!r} is no log-probability; expected a finite number <= 0")


def _check_entries(top: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Refuse what is no log-probability, and leave out what stands for "no value"."""
    for i, (token, value) in enumerate(top):
        if math.isnan(value) or value > 0.0:
            raise InputError(
                f"log-probability list, entry {i + 1} (token {token!r}): {value!r} is no log-probability; "
                "expected a number <= 0. Check that the server sends natural logarithms of probabilities"
            )
    listed = [(token, float(value)) for token, value in top if value > PLACEHOLDER]
    total = math.fsum(math.exp(value) for _, value in listed)
    if total > 1.0 + _SUM_TOLERANCE:
        raise InputError(
            f"log-probability list of {len(top)} entries: the probabilities add up to {total:.6g}, more than 1; "
            "expected log-probabilities of one distribution, not scores or logits"
        )
    return listed


def _prefix_notes(labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(
        f"label {short!r} begins label {long!r}: its token may be the first part of the longer one"
        for short in labels
        for long in labels
        if short != long and long.startswith(short)
    )
