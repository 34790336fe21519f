"""How batch results and lists of batches look on the wire of each vendor."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import parse_qs

from aiohttp import web

from .failure import WireError
from .settings import Json

Refuse = Callable[[str], WireError]
# Entries of a list unless asked otherwise, and at most.
_PAGE, _MOST = 20, {"openai": 100, "anthropic": 1000, "google": 1000}


@dataclass
class Outcome:
    """What became of one request of a batch: a reply's body, or a failure, or neither if it expired."""

    custom_id: str
    reply: bytes | None = None
    failure: WireError | None = None
    request_id: str = ""
    spoilt: str | None = None


def moment(seconds: float) -> str:
    """Write epoch seconds as RFC 3339."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


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


def jsonl(view: Callable[[Outcome], Json], outcomes: Iterable[Outcome]) -> bytes:
    return b"".join(_spoilt(view(outcome), outcome.spoilt) + b"\n" for outcome in outcomes)


def _spoilt(entry: dict[str, Json], how: str | None) -> bytes:
    """Write a line, with what a script has spoilt of it."""
    name = "key" if "key" in entry else "custom_id"
    whole = json.dumps(entry).encode()
    match how:
        case "cut":
            return whole[:-9]
        case "noise":
            return b"<<< upstream connect error >>>"
        case "not_utf8":
            return whole[:-9] + b"\xff" + whole[-9:]
        case "no_id":
            return json.dumps({field: value for field, value in entry.items() if field != name}).encode()
        case "no_outcome":
            return json.dumps({"id": "line-1", name: entry[name]}).encode()
        case "other_id":
            return json.dumps(entry | {name: "0" * 51 + entry[name][51:]}).encode()
        case "twice":
            return whole + b"\n" + whole
    return whole


def general(path: str) -> str:
    return "/".join("{id}" if any(sign.isdigit() for sign in part) else part for part in path.split("/"))


def query(request: web.BaseRequest) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(request.raw_path.partition("?")[2]).items()}


def _page(
    found: list[Json], query: Mapping[str, str], vendor: str, *, id_field: str, names: tuple[str, str], refuse: Refuse
) -> tuple[list[Json], bool]:
    """Return one page of a list, newest first, and whether more follow; refuse what the vendor would."""
    after, limit = query.get(names[0]), query.get(names[1], str(_PAGE))
    ids = [entry[id_field] for entry in found]
    if after is not None and after not in ids:
        raise refuse(f"{names[0]}: no such entry: {after}")
    if not limit.isdigit() or not 1 <= int(limit) <= _MOST[vendor]:
        raise refuse(f"{names[1]}: expected a number from 1 to {_MOST[vendor]}")
    start = 0 if after is None else ids.index(after) + 1
    return found[start : start + int(limit)], start + int(limit) < len(found)


def _with_ends(data: list[Json], more: bool) -> dict[str, Json]:
    ids = [entry["id"] for entry in data]
    return {"data": data, "first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None, "has_more": more}


def openai_page(found: list[Json], query: Mapping[str, str], refuse: Refuse) -> Json:
    names = ("after", "limit")
    page = _page(found, query, "openai", id_field="id", names=names, refuse=refuse)
    return {"object": "list", **_with_ends(*page)}


def anthropic_page(found: list[Json], query: Mapping[str, str], refuse: Refuse) -> Json:
    names = ("after_id", "limit")
    return _with_ends(*_page(found, query, "anthropic", id_field="id", names=names, refuse=refuse))


def google_page(found: list[Json], query: Mapping[str, str], refuse: Refuse) -> Json:
    # A token says where to go on, but is no name that anybody could make up.
    token = query.get("pageToken")
    if token is not None:
        query = {**query, "pageToken": base64.urlsafe_b64decode(token.encode()).decode()}
    data, more = _page(found, query, "google", id_field="name", names=("pageToken", "pageSize"), refuse=refuse)
    following = base64.urlsafe_b64encode(data[-1]["name"].encode()).decode() if more else None
    return {"operations": data, **({"nextPageToken": following} if following else {})}
