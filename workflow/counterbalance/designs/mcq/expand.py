"""Items to trials: every item in every order, rendered once, repeated as often as the experiment says.

Prompts that are drawn for the repeat floor are asked once more than the others; their last repeat is the extra one.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from counterbalance.arrangements import arrange
from counterbalance.canonical import sha256_json
from counterbalance.config import Dataset, Experiment, Study
from counterbalance.config.models import OptionTextRead
from counterbalance.designs.trials import Columns, trial_tables
from counterbalance.errors import ConfigError, InputError
from counterbalance.examples import SolvedItem, arrange_examples, read_examples
from counterbalance.items.folding import fold_text
from counterbalance.items.source import project_file
from counterbalance.prompts import PromptTemplate, RenderedPrompt, labels_for

CONDITION = "mcq"


def expand(study: Study, experiment: Experiment, dataset: Dataset, items: pa.Table) -> Iterator[pa.Table]:
    """Yield an experiment's trials on a data set.

    Parameters
    ----------
    study
        Gives seed, limits and the project's folder.
    experiment
        Gives prompt, arrangement and repeats.
    dataset
        The items' data set, for messages.
    items
        Table of the declared schema, sorted by `item_id`.

    Yields
    ------
    pyarrow.Table
        Trials of the declared schema, in key order, about 20,000 at a time. Prompts follow the order of arrangements,
        so that neighbours share prefixes; `gold_slot` counts from 0.

    Raises
    ------
    ConfigError
        If the template, the examples, the labels or the number of orders do not fit.
    InputError
        If an item is also one of its own solved examples.
    """
    _check_contrasts(study)
    yield from trial_tables(items, _Expander(study, experiment, dataset).add)


def asked_again(share: float, seed: int, item_id: str, index: int) -> bool:
    """Return whether an item's prompt in one arrangement is drawn to be asked once more, with probability `share`."""
    digest = sha256_json(["repeat", seed, item_id, index]).removeprefix("sha256:")
    return int(digest[:13], 16) * 2.0**-52 < share


def _check_contrasts(study: Study) -> None:
    """Refuse planned contrasts that cannot be read or that name what no item has, before anything is frozen."""
    file = study.config.analysis.slot_contrasts
    if file is not None:
        # The package of contrasts loads the statistics, which a study without contrasts need not wait for.
        from counterbalance.contrasts.names import place_of
        from counterbalance.designs.mcq.planned import slot_plan

        slot_plan(file, place_of(study, "slot_contrasts"))


class _Expander:
    """What is the same for all items of an experiment."""

    def __init__(self, study: Study, experiment: Experiment, dataset: Dataset) -> None:
        prompt = experiment.prompt
        self._study = study
        self._experiment = experiment
        self._dataset = dataset
        self._solved: list[SolvedItem] = []
        if prompt.examples is not None:
            self._solved = read_examples(project_file(study.root, prompt.examples), prompt.examples)
        # So many that examples of unlike lengths, too, have their answers in each of their slots equally often.
        self._places = math.lcm(*(len(item.options) for item in self._solved)) if prompt.example_slots == "drawn" else 1
        self._templates: dict[int, PromptTemplate] = {}
        self._moved(0)
        self._example_contents = {item.content for item in self._solved}

    def add(self, item: dict[str, Any], columns: Columns) -> None:
        """Append the trials of one item."""
        item_id, option_ids = item["item_id"], item["option_ids"]
        self._refuse_example(item)
        orders = arrange(
            self._experiment.arrangement.scheme,
            self._experiment.arrangement.n,
            seed=self._study.config.seed,
            item_id=item_id,
            option_ids=option_ids,
            max_arrangements=self._study.config.limits.max_arrangements,
        )
        texts = dict(zip(option_ids, item["option_texts"], strict=True))
        labels = labels_for(len(option_ids), self._experiment.prompt.labels, where=f"item {item_id!r}")
        prompts = [
            self._template(item_id, order).render(item["stem"], [texts[o] for o in order], labels) for order in orders
        ]
        self._refuse_equal_prompts(item_id, prompts)
        for index, (order, rendered) in enumerate(zip(orders, prompts, strict=True)):
            gold = item["gold_option_id"]
            shown = [texts[option] for option in order]
            for repeat in range(self._experiment.repeats + self._asked_again(item_id, index)):
                columns["trial_id"].append(f"{item_id}.{CONDITION}.{index:04d}.{repeat:02d}")
                columns["item_id"].append(item_id)
                columns["group_id"].append(item["group_id"])
                columns["condition"].append(CONDITION)
                columns["arrangement_index"].append(index)
                columns["repeat"].append(repeat)
                columns["arrangement"].append(order)
                columns["labels"].append(labels)
                columns["option_texts"].append(shown)
                columns["gold_slot"].append(None if gold is None else order.index(gold))
                columns["prompt"].append(rendered.prompt)
                columns["prompt_sha256"].append(rendered.sha256)

    def _template(self, item_id: str, order: Sequence[str]) -> PromptTemplate:
        """Draw where the examples' answers stand; a function of item and order alone, as a scout asks them too."""
        if self._places == 1:
            return self._moved(0)
        digest = sha256_json(["example slots", self._study.config.seed, item_id, list(order)]).removeprefix("sha256:")
        return self._moved(int(digest[:13], 16) * self._places >> 52)

    def _moved(self, place: int) -> PromptTemplate:
        if place not in self._templates:
            prompt, root, seed = self._experiment.prompt, self._study.root, self._study.config.seed
            examples = arrange_examples(self._solved, prompt.labels, seed, prompt.examples or "", moved=place)
            path = project_file(root, prompt.template)
            self._templates[place] = PromptTemplate(path, prompt.template, self._experiment, examples)
        return self._templates[place]

    def _asked_again(self, item_id: str, index: int) -> bool:
        """Whether a prompt is asked once more; a function of its own name alone, so that no other item matters."""
        share = self._experiment.repeat_share
        return share > 0 and asked_again(share, self._study.config.seed, item_id, index)

    def _refuse_example(self, item: dict[str, Any]) -> None:
        if not self._example_contents:
            return
        content = fold_text(item["stem"]), frozenset(fold_text(text) for text in item["option_texts"])
        if content in self._example_contents:
            raise InputError(
                f"{self._dataset.path} row {item['source_row']}: item {item['item_id']!r} is also a solved example in "
                f"{self._experiment.prompt.examples}, which would give its answer away; remove it from one of the two"
            )

    def _refuse_equal_prompts(self, item_id: str, prompts: list[RenderedPrompt]) -> None:
        """Refuse a template that hides the order: then nothing is counterbalanced."""
        if isinstance(self._experiment.read, OptionTextRead) or len({p.sha256 for p in prompts}) == len(prompts):
            return
        raise ConfigError(
            f"{self._experiment.prompt.template}: different orders of item {item_id!r} give the same prompt; write the "
            "options in the order in which the template gets them"
        )
