"""Small studies with hand-made trials, and a vendor that does as it is told."""

import asyncio
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from counterbalance.artifacts import SCHEMAS, table_from_rows, write_table
from counterbalance.canonical import canonical_json, sha256_bytes
from counterbalance.config import Study, load_study
from counterbalance.vendors.base import Reply, Request, TokenBounds, TransportError, Trial

FROZEN = "sha256:" + "f" * 64


def study_text(
    models: list[dict], *, read: dict | None = None, limits: dict | None = None, experiment: dict | None = None
) -> str:
    """JSON is YAML too."""
    study = {
        "schema": "counterbalance/study/1",
        "id": "tiny",
        "title": "A tiny study",
        "question": "Is every call bought once?",
        "seed": 7,
        "preregistration": None,
        "models": models,
        "datasets": [
            {
                "id": "sums",
                "path": "sums.csv",
                "format": "csv",
                "columns": {"options": ["a", "b", "c"], "key": "key"},
                "key": {"type": "letter"},
                "licence": "CC0-1.0",
                "source": "made by the test",
            }
        ],
        "experiments": [
            {
                "id": "letters",
                "design": "mcq",
                "datasets": ["sums"],
                "models": [model["id"] for model in models],
                "prompt": {"template": "letter.j2", "style": "plain"},
                "read": read or {"kind": "generate"},
                **(experiment or {}),
            }
        ],
        "limits": limits or {},
    }
    return json.dumps(study)


def make_study(root: Path, models: list[dict] | None = None, **settings: dict) -> Study:
    root.mkdir(parents=True, exist_ok=True)
    models = models or [{"id": "planted", "vendor": "simulated"}]
    path = root / "tiny.yaml"
    path.write_text(study_text(models, **settings), encoding="utf-8")
    return load_study(path)


def trial_rows(n_items: int, *, options: int = 3, repeats: int = 1, same_prompt: bool = False) -> list[dict]:
    rows = []
    ids = [f"o{index + 1}" for index in range(options)]
    for item in range(n_items):
        for index, order in enumerate(itertools.permutations(ids)):
            for repeat in range(repeats):
                name = 0 if same_prompt else item
                listed = " ".join(f"{chr(65 + slot)}={name}.{option}" for slot, option in enumerate(order))
                prompt = canonical_json({"text": f"Item {name}: {listed} Answer:"})
                rows.append(
                    {
                        "trial_id": f"i{item:03d}.mcq.{index:04d}.{repeat:02d}",
                        "item_id": f"i{item:03d}",
                        "group_id": f"i{item:03d}",
                        "condition": "mcq",
                        "arrangement_index": index,
                        "repeat": repeat,
                        "arrangement": list(order),
                        "labels": [chr(65 + slot) for slot in range(options)],
                        "option_texts": [f"text {option}" for option in order],
                        "gold_slot": order.index("o1"),
                        "prompt": prompt.decode(),
                        "prompt_sha256": sha256_bytes(prompt),
                    }
                )
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
