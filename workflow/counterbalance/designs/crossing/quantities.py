"""What the crossing design's estimates are called, and what each means."""

import re
from collections.abc import Iterable

from counterbalance.config import Experiment, Study
from counterbalance.contrasts.names import FORMS, contrast_id, describe_contrast, unplanned_contrast
from counterbalance.contrasts.words import did_you_mean
from counterbalance.designs.base import Breakdown
from counterbalance.designs.crossing.conditions import CELL_BLOCKS, CONDITIONS, chosen_conditions
from counterbalance.errors import InputError

CONFIRMATORY = tuple(f"serial.{name}" for name in CONDITIONS)

ANSWER = (
    ("verdict", "verdict", "label"),
    ("items kept", "items.kept", "estimate"),
    ("items asked", "items.all", "estimate"),
)
BREAKDOWN = Breakdown(
    title="half-effects of the kept items",
    part="condition",
    names=tuple(CONDITIONS),
    columns=(
        ("serial", "serial.{}", "interval"),
        ("p (Holm)", "serial.{}", "p_adjusted"),
        ("role", "role.{}", "interval"),
        ("role control", "null.role.{}", "label"),
        ("order", "order.{}", "interval"),
        ("order control", "null.order.{}", "label"),
    ),
)
CONTRASTS = "contrasts"
"""Which setting of the analysis holds the design's planned contrasts."""

_EFFECTS = {
    "token": "Leaning to answer B, whatever its place and role",
    "role": "Leaning to the recent source",
    "order": "Leaning to B where the stale block comes first, which nothing should cause: a null control",
    "serial": "Leaning to the block printed last; negative is primacy",
}
_KINDS = {
    "": "mean half-effect over items with its interval.",
    "tost": "test of equivalence to zero within the bound, with the interval that belongs to it.",
    "sd": "standard deviation over items.",
    "negative": "number of items below zero.",
    "null": "whether the null control holds: `pass`, `fail` or `not_applicable`.",
}
_BEFORE = ("", "tost.", "sd.", "negative.")
_OTHERS = {
    "flagged": "Items flagged for a large token or order effect",
    "incomplete": "Items without an answer in some cell",
    "answer_mass": "Mean probability that both answers have together as the next token",
}
_SINGLE = {
    "items.all": "Items asked.",
    "items.kept": "Items that are complete and flagged in no condition.",
    "sets_differ": "Effects and contrasts that exclude zero on one set of items only; the reason lists them.",
    "models_returned": "How many model ids the replies name; given only where they name more than one.",
    "verdict": "Whether the model leans to the first or the last block, to neither, or whether it cannot be told.",
}
_EFFECT = re.compile(rf"(?:(tost|sd|negative|null)\.)?({'|'.join(_EFFECTS)})\.({'|'.join(CONDITIONS)})")
_OTHER = re.compile(rf"({'|'.join(_OTHERS)})\.({'|'.join(CONDITIONS)})")
_STATUS = re.compile(rf"status\.([a-z_]+)(?:\.({'|'.join(CELL_BLOCKS)}))?")


def describe(quantity: str) -> str:
    """Return what a quantity means, in one plain sentence.

    Raises
    ------
    InputError
        If the design has no such quantity.
    """
    base, part, model = quantity.partition("@model=")
    name, all_items, rest = base.partition("@all")
    text = _describe(name, bool(all_items))
    if text is None or rest or (part and not model):
        first = next(iter(CONDITIONS))
        raise InputError(
            f"crossing has no quantity {quantity!r}{did_you_mean(name, _names(CONDITIONS))}; there are "
            f"{', '.join(_names([first]))}, and so for the other conditions ({', '.join(list(CONDITIONS)[1:])}), cells "
            f"(e2, e3, e4) and outcomes of calls; {FORMS}; effects and contrasts also with @all for all items, "
            "everything with @model=ID for the part that one model answered"
        )
    on = "On all items." if all_items else ""
    of = f"Only calls that {model} answered." if model else ""
    return " ".join(filter(None, [text, on, of]))


def _names(conditions: Iterable[str]) -> list[str]:
    """Return the quantities of a cell that is asked in some conditions; of the outcomes of calls, `ok` alone."""
    found = [f"{kind}{effect}.{name}" for name in conditions for kind in _BEFORE for effect in _EFFECTS]
    found += [f"null.{effect}.{name}" for name in conditions for effect in ("role", "order")]
    found += [f"{kind}.{name}" for name in conditions for kind in _OTHERS]
    return [*found, "status.ok", "status.ok.e1", *_SINGLE]


def unit(experiment: Experiment) -> str:
    """Return the unit of an experiment's half-effects and of their contrasts."""
    if experiment.read.kind == "generate":
        return "on the scale of probability (half-differences of shares of answers, not nats)"
    return "in nats"


def unplanned(study: Study, experiment: Experiment, quantity: str) -> str | None:
    """Say why an experiment will have no such quantity: a condition it does not ask, a contrast nobody planned."""
    name = quantity.partition("@")[0]
    if contrast := contrast_id(name):
        return unplanned_contrast(contrast, study.config.analysis.contrasts, "contrasts")
    condition = name.rpartition(".")[2]
    if condition not in CONDITIONS or experiment.crossing is None:
        return None
    asked = [entry.name for entry in chosen_conditions(experiment.crossing)]
    return None if condition in asked else f"condition {condition} is not asked; there are {', '.join(asked)}"


def _describe(name: str, all_items: bool) -> str | None:
    if found := _EFFECT.fullmatch(name):
        kind, effect, condition = found.groups()
        if kind == "null" and effect not in ("role", "order"):
            return None
        return f"{_EFFECTS[effect]} ({CONDITIONS[condition].words}): {_KINDS[kind or '']}"
    if text := describe_contrast(name):
        return text
    if all_items:
        return None
    if found := _OTHER.fullmatch(name):
        return f"{_OTHERS[found[1]]} ({CONDITIONS[found[2]].words})."
    if found := _STATUS.fullmatch(name):
        where = f" in cell {found[2]}" if found[2] else ""
        return f"Share of calls with the outcome {found[1].replace('_', ' ')}{where}."
    return _SINGLE.get(name)
