"""Which cells are asked and which are not, as the scouts have decided."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from counterbalance.canonical import Json, parse_json
from counterbalance.config import Cell, Study
from counterbalance.errors import GateError, InputError

SCOUT_SCHEMA = "counterbalance/scout/1"
SUMMARY_SCHEMA = "counterbalance/scout-summary/1"


@dataclass(frozen=True)
class CellDecision:
    """What was decided of one cell.

    Attributes
    ----------
    items, calls
        What the scout asked.
    left
        Calls of the sweep beyond those; saved if the cell is skipped.
    nano_usd
        About what they cost; None where no price is known.
    """

    cell: str
    decision: str
    reason: str
    accuracy: float | None
    band: str | None
    items: int
    calls: int
    left: int
    nano_usd: int | None

    @property
    def skipped(self) -> bool:
        return self.decision == "skip"


_DECISIONS = TypeAdapter(list[CellDecision])


def read_decision(study: Study, cell: Cell) -> Json:
    """Read what a cell's scout found.

    Raises
    ------
    InputError
        If it is missing or is not that of the cell.
    """
    path = study.layout.scout_decision(cell.experiment.id, cell.model.id, cell.dataset.id)
    if not path.is_file():
        raise InputError(f"{path}: cell {cell.name} has not been looked at; run its scout")
    body = parse_json(path.read_bytes(), source=str(path))
    if not isinstance(body, Mapping) or body.get("schema") != SCOUT_SCHEMA or body.get("cell") != cell.name:
        raise InputError(f"{path}: not the scout of {cell.name} in schema {SCOUT_SCHEMA}; run its scout again")
    return body


def decision_of(body: Json) -> CellDecision:
    """Return the short form of a decision, as the summary lists it."""
    sweep = body["sweep"]
    return CellDecision(
        cell=body["cell"],
        decision=body["decision"],
        reason=body["reason"],
        accuracy=body["accuracy"]["estimate"],
        band=body["band"],
        items=body["items"],
        calls=body["trials"],
        left=sweep["left"],
        nano_usd=sweep["nano_usd"],
    )


def summary_body(decisions: list[CellDecision]) -> Json:
    """Return the summary: every scouted cell, and what leaving some of them out saves."""
    skipped = [entry for entry in decisions if entry.skipped]
    costs = [entry.nano_usd for entry in skipped if entry.nano_usd is not None]
    return {
        "schema": SUMMARY_SCHEMA,
        "cells": _DECISIONS.dump_python(decisions, mode="json"),
        "kept": len(decisions) - len(skipped),
        "skipped": len(skipped),
        "saved_calls": sum(entry.left for entry in skipped),
        "saved_nano_usd": sum(costs) if costs else None,
    }


def read_decisions(study: Study) -> dict[str, CellDecision]:
    """Return the decision on every scouted cell by name; nothing is read where the study has no scout.

    Raises
    ------
    InputError
        If the summary is missing, malformed, or is not about the study's cells.
    """
    asked = [cell.name for cell in study.scouted_cells()]
    if not asked:
        return {}
    path = study.layout.scout_summary
    if not path.is_file():
        raise InputError(f"{path}: the scouts are not decided; run `counterbalance decide --study FILE`")
    body = parse_json(path.read_bytes(), source=str(path))
    try:
        decisions = {entry.cell: entry for entry in _DECISIONS.validate_python(body["cells"])}
        if body["schema"] != SUMMARY_SCHEMA or list(decisions) != asked:
            raise ValueError(f"not the summary of this study's {len(asked)} scouted cells in schema {SUMMARY_SCHEMA}")
    except (ValidationError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: {error}; run `counterbalance decide` again") from error
    return decisions


def skipped_cells(study: Study) -> dict[str, CellDecision]:
    """Return the cells that are left out, by name."""
    return {name: entry for name, entry in read_decisions(study).items() if entry.skipped}


def decided_to_skip(study: Study) -> dict[str, str]:
    """Return the cells that their scouts leave out, with the reason, as far as the scouts are done."""
    skipped = {}
    for cell in study.scouted_cells():
        if study.layout.scout_decision(cell.experiment.id, cell.model.id, cell.dataset.id).is_file():
            body = read_decision(study, cell)
            if body["decision"] == "skip":
                skipped[cell.name] = str(body["reason"])
    return skipped


def swept_cells(study: Study) -> list[Cell]:
    """Return the cells that are asked in full, in the study's order."""
    skipped = skipped_cells(study)
    return [cell for cell in study.cells() if cell.name not in skipped]


def require_kept(study: Study, cell: Cell) -> None:
    """Stop before a cell is asked that the frozen rule leaves out, or that was not looked at.

    Raises
    ------
    GateError
        With the reason.
    """
    scout = cell.experiment.scout
    if scout is None or scout.action == "report":
        return
    try:
        body = read_decision(study, cell)
    except InputError as error:
        raise GateError(f"{error}; the frozen plan looks at it before anything else is asked") from error
    if body["decision"] != "keep":
        raise GateError(
            f"{cell.name}: the frozen rule leaves this cell out ({body['reason']}); to ask it all the same, change "
            f"experiments.{cell.experiment.id}.scout in {study.path} and amend the preregistration"
        )
