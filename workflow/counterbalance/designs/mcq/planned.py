"""Planned contrasts by slot: what they may be made of, what their parts are called, and which slots there are."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from counterbalance.config import Study
from counterbalance.config.contrasts import ContrastFile
from counterbalance.contrasts.grammar import Effect, walk
from counterbalance.contrasts.names import Place, checked_plan, place_of
from counterbalance.contrasts.plan import ContrastPlan
from counterbalance.contrasts.words import Words

SLOT_QUANTITIES = ("accuracy", "picks", "label_logprob", "slot_bonus", "label_prior")
"""What is known by slot of each item, and can be put into planned contrasts as QUANTITY.slot_1 and so on."""
MOST_SLOTS = 26
SLOTS = tuple(f"slot_{place}" for place in range(1, MOST_SLOTS + 1))

_WORDS = Words(
    first="quantity",
    firsts="quantities",
    second="slot",
    seconds=f"slot_1, the first, to slot_{MOST_SLOTS}",
    operands="quantities by slot",
    example="accuracy.slot_1",
    ratio="picks.slot_1 / picks.slot_4",
)
_SETTING = Place("analysis.slot_contrasts")
_SLOT = re.compile(r"slot_([1-9][0-9]*)")


def slot_plan(file: ContrastFile, place: Place = _SETTING) -> ContrastPlan:
    """Return the checked contrasts by slot of a study.

    Raises
    ------
    ConfigError
        With the contrast, what is wrong with it and what there is.
    """
    return checked_plan(file, place=place, conditions=SLOT_QUANTITIES, effects=SLOTS, words=_WORDS)


def absent_slots(study: Study, sizes: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Say which planned contrasts name a slot that no item of any data set of the design has.

    Parameters
    ----------
    sizes
        By data set, the numbers of options that its items have.
    """
    file = study.config.analysis.slot_contrasts
    asked = [e for e in study.config.experiments if e.design == "mcq"]
    names = dict.fromkeys(name for experiment in asked for name in experiment.datasets)
    most = max((size for name in names for size in sizes[name]), default=0)
    if file is None or not most:
        return
    place = place_of(study, "slot_contrasts")
    for index, planned in enumerate(slot_plan(file, place).contrasts):
        line = place.lines.get(("contrasts", index, "expression"))
        for node in walk(planned.tree):
            if isinstance(node, Effect) and slot_number(node.effect) > most:
                yield (
                    f"{place.source}{f' line {line}' if line else ''}, contrast {planned.id}, column {node.column}: no "
                    f"item has a {node.effect}: {options_words(names, sizes)}, so there are slot_1 to slot_{most}; "
                    "correct the expression, or remove the contrast"
                )


def slot_number(name: str) -> int:
    """Return the number of a slot by its name, 0 for what is no slot."""
    found = _SLOT.fullmatch(name)
    return int(found[1]) if found else 0


def options_words(names: Iterable[str], sizes: Mapping[str, Sequence[int]]) -> str:
    """Say how many options the items of some data sets have."""
    return ", ".join(f"items of {name} have {' or '.join(map(str, sizes[name]))} options" for name in names)
