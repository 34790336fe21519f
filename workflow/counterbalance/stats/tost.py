"""Equivalence: is a mean within a bound of zero that was set beforehand."""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from counterbalance.errors import InputError
from counterbalance.stats.estimate import Result
from counterbalance.stats.resampling import varies


def tost_mean(values: npt.ArrayLike, bound: float) -> Result:
    """Test whether the mean lies between -`bound` and +`bound`, by two one-sided t tests.

    Parameters
    ----------
    values
        Finite numbers, one for each item.
    bound
        Positive, in the unit of the values.

    Returns
    -------
    Result
        `p` is the larger of the two one-sided p-values: a small one speaks for a mean within the bound. No p for
        fewer than two items (``undefined``) and for items that all have the same value (``degenerate``).

    Raises
    ------
    InputError
        For a bound that is not positive, for gaps and for infinities.

    Notes
    -----
    Source: Schuirmann (1987), Journal of Pharmacokinetics and Biopharmaceutics 15, 657-680. The standard error uses
    n - 1.
    """
    row = np.asarray(values, dtype=np.float64)
    if not (math.isfinite(bound) and bound > 0):
        raise InputError(f"bound is {bound}; expected a positive number in the unit of the effect, such as 0.15")
    if row.ndim != 1 or not np.isfinite(row).all():
        raise InputError(f"values have shape {row.shape}; expected one finite number for each item")
    n = len(row)
    method = f"two one-sided t tests against +-{bound:g}"
    if n < 2:
        return Result(method=method, n_items=n, status="undefined", reason=f"{n} items; needs at least 2")
    mean = float(row.mean())
    if not varies(row):
        reason = f"all {n} items have the same value"
        return Result(method=method, estimate=mean, n_items=n, status="degenerate", reason=reason)
    error = float(row.std(ddof=1)) / math.sqrt(n)
    above = float(special.stdtr(n - 1, -(mean + bound) / error))
    below = float(special.stdtr(n - 1, (mean - bound) / error))
    return Result(method=method, estimate=mean, p=max(above, below), n_items=n)
