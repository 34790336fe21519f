"""A respondent with planted slot effects, and the accuracy it needs."""

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[np.float64]

ORDERS = np.array(list(itertools.permutations(range(4))))
"""Option in each slot, for all 24 orders; option 0 is correct."""


@dataclass(frozen=True)
class Cells:
    """Simulated cells, each of shape (items, 4): correct, calls, picks."""

    correct: Array
    n: Array
    picks: Array

    def __iter__(self):
        return iter(zip(self.correct, self.n, self.picks, strict=True))


def simulate_cells(seed, *, cells=1, items=50, mu, bonus=(0, 0, 0, 0), tau=0.0, noise=0.0) -> Cells:
    """Argmax over content utility, slot bonus, the item's own slot effect and noise of the call, in all 24 orders.

    The correct option is N(mu, 2^2), distractors are N(0, 1), item slots N(0, tau^2), calls Gumbel of scale `noise`.
    """
    rng = np.random.default_rng(seed)
    content = rng.normal(0, 1, (cells, items, 4))
    content[..., 0] = rng.normal(mu, 2, (cells, items))
    slots = np.asarray(bonus) + tau * rng.normal(size=(cells, items, 4))
    utility = content[..., ORDERS] + slots[:, :, None, :]
    if noise:
        utility += noise * rng.gumbel(size=utility.shape)
    chosen = utility.argmax(axis=-1)
    gold = np.argmax(ORDERS == 0, axis=1)
    hits = [(chosen[..., gold == slot] == slot).sum(axis=-1) for slot in range(4)]
    picks = [(chosen == slot).sum(axis=-1) for slot in range(4)]
    correct = np.stack(hits, axis=-1).astype(float)
    return Cells(correct, np.full(correct.shape, 6.0), np.stack(picks, axis=-1).astype(float))


@cache
def ability_for(accuracy: float, tau: float = 0.0, noise: float = 0.0) -> float:
    """Mean ability at which the respondent has an accuracy, by bisection on one large cell."""
    low, high = -10.0, 15.0
    for _ in range(14):
        middle = (low + high) / 2
        cell = simulate_cells(5, items=3000, mu=middle, tau=tau, noise=noise)
        low, high = (middle, high) if cell.correct.sum() < accuracy * cell.n.sum() else (low, middle)
    return (low + high) / 2


@pytest.fixture(scope="session")
def respondent():
    """Cells at a given accuracy without bonus; `bonus` is added at the same ability."""

    def respond(seed, *, accuracy, tau=0.0, noise=0.0, **kwargs) -> Cells:
        return simulate_cells(seed, mu=ability_for(accuracy, tau=tau, noise=noise), tau=tau, noise=noise, **kwargs)

    return respond
