"""What is known by slot of each item, through the engine of planned contrasts: nats by slot, and the plan itself."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.config import Analysis
from counterbalance.contrasts import EffectTable, Resampling, estimate_contrasts
from counterbalance.contrasts.nats import estimate_nats
from counterbalance.contrasts.results import contrast_results, method_words
from counterbalance.designs.mcq.counts import Counts, Ints, Reals
from counterbalance.designs.mcq.planned import slot_plan
from counterbalance.stats.estimate import Result
from counterbalance.stats.logprob import ItemNats, item_nats

ByItem = dict[str, dict[str, float]]


def slot_results(analysis: Analysis, outcomes: pa.Table, counts: Counts) -> Iterator[tuple[str, Result]]:
    """Yield nats by slot, where the read gives log-probabilities, and the planned contrasts of one stratum.

    Parameters
    ----------
    outcomes
        Of the whole cell.
    counts
        The stratum: items with one number of options.
    """
    resampling = Resampling(
        levels=(analysis.level,), n_resamples=analysis.resamples, seed=analysis.seed, stream=analysis.stream
    )
    nats = None
    if counts.nats is not None:
        given = counts.nats
        nats = item_nats(given.item, given.option, given.logprobs, given.censored, units=given.unit)
        found = estimate_nats(nats, resampling)
        for slot, (mean, bonus, prior) in enumerate(zip(found.mean, found.bonus, found.prior, strict=True), start=1):
            yield f"label_logprob.slot_{slot}", mean
            yield f"slot_bonus.slot_{slot}", bonus
            yield f"label_prior.slot_{slot}", prior
    if analysis.slot_contrasts is not None:
        table = outcomes.filter(pc.equal(outcomes.column("n_options"), counts.k))
        both = replace(resampling, levels=(analysis.level, 1 - 2 * analysis.alpha))
        effects = effects_by_slot(table.filter(pc.invert(table.column("extra"))), counts.k, nats)
        method = method_words("the unit of what is compared (shares, or nats)", both)
        for contrast in estimate_contrasts(slot_plan(analysis.slot_contrasts), effects, both):
            yield from contrast_results(contrast, method=method, n_calls=counts.n_calls)


def effects_by_slot(table: pa.Table, k: int, nats: ItemNats | None) -> EffectTable:
    """Return what is known by slot of each item: the effects that planned contrasts are made of.

    Parameters
    ----------
    table
        Outcomes of items with `k` options, without the calls of the repeat floor.
    nats
        Log-probabilities of those items that have them, in the table's order.

    Returns
    -------
    EffectTable
        Condition ``accuracy``: share right where the correct option stands in the slot; ``picks``: share of answers
        that choose it; the others as in `ItemNats`. An item that lacks one slot of a quantity is not present in it.
    """
    codes = table.column("item_id").combine_chunks().dictionary_encode()
    names, item = codes.dictionary.to_pylist(), codes.indices.to_numpy().astype(np.int64)
    group_of = dict(zip(table.column("item_id").to_pylist(), table.column("group_id").to_pylist(), strict=True))
    gold, slot = (pc.fill_null(table.column(name), -1).to_numpy().astype(np.int64) for name in ("gold_slot", "slot"))
    answered = slot >= 0
    scored = answered & (gold >= 0)
    right = scored & (slot == gold)
    picks = _tally(item[answered], slot[answered], len(names), k)
    found = {
        "accuracy": _shares(
            names, _tally(item[right], gold[right], len(names), k), _tally(item[scored], gold[scored], len(names), k)
        ),
        "picks": _shares(names, picks, picks.sum(axis=1, keepdims=True) * np.ones(k)),
    }
    if nats is not None:
        known = pc.and_(table.column("slot_logprobs").is_valid(), table.column("arrangement").is_valid())
        owners = pc.unique(table.filter(known).column("item_id")).to_pylist()
        every = np.ones(len(owners), dtype=bool)
        for name, values, has in (
            ("label_logprob", nats.mean, every),
            ("slot_bonus", nats.bonus, nats.separable),
            ("label_prior", nats.prior, nats.separable),
        ):
            found[name] = _by_slot([owner for owner, use in zip(owners, has, strict=True) if use], values[has])
    units = [group_of[name] for name in names]
    return EffectTable.build(names, found, units if len(set(units)) < len(units) else None)


def _tally(item: Ints, slot: Ints, n_items: int, k: int) -> Reals:
    return np.bincount(item * k + slot, minlength=n_items * k).reshape(n_items, k).astype(np.float64)


def _shares(names: list[str], hits: Reals, n: Reals) -> Mapping[str, Mapping[str, float]]:
    whole = np.asarray((n > 0).all(axis=1))
    return _by_slot([name for name, use in zip(names, whole, strict=True) if use], hits[whole] / n[whole])


def _by_slot(names: list[str], values: Reals) -> ByItem:
    return {f"slot_{slot}": dict(zip(names, column.tolist(), strict=True)) for slot, column in enumerate(values.T, 1)}
