"""Which label does a planted shape get, and how often: the confusion table of the shape label."""

from collections import Counter
from dataclasses import replace

import numpy as np

from counterbalance.canonical import Json
from counterbalance.config import Analysis
from counterbalance.simulation.cells import design_orders
from counterbalance.simulation.respondent import ability_for, choose, population, tally, utilities
from counterbalance.simulation.scenarios import Shape, respondent
from counterbalance.stats.shape import planned_contrasts

PLANTED: tuple[tuple[Shape, float], ...] = (
    ("null", 0.0),
    *((shape, size) for shape in ("monotone", "first_boost", "last_drop", "middle_drop") for size in (0.3, 0.6, 1.0)),
)
TAU, NOISE, ACCURACY = 0.3, 0.3, 0.75
_CELLS_AT_ONCE = 50
_ITEMS = 20_000


def shape_labels(n_items: int, replicates: int, *, resamples: int) -> list[dict[str, Json]]:
    """Return, for each planted shape and size, how often each label was given.

    Cells are drawn by the respondents' model, many at a time, and counted as the pipeline counts.
    """
    orders = design_orders("exhaustive", None, n_items=n_items, k=4, seed=1)
    rows: list[dict[str, Json]] = []
    for number, (shape, size) in enumerate(PLANTED):
        able = respondent(shape, size, tau=TAU, noise=NOISE)
        able = replace(able, ability_mean=ability_for(ACCURACY, able))
        rng = np.random.default_rng([n_items, number])
        labels: Counter[str] = Counter()
        for start in range(0, replicates, _CELLS_AT_ONCE):
            effects = able.effects(min(_CELLS_AT_ONCE, replicates - start), n_items, rng)
            cells = tally(choose(utilities(effects, orders), able.call_noise, rng), orders)
            for correct in cells.correct:
                found = planned_contrasts(
                    correct, cells.n, level=Analysis().level, n_resamples=resamples, seed=int(rng.integers(2**32))
                )
                labels[found.label.label or "none"] += 1
        rows.append(
            {
                "shape": shape,
                "size": size,
                "v": population(able, _ITEMS).v,
                "n_items": n_items,
                "replicates": replicates,
                "labels": dict(sorted(labels.items())),
            }
        )
    return rows
