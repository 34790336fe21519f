"""Planned contrasts before there are any data: what their rows are called and mean, and whether a design knows them."""

import re
from collections.abc import Collection, Iterable

from counterbalance.config.contrasts import ContrastFile
from counterbalance.contrasts.plan import ContrastPlan, plan_contrasts
from counterbalance.errors import ConfigError

_CONTRAST = re.compile(r"(?:(tost|sd|negative)\.)?contrast\.([A-Za-z_][A-Za-z0-9_]*)")
_RATIO = re.compile(r"()ratio_of_means\.([A-Za-z_][A-Za-z0-9_]*)")
_KINDS = {
    "": "mean over items with its interval.",
    "tost": "test of equivalence to zero within the bound, with the interval that belongs to it.",
    "sd": "standard deviation over items.",
    "negative": "number of items below zero.",
}


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
    listed = ", ".join(known) or f"none, for `analysis.{key}` names no file"
    return None if name in known else f"no contrast {name!r} is planned; there are {listed}"


def checked_plan(
    file: ContrastFile, *, source: str, conditions: Collection[str], effects: Iterable[str]
) -> ContrastPlan:
    """Parse planned contrasts whose names have to be those of a design.

    Parameters
    ----------
    conditions, effects
        Those that the design has.

    Raises
    ------
    ConfigError
        With the contrast, what is wrong with it and what there is.
    """
    plan = plan_contrasts(file.model_dump(mode="json", by_alias=True), {}, source=source, effects=list(effects))
    for planned in plan.contrasts:
        for name in planned.conditions:
            if name not in conditions:
                listed = ", ".join(conditions)
                raise ConfigError(f"{source}, contrast {planned.id}: no condition {name!r}; there are {listed}")
    return plan
