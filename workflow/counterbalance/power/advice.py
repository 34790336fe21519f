"""Which design is the cheapest that answers, and what the family's correction asks on top."""

from collections.abc import Sequence
from dataclasses import dataclass

from scipy import optimize, special

from counterbalance.config import Experiment, Study
from counterbalance.designs import get_design
from counterbalance.power.facts import read_items
from counterbalance.power.grid import Row

_PREFERRED = ("williams", "exhaustive", "sampled", "cyclic")
"""At equal cost, first what balances neighbours too; `cyclic` keeps the same neighbours throughout."""


@dataclass(frozen=True)
class Advice:
    """The cheapest design.

    Attributes
    ----------
    rows
        The design at each accuracy simulated; empty if none answers.
    sentence
        What to tell the user.
    """

    rows: tuple[Row, ...]
    sentence: str


def cheapest(rows: Sequence[Row], v: float, power: float) -> Advice:
    """Return the design with fewest calls, at equal calls the best balanced, that shows a V at every accuracy."""
    designs: dict[tuple[str, int, int], list[Row]] = {}
    for row in rows:
        designs.setdefault((row.scheme, row.orders, row.n_items), []).append(row)
    able = [found for found in designs.values() if all(_shows(row, v) for row in found)]
    levels = sorted({row.accuracy for row in rows})
    where = f"accuracies of {_listed(levels)}" if len(levels) > 1 else f"an accuracy of {levels[0]:g}"
    if not able:
        best = min(designs.values(), key=_worst)
        reached = _worst(best)
        return Advice(
            (),
            f"No design simulated shows V = {v:g} with {power:.0%} power at {where}; the best, {_named(best[0])}, "
            + (f"shows V = {reached:.3f}: use more items." if reached < 1 else "shows none at one of them."),
        )
    best = min(able, key=lambda found: (found[0].calls, _PREFERRED.index(found[0].scheme)))
    cost = "" if best[0].cost is None else f", about US$ {best[0].cost:.2f} for all cells"
    text = (
        f"The cheapest design that shows V = {v:g} with {power:.0%} power at {where} is {_named(best[0])}: "
        f"{best[0].calls:,} calls per cell{cost}."
    )
    return Advice(tuple(best), text + _doubt(best, v))


def holm_factor(study: Study, n_options: int) -> tuple[int, float]:
    """Return the number of tests of the largest family, and how much larger a V its first step needs.

    The first test of a Holm family of m has to reach alpha / m. With many items the statistic is a noncentral
    chi-squared, whose noncentrality grows with the square of V. Items with another number of options have tests of
    their own; a data set that is not here yet counts as if it had none.
    """
    analysis = study.config.analysis
    sizes = [_n_tests(study, entry) for entry in study.config.experiments if entry.design == "mcq"]
    tests = sum(sizes) if analysis.family == "study" else max(sizes)
    needed = [
        _noncentrality(alpha, analysis.detectable_power, n_options - 1)
        for alpha in (analysis.alpha, analysis.alpha / tests)
    ]
    return tests, float((needed[1] / needed[0]) ** 0.5)


def _n_tests(study: Study, experiment: Experiment) -> int:
    design, tests = get_design(experiment.design), 0
    for name in experiment.datasets:
        items = read_items(study, study.dataset(name))
        tests += len(design.tests([] if items is None else [items.k, *items.others]))
    return tests * len(experiment.models)


def _noncentrality(alpha: float, power: float, df: int) -> float:
    critical = special.chdtri(df, alpha)
    return float(optimize.brentq(lambda x: special.chndtr(critical, df, x) - (1 - power), 0.0, 1e4))


def _shows(row: Row, v: float) -> bool:
    return row.found.accuracy.v is not None and row.found.accuracy.v <= v


def _worst(rows: Sequence[Row]) -> float:
    return max(1.0 if row.found.accuracy.v is None else row.found.accuracy.v for row in rows)


def _doubt(rows: Sequence[Row], v: float) -> str:
    close = [
        row
        for row in rows
        if row.found.accuracy.v is not None
        and row.found.accuracy.error is not None
        and row.found.accuracy.v + 1.96 * row.found.accuracy.error > v
    ]
    if not close:
        return ""
    levels = _listed([row.accuracy for row in close])
    return f" At an accuracy of {levels} that is within simulation error; take a few more items, or more `--cells`."


def _named(row: Row) -> str:
    return f"{row.n_items} items in {row.orders} orders (`{row.scheme}`)"


def _listed(values: Sequence[float]) -> str:
    words = [f"{value:g}" for value in values]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
