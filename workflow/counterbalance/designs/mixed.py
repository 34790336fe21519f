"""Cells that more than one model answered: each model's part is estimated alone, and the whole gets no verdict.

A vendor may answer a later call by other weights than an earlier one; the reply's own model id tells. Numbers over
such a mixture describe no model, so they stay for the record and cannot confirm or refute anything.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.config import Analysis
from counterbalance.designs.base import Design
from counterbalance.stats.estimate import Result

QUANTITY = "models_returned"
PART = "@model="


def estimate_parts(design: Design, analysis: Analysis, outcomes: pa.Table, **family: int) -> dict[str, Result]:
    """Estimate a cell and, where its replies name more than one model, each model's part.

    Parameters
    ----------
    outcomes
        Table of the declared schema; at least one row.
    family
        ``tests``, where the design takes it.

    Returns
    -------
    dict
        Results by quantity; those of a part under ``QUANTITY@model=ID``. In a mixed cell the plain ones are
        ``not_measurable``, without p and label, and `models_returned` says who answered how many calls. Replies that
        name no model belong to no part.
    """
    whole = dict(design.estimate(analysis, outcomes, **family))
    named = Counter(outcomes.column("model_returned").drop_null().to_pylist())
    if len(named) < 2:
        return whole
    reason = _reason(named, outcomes.num_rows - named.total())
    found = {name: _unfit(result, reason) for name, result in whole.items()}
    found[QUANTITY] = _answered(named, reason, outcomes)
    for model in sorted(named):
        part = outcomes.filter(pc.equal(outcomes.column("model_returned"), model))
        results = design.estimate(analysis, part, **family)
        found |= {f"{name}{PART}{model}": result for name, result in results.items()}
    return found


def mixed_verdict(rows: Mapping[str, Mapping[str, Any]]) -> Result | None:
    """Return the verdict of a cell that more than one model answered, or None for any other cell."""
    row = rows.get(QUANTITY)
    if row is None:
        return None
    return Result(
        method="model ids named in the replies",
        label="not_measurable",
        status="not_measurable",
        reason=row["reason"],
        n_items=row["n_items"],
        n_calls=row["n_calls"],
    )


def _reason(named: Counter[str], unnamed: int) -> str:
    parts = [f"{count} by {model}" for model, count in sorted(named.items())]
    if unnamed:
        parts.append(f"{unnamed} by a model that the reply does not name")
    return f"the calls were answered by more than one model: {', '.join(parts)}; each part is estimated alone"


def _unfit(result: Result, reason: str) -> Result:
    if result.status == "undefined":
        return result
    return replace(result, status="not_measurable", reason=reason, p=None, label=None)


def _answered(named: Counter[str], reason: str, outcomes: pa.Table) -> Result:
    return Result(
        method="model ids named in the replies",
        estimate=len(named),
        status="descriptive",
        reason=reason,
        n_items=pc.count_distinct(outcomes.column("group_id")).as_py(),
        n_calls=outcomes.num_rows,
    )
