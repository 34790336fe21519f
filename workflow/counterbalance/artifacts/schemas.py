"""The one declaration of every table: columns, row key, and which columns may differ between equal runs."""

from dataclasses import dataclass, field

import pyarrow as pa

_TEXT = pa.string()
_INT = pa.int64()
_REAL = pa.float64()
_FLAG = pa.bool_()


@dataclass(frozen=True)
class ArtifactSchema:
    """A table's declaration.

    Attributes
    ----------
    name, version
        Written into the record; a changed column is a new version.
    arrow
        Column names, types and nullability, in file order.
    key
        Columns that are unique together and by which the rows are sorted ascending.
    volatile
        Columns of circumstance (times, call order): kept, but outside the stable digest.
    """

    name: str
    version: int
    arrow: pa.Schema
    key: tuple[str, ...]
    volatile: frozenset[str] = field(default_factory=frozenset)


def _need(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def _may(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=True)


ITEMS = ArtifactSchema(
    "items",
    1,
    pa.schema(
        [
            _need("item_id", _TEXT),
            _need("group_id", _TEXT),
            _need("stem", _TEXT),
            _need("option_ids", pa.list_(_TEXT)),
            _need("option_texts", pa.list_(_TEXT)),
            _may("gold_option_id", _TEXT),
            _need("strata", _TEXT),
            _need("source_row", _INT),
        ]
    ),
    ("item_id",),
)

REJECTED = ArtifactSchema(
    "rejected",
    1,
    pa.schema(
        [
            _need("source_row", _INT),
            _may("item_id", _TEXT),
            _need("rule", _TEXT),
            _need("reason", _TEXT),
        ]
    ),
    ("source_row", "rule"),
)

TRIALS = ArtifactSchema(
    "trials",
    1,
    pa.schema(
        [
            _need("trial_id", _TEXT),
            _need("item_id", _TEXT),
            _need("group_id", _TEXT),
            _need("condition", _TEXT),
            _need("arrangement_index", _INT),
            _need("repeat", _INT),
            _need("arrangement", pa.list_(_TEXT)),
            _need("labels", pa.list_(_TEXT)),
            _need("option_texts", pa.list_(_TEXT)),
            _may("gold_slot", _INT),
            _need("prompt", _TEXT),
            _need("prompt_sha256", _TEXT),
        ]
    ),
    ("item_id", "condition", "arrangement_index", "repeat"),
)

REPLIES = ArtifactSchema(
    "replies",
    2,
    pa.schema(
        [
            _need("trial_id", _TEXT),
            _need("call_sha256", _TEXT),
            _need("status", _TEXT),
            _may("reason", _TEXT),
            _may("text", _TEXT),
            _may("top_tokens", pa.list_(_TEXT)),
            _may("top_logprobs", pa.list_(_REAL)),
            _may("option_logprobs", pa.list_(_REAL)),
            _may("option_tokens", pa.list_(_INT)),
            _may("finish_reason", _TEXT),
            _may("model_returned", _TEXT),
            _may("fingerprint", _TEXT),
            _may("request_id", _TEXT),
            _may("input_tokens", _INT),
            _may("cached_tokens", _INT),
            _may("output_tokens", _INT),
            _may("reasoning_tokens", _INT),
            _need("attempts", _INT),
            _may("latency_ms", _REAL),
            _need("call_order", _INT),
            _need("session", _INT),
            _need("started_at", _TEXT),
        ]
    ),
    ("trial_id",),
    frozenset({"request_id", "cached_tokens", "attempts", "latency_ms", "call_order", "session", "started_at"}),
)

OUTCOMES = ArtifactSchema(
    "outcomes",
    2,
    pa.schema(
        [
            _need("trial_id", _TEXT),
            _need("item_id", _TEXT),
            _need("group_id", _TEXT),
            _need("condition", _TEXT),
            _need("arrangement_index", _INT),
            _need("repeat", _INT),
            _need("extra", _FLAG),
            _need("n_options", _INT),
            _may("arrangement", pa.list_(_TEXT)),
            _may("gold_slot", _INT),
            _need("outcome", _TEXT),
            _may("slot", _INT),
            _may("option_id", _TEXT),
            _may("correct", _FLAG),
            _may("tie", _FLAG),
            _may("slot_logprobs", pa.list_(_REAL)),
            _may("slot_censored", pa.list_(_FLAG)),
            _may("label_mass", _REAL),
            _need("candidates", pa.list_(_TEXT)),
            _need("rule", _TEXT),
            _need("parser", _TEXT),
            _may("model_returned", _TEXT),
        ]
    ),
    ("item_id", "condition", "arrangement_index", "repeat"),
)

ESTIMATES = ArtifactSchema(
    "estimates",
    1,
    pa.schema(
        [
            _need("experiment", _TEXT),
            _need("model", _TEXT),
            _need("subset", _TEXT),
            _need("quantity", _TEXT),
            _may("estimate", _REAL),
            _may("low", _REAL),
            _may("high", _REAL),
            _may("level", _REAL),
            _need("method", _TEXT),
            _may("p", _REAL),
            _may("p_adjusted", _REAL),
            _may("family", _TEXT),
            _need("n_items", _INT),
            _need("n_calls", _INT),
            _need("status", _TEXT),
            _may("reason", _TEXT),
            _may("label", _TEXT),
        ]
    ),
    ("experiment", "model", "subset", "quantity"),
)

PREDICTIONS = ArtifactSchema(
    "predictions",
    1,
    pa.schema(
        [
            _need("prediction", _TEXT),
            _need("experiment", _TEXT),
            _need("model", _TEXT),
            _need("subset", _TEXT),
            _need("quantity", _TEXT),
            _need("rule", _TEXT),
            _need("expected", _TEXT),
            _need("verdict", _TEXT),
            _need("reason", _TEXT),
            _may("estimate", _REAL),
            _may("low", _REAL),
            _may("high", _REAL),
            _may("label", _TEXT),
        ]
    ),
    ("prediction",),
)

SCHEMAS = {schema.name: schema for schema in (ITEMS, REJECTED, TRIALS, REPLIES, OUTCOMES, ESTIMATES, PREDICTIONS)}
