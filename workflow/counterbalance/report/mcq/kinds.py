"""What kind of bias a cell shows, in few words."""

from counterbalance.config import Analysis
from counterbalance.report.numbers import CellNumbers

SHAPES = {
    "linear_decline": "falls from slot to slot",
    "linear_rise": "rises from slot to slot",
    "first_boost": "first slot higher",
    "first_drop": "first slot lower",
    "last_boost": "last slot higher",
    "last_drop": "last slot lower",
    "middle_boost": "middle higher",
    "middle_drop": "middle lower",
    "other_shape": "another shape",
    "undetermined": "shape undetermined",
}
"""Shapes of accuracy over the slots; where none was seen, `kind_of` says what was."""

NO_SHAPE = "no shape stands out"
PICKS_ONLY = "in picks alone"


def shape_words(label: str) -> str:
    """Return a shape as the report names it."""
    return SHAPES.get(label, label.replace("_", " "))


def kind_of(cell: CellNumbers, analysis: Analysis) -> str:
    """Return the shape that explains a cell with a bias, or what is known without one."""
    shape = cell.get("shape.label")
    if shape is not None and shape.label is not None and shape.label != "inactive":
        return shape_words(shape.label)
    return NO_SHAPE if _rejects(cell, "relabelling.accuracy", analysis) else PICKS_ONLY


def _rejects(cell: CellNumbers, test: str, analysis: Analysis) -> bool:
    number = cell.get(test)
    return number is not None and number.p_adjusted is not None and number.p_adjusted < analysis.alpha
