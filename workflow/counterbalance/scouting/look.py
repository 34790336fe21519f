"""What a scout saw of a cell, and what the sweep of it would give and cost: a pure function of replies and plan."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.canonical import Json
from counterbalance.config import Analysis, Cell, Study
from counterbalance.config.models import ApiModel, Scout
from counterbalance.designs import get_design
from counterbalance.designs.mcq.counts import Counts, Ints, count_strata
from counterbalance.scouting.outcome import SCOUT_SCHEMA
from counterbalance.scouting.rule import Ruling, band_of, rule_on
from counterbalance.scouting.trials import reused
from counterbalance.spending.prices import Tariff
from counterbalance.stats.detectable import Nuisance, fit_nuisance, predict_v
from counterbalance.stats.estimate import Result
from counterbalance.stats.proportions import clustered_shares
from counterbalance.stats.steadiness import ItemAnswers, consistency, in_groups

_PLANNED = ["group_id", "repeat", "labels", "gold_slot"]


@dataclass(frozen=True)
class Sweep:
    """The calls that a cell has in the plan.

    Attributes
    ----------
    trials
        All of them.
    slots
        Shape (units, slots): calls by the slot of the correct option, of the items with the number of options that
        most have, and without those that are asked once more.
    """

    trials: int
    slots: Ints


@dataclass(frozen=True)
class Look:
    """Everything that follows from a scout's replies."""

    body: Json
    ruling: Ruling


def read_sweep(study: Study, cell: Cell) -> Sweep:
    """Count a cell's planned calls.

    Raises
    ------
    InputError
        If its trials are missing or malformed.
    """
    path = study.layout.trials(cell.experiment.id, cell.dataset.id)
    table = read_table(path, SCHEMAS["trials"], _PLANNED)
    planned = table.filter(pc.less(table.column("repeat"), cell.experiment.repeats))
    k = pc.list_value_length(planned.column("labels"))
    groups = planned.column("group_id")
    sizes = {size: pc.count_distinct(groups.filter(pc.equal(k, size))).as_py() for size in pc.unique(k).to_pylist()}
    most = min(sizes, key=lambda size: (-sizes[size], size))
    mine = planned.filter(pc.and_(pc.equal(k, most), planned.column("gold_slot").is_valid()))
    units = mine.column("group_id").combine_chunks().dictionary_encode()
    slots = np.zeros((len(units.dictionary), most), dtype=np.int64)
    np.add.at(slots, (units.indices.to_numpy(), mine.column("gold_slot").to_numpy()), 1)
    return Sweep(table.num_rows, slots)


def look(study: Study, cell: Cell, scout: Scout, trials: pa.Table, replies: pa.Table) -> Look:
    """Judge a cell by its scout.

    Parameters
    ----------
    scout
        How many items, and the rule.
    trials, replies
        The scout's, of the declared schemas.

    Returns
    -------
    Look
        Accuracy with interval, band, the V that the sweep would show, calls and cost of the sweep, and the decision.
    """
    analysis, sweep = study.config.analysis, read_sweep(study, cell)
    outcomes = get_design(cell.experiment.design).score(cell.experiment, trials, replies)
    strata = count_strata(outcomes)
    accuracy = _accuracy(analysis, outcomes)
    ruling = rule_on(scout, analysis, accuracy)
    kept, found = reused(trials), outcomes.column("outcome").to_pylist()
    body = {
        "schema": SCOUT_SCHEMA,
        "cell": cell.name,
        "rule": scout.model_dump(mode="json"),
        "items": pc.count_distinct(trials.column("item_id")).as_py(),
        "trials": trials.num_rows,
        "outcomes": {name: found.count(name) for name in sorted(set(found))},
        "accuracy": _json(accuracy),
        "band": None if accuracy.estimate is None else band_of(analysis, accuracy.estimate),
        "same_option": _json(_same_option(analysis, outcomes)),
        "detectable_V": _predict(analysis, strata, sweep),
        "sweep": {
            "trials": sweep.trials,
            "reused": kept,
            "left": sweep.trials - kept,
            **_cost(study, cell, replies, sweep.trials - kept),
        },
        "rule_keeps": ruling.keeps,
        "settled": ruling.settled,
        "decision": "skip" if ruling.skip else "keep",
        "reason": ruling.reason,
    }
    return Look(body, ruling)


def _accuracy(analysis: Analysis, outcomes: pa.Table) -> Result:
    """Over all items whatever their number of options, the group being the unit."""
    scored = outcomes.filter(outcomes.column("correct").is_valid())
    groups = scored.group_by("group_id").aggregate([("correct", "sum"), ("correct", "count")])
    hits, n = (groups.column(f"correct_{name}").to_numpy().reshape(-1, 1) for name in ("sum", "count"))
    found = clustered_shares(hits, n, level=analysis.level)[0]
    if not scored.num_rows:
        return replace(found, reason="no reply of the scout could be scored")
    n_items = pc.count_distinct(scored.column("item_id")).as_py()
    return found if n_items == found.n_items else in_groups(found, n_items)


def _same_option(analysis: Analysis, outcomes: pa.Table) -> Result:
    """Over all items that were answered in both orders, the group being the unit."""
    answered = outcomes.filter(outcomes.column("option_id").is_valid())
    options = answered.group_by(["group_id", "item_id", "option_id"]).aggregate([([], "count_all")])
    items = options.group_by(["group_id", "item_id"]).aggregate([("count_all", "sum"), ("count_all", "max")])
    items = items.filter(pc.greater_equal(items.column("count_all_sum"), 2))
    group, answers, usual = (items.column(name) for name in ("group_id", "count_all_sum", "count_all_max"))
    unit = group.combine_chunks().dictionary_encode().indices
    found = ItemAnswers(*(values.to_numpy().astype(np.int64) for values in (unit, answers, usual)))
    return consistency(found, level=analysis.level)


def _predict(analysis: Analysis, strata: Sequence[Counts], sweep: Sweep) -> Json:
    """Bracket the V that the sweep would show.

    Two orders cannot tell an item's own slot effects from the noise of a call. The least V takes all that varies within
    items as noise, which the sweep's many calls average out; the most takes it as slot effects, which stay.
    """
    power = analysis.detectable_power
    nuisance, reason = _nuisance(strata, sweep.slots.shape[1])
    least = most = None
    if nuisance is not None:
        fixed = Nuisance(nuisance.accuracy, nuisance.between_items, 1 - nuisance.between_items)
        free = Nuisance(nuisance.accuracy, nuisance.between_items, 0.0)
        least, most = (
            predict_v(each, sweep.slots, power=power, alpha=analysis.alpha, seed=analysis.seed)
            for each in (free, fixed)
        )
        if least is None or most is None:
            reason = f"no slot effect would be found with power {power:g} if what varies within items stays"
        if least is None and most is None:
            reason = f"no slot effect would be found with power {power:g}"
        elif least is not None and most is not None:
            # Simulation error alone can turn two equal bounds round.
            least, most = min(least, most), max(least, most)
    return {"least": least, "most": most, "power": power, "planned": analysis.measurable_v, "reason": reason}


def _nuisance(strata: Sequence[Counts], k: int) -> tuple[Nuisance | None, str | None]:
    counts = next((entry for entry in strata if entry.k == k), None)
    if counts is None:
        return None, f"no item of the scout has {k} options"
    asked = counts.scored.sum(axis=0) > 0
    correct, n = counts.correct[:, asked], counts.scored[:, asked]
    if asked.sum() < 2:
        return None, "the scout's scored calls have the correct option in fewer than two slots"
    if correct.sum() in {0, n.sum()}:
        return None, "all scored calls of the scout have the same outcome: nothing tells how near to changing items are"
    return fit_nuisance(correct, n), None


def _cost(study: Study, cell: Cell, replies: pa.Table, left: int) -> dict[str, Json]:
    """Return tokens and cost of the calls left, by the mean usage of the scout's replies, nothing of it cached."""
    about: dict[str, int | None] = {}
    for name in ("input_tokens", "output_tokens"):
        mean = pc.mean(replies.column(name)).as_py()
        about[name] = None if mean is None else math.ceil(mean * left)
    prices = study.config.money.prices.get(cell.model.id)
    nano = None
    if prices is not None and about["input_tokens"] is not None and about["output_tokens"] is not None:
        batch = isinstance(cell.model, ApiModel) and study.account(cell.model.account).mode == "batch"
        nano = Tariff.of(prices, batch=batch).cost(about["input_tokens"], 0, about["output_tokens"])
    return {**about, "nano_usd": nano}


def _json(result: Result) -> dict[str, Any]:
    names = ("estimate", "low", "high", "level", "n_items", "n_calls", "status", "reason", "method")
    values = asdict(result)
    return {name: values[name] for name in names}
