"""Items to trials: every item in every condition, cell and assignment of wordings, rendered once per repeat."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from counterbalance.canonical import parse_json
from counterbalance.config import Dataset, Experiment, Study
from counterbalance.config.models import CellsRead, Crossing
from counterbalance.designs.crossing.conditions import (
    CELL_BLOCKS,
    CONDITIONS,
    ROLES,
    Assignment,
    Condition,
    chosen_conditions,
)
from counterbalance.designs.crossing.effects import CELLS, EFFECTS
from counterbalance.designs.crossing.published import expand_cells
from counterbalance.designs.trials import Columns, trial_tables
from counterbalance.errors import ConfigError, InputError
from counterbalance.items.source import project_file
from counterbalance.prompts import PromptTemplate, RenderedPrompt

if TYPE_CHECKING:
    from counterbalance.contrasts import ContrastPlan

_VARIABLES = {"question": True, "blocks": True, "header": True, "body": True, "cues": True, "fields": False}

Item = Mapping[str, Any]


def expand(study: Study, experiment: Experiment, dataset: Dataset, items: pa.Table) -> Iterator[pa.Table]:
    """Yield an experiment's trials on a data set.

    Parameters
    ----------
    study
        Gives the project's folder and the planned contrasts, which are checked here, before anything is frozen.
    experiment
        Gives prompt, conditions, cues and repeats.
    dataset
        The items' data set, for messages.
    items
        Table of the declared schema, sorted by `item_id`: two options, A and B, and no key.

    Yields
    ------
    pyarrow.Table
        Trials of the declared schema, in key order, about 20,000 at a time. `arrangement` holds the answers in the
        order in which their blocks are printed, `arrangement_index` is 4 times the assignment plus the cell (0: e1).
        Of published cells there is one for each number, and its prompt is an address in the file.

    Raises
    ------
    ConfigError
        If conditions, contrasts or the template do not fit; where a prompt does not hold as many cues as its
        condition, or not each answer once and in order.
    InputError
        If an item is not one of a crossing.
    """
    check_contrasts(study)
    if isinstance(experiment.read, CellsRead):
        yield from expand_cells(dataset, items)
        return
    yield from trial_tables(items, _Expander(study, experiment, dataset).add)


def check_contrasts(study: Study) -> "ContrastPlan | None":
    """Return the planned contrasts; refuse those that cannot be read or name a condition that no crossing has."""
    file = study.config.analysis.contrasts
    if file is None:
        return None
    # The package of contrasts loads the statistics, which a study without contrasts need not wait for.
    from counterbalance.contrasts.names import checked_plan, place_of

    return checked_plan(file, place=place_of(study, "contrasts"), conditions=CONDITIONS, effects=EFFECTS)


def unasked(study: Study, experiment: Experiment, items: pa.Table) -> Iterator[str]:
    """Say which planned contrasts no cell of an experiment will have, for it does not ask their conditions."""
    plan = check_contrasts(study)
    if experiment.crossing is not None:
        asked = {condition.name for condition in chosen_conditions(experiment.crossing)}
    else:
        strata = [parse_json(text, source=experiment.id) for text in items.column("strata").to_pylist()]
        asked = {name for entry in strata for name in entry["lines"]}
    lacking: dict[str, list[str]] = {}
    for entry in plan.contrasts if plan else ():
        for name in entry.conditions:
            if name not in asked:
                lacking.setdefault(name, []).append(entry.id)
    for name, ids in lacking.items():
        yield f"condition {name} is not in experiment {experiment.id!r}, so that {', '.join(ids)} cannot be evaluated"


def count_cues(prompt: str, cues: Sequence[str]) -> int:
    """Return how many cues a prompt's canonical JSON text holds: whole words, small and large letters alike."""
    return len(re.findall(_as_words(cues), _text(prompt), re.IGNORECASE))


def _as_words(words: Sequence[str]) -> str:
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    return rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"


def _text(prompt: str) -> str:
    value = json.loads(prompt)
    return str(value["text"]) if "text" in value else "\n".join(message["content"] for message in value["messages"])


class _Expander:
    """What is the same for all items of an experiment."""

    def __init__(self, study: Study, experiment: Experiment, dataset: Dataset) -> None:
        self._experiment, self._dataset = experiment, dataset
        self._crossing: Crossing = _crossing(experiment)
        self._conditions = chosen_conditions(self._crossing)
        name = experiment.prompt.template
        self._template = PromptTemplate(project_file(study.root, name), name, experiment, variables=_VARIABLES)

    def add(self, item: Item, columns: Columns) -> None:
        """Append the trials of one item."""
        fields = self._fields(item)
        self._check_item(item)
        seen: dict[str, str] = {}
        for condition in self._conditions:
            for place, assignment in enumerate(condition.assignments):
                for cell, name in enumerate(CELLS):
                    index = place * len(CELLS) + cell
                    rendered = self._render(item, fields, condition, assignment, name)
                    where = f"{condition.name}, cell {name}, assignment {place + 1}"
                    other = seen.setdefault(rendered.sha256, where)
                    if other != where:
                        raise ConfigError(
                            f"{self._experiment.prompt.template}: item {item['item_id']!r} has the same prompt in "
                            f"{where} and {other}; the template has to print what differs between them"
                        )
                    self._append(columns, item, condition, index, rendered)

    def _append(self, columns: Columns, item: Item, condition: Condition, index: int, rendered: RenderedPrompt) -> None:
        blocks = CELL_BLOCKS[CELLS[index % len(CELLS)]]
        answers = [item["option_texts"][answer] for _, answer in blocks]
        for repeat in range(self._experiment.repeats):
            columns["trial_id"].append(f"{item['item_id']}.{condition.name}.{index:04d}.{repeat:02d}")
            columns["item_id"].append(item["item_id"])
            columns["group_id"].append(item["group_id"])
            columns["condition"].append(condition.name)
            columns["arrangement_index"].append(index)
            columns["repeat"].append(repeat)
            columns["arrangement"].append([item["option_ids"][answer] for _, answer in blocks])
            # The answers are their own labels: what is read is the first token of each.
            columns["labels"].append(answers)
            columns["option_texts"].append(answers)
            columns["gold_slot"].append(None)
            columns["prompt"].append(rendered.prompt)
            columns["prompt_sha256"].append(rendered.sha256)

    def _render(
        self, item: Item, fields: Mapping[str, Any], condition: Condition, assignment: Assignment, cell: str
    ) -> RenderedPrompt:
        blocks = CELL_BLOCKS[cell]
        answers = [item["option_texts"][answer] for _, answer in blocks]
        rendered = self._template.render_values(
            {
                "question": item["stem"],
                "header": condition.header,
                "body": condition.body,
                "cues": condition.cues,
                "fields": fields["item"],
                "blocks": tuple(
                    {**fields[role], "answer": answer, "wording": assignment[role]}
                    for (role, _), answer in zip(blocks, answers, strict=True)
                ),
            }
        )
        self._check_prompt(item, condition, cell, rendered.prompt, answers)
        return rendered

    def _check_prompt(self, item: Item, condition: Condition, cell: str, prompt: str, answers: Sequence[str]) -> None:
        where = f"{self._experiment.prompt.template}: item {item['item_id']!r}, condition {condition.name}, cell {cell}"
        found = count_cues(prompt, self._crossing.cues)
        if found != condition.cues:
            raise ConfigError(
                f"{where}: the prompt holds {found} cues, and the condition has {condition.cues}; correct the "
                f"template, the item, or `crossing.cues` ({', '.join(self._crossing.cues)})"
            )
        text = _text(prompt)
        places = [[found.start() for found in re.finditer(_as_words([a]), text, re.IGNORECASE)] for a in answers]
        if any(len(found) != 1 for found in places):
            counts = ", ".join(f"{a!r} {len(found)} times" for a, found in zip(answers, places, strict=True))
            raise ConfigError(
                f"{where}: the prompt holds {counts}; expected each answer once, in its block: one that is "
                "also printed elsewhere has an order of its own that nothing balances"
            )
        if places[0] > places[1]:
            raise ConfigError(f"{where}: the blocks are not printed in the order in which `blocks` has them")

    def _fields(self, item: Item) -> Mapping[str, Any]:
        """Return the further texts of an item: its own, and those of either source without their prefix."""
        values = parse_json(item["strata"], source=f"item {item['item_id']!r}")
        found: dict[str, dict[str, str]] = {"item": {}, "stale": {}, "recent": {}}
        for name in self._dataset.columns.fields:
            role, _, rest = name.partition("_")
            kind, short = (role, rest) if role in ROLES and rest else ("item", name)
            found[kind][short] = values[name]
        if found["stale"].keys() != found["recent"].keys() or not found["stale"]:
            raise ConfigError(
                f"data set {self._dataset.id!r}: `columns.fields` needs the same columns for both sources, named "
                f"stale_NAME and recent_NAME, and at least one pair; found {', '.join(self._dataset.columns.fields)}"
            )
        return found

    def _check_item(self, item: Item) -> None:
        where = f"{self._dataset.path} row {item['source_row']}, item {item['item_id']!r}"
        texts = item["option_texts"]
        if len(texts) != 2 or item["gold_option_id"] is not None:
            raise InputError(
                f"{where}: {len(texts)} answers{' and a key' if item['gold_option_id'] else ''}; an item of a crossing "
                "has two answers, A and B, and no key: both are right by one of the sources"
            )
        for text in texts:
            if text.split() != [text]:
                raise InputError(f"{where}: answer {text!r} is not one word without blanks around it; use one word")


def _crossing(experiment: Experiment) -> Crossing:
    if experiment.crossing is None:
        raise ConfigError(f"experiment {experiment.id!r}: `crossing` is missing; it declares conditions and cues")
    return experiment.crossing
