"""A vendor's depot of batches that outlives the process that hands them in, and sessions that ask it."""

import asyncio
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from counterbalance.batch import run_batches
from counterbalance.canonical import canonical_json
from counterbalance.config.vendors import Account
from counterbalance.exchange import Call, Tally
from counterbalance.ledger import Ledger, read_answered
from counterbalance.progress import SilentProgress
from counterbalance.spending import Admission
from counterbalance.vendors.base import BatchState, BatchVendor, Reply, Request, TokenBounds, TransportError, Trial
from counterbalance.vendors.batch_ids import Line

FROZEN = "sha256:" + "f" * 64
USAGE = {"input_tokens": 10, "output_tokens": 2, "model_returned": "m1"}
Outcome = Reply | TransportError | None


def echo(text: str, _nth: int) -> Outcome:
    """Answer every prompt, with usage."""
    return Reply("ok", text=f"re {text}", **USAGE)


class Killed(BaseException):
    """The process ends here, whatever it was about to do."""


@dataclass
class Depot:
    """The vendor's side.

    Attributes
    ----------
    outcome
        What becomes of a prompt at its n-th buying (from 1); None: no line comes back.
    looks
        How often a batch is looked at before it is done.
    """

    outcome: Callable[[str, int], Outcome] = echo
    looks: int = 0
    status: str = "completed"
    shuffled: bool = False
    batches: dict[str, dict] = field(default_factory=dict)
    bought: Counter[str] = field(default_factory=Counter)

    def take(self, run_id: str, requests: Sequence[tuple[str, Request]]) -> str:
        batch_id = f"batch-{len(self.batches)}"
        lines = []
        for custom_id, request in requests:
            text = request.prompt["text"]
            self.bought[text] += 1
            lines.append((custom_id, text, self.bought[text]))
        self.batches[batch_id] = {"run_id": run_id, "lines": lines, "looks": self.looks}
        return batch_id

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"batches": self.batches, "bought": self.bought}), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> "Depot":
        depot = cls()
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            depot.batches, depot.bought = stored["batches"], Counter(stored["bought"])
        return depot


class DepotVendor:
    """Our side of the depot; `on` is called with the name of each step, before it (`+`) and after it (`-`)."""

    max_in_flight = 4
    shares_prefixes = False

    def __init__(self, depot: Depot, *, on: Callable[[str], None] = lambda _step: None) -> None:
        self.depot, self.on = depot, on
        self.most_requests, self.most_bytes = 1000, 1_000_000
        self.submit_errors: list[Exception] = []
        self.result_errors: list[Exception] = []
        self.lost_answer = False
        self.unlisted = 0
        self.looked = 0
        self.model = "m1"
        self.examples: list[Request] = []

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error) -> None:
        return

    def request(self, trial: Trial) -> Request:
        return Request("depot", None, self.model, {"max_tokens": 16}, trial.prompt, None, trial.repeat)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        found = self.depot.outcome(request.prompt["text"], 1)
        if not isinstance(found, Reply):
            raise found or TransportError("nothing came")
        return found

    def bounds(self, request: Request) -> TokenBounds:
        return TokenBounds(10, 20, 16)

    async def submit(self, run_id: str, requests: Sequence[tuple[str, Request]]) -> str:
        self.on("+submit")
        if self.submit_errors:
            raise self.submit_errors.pop(0)
        batch_id = self.depot.take(run_id, requests)
        self.on("-submit")
        if self.lost_answer:
            self.lost_answer = False
            raise TransportError("time-out", kind="timeout", maybe_billed=True)
        return batch_id

    async def find(self, run_id: str) -> str | None:
        self.on("+find")
        if self.unlisted:
            self.unlisted -= 1
            return None
        return next((name for name, batch in self.depot.batches.items() if batch["run_id"] == run_id), None)

    async def state(self, batch_id: str) -> BatchState:
        self.on("+state")
        self.looked += 1
        batch = self.depot.batches[batch_id]
        if batch["looks"] > 0:
            batch["looks"] -= 1
            return BatchState(False, "running", {"completed": 0})
        failed = batch.get("failed")
        status = batch.get("status", self.depot.status)
        return BatchState(True, status, {"completed": len(batch["lines"])}, failed)

    async def results(self, batch_id: str, example: Request) -> AsyncIterator[Line]:
        self.on("+results")
        self.examples.append(example)
        lines = list(self.depot.batches[batch_id]["lines"])
        if self.depot.shuffled:
            lines = lines[1::2] + lines[::2][::-1]
        for number, (custom_id, text, nth) in enumerate(lines, 1):
            outcome = self.depot.outcome(text, nth)
            if outcome is not None:
                yield Line(custom_id, outcome, f"line {number}", f"raw of {custom_id}")
        self.on("-results")
        if self.result_errors:
            raise self.result_errors.pop(0)


class Purse:
    """An allowance with one cap (nano-USD): 100 at worst for each call, 7 for a reply with usage."""

    def __init__(self, cap: int | None = None) -> None:
        self.cap = cap
        self.helds: list[int] = []
        self.pauses: list[float] = []

    def worst(self, bounds: TokenBounds) -> int:
        return 100

    def charge(self, reply: Reply, bounds: TokenBounds) -> int:
        return 7 if reply.output_tokens is not None else 100

    def admit(self, wanted: Sequence[TokenBounds], *, held: int, in_flight: int) -> Admission:
        self.helds.append(held)
        if self.cap is None:
            return Admission(len(wanted))
        room = max(0, (self.cap - held) // 100)
        if wanted and not room and not in_flight:
            from counterbalance.errors import BudgetError

            raise BudgetError("the cap is spent")
        return Admission(min(room, len(wanted)))

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def account(**settings: float) -> Account:
    defaults = {"batch_poll_s": 0.01, "batch_wait_s": 10.0, "tries": 3}
    return Account(id="acc", key_env=None, mode="batch", **(defaults | settings))


def trial(number: int) -> Trial:
    prompt = {"text": f"prompt {number}"}
    return Trial(f"t{number:03d}", "e", "s", f"i{number}", ["o1"], ["A"], ["x"], 0, 0, prompt, "sha256:" + "0" * 64)


def call(vendor: BatchVendor, number: int) -> Call:
    request = vendor.request(trial(number))
    return Call(request.sha256, canonical_json(request.body()).decode(), request, trial(number))


async def run_session(
    path: Path,
    vendor: BatchVendor,
    n: int,
    *,
    guard: Callable[[str], None] = lambda _status: None,
    allowance: Purse | None = None,
    settle_s: float = 0.0,
    progress: object = None,
    place: str = "depot at its own address with no key",
    **settings: float,
) -> Tally:
    """Run one session over `n` prompts, as the stage would."""
    with Ledger(path, study="s", cell="c") as ledger:
        pending = (entry for entry in (call(vendor, i) for i in range(n)) if entry.key not in ledger.answered)
        async with vendor:
            return await run_batches(
                vendor,
                ledger,
                pending,
                frozen_sha256=FROZEN,
                progress=progress or SilentProgress(),
                guard=guard,
                allowance=allowance,
                account=account(**settings),
                cell="e/m/s",
                place=place,
                settle_s=settle_s,
            )


def session(*args: Any, **settings: Any) -> Tally:
    """Run one session in an event loop of its own."""
    return asyncio.run(run_session(*args, **settings))


def replies(path: Path, n: int) -> dict[str, str]:
    """Return the saved reply text of each prompt."""
    vendor = DepotVendor(Depot())
    keys = {call(vendor, i).key: f"prompt {i}" for i in range(n)}
    return {keys[key]: found.reply["text"] for key, found in read_answered(path, list(keys)).items()}


def fuse(n: int) -> Callable[[str], None]:
    """Return a step counter that ends the process at its n-th step."""
    steps = itertools.count(1)

    def burn(_step: str) -> None:
        if next(steps) == n:
            raise Killed

    return burn


def main(ledger: str, store: str, deadly: str) -> None:
    """Run a session in a process of its own that is killed by the kernel at one of its steps."""
    depot = Depot.load(Path(store))

    def on(step: str) -> None:
        depot.save(Path(store))
        if step == deadly:
            os.kill(os.getpid(), 9)

    tally = session(Path(ledger), DepotVendor(depot, on=on), 5)
    depot.save(Path(store))
    sys.stdout.write(json.dumps(asdict(tally)))


if __name__ == "__main__":
    main(*sys.argv[1:])
