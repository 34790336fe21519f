"""Small studies with hand-made trials, and a vendor that does as it is told."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from small_study import study_body, trial_row, write_study

from counterbalance.artifacts import SCHEMAS, table_from_rows, write_table
from counterbalance.config import Study, load_study
from counterbalance.vendors.base import Reply, Request, TokenBounds, TransportError, Trial

FROZEN = "sha256:" + "f" * 64


def make_study(
    root: Path,
    models: list[dict] | None = None,
    *,
    read: dict | None = None,
    limits: dict | None = None,
    experiment: dict | None = None,
) -> Study:
    experiment = ({"read": read} if read else {}) | (experiment or {})
    return load_study(write_study(root, study_body(models, experiment=experiment, limits=limits or {})))


def trial_rows(n_items: int, *, options: int = 3, repeats: int = 1, same_prompt: bool = False) -> list[dict]:
    rows = []
    ids = [f"o{index + 1}" for index in range(options)]
    for item in range(n_items):
        for index, order in enumerate(itertools.permutations(ids)):
            for repeat in range(repeats):
                name = 0 if same_prompt else item
                listed = " ".join(f"{chr(65 + slot)}={name}.{option}" for slot, option in enumerate(order))
                prompt = {"text": f"Item {name}: {listed} Answer:"}
                rows.append(trial_row(f"i{item:03d}", index, order, prompt, repeat=repeat))
    return rows


def write_trials(study: Study, rows: list[dict]) -> Path:
    path = study.layout.trials("letters", "sums")
    write_table(path, table_from_rows(rows, SCHEMAS["trials"]), SCHEMAS["trials"])
    return path


@dataclass(frozen=True)
class Frozen:
    path: Path
    sha256: str = FROZEN


def open_gate(study: Study) -> Callable[..., Frozen]:
    """A gate that lets everything through."""
    path = study.root / "preregistration" / "frozen" / "tiny-1.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}\n", encoding="utf-8")
    return lambda _study, **_kind: Frozen(path)


class ScriptedVendor:
    """Answers from a script: per item a list of what happens at each sending, the last entry for ever after.

    An entry is a reply's text, a `Reply`, or an exception to raise.
    """

    def __init__(self, script: dict[str, list] | None = None, *, max_in_flight: int = 4, ordered: bool = True) -> None:
        self.script = script or {}
        self.max_in_flight = max_in_flight
        self.shares_prefixes = ordered
        self.model = "m1"
        self.asked: list[str] = []
        self.under_way = 0
        self.most_under_way = 0
        self.opened = 0

    async def __aenter__(self):
        self.opened += 1
        return self

    async def __aexit__(self, *_error) -> None:
        return

    def request(self, trial: Trial) -> Request:
        return Request("scripted", None, self.model, {"max_tokens": 16}, trial.prompt, None, trial.repeat)

    def bounds(self, request: Request) -> TokenBounds:
        return TokenBounds(input_about=80, input_most=100, output_most=10)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        before = self.asked.count(trial.trial_id)
        self.asked.append(trial.trial_id)
        await asyncio.sleep(0)
        self.under_way -= 1
        steps = self.script.get(trial.item_id, ["A"])
        step = steps[min(before, len(steps) - 1)]
        if isinstance(step, BaseException):
            raise step
        return step if isinstance(step, Reply) else Reply("ok", text=step)


def no_reply() -> TransportError:
    return TransportError("connection reset after 150 ms")
