"""How large a slot bonus gives how large a V."""

from dataclasses import dataclass, replace

import numpy as np

from counterbalance.simulation.respondent import Array, Respondent, population

_GRID = (0.1, 0.2, 0.4, 0.7, 1.1, 1.7, 2.6, 4.0, 6.0)
_ITEMS = 20_000


@dataclass(frozen=True)
class EffectCurve:
    """Population V over the size of a bonus that declines in equal steps, for one respondent.

    Attributes
    ----------
    respondent
        Without a bonus.
    sizes, values
        Bonus from first slot to last, and V; both ascending from 0, as far as V rises.
    """

    respondent: Respondent
    sizes: Array
    values: Array

    @property
    def largest(self) -> float:
        return float(self.values[-1])

    def size_for(self, v: float) -> float:
        """Return the bonus that gives a V between 0 and `largest`."""
        return float(np.interp(v, self.values, self.sizes))

    def with_v(self, v: float) -> Respondent:
        """Return the respondent with the bonus that gives a V."""
        return monotone(self.respondent, self.size_for(v))


def monotone(respondent: Respondent, size: float) -> Respondent:
    """Return a respondent with a bonus that declines in equal steps by `size` from first slot to last."""
    return replace(respondent, slot_bonus=tuple(size * np.linspace(0.5, -0.5, respondent.k)))


def effect_curve(respondent: Respondent) -> EffectCurve:
    """Compute a respondent's curve; monotone and piecewise linear between a few simulated populations."""
    sizes, values = [0.0], [0.0]
    for size in _GRID:
        v = population(monotone(respondent, size), _ITEMS).v
        if v <= values[-1]:
            break
        sizes.append(size)
        values.append(v)
    return EffectCurve(respondent, np.array(sizes), np.array(values))
