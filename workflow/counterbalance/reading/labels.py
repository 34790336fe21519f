"""Reading a list of next-token log-probabilities: how much each label gets, and what the list cannot say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.errors import InputError

_SPACE_MARKS = "\u2581\u0120\u010a"
_TIE = 1e-12


@dataclass(frozen=True)
class LabelReading:
    """What a list of log-probabilities says about the labels.

    Attributes
    ----------
    status
        ``ok``; ``unusable`` where the labels together have too little probability, or where a label that is not
        listed could still be ahead; ``unavailable`` without a list.
    slot
        Slot of the likeliest label; None unless the status is ok and there is no tie.
    tie
        Whether two labels are equally likely.
    logprobs, censored
        Per slot, in nats: the log-probability summed over the label's variants, or the upper bound of a label that
        is not listed, which is then censored.
    mass
        Total probability of the listed labels.
    """

    status: str
    slot: int | None = None
    tie: bool | None = None
    logprobs: tuple[float, ...] | None = None
    censored: tuple[bool, ...] | None = None
    mass: float | None = None


def read_label_logprobs(
    top: Sequence[tuple[str, float]] | None, labels: Sequence[str], *, min_mass: float
) -> LabelReading:
    """Read the labels' log-probabilities from the likeliest next tokens.

    Parameters
    ----------
    top
        Tokens with their log-probability in nats, in any order; None where the vendor gave none.
    labels
        Labels in slot order. A token counts for a label if it is the label once leading white space and a
        tokeniser's mark for it are taken off; ``(A`` does not, since it would need another token to be an answer.
    min_mass
        Least total probability of the labels.

    Returns
    -------
    LabelReading
        A label that is not listed gets the smallest listed log-probability as its bound: it cannot have more.

    Raises
    ------
    InputError
        For log-probabilities that are positive or not finite.
    """
    if not top:
        return LabelReading("unavailable")
    for token, value in top:
        if not math.isfinite(value) or value > _TIE:
            raise InputError(
                f"token {token!r} has log-probability {value}; expected a finite number of at most 0"
            )
    found: dict[str, list[float]] = {label: [] for label in labels}
    for token, value in top:
        name = token.strip().lstrip(_SPACE_MARKS).strip()
        if name in found:
            found[name].append(value)
    bound = min(value for _, value in top)
    logprobs = tuple(_logsumexp(values) if values else bound for values in found.values())
    censored = tuple(not values for values in found.values())
    mass = math.fsum(math.exp(value) for value, out in zip(logprobs, censored, strict=True) if not out)
    best = max(logprobs)
    first = [slot for slot, value in enumerate(logprobs) if best - value <= _TIE]
    overturned = any(censored[slot] for slot in first)
    status = "ok" if mass >= min_mass and not overturned else "unusable"
    tie = len(first) > 1
    slot = first[0] if status == "ok" and not tie else None
    return LabelReading(status, slot, tie, logprobs, censored, min(mass, 1.0))


def _logsumexp(values: Sequence[float]) -> float:
    top = max(values)
    return min(0.0, top + math.log(math.fsum(math.exp(value - top) for value in values)))
