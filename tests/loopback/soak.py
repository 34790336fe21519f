"""Many calls, random faults and kill -9: what is left at the end must be each reply once, and every cent explained."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from .running import Remote
from .settings import Json
from .studies import KEYS, freeze_study, key_env, study_body, write_study

_WORKFLOW = Path(__file__).parents[2] / "workflow"
_PENDING = 6
TIMEOUT_S = 1.0
FAULTS: list[dict[str, Json]] = [
    {"kind": "rate_limit", "hint": "seconds", "wait_s": 0.05},
    {"kind": "rate_limit", "hint": "ms", "wait_s": 0.02},
    {"kind": "rate_limit"},
    {"kind": "overload"},
    {"kind": "server", "status": 500},
    {"kind": "reset"},
    {"kind": "reset_after"},
    {"kind": "timeout", "sleep_s": 1.5 * TIMEOUT_S},
    {"kind": "html_200"},
    {"kind": "cut_body"},
]


@dataclass(frozen=True)
class Verdict:
    """What was found at the end.

    Attributes
    ----------
    findings
        Pairs of a claim and whether it held.
    numbers
        What was counted, by name; money in nano-USD.
    """

    findings: Sequence[tuple[str, bool]]
    numbers: dict[str, Json]

    @property
    def good(self) -> bool:
        return all(held for _, held in self.findings)

    def __str__(self) -> str:
        lines = [f"{'holds' if held else 'FAILS'}: {claim}" for claim, held in self.findings]
        return "\n".join([*lines, *(f"  {name}: {value}" for name, value in self.numbers.items())])


def soak(
    server: Remote,
    root: Path,
    vendor: str,
    *,
    calls: int,
    kills: int,
    share: float = 0.2,
    in_flight: int = 100,
    seed: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> Verdict:
    """Buy `calls` replies (a multiple of six) while faults happen, killing the process `kills` times."""
    server.set(faults=[{"share": share, "seed": seed, "faults": FAULTS}])
    datasets = {"sums": calls // 6}
    account = {"max_in_flight": in_flight, "timeout_s": TIMEOUT_S, "tries": 12, "deadline_s": 120.0}
    urls = {vendor: server.base_url(vendor)}
    body = study_body(urls, datasets=datasets, accounts={vendor: account}, limits={"max_calls": calls})
    path = write_study(root, body, datasets)
    freeze_study(path)
    draw = random.Random(seed)
    moments = sorted(draw.uniform(0.05, 0.9) * calls for _ in range(kills))
    sessions = 0
    for moment in moments:
        sessions += 1
        _run(path, vendor, server, until=moment)
        say(f"session {sessions} killed at {server.vendor(vendor)['delivered']} delivered replies")
    code = _PENDING
    while code == _PENDING and sessions < kills + 10:
        sessions += 1
        code = _run(path, vendor, server)
        say(f"session {sessions} ended with {code}")
    while server.vendor(vendor)["in_flight"]:
        time.sleep(0.05)
    return _judge(server, path, vendor, calls, sessions, code)


def _run(path: Path, vendor: str, server: Remote, *, until: float | None = None) -> int:
    """Run the query as a user would, and kill it when the server has delivered that many replies."""
    command = [sys.executable, "-m", "counterbalance", "query", "--study", str(path), "--experiment", "letters"]
    command += ["--model", vendor, "--dataset", "sums", "--progress", "none"]
    environment = {**os.environ, "PYTHONPATH": str(_WORKFLOW), key_env(vendor): KEYS[vendor]}
    log = path.parents[2] / "query.log"
    with log.open("ab") as handle:
        process = subprocess.Popen(command, cwd=path.parents[2], env=environment, stdout=handle, stderr=handle)
    try:
        while process.poll() is None:
            if until is not None and server.vendor(vendor)["delivered"] >= until:
                process.send_signal(signal.SIGKILL)
                return process.wait()
            time.sleep(0.02 if until is not None else 0.2)
    finally:
        if process.poll() is None:
            process.kill()
    return process.returncode


def _judge(server: Remote, path: Path, vendor: str, calls: int, sessions: int, code: int) -> Verdict:
    from counterbalance.artifacts import SCHEMAS, read_table
    from counterbalance.config import load_study

    layout = load_study(path).layout
    names = ("letters", vendor, "sums")
    table = layout.replies(*names)
    rows = read_table(table, SCHEMAS["replies"]).num_rows if code == 0 else 0
    counts, prices = server.vendor(vendor), server.replies(vendor)
    with closing(sqlite3.connect(layout.ledger(*names))) as ledger:
        [[answered, distinct]] = ledger.execute(
            "SELECT count(reply), count(DISTINCT json_extract(reply, '$.request_id')) FROM calls"
        )
        [[attempts, settled, held, once]] = ledger.execute(
            "SELECT count(*), sum(CASE outcome WHEN 'answered' THEN charged_nano_usd ELSE 0 END), "
            "sum(coalesce(charged_nano_usd, worst_nano_usd)), sum(outcome = 'answered') FROM attempts"
        )
        ids = [
            json.loads(text)["request_id"] for (text,) in ledger.execute("SELECT reply FROM calls WHERE reply NOTNULL")
        ]
    billed = sum(prices.get(name, 0) for name in ids)
    findings = [
        (f"the last session ended with 0 (it ended with {code})", code == 0),
        ("each trial has its reply", answered == rows == calls),
        ("each call was answered once, by a reply of its own", once == distinct == calls),
        ("the server saw each request, and none that is not a call of the study", counts["bodies"] == calls),
        ("the server's repeats are within the re-sends on record", counts["repeats"] <= attempts - calls),
        ("the settled charge is what the server billed for these very replies", settled == billed),
        ("the whole charge is no less than the whole bill", held >= counts["bill_nano_usd"]),
    ]
    numbers = {
        "calls": calls,
        "sessions": sessions,
        "attempts in the ledger": attempts,
        "requests at the server": counts["requests"],
        "re-sends on record": attempts - calls,
        "repeats at the server": counts["repeats"],
        "settled": settled,
        "billed for these replies": billed,
        "whole charge": held,
        "whole bill": counts["bill_nano_usd"],
        "outcomes at the server": counts["outcomes"],
    }
    return Verdict(findings, numbers)
