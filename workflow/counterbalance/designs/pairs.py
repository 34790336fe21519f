"""Pairs of cells that a design compares: the same model and data set, read in two ways."""

from collections.abc import Sequence

from counterbalance.config import Cell, Study
from counterbalance.designs import get_design


def compared_pairs(study: Study, cells: Sequence[Cell]) -> list[tuple[Cell, Cell]]:
    """Return every cell that is compared with another one, with it; the other need not be among `cells`."""
    return [(cell, other) for cell in cells for other in get_design(cell.experiment.design).partners(study, cell)]


def compared_cells(study: Study, cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells whose outcomes a comparison reads, in the order of `cells`."""
    asked = {cell.name for cell in cells}
    pairs = [pair for pair in compared_pairs(study, cells) if pair[1].name in asked]
    read = {cell.name for pair in pairs for cell in pair}
    return [cell for cell in cells if cell.name in read]
