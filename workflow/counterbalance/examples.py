"""Solved examples shown before an item: their answers are spread over the labels, so that they teach no position."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterbalance.canonical import sha256_json
from counterbalance.config.yaml import read_yaml
from counterbalance.errors import ConfigError
from counterbalance.items.folding import fold_text
from counterbalance.prompts import Example, PromptOption, labels_for

_KEYS = {"question", "options", "answer"}


@dataclass(frozen=True)
class SolvedItem:
    """An example as its file has it; `answer` is the correct option's index, from 0."""

    question: str
    options: tuple[str, ...]
    answer: int

    @property
    def content(self) -> tuple[str, frozenset[str]]:
        """Question and options as a reader sees them, to find an item that is its own example."""
        return fold_text(self.question), frozenset(fold_text(option) for option in self.options)


def read_examples(path: Path, name: str) -> list[SolvedItem]:
    """Read a YAML list of ``{question, options, answer}``.

    Raises
    ------
    ConfigError
        With file, line and key.
    """
    value, lines = read_yaml(path)
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{name}: expected a list of examples, each with question, options and answer")
    return [_solved(entry, f"{name} line {lines[(index,)]}") for index, entry in enumerate(value)]


def arrange_examples(
    solved: Sequence[SolvedItem], labels: Sequence[str] | None, seed: int, name: str, *, moved: int = 0
) -> list[Example]:
    """Give every example an order of its options.

    Each correct option goes to one of the slots that were correct least often so far, so that among equally long
    examples no slot is correct two times more than another. Ties, and the order of the wrong options, are decided by a
    hash of the seed, the number of the example and its texts.

    Parameters
    ----------
    solved
        In the order in which they are shown; it stays.
    labels
        Of the experiment; A, B, C, ... if None.
    seed
        The study's.
    name
        The file, for messages.
    moved
        By how many slots every correct option is moved on, from the last to the first.
    """
    used: Counter[int] = Counter()
    arranged = []
    for number, item in enumerate(solved, start=1):
        key = ["example", seed, number, item.question, sorted(item.options)]
        slots = range(len(item.options))
        gold = min(slots, key=lambda slot: (used[slot], sha256_json([*key, slot])))
        used[gold] += 1
        gold = (gold + moved) % len(slots)
        wrong = [text for index, text in enumerate(item.options) if index != item.answer]
        texts = sorted(wrong, key=lambda text: sha256_json([*key, text]))
        texts.insert(gold, item.options[item.answer])
        slot_labels = labels_for(len(texts), labels, where=f"{name}, example {number}")
        options = tuple(map(PromptOption, slot_labels, texts))
        arranged.append(Example(item.question, options, slot_labels[gold], texts[gold]))
    return arranged


def _solved(entry: Any, where: str) -> SolvedItem:
    if not isinstance(entry, dict) or entry.keys() != _KEYS:
        raise ConfigError(f"{where}: expected the keys question, options and answer, and no others")
    question, options, answer = entry["question"], entry["options"], entry["answer"]
    if not isinstance(question, str) or not question.strip():
        raise ConfigError(f"{where}: question is not text; write it, in quotes if it looks like a number")
    if not isinstance(options, list) or len(options) < 2:
        raise ConfigError(f"{where}: options has to be a list of at least two texts")
    for option in options:
        if not isinstance(option, str) or not option.strip() or len(option.splitlines()) > 1:
            raise ConfigError(f"{where}: option {option!r} is not one line of text; put numbers in quotes")
    if len({fold_text(option) for option in options}) < len(options):
        raise ConfigError(f"{where}: two options are the same to a reader; change one")
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < len(options):
        raise ConfigError(
            f"{where}: answer {answer!r} is not the index of an option; expected 0 to {len(options) - 1}, from 0"
        )
    return SolvedItem(question, tuple(options), answer)
