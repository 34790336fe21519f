"""Numbers that somebody else has published: said so wherever the page would speak of calls that were bought."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from counterbalance.config import Cell
from counterbalance.config.models import CellsModel
from counterbalance.report.bought import Bought
from counterbalance.report.text import plural


@dataclass(frozen=True)
class PublishedView:
    """One file of published cells: as what it stands here, where it is from, and what it says of the model."""

    name: str
    path: str
    sha256: str
    source: str
    described_as: str
    numbers: str


def is_published(cell: Cell) -> bool:
    """Whether a cell's numbers were taken from a file instead of asking a model."""
    return isinstance(cell.model, CellsModel)


def view_published(cells: Iterable[Bought]) -> list[PublishedView]:
    """Describe the files behind those cells that are published ones."""
    return [_describe(bought) for bought in cells if is_published(bought.cell)]


def predictions_words(cells: Sequence[Cell]) -> str | None:
    """Say what predictions are worth where the numbers were there before them; None where none were."""
    found = [is_published(cell) for cell in cells]
    if not any(found):
        return None
    which = "The published cells were" if all(found) else "Some cells are published ones, which were"
    return (
        f"{which} there before this plan was frozen, so no prediction of them is blind, whatever is stamped above. "
        "Judged by the pipeline."
    )


def _describe(bought: Bought) -> PublishedView:
    cell = bought.cell
    sent = bought.facts.get("parameters_sent") or ()
    hashes = [entry["cells_sha256"] for entry in sent if "cells_sha256" in entry]
    model = cell.model
    described = model.described_as if isinstance(model, CellsModel) else None
    return PublishedView(
        name=f"{cell.experiment.id} · {model.id} · {cell.dataset.id}",
        path=cell.dataset.path,
        sha256=", ".join(hashes) or "not written down",
        source=cell.dataset.source,
        described_as=described or "not said",
        numbers=plural(bought.calls, "number"),
    )
