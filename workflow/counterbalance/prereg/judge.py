"""The verdict on each prediction: confirmed, falsified, or not evaluable and why.

Boundaries: `at_least`, `at_most`, `between` and `p_at_least` include their value; `interval_above`, `interval_below`,
`p_below`, `greater_than` and `less_than` do not.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.designs.mcq.counts import STATUSES
from counterbalance.prereg.predictions import Between, Bound, Chance, Comparison, LabelIs, Prediction, Target
from counterbalance.stats.proportions import clopper_pearson

_USABLE = ("ok", "descriptive")
_OUTCOMES = frozenset({*STATUSES, "unlisted"})
_OUTCOME_SHARE = re.compile(r"status\.([a-z_]+)([.@].*)?")
_TOLD_ANYWAY = ("detectable_V", "detectable_V.family", "relabelling.accuracy", "relabelling.picks")
"""Numbers that are known although `not_measurable`, which says what their cell or test could not have shown."""
Row = dict[str, Any]
Key = tuple[str, str, str, str]


class _NotEvaluableError(Exception):
    """Why a prediction cannot be judged."""


@dataclass(frozen=True)
class _Judged:
    holds: bool
    reason: str


def judge(predictions: Iterable[Prediction], estimates: pa.Table) -> pa.Table:
    """Judge predictions by the estimates of the same run.

    Parameters
    ----------
    predictions
        The frozen predictions.
    estimates
        Estimates of all cells, p-values adjusted where a family is corrected.

    Returns
    -------
    pyarrow.Table
        One row per prediction: `verdict` is ``confirmed``, ``falsified`` or ``not_evaluable``, `reason` says by
        which numbers.
    """
    rows: dict[Key, Row] = {
        (row["experiment"], row["model"], row["subset"], row["quantity"]): row for row in estimates.to_pylist()
    }
    return table_from_rows([_verdict(entry, rows) for entry in predictions], SCHEMAS["predictions"])


def expected(prediction: Prediction) -> str:
    """Return a prediction's rule and numbers in words."""
    match prediction:
        case Between():
            return f"estimate between {prediction.low!r} and {prediction.high!r}"
        case Bound(rule="at_least" | "at_most"):
            return f"estimate {prediction.rule.replace('_', ' ')} {prediction.value!r}"
        case Bound():
            return f"whole interval {prediction.rule.removeprefix('interval_')} {prediction.value!r}"
        case Chance():
            return f"p {prediction.rule.removeprefix('p_').replace('_', ' ')} {prediction.value!r}"
        case LabelIs():
            return f"label is {prediction.value}"
        case Comparison():
            return f"estimate {prediction.rule.replace('_', ' ')} that of {' '.join(prediction.than.key)}"


def _verdict(prediction: Prediction, rows: dict[Key, Row]) -> Row:
    row = rows.get(prediction.key) or _none_of_this_outcome(prediction, rows) or {}
    try:
        judged = _judge(prediction, rows)
        verdict, reason = "confirmed" if judged.holds else "falsified", judged.reason
    except _NotEvaluableError as why:
        verdict, reason = "not_evaluable", str(why)
    return {
        "prediction": prediction.id,
        **prediction.model_dump(include={"experiment", "model", "subset", "quantity", "rule"}),
        "expected": expected(prediction),
        "verdict": verdict,
        "reason": reason,
        **{name: row.get(name) for name in ("estimate", "low", "high", "label")},
    }


def _judge(prediction: Prediction, rows: dict[Key, Row]) -> _Judged:
    match prediction:
        case LabelIs():
            return _judge_label(prediction, _find(prediction, rows))
        case Chance():
            return _judge_chance(prediction, rows)
        case Comparison():
            ours, other = _point(prediction, rows), _point(prediction.than, rows)
            holds = ours > other if prediction.rule == "greater_than" else ours < other
            return _Judged(holds, f"{_show(ours, other)} against {_show(other, ours)}")
        case Between():
            value = _point(prediction, rows)
            return _Judged(
                prediction.low <= value <= prediction.high, f"estimate {_show(value, prediction.low, prediction.high)}"
            )
        case Bound():
            return _judge_bound(prediction, rows)


def _judge_bound(prediction: Bound, rows: dict[Key, Row]) -> _Judged:
    value = prediction.value
    match prediction.rule:
        case "at_least":
            point = _point(prediction, rows)
            return _Judged(point >= value, f"estimate {_show(point, value)}")
        case "at_most":
            point = _point(prediction, rows)
            return _Judged(point <= value, f"estimate {_show(point, value)}")
        case "interval_above" | "interval_below":
            row = _find(prediction, rows)
            low, high = _end(row, "low"), _end(row, "high")
            holds = low > value if prediction.rule == "interval_above" else high < value
            level = "" if row["level"] is None else f"{100 * row['level']:.4g}% "
            return _Judged(holds, f"{level}interval {_show(low, value)} to {_show(high, value)}")


def _judge_chance(prediction: Chance, rows: dict[Key, Row]) -> _Judged:
    row = _find(prediction, rows)
    _need_usable(row)
    kind = "raw" if row["p_adjusted"] is None else "adjusted"
    value = _number(row, "p" if kind == "raw" else "p_adjusted")
    found = f"p = {_show(value, prediction.value)} ({kind})"
    if prediction.rule == "p_below":
        return _Judged(value < prediction.value, found)
    # Finding nothing is evidence only where something could have been found; a small p was found.
    blind = _why_blind(prediction, kind, rows) if value >= prediction.value else None
    if blind is not None:
        raise _NotEvaluableError(f"{found}, but the cell could not have shown an effect: {blind}")
    return _Judged(value >= prediction.value, found)


def _why_blind(target: Target, kind: str, rows: dict[Key, Row]) -> str | None:
    """Say why a test could not have found anything; None if it could.

    The items with another number of options, or the calls that one model answered, can show another effect than the
    rest of the cell, so that their own smallest detectable V decides; the verdict only where a design has none.
    """
    part, cell = _part(target.quantity), target.key[:3]
    names = ("detectable_V.family", "detectable_V") if kind == "adjusted" else ("detectable_V",)
    own = next((rows[key] for name in names if (key := (*cell, f"{name}{part}")) in rows), None)
    row = own or rows.get((*cell, "verdict"), {})
    blind = row["status"] not in _USABLE if own else "not_measurable" in (row.get("label"), row.get("status"))
    return row["reason"] or "not measurable" if blind else None


def _judge_label(prediction: LabelIs, row: Row) -> _Judged:
    # A label such as not_measurable may itself be what was predicted.
    if row["label"] != prediction.value:
        _need_usable(row)
    if row["label"] is None:
        raise _NotEvaluableError(f"{row['quantity']} has no label; it is a number")
    return _Judged(row["label"] == prediction.value, f"label {row['label']}")


def _find(target: Target, rows: dict[Key, Row]) -> Row:
    row = rows.get(target.key) or _none_of_this_outcome(target, rows)
    if row is None:
        whole = rows.get((*target.key[:3], "verdict"), {})
        if whole.get("status") == "not_asked":
            raise _NotEvaluableError(f"{'/'.join(target.key[:3])} was {whole['reason']}")
        raise _NotEvaluableError(f"{target.quantity} is not among the estimates of {'/'.join(target.key[:3])}")
    return row


def _none_of_this_outcome(target: Target, rows: dict[Key, Row]) -> Row | None:
    """Return the share of an outcome that no call had, of which the table has no row; None for other quantities.

    Of how many calls and items is what the outcome `ok` says, which always has a row. Its bound is exact, over items,
    or over groups where the items form some.
    """
    named = _OUTCOME_SHARE.fullmatch(target.quantity)
    beside = rows.get((*target.key[:3], f"status.ok{named[2] or ''}")) if named else None
    if named is None or named[1] not in _OUTCOMES or beside is None or beside["estimate"] is None:
        return None
    none = beside | {"quantity": target.quantity, "estimate": 0.0, "low": None, "high": None}
    if beside["level"] is None or beside["status"] == "not_measurable":
        return none
    groups = rows.get((*target.key[:3], f"groups{_part(target.quantity)}"), {}).get("estimate")
    units = beside["n_items"] if groups is None else min(beside["n_items"], round(groups))
    exact = clopper_pearson(0, units, level=beside["level"])
    reason = f"none of {beside['n_calls']} calls has the outcome {named[1]}"
    return none | {"low": exact.low, "high": exact.high, "status": "degenerate", "reason": reason}


def _part(quantity: str) -> str:
    """Return the end of a quantity's name that says of which part of a cell it is: ``@k=5``, or nothing."""
    return "".join(quantity.partition("@")[1:])


def _point(target: Target, rows: dict[Key, Row]) -> float:
    row = _find(target, rows)
    # Numbers over the calls of several models describe none of them.
    mixed = "@model=" not in target.quantity and (*target.key[:3], "models_returned") in rows
    told = row["status"] == "not_measurable" and row["quantity"].partition("@")[0] in _TOLD_ANYWAY and not mixed
    if row["estimate"] is not None and (told or _is_bounded(row)):
        return float(row["estimate"])
    return _number(row, "estimate")


def _end(row: Row, column: str) -> float:
    return float(row[column]) if _is_bounded(row) else _number(row, column)


def _is_bounded(row: Row) -> bool:
    """Whether data are constant and yet bounded, which is an answer; without a bound they are none."""
    return row["status"] == "degenerate" and row["low"] is not None and row["high"] is not None


def _need_usable(row: Row) -> None:
    if row["status"] not in _USABLE:
        raise _NotEvaluableError(f"{row['quantity']} is {row['status']}: {row['reason'] or 'no reason was given'}")


def _number(row: Row, column: str) -> float:
    _need_usable(row)
    value = row[column]
    if value is None:
        raise _NotEvaluableError(f"{row['quantity']} has no {column}: {row['reason'] or 'the design gives none'}")
    return float(value)


def _show(value: float, *others: float) -> str:
    """Return four digits, or all where four could not tell the value from another one it is compared with."""
    short = f"{value:.4g}"
    same = any(short == f"{other:.4g}" and value != other for other in others)
    return repr(value) if same else short
