"""A small study whose models are behind accounts, its trials, ledgers that say what was spent, and a paid vendor."""

import itertools
from pathlib import Path

from small_study import study_body, trial_row, write_study

from counterbalance.artifacts import SCHEMAS, table_from_rows, write_table
from counterbalance.canonical import canonical_json
from counterbalance.config import Study, load_study
from counterbalance.ledger import Attempt, Ledger, Sending
from counterbalance.vendors.base import Reply, Request, TokenBounds, Trial

CENT = 10_000_000
# At 1 USD per million input tokens, this many tokens cost one cent.
CENT_OF_INPUT = 10_000


def paid_study(
    root: Path,
    *,
    study_cap: float | None = None,
    account: dict | None = None,
    others: tuple[str, ...] = (),
    prices: dict | None = None,
    datasets: tuple[str, ...] = ("sums",),
    read: dict | None = None,
    experiments: tuple[str, ...] = ("letters",),
) -> Study:
    models: list[dict] = [
        {"id": "bought", "vendor": "openai", "model": "m-2026-01-01", "account": "purse"},
        {"id": "planted", "vendor": "simulated"},
    ]
    body = study_body(
        models,
        id="paid",
        accounts=[
            {"id": "purse", "key_env": "SOME_KEY", **(account or {})},
            *({"id": name, "key_env": "SOME_KEY"} for name in others),
        ],
        money={"prices": {"bought": prices or {"input": 1.0, "output": 4.0}}, "cap_usd": study_cap},
    )
    (data,), (asked,) = body["datasets"], body["experiments"]
    asked |= {"prompt": {"template": "letter.j2", "style": "chat"}, "datasets": list(datasets)}
    body["datasets"] = [data | {"id": name} for name in datasets]
    body["experiments"] = [asked | {"id": name} | ({"read": read} if read else {}) for name in experiments]
    return load_study(write_study(root, body, "paid.yaml"))


def cents(number: float) -> TokenBounds:
    """A call that costs this many cents, at 1 USD per million input tokens."""
    tokens = round(number * CENT_OF_INPUT)
    return TokenBounds(tokens, tokens, 0)


def write_ledger(path: Path, attempts: list[dict], account: str = "purse") -> None:
    """Write a ledger with one call per attempt; amounts in nano-USD, `charged` missing while unknown."""
    cell = "/".join((path.parent.parent.name, path.parent.name, path.stem))
    with Ledger(path, study="paid", cell=cell, account=account) as ledger:
        for number, attempt in enumerate(attempts):
            key = f"call {number}"
            ledger.save([], [Sending(key, "{}", attempt.get("worst"))], frozen_sha256="none")
            if "charged" in attempt:
                reply = canonical_json(attempt.get("reply") or Reply("ok").body()).decode()
                outcome = attempt.get("outcome", "answered")
                ended = Attempt(
                    key,
                    outcome,
                    reply=reply if outcome == "answered" else None,
                    charged_nano_usd=attempt["charged"],
                    maybe_billed=attempt.get("maybe_billed", False),
                )
                ledger.save([ended], [], frozen_sha256="none")


def write_trials(study: Study, dataset: str = "sums", items: int = 2, experiment: str = "letters") -> None:
    """Write trials of three options in all six orders."""
    rows = []
    for item in range(items):
        for index, order in enumerate(itertools.permutations(("o1", "o2", "o3"))):
            text = f"{dataset} {item}: A. {order[0]} B. {order[1]} C. {order[2]} Answer:"
            rows.append(trial_row(f"i{item:03d}", index, order, {"messages": [{"role": "user", "content": text}]}))
    table = table_from_rows(rows, SCHEMAS["trials"])
    write_table(study.layout.trials(experiment, dataset), table, SCHEMAS["trials"])


class PaidVendor:
    """A vendor behind an account that answers every call as told; each may use 100 tokens of input, 10 of output."""

    max_in_flight = 4
    shares_prefixes = False

    def __init__(self, answer: Reply | Exception | None = None) -> None:
        self.answer = answer or Reply("ok", text="A", model_returned="m-2026-01-01", input_tokens=80, output_tokens=2)
        self.asked: list[str] = []
        self.opened = 0

    async def __aenter__(self):
        self.opened += 1
        return self

    async def __aexit__(self, *_error) -> None:
        return

    def request(self, trial: Trial) -> Request:
        parameters = {"max_completion_tokens": 10, "temperature": 0}
        return Request("openai", None, "m-2026-01-01", parameters, trial.prompt, None, trial.repeat)

    def bounds(self, request: Request) -> TokenBounds:
        return TokenBounds(input_about=80, input_most=100, output_most=10)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        self.asked.append(trial.trial_id)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer
