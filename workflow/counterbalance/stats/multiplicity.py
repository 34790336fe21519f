"""Correction for the number of tests in a family that was fixed before the data."""

import math
from collections.abc import Sequence

from counterbalance.errors import InputError


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return Holm's step-down adjusted p-values, in the order given.

    Parameters
    ----------
    p_values
        Raw p-values of the whole family. None marks a planned test that could not be made: it stays None and still
        counts, as the family was fixed before anyone knew that.

    Raises
    ------
    InputError
        For a p-value outside (0, 1]; a Monte Carlo p is never 0.

    Notes
    -----
    Source: Holm (1979), Scandinavian Journal of Statistics 6, 65-70.
    """
    for place, p in enumerate(p_values):
        if p is not None and not 0 < p <= 1:
            raise InputError(f"p-value {place} of the family is {p}; expected 0 < p <= 1, or None for a skipped test")
    made = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(made):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p))
        adjusted[place] = largest
    return adjusted


def draws_needed(alpha: float, family_size: int) -> int:
    """Return the fewest Monte Carlo draws with which one test of a family can still pass Holm's first step.

    The smallest Monte Carlo p of m draws is 1 / (m + 1); it has to lie below `alpha` / `family_size`.
    """
    if not 0 < alpha < 1 or family_size < 1:
        raise InputError(f"alpha {alpha}, family size {family_size}; expected 0 < alpha < 1 and at least one test")
    return math.floor(family_size / alpha + 1e-9)
