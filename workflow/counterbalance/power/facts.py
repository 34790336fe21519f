"""What a study's files say before anything is frozen: items, options, and about how long its prompts are."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.config import Dataset, Experiment, Study
from counterbalance.config.models import GenerateRead
from counterbalance.designs import get_design
from counterbalance.items.hub import SCHEME
from counterbalance.items.prepare import prepare_table
from counterbalance.items.source import read_source

CHARACTERS_PER_TOKEN = 4.0
"""A rule of thumb for English; other languages and much punctuation take more tokens."""

_SAMPLED_ITEMS = 10
_MILLION = 1e6


@dataclass(frozen=True)
class Items:
    """A data set before it is asked.

    Attributes
    ----------
    n, k
        Items that have the number of options that most have, and that number.
    others
        Further numbers of options, each with its number of items.
    n_groups
        Units among those n: items that share a source count once.
    """

    n: int
    k: int
    others: Mapping[int, int]
    n_groups: int
    table: pa.Table

    @property
    def numbers(self) -> str:
        """How many items have how many options, in words."""
        return ", ".join(f"{n} with {k}" for k, n in {self.k: self.n, **self.others}.items())


def read_items(study: Study, dataset: Dataset) -> Items | None:
    """Return what is known of a data set: as prepared, or as its file in the project would be; None for others."""
    path = study.layout.items(dataset.id)
    if path.is_file():
        table = read_table(path, SCHEMAS["items"])
    elif dataset.path.startswith(SCHEME):
        return None
    else:
        table = prepare_table(read_source(dataset, study.root).data, dataset, study.config.seed).items
    sizes = [len(ids) for ids in table.column("option_ids").to_pylist()]
    counts = Counter(sizes)
    k = max(counts, key=lambda size: (counts[size], -size))
    groups = {group for group, size in zip(table.column("group_id").to_pylist(), sizes, strict=True) if size == k}
    others = {size: counts[size] for size in sorted(counts) if size != k}
    return Items(counts[k], k, others, len(groups), table)


def prompt_tokens(study: Study, experiment: Experiment, dataset: Dataset, items: Items) -> float:
    """Return the mean length of a prompt in tokens, about, from the prompts of a few items."""
    few = items.table.slice(0, _SAMPLED_ITEMS)
    lengths = [
        _characters(json.loads(prompt))
        for table in get_design(experiment.design).expand(study, experiment, dataset, few)
        for prompt in table.column("prompt").to_pylist()
    ]
    return sum(lengths) / len(lengths) / CHARACTERS_PER_TOKEN


def _characters(prompt: Any) -> int:
    """Return the length of a prompt as stored: bare text, or messages."""
    if "text" in prompt:
        return len(prompt["text"])
    return sum(len(message["content"]) for message in prompt["messages"])


def call_price(study: Study, experiment: Experiment, model: str, tokens: float) -> float | None:
    """Return the most that a call costs, about, in US dollars; None without a price.

    Output is counted at its limit, input as uncached; an account in batch mode has its discount.
    """
    prices = study.config.money.prices.get(model)
    if prices is None:
        return None
    output = experiment.read.max_tokens if isinstance(experiment.read, GenerateRead) else 1
    full = (tokens * prices.input + output * prices.output) / _MILLION
    accounts = {account.id: account for account in study.config.accounts}
    account = accounts.get(getattr(study.model(model), "account", ""))
    return full * (1 - prices.batch_discount) if account is not None and account.mode == "batch" else full
