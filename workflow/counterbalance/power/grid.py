"""The designs that a study could use, the V that each would show, and what each costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import factorial

import numpy as np

from counterbalance.arrangements import Scheme, count_arrangements
from counterbalance.config import Analysis, Experiment, Study
from counterbalance.power.facts import Items, call_price, prompt_tokens, read_items
from counterbalance.power.search import DesignPower, Spent, detectable
from counterbalance.simulation.cells import design_orders
from counterbalance.simulation.respondent import Respondent, ability_for
from counterbalance.simulation.sizes import EffectCurve, effect_curve

ITEMS = (25, 50, 100, 200)
ACCURACIES = (0.5, 0.75, 0.95)
CELLS = 300
ITEM_SLOT_SD = 0.3
CALL_NOISE = 0.3
ROUGH_ITEM_SLOT_SD = 1.0
"""Items with slot effects of their own as large as the spread of the options' content."""

_UNKNOWN_K = 4
_LARGEST_SIMULATED = 400
_NEAR = 0.2
_DRAWN_DESIGNS = 10
_SCHEMES: tuple[Scheme, ...] = ("exhaustive", "williams", "cyclic", "sampled")


@dataclass(frozen=True)
class Assumed:
    """What the simulation supposes of the respondent.

    Attributes
    ----------
    item_slot_sd
        Spread of each item's own slot effects; the wrong options' utilities have a spread of 1, the correct one's 2.
    call_noise
        Scale of the noise of each call.
    """

    item_slot_sd: float = ITEM_SLOT_SD
    call_noise: float = CALL_NOISE


@dataclass(frozen=True)
class Group:
    """Experiments that power treats alike.

    Attributes
    ----------
    k, repeats
        Options per item, and how often each prompt is asked.
    experiments
        Their ids.
    own
        (scheme, orders per item, items) that the study file has now, where the number of items is known.
    n_cells
        Model x data set.
    price
        What one call in every cell costs together, in US dollars; None where no model has a price.
    unpriced, unread
        Models without a price; data sets whose items are not here yet.
    sampled
        Orders per item of the scheme `sampled`.
    most_orders
        More orders per item are refused.
    extra
        Share of prompts asked once more.
    mixed, grouped
        In words: data sets in which other items have another number of options; in which items form groups.
    """

    k: int
    repeats: int
    experiments: tuple[str, ...]
    own: frozenset[tuple[Scheme, int, int]]
    n_cells: int
    price: float | None
    unpriced: tuple[str, ...]
    unread: tuple[str, ...]
    sampled: int
    most_orders: int
    extra: float
    mixed: tuple[str, ...] = ()
    grouped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One design at one accuracy.

    Attributes
    ----------
    orders, calls
        Orders per item, and calls of one cell, repeats and those asked once more included.
    cost
        Of all the group's cells, in US dollars; None without prices.
    own
        Whether a cell of the study has this design now.
    """

    scheme: Scheme
    orders: int
    n_items: int
    calls: int
    cost: float | None
    own: bool
    accuracy: float
    found: DesignPower


def find_groups(study: Study) -> list[Group]:
    """Return the study's mcq experiments by number of options, of repeats, and share of prompts asked once more."""
    groups: dict[tuple[int, int, float], list[Group]] = {}
    for experiment in study.config.experiments:
        if experiment.design == "mcq":
            for group in _of_experiment(study, experiment):
                groups.setdefault((group.k, group.repeats, group.extra), []).append(group)
    return [_join(parts) for parts in groups.values()]


def _of_experiment(study: Study, experiment: Experiment) -> Iterator[Group]:
    """Yield a group for each number of options that most items of a data set have."""
    read = {name: read_items(study, study.dataset(name)) for name in experiment.datasets}
    known = [items.k for items in read.values() if items is not None]
    usual = max(known, key=lambda k: (known.count(k), -k)) if known else _UNKNOWN_K
    of_size: dict[int, dict[str, Items | None]] = {}
    for name, items in read.items():
        of_size.setdefault(usual if items is None else items.k, {})[name] = items
    for k, datasets in of_size.items():
        yield _group(study, experiment, k, datasets)


def _group(study: Study, experiment: Experiment, k: int, datasets: Mapping[str, Items | None]) -> Group:
    here = {name: items for name, items in datasets.items() if items is not None}
    scheme, n = experiment.arrangement.scheme, experiment.arrangement.n
    unpriced = {model for model in experiment.models if here and study.config.money.prices.get(model) is None}
    prices = [
        price
        for name, items in here.items()
        for model in experiment.models
        if model not in unpriced and (price := _call_price(study, experiment, model, name, items)) is not None
    ]
    return Group(
        k=k,
        repeats=experiment.repeats,
        experiments=(experiment.id,),
        own=frozenset((scheme, count_arrangements(scheme, n, k), items.n) for items in here.values()),
        n_cells=len(experiment.models) * len(datasets),
        price=sum(prices) if prices else None,
        unpriced=tuple(sorted(unpriced)),
        unread=tuple(name for name in datasets if name not in here),
        sampled=n if scheme == "sampled" and n is not None else min(2 * k, factorial(k)),
        most_orders=study.config.limits.max_arrangements,
        extra=experiment.repeat_share,
        mixed=tuple(f"{name} has {items.numbers}" for name, items in here.items() if items.others),
        grouped=tuple(
            f"{name} has {items.n} items in {items.n_groups} groups"
            for name, items in here.items()
            if items.n_groups < items.n
        ),
    )


def _call_price(study: Study, experiment: Experiment, model: str, dataset: str, items: Items) -> float | None:
    tokens = prompt_tokens(study, experiment, study.dataset(dataset), items)
    return call_price(study, experiment, model, tokens)


def _join(parts: Sequence[Group]) -> Group:
    prices = [part.price for part in parts if part.price is not None]

    def names(field: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in parts for name in getattr(part, field)))

    return replace(
        parts[0],
        experiments=names("experiments"),
        own=frozenset().union(*(part.own for part in parts)),
        n_cells=sum(part.n_cells for part in parts),
        price=sum(prices) if prices else None,
        unpriced=tuple(sorted(names("unpriced"))),
        unread=tuple(sorted(names("unread"))),
        mixed=names("mixed"),
        grouped=names("grouped"),
    )


def item_numbers(group: Group, asked: Sequence[int] | None = None) -> list[int]:
    """Return the numbers of items to simulate: those asked for, or a few usual ones and the study's own."""
    if asked:
        return sorted(set(asked))
    own = {n for _, _, n in group.own if 1 < n <= _LARGEST_SIMULATED}
    usual = [n for n in ITEMS if all(abs(n - other) > _NEAR * n for other in own)]
    return sorted({*usual, *own})


def schemes(group: Group) -> list[tuple[Scheme, int | None, int]]:
    """Return the schemes that fit the study's limit: name, `n`, and orders per item."""
    found: list[tuple[Scheme, int | None, int]] = []
    for scheme in _SCHEMES:
        n = group.sampled if scheme == "sampled" else None
        orders = count_arrangements(scheme, n, group.k)
        if orders <= group.most_orders:
            found.append((scheme, n, orders))
    return found


def simulate(
    group: Group,
    analysis: Analysis,
    *,
    accuracies: Sequence[float] = ACCURACIES,
    items: Sequence[int] | None = None,
    assumed: Assumed = Assumed(),
    cells: int = CELLS,
    spent: Spent = lambda count: None,
) -> Iterator[Row]:
    """Yield every design at every accuracy; each has random numbers of its own, so that none hangs on another."""
    for accuracy in accuracies:
        curve = _curve(group.k, accuracy, assumed)
        for scheme, n, orders in schemes(group):
            for n_items in item_numbers(group, items):
                found = design_power(group, analysis, curve, (scheme, n, n_items), cells=cells, spent=spent)
                yield _row(group, (scheme, orders, n_items), accuracy, found)


def design_power(
    group: Group,
    analysis: Analysis,
    curve: EffectCurve,
    design: tuple[Scheme, int | None, int],
    *,
    cells: int,
    spent: Spent = lambda count: None,
) -> DesignPower:
    """Simulate one design: scheme, its `n`, number of items."""
    scheme, n, n_items = design
    seeds = range(analysis.seed, analysis.seed + (_DRAWN_DESIGNS if scheme == "sampled" else 1))
    orders = [design_orders(scheme, n, n_items=n_items, k=group.k, seed=seed) for seed in seeds]
    rng = np.random.default_rng([analysis.seed, _SCHEMES.index(scheme), n_items, round(1e4 * curve.largest)])
    return detectable(
        curve,
        [np.repeat(drawn, group.repeats, axis=1) for drawn in orders],
        alpha=analysis.alpha,
        power=analysis.detectable_power,
        cells=cells,
        rng=rng,
        spent=spent,
    )


def rough_power(group: Group, analysis: Analysis, row: Row, *, cells: int, spent: Spent) -> DesignPower:
    """Simulate a design again with items that have large slot effects of their own, and calls without noise."""
    curve = _curve(group.k, row.accuracy, Assumed(ROUGH_ITEM_SLOT_SD, 0.0))
    n = row.orders if row.scheme == "sampled" else None
    return design_power(group, analysis, curve, (row.scheme, n, row.n_items), cells=cells, spent=spent)


def _curve(k: int, accuracy: float, assumed: Assumed) -> EffectCurve:
    plain = Respondent(slot_bonus=(0.0,) * k, item_slot_sd=(assumed.item_slot_sd,), call_noise=assumed.call_noise)
    return effect_curve(replace(plain, ability_mean=ability_for(accuracy, plain)))


def _row(group: Group, design: tuple[Scheme, int, int], accuracy: float, found: DesignPower) -> Row:
    scheme, orders, n_items = design
    calls = n_items * orders * (group.repeats + group.extra)
    return Row(
        scheme=scheme,
        orders=orders,
        n_items=n_items,
        calls=round(calls),
        cost=None if group.price is None else group.price * calls,
        own=design in group.own,
        accuracy=accuracy,
        found=found,
    )
