"""From the four cells of a crossing to its half-effects: arithmetic and the rules that go with it, nothing else."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from counterbalance.errors import InputError

# Not that of the statistics: the prompts' code, which needs the names below, is not to be run again for them.
Array = npt.NDArray[np.float64]

CELLS = ("e1", "e2", "e3", "e4")
"""Log P(B) - log P(A) in nats. e1: stale (A) first, then recent (B); e2: recent (B), stale (A);
e3: stale (B), recent (A); e4: recent (A), stale (B)."""

EFFECTS = ("token", "role", "order", "serial")

FLAG_TOKEN = 2.0
FLAG_ORDER = 0.50
"""An item is flagged in a condition when its token or order effect is further from 0 than this, in nats."""

BOUND_NATS = 0.15
"""Half-effects within this of 0 count as equivalent to none."""

Body = Literal["verbatim", "mixed", "loaded"]


def half_effects(cells: npt.ArrayLike) -> dict[str, Array]:
    """Return the half-effects of items in one condition, in nats.

    Parameters
    ----------
    cells
        e1 to e4, shape (items, 4).

    Returns
    -------
    dict of Array
        By name, shape (items,). ``token``: leaning to answer B whatever its place and role. ``role``: leaning to the
        recent source. ``order``: leaning to B where the stale block comes first, which nothing in the design should
        cause. ``serial``: leaning to the block printed last; negative is primacy.

    Raises
    ------
    InputError
        For another shape, gaps or infinities.

    Notes
    -----
    Source: arXiv 2609.30716. The four are orthogonal, and with them e1 = token + role + order + serial,
    e2 = token + role - order - serial, e3 = token - role + order - serial, e4 = token - role - order + serial.
    """
    table = np.asarray(cells, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(CELLS) or not np.isfinite(table).all():
        raise InputError(f"cells have shape {table.shape}; expected (items, 4) of finite numbers of nats")
    e1, e2, e3, e4 = table.T
    return {
        "token": (e1 + e2 + e3 + e4) / 4,
        "role": (e1 + e2 - e3 - e4) / 4,
        "order": (e1 - e2 + e3 - e4) / 4,
        "serial": (e1 - e2 - e3 + e4) / 4,
    }


def flagged(token: Array, order: Array) -> npt.NDArray[np.bool_]:
    """Return which items are flagged in a condition; an item is kept if it is flagged in none."""
    return np.asarray((np.abs(token) > FLAG_TOKEN) | (np.abs(order) > FLAG_ORDER))


def null_controls(body: Body | None) -> tuple[str, ...]:
    """Return the effects that ought to be zero by design: a loaded body carries its role, so role is none there."""
    return ("order",) if body == "loaded" else ("role", "order")
