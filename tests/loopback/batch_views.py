"""How batch results and lists of batches look on the wire of each vendor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from aiohttp import web

from .failure import WireError
from .settings import Json

_PAGE = 20


@dataclass
class Outcome:
    """What became of one request of a batch: a reply's body, or a failure, or neither if it expired."""

    custom_id: str
    reply: bytes | None = None
    failure: WireError | None = None
    request_id: str = ""


def openai_line(outcome: Outcome) -> Json:
    line: dict[str, Json] = {"id": f"batch_req_{outcome.custom_id[:8]}", "custom_id": outcome.custom_id, "error": None}
    if outcome.reply is not None:
        body, status = json.loads(outcome.reply), 200
    elif outcome.failure is not None:
        body, status = outcome.failure.body, outcome.failure.status
    else:
        expired = {"code": "batch_expired", "message": "This request could not be executed before the window ended."}
        return line | {"response": None, "error": expired}
    return line | {"response": {"status_code": status, "request_id": outcome.request_id, "body": body}}


def anthropic_kind(outcome: Outcome) -> str:
    if outcome.reply is not None:
        return "succeeded"
    return "errored" if outcome.failure is not None else "expired"


def anthropic_line(outcome: Outcome) -> Json:
    result: dict[str, Json] = {"type": anthropic_kind(outcome)}
    if outcome.reply is not None:
        result["message"] = json.loads(outcome.reply)
    elif outcome.failure is not None:
        result["error"] = outcome.failure.body
    return {"custom_id": outcome.custom_id, "result": result}


def google_line(outcome: Outcome) -> dict[str, Json]:
    if outcome.reply is not None:
        return {"key": outcome.custom_id, "response": json.loads(outcome.reply)}
    if outcome.failure is not None:
        error = outcome.failure.body["error"]
        return {"key": outcome.custom_id, "error": {"code": error["code"], "message": error["message"]}}
    return {"key": outcome.custom_id, "error": {"code": 4, "message": "The request expired before it was processed."}}


def jsonl(entries: Iterable[Json]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


def general(path: str) -> str:
    return "/".join("{id}" if any(sign.isdigit() for sign in part) else part for part in path.split("/"))


def query(request: web.BaseRequest) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(request.raw_path.partition("?")[2]).items()}


def page(found: list[Json], after: str | None, limit: str | None) -> tuple[list[Json], bool]:
    ids = [entry.get("id", entry.get("name")) for entry in found]
    start = ids.index(after) + 1 if after in ids else 0
    count = int(limit or _PAGE)
    return found[start : start + count], start + count < len(found)


def openai_page(found: list[Json], query: Mapping[str, str]) -> Json:
    data, more = page(found, query.get("after"), query.get("limit"))
    ids = [entry["id"] for entry in data]
    return {
        "object": "list",
        "data": data,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": more,
    }


def anthropic_page(found: list[Json], query: Mapping[str, str]) -> Json:
    data, more = page(found, query.get("after_id"), query.get("limit"))
    ids = [entry["id"] for entry in data]
    return {
        "data": data,
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "has_more": more,
    }


def google_page(found: list[Json], query: Mapping[str, str]) -> Json:
    data, more = page(found, query.get("pageToken"), query.get("pageSize"))
    return {"operations": data, **({"nextPageToken": data[-1]["name"]} if more else {})}
