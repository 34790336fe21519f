"""Is the smallest detectable V what it says: is that V, when planted, found with the power named?"""

from dataclasses import dataclass, replace

import numpy as np

from counterbalance.arrangements import Scheme
from counterbalance.canonical import Json
from counterbalance.config import Analysis
from counterbalance.simulation.cells import design_orders
from counterbalance.simulation.respondent import Respondent, ability_for, choose, tally, utilities
from counterbalance.simulation.scenarios import respondent
from counterbalance.simulation.sizes import effect_curve
from counterbalance.stats.detectable import detectable_v
from counterbalance.stats.relabel import relabel_accuracy

_LARGEST_V = 0.99


@dataclass(frozen=True)
class Case:
    """A kind of cell without bias, whose detectable V is computed."""

    what: str
    nuisance: Respondent
    accuracy: float = 0.75
    n_items: int = 50
    scheme: Scheme = "exhaustive"


CASES = (
    Case("own slot effects .3, noise .3", respondent(tau=0.3, noise=0.3)),
    Case("the same, accuracy .90", respondent(tau=0.3, noise=0.3), accuracy=0.90),
    Case("the same, accuracy .97", respondent(tau=0.3, noise=0.3), accuracy=0.97),
    Case("the same, four orders (williams)", respondent(tau=0.3, noise=0.3), scheme="williams"),
    Case("own slot effects 1, no noise", respondent(tau=1.0)),
    Case("own slot effects .3, noise .3, 25 items", respondent(tau=0.3, noise=0.3), n_items=25),
)


def check_detectable(cells: int, replicates: int, *, resamples: int) -> list[dict[str, Json]]:
    """Estimate the detectable V of some cells without bias; plant its median; return how often it is found."""
    analysis = Analysis()
    return [_check(case, analysis, cells, replicates, resamples) for case in CASES]


def _check(case: Case, analysis: Analysis, cells: int, replicates: int, resamples: int) -> dict[str, Json]:
    able = replace(case.nuisance, ability_mean=ability_for(case.accuracy, case.nuisance))
    orders = design_orders(case.scheme, None, n_items=case.n_items, k=4, seed=1)
    rng = np.random.default_rng(11)
    unbiased = tally(choose(utilities(able.effects(cells, case.n_items, rng), orders), able.call_noise, rng), orders)
    found = [
        detectable_v(
            correct,
            unbiased.n,
            power=analysis.detectable_power,
            alpha=analysis.alpha,
            measurable_v=_LARGEST_V,
            seed=int(rng.integers(2**32)),
        ).result.estimate
        for correct in unbiased.correct
    ]
    values = [value for value in found if value is not None]
    row: dict[str, Json] = {
        "what": case.what,
        "cells": cells,
        "without": cells - len(values),
        "replicates": replicates,
        "power": analysis.detectable_power,
        "median": None,
        "low": None,
        "high": None,
        "rejected": None,
    }
    curve = effect_curve(able)
    if not values or float(np.median(values)) > curve.largest:
        return row
    row |= {name: float(np.quantile(values, q)) for name, q in (("median", 0.5), ("low", 0.1), ("high", 0.9))}
    biased = curve.with_v(float(np.median(values)))
    planted = tally(
        choose(utilities(biased.effects(replicates, case.n_items, rng), orders), able.call_noise, rng), orders
    )
    p_values = [
        relabel_accuracy(correct, planted.n, n_draws=resamples, seed=int(rng.integers(2**32))).result.p
        for correct in planted.correct
    ]
    row["rejected"] = sum(p is not None and p < analysis.alpha for p in p_values)
    return row
