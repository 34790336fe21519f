"""The verdict on each prediction: confirmed, falsified, or not evaluable and why.

Boundaries: `at_least`, `at_most`, `between` and `p_at_least` include their value; `interval_above`, `interval_below`,
`p_below`, `greater_than` and `less_than` do not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, table_from_rows
from counterbalance.prereg.predictions import Between, Bound, Chance, Comparison, LabelIs, Prediction, Target

_USABLE = ("ok", "descriptive")
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
    row = rows.get(prediction.key, {})
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
    row = _find(prediction, rows)
    match prediction:
        case LabelIs():
            return _judge_label(prediction, row)
        case Chance():
            return _judge_chance(prediction, row, rows)
        case Comparison():
            ours, other = _point(row), _point(_find(prediction.than, rows))
            holds = ours > other if prediction.rule == "greater_than" else ours < other
            return _Judged(holds, f"{_show(ours, other)} against {_show(other, ours)}")
        case Between():
            value = _point(row)
            return _Judged(
                prediction.low <= value <= prediction.high, f"estimate {_show(value, prediction.low, prediction.high)}"
            )
        case Bound():
            return _judge_bound(prediction, row)


def _judge_bound(prediction: Bound, row: Row) -> _Judged:
    value = prediction.value
    match prediction.rule:
        case "at_least":
            point = _point(row)
            return _Judged(point >= value, f"estimate {_show(point, value)}")
        case "at_most":
            point = _point(row)
            return _Judged(point <= value, f"estimate {_show(point, value)}")
        case "interval_above" | "interval_below":
            low, high = _number(row, "low"), _number(row, "high")
            holds = low > value if prediction.rule == "interval_above" else high < value
            level = "" if row["level"] is None else f"{row['level']:.4g} "
            return _Judged(holds, f"{level}interval {_show(low, value)} to {_show(high, value)}")


def _judge_chance(prediction: Chance, row: Row, rows: dict[Key, Row]) -> _Judged:
    _need_usable(row)
    kind = "raw" if row["p_adjusted"] is None else "adjusted"
    value = _number(row, "p" if kind == "raw" else "p_adjusted")
    if prediction.rule == "p_below":
        return _Judged(value < prediction.value, f"p = {_show(value, prediction.value)} ({kind})")
    # Finding nothing is evidence only where something could have been found.
    whole = rows.get((*prediction.key[:3], "verdict"), {})
    if "not_measurable" in (whole.get("label"), whole.get("status")):
        raise _NotEvaluableError(
            f"p = {_show(value, prediction.value)} ({kind}), but the cell could not have shown an effect: "
            f"{whole.get('reason') or 'not measurable'}"
        )
    return _Judged(value >= prediction.value, f"p = {_show(value, prediction.value)} ({kind})")


def _judge_label(prediction: LabelIs, row: Row) -> _Judged:
    # A label such as not_measurable may itself be what was predicted.
    if row["label"] != prediction.value:
        _need_usable(row)
    if row["label"] is None:
        raise _NotEvaluableError(f"{row['quantity']} has no label; it is a number")
    return _Judged(row["label"] == prediction.value, f"label {row['label']}")


def _find(target: Target, rows: dict[Key, Row]) -> Row:
    if target.key not in rows:
        whole = rows.get((*target.key[:3], "verdict"), {})
        if whole.get("status") == "not_asked":
            raise _NotEvaluableError(f"{'/'.join(target.key[:3])} was {whole['reason']}")
        raise _NotEvaluableError(f"{target.quantity} is not among the estimates of {'/'.join(target.key[:3])}")
    return rows[target.key]


def _point(row: Row) -> float:
    # Constant data with an exact bound are an answer (every item the same); without a bound they are not.
    bounded = row["status"] == "degenerate" and row["low"] is not None and row["high"] is not None
    if bounded and row["estimate"] is not None:
        return float(row["estimate"])
    return _number(row, "estimate")


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
