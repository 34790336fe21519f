"""What a study's files say before anything is frozen: items, options, and about how long its prompts are."""

import json
from collections import Counter
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
    """A data set: number of items, and the number of options that most of them have."""

    n: int
    k: int
    table: pa.Table


def read_items(study: Study, dataset: Dataset) -> Items | None:
    """Return what is known of a data set: as prepared, or as its file in the project would be; None for others."""
    path = study.layout.items(dataset.id)
    if path.is_file():
        table = read_table(path, SCHEMAS["items"])
    elif dataset.path.startswith(SCHEME):
        return None
    else:
        table = prepare_table(read_source(dataset, study.root).data, dataset, study.config.seed).items
    options = Counter(len(ids) for ids in table.column("option_ids").to_pylist())
    return Items(table.num_rows, max(options, key=lambda k: (options[k], -k)), table)


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
