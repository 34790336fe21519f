"""The golden vector in docs/verification.md: its streams give its digest, and so does the code."""

import hashlib
import json
import re
from pathlib import Path

import pyarrow as pa

from counterbalance.artifacts import logical_digest

TEXT = (Path(__file__).parents[3] / "docs" / "verification.md").read_text(encoding="utf-8")
GOLDEN = re.search(r"Its digest is `(sha256:[0-9a-f]{64})`", TEXT)[1]
ROWS = re.findall(r"^\| (\w+) \| `([\w<>]+)` \| .* \| .* \| (validity .*) \|$", TEXT, re.MULTILINE)


def test_the_documented_streams_hash_to_the_documented_digest() -> None:
    columns = [
        {
            "name": name,
            "type": kind,
            "streams": {
                stream: hashlib.sha256(bytes.fromhex(data)).hexdigest()
                for stream, data in re.findall(r"([\w.]+) `([0-9a-f]+)`", streams)
            },
        }
        for name, kind, streams in ROWS
    ]
    assert [len(column["streams"]) for column in columns] == [3, 2, 2, 4]
    body = json.dumps({"rows": 2, "columns": columns}, sort_keys=True, separators=(",", ":"))
    assert "sha256:" + hashlib.sha256(body.encode()).hexdigest() == GOLDEN


def test_the_code_gives_the_documented_digest() -> None:
    table = pa.table(
        {
            "word": pa.array(["ä", None], pa.string()),
            "number": pa.array([1, -2], pa.int64()),
            "real": pa.array([0.5, None], pa.float64()),
            "flags": pa.array([[True, False], None], pa.list_(pa.bool_())),
        }
    )
    assert logical_digest(table) == GOLDEN
