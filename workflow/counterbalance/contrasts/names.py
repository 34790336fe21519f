"""Planned contrasts before there are any data: what their rows are called and mean, and whether a design knows them."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from counterbalance.config import Study
from counterbalance.config.contrasts import ContrastFile
from counterbalance.config.yaml import read_yaml
from counterbalance.contrasts.plan import ContrastPlan, plan_contrasts
from counterbalance.contrasts.words import CROSSING, Words, with_hint
from counterbalance.errors import ConfigError

Lines = Mapping[tuple[str | int, ...], int]

_CONTRAST = re.compile(r"(?:(tost|sd|negative)\.)?contrast\.([A-Za-z_][A-Za-z0-9_]*)")
_RATIO = re.compile(r"()ratio_of_means\.([A-Za-z_][A-Za-z0-9_]*)")
FORMS = "contrast.ID of a planned contrast, also with tost., sd. or negative. before it, and ratio_of_means.ID"
"""What messages say of the quantities that planned contrasts have."""

_KINDS = {
    "": "mean over items with its interval.",
    "tost": "test of equivalence to zero within the bound, with the interval that belongs to it.",
    "sd": "standard deviation over items.",
    "negative": "number of items below zero.",
}


@dataclass(frozen=True)
class Place:
    """Where contrasts are written: what to call it, and the line of each key as far as that is known."""

    source: str
    lines: Lines = field(default_factory=dict)


def contrast_id(quantity: str) -> str | None:
    """Return the contrast that a quantity is about, None if it is about none."""
    found = _CONTRAST.fullmatch(quantity) or _RATIO.fullmatch(quantity)
    return found[2] if found else None


def describe_contrast(quantity: str) -> str | None:
    """Return what a quantity of a planned contrast means, None if it is none."""
    if found := _CONTRAST.fullmatch(quantity):
        return f"Planned contrast {found[2]}: {_KINDS[found[1] or '']}"
    if found := _RATIO.fullmatch(quantity):
        return f"Planned contrast {found[2]}: mean of the numerator over mean of the denominator."
    return None


def unplanned_contrast(name: str, plan: ContrastFile | None, key: str) -> str | None:
    """Say why there will be no such contrast, None if it is planned; `key` is the setting that names the file."""
    known = [entry.id for entry in plan.contrasts] if plan else []
    if name in known:
        return None
    listed = with_hint(name, known) if known else f"none, for `analysis.{key}` names no file: name one there"
    return f"no contrast {name!r} is planned; there are {listed}"


def checked_plan(
    file: ContrastFile,
    *,
    place: Place,
    conditions: Collection[str],
    effects: Sequence[str],
    words: Words = CROSSING,
) -> ContrastPlan:
    """Parse planned contrasts whose names have to be those of a design.

    Parameters
    ----------
    place
        Where they are written, for messages.
    conditions, effects
        Those that the design has.
    words
        What the design calls them.

    Raises
    ------
    ConfigError
        With the contrast, what is wrong with it and what there is.
    """
    value = file.model_dump(mode="json", by_alias=True)
    return plan_contrasts(value, place.lines, source=place.source, effects=effects, conditions=conditions, words=words)


def place_of(study: Study, key: str) -> Place:
    """Return where a study's contrasts are written: the file that `analysis.KEY` names, or the study file."""
    within = Place(f"{study.path}: analysis.{key}")
    try:
        name = read_yaml(study.path)[0]["analysis"][key]
        value, lines = read_yaml(study.root / name)
        same = ContrastFile.model_validate_json(json.dumps(value)) == getattr(study.config.analysis, key)
    except (ConfigError, ValidationError, KeyError, TypeError):
        return within
    return Place(name, lines) if same else within
