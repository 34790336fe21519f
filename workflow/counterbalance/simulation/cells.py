"""Cells that a respondent answers through the pipeline's own doors: vendor, score; nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

import numpy as np
import pyarrow as pa

from counterbalance.arrangements import Scheme, arrange
from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.config.models import Arrangement, Experiment, Prompt, Read
from counterbalance.designs import get_design
from counterbalance.simulation.respondent import Ints, Respondent, choose, utilities
from counterbalance.vendors.base import Reply, Trial
from counterbalance.vendors.simulated import SimulatedVendor

_LABELS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SUBSET = "items"
_NO_LIMIT = 10**9
_REPLY_FIELDS = frozenset(entry.name for entry in fields(Reply))


def design_orders(scheme: Scheme, n: int | None, *, n_items: int, k: int, seed: int) -> Ints:
    """Return the orders that the pipeline asks, shape (items, orders, slots), option 0 being the correct one.

    The correct option stands first, second, ... in the source, item by item in turn.
    """
    ids = [f"o{number}" for number in range(1, k + 1)]
    place = {option: number for number, option in enumerate(ids)}
    rows = []
    for item in range(n_items):
        orders = arrange(scheme, n, seed=seed, item_id=_item_id(item), option_ids=ids, max_arrangements=_NO_LIMIT)
        rows.append([[(place[option] - item) % k for option in order] for order in orders])
    return np.array(rows, dtype=np.int64)


@dataclass(frozen=True)
class PlantedCell:
    """A cell's trials, ready to be answered again and again.

    Attributes
    ----------
    orders
        Shape (items, calls, slots), option 0 being the correct one; calls that repeat an order follow one another.
    experiment, trials, asked
        What the pipeline's doors take: settings, the trials table, and its rows as the vendor gets them.
    """

    orders: Ints
    experiment: Experiment
    trials: pa.Table
    asked: Sequence[Trial]

    def outcomes(
        self, respondent: Respondent, seed: int, *, refusal_rate: float = 0.0, refused_slot: int | None = None
    ) -> pa.Table:
        """Return a replicate's outcomes: the vendor `simulated` answers and the design scores.

        Calls are refused wherever the correct option stands, or where it stands in `refused_slot` (from 0) alone. A
        respondent that the vendor does not have is drawn by the same model, and names its label.
        """
        if respondent.has_vendor:
            refusing, willing = (
                SimulatedVendor(respondent.as_model(seed, refusal_rate=rate), self.experiment)
                for rate in (refusal_rate, 0.0)
            )
            replies = [
                (refusing if refused_slot in (None, trial.gold_slot) else willing).answer(trial) for trial in self.asked
            ]
        else:
            rng = np.random.default_rng(seed)
            effects = respondent.effects(1, len(self.orders), rng)
            chosen = choose(utilities(effects, self.orders), respondent.call_noise, rng)
            replies = [Reply("ok", text=_LABELS[slot], finish_reason="stop") for slot in chosen.ravel()]
        return get_design("mcq").score(self.experiment, self.trials, self._table(replies))

    def _table(self, replies: Sequence[Reply]) -> pa.Table:
        columns = {"trial_id": self.trials.column("trial_id")}
        for field in SCHEMAS["replies"].arrow:
            # What a call leaves in the ledger besides its reply (keys, times) takes no part in scoring.
            if field.name in _REPLY_FIELDS:
                columns[field.name] = pa.array(map(attrgetter(field.name), replies), type=field.type)
        return pa.table(columns)


def planted_cell(
    scheme: Scheme, n: int | None = None, *, n_items: int, k: int = 4, read: Read, repeats: int = 1, seed: int = 1
) -> PlantedCell:
    """Make a cell's trials; they hold no prompts, since a planted respondent reads none."""
    orders = design_orders(scheme, n, n_items=n_items, k=k, seed=seed).repeat(repeats, axis=1)
    experiment = Experiment(
        id="planted",
        design="mcq",
        datasets=[_SUBSET],
        models=["planted"],
        prompt=Prompt(template="none", style="plain"),
        read=read,
        arrangement=Arrangement(scheme=scheme, n=n),
        repeats=repeats,
    )
    rows = [
        _trial_row(item, *divmod(index, repeats), order.tolist())
        for item, of_item in enumerate(orders)
        for index, order in enumerate(of_item)
    ]
    trials = table_from_rows(rows, SCHEMAS["trials"])
    asked = [
        Trial(
            trial_id=row["trial_id"],
            experiment=experiment.id,
            subset=_SUBSET,
            item_id=row["item_id"],
            arrangement=row["arrangement"],
            labels=row["labels"],
            option_texts=row["option_texts"],
            gold_slot=row["gold_slot"],
            repeat=row["repeat"],
            prompt=None,
            prompt_sha256=row["prompt_sha256"],
        )
        for row in trials.to_pylist()
    ]
    return PlantedCell(orders, experiment, trials, asked)


def _item_id(item: int) -> str:
    return f"i{item:05d}"


def _trial_row(item: int, index: int, repeat: int, order: list[int]) -> dict[str, object]:
    k = len(order)
    options = [f"o{(option + item) % k + 1}" for option in order]
    return {
        "trial_id": f"{_item_id(item)}.mcq.{index:04d}.{repeat:02d}",
        "item_id": _item_id(item),
        "group_id": _item_id(item),
        "condition": "mcq",
        "arrangement_index": index,
        "repeat": repeat,
        "arrangement": options,
        "labels": list(_LABELS[:k]),
        "option_texts": [f"option {name}" for name in options],
        "gold_slot": order.index(0),
        "prompt": "null",
        "prompt_sha256": "none",
    }
