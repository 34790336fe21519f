"""Stage preflight: one call per experiment and paid model, to see that it is answered as the study needs.

The call is the first that the sweep would send, and its reply is kept in the same ledger, so it is bought once. What
the record says is derived from the ledger: a second run asks nothing and writes the same bytes.
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterbalance.artifacts import write_record
from counterbalance.canonical import Json, parse_json
from counterbalance.config import Cell, Study
from counterbalance.config.checks import is_dated
from counterbalance.config.models import ApiModel, DecideRead, LogprobRead
from counterbalance.errors import ConfigError, VendorError
from counterbalance.files import write_json
from counterbalance.ledger import AnsweredCall, answered_keys
from counterbalance.ledger.money import HELD
from counterbalance.ledger.schema import open_reader, reporting
from counterbalance.progress import Progress
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.spending.prices import show_usd
from counterbalance.stages.command import command_line
from counterbalance.stages.query import ask_calls

if TYPE_CHECKING:
    from counterbalance.prereg.record import FrozenRecord

PREFLIGHT_SCHEMA = "counterbalance/preflight/1"
_CALL = f"""
SELECT request, coalesce(sum({HELD}), 0) FROM calls JOIN attempts USING (call_order) WHERE call_sha256 = ?
"""


@dataclass(frozen=True)
class Preflight:
    """What one call has shown of a model.

    Attributes
    ----------
    sent
        The request, as JSON values.
    nano_usd
        What the call cost over all its sendings, what is not known at its worst case.
    bought
        Whether this run bought the call; else an earlier one had.
    logprobs_asked, logprobs_listed
        How many log-probabilities the read asks for, and how many came back; None where it asks for none.
    """

    cell: Cell
    sent: dict[str, Any]
    call: AnsweredCall
    nano_usd: int
    bought: bool
    logprobs_asked: int | None
    logprobs_listed: int | None

    @property
    def status(self) -> str:
        return str(self.call.reply["status"])

    def __str__(self) -> str:
        asked, returned = self.sent["model"], self.call.reply["model_returned"]
        name = asked if returned in {None, asked} else f"{asked}, which calls itself {returned}"
        listed = ""
        if self.logprobs_asked is not None:
            listed = f", {self.logprobs_listed} of {self.logprobs_asked} log-probabilities"
        cost = f"cost {show_usd(self.nano_usd)}" if self.bought else "bought before, nothing was asked"
        return f"{self.cell.name}: {name}: {self.status}{listed}; {cost}"


def preflight_model(study: Study, experiment: str, model: str, progress: Progress) -> Preflight:
    """Buy the first call of an experiment's first data set, unless it is there, and check what came back.

    Raises
    ------
    ConfigError
        If no account pays for the model.
    VendorError
        If the model is unknown, refuses a parameter, or gives no or too few log-probabilities.
    KeyRefusedError, OutOfFundsError, BudgetError
        If the account cannot pay.
    PendingError
        If no reply came back.
    """
    from counterbalance.prereg.gate import check_gate

    cell = study.cell(experiment, model, study.experiment(experiment).datasets[0])
    if not isinstance(cell.model, ApiModel):
        raise ConfigError(f"{study.path}: model {model!r} is behind no account and needs no preflight; leave it out")
    frozen = check_gate(study, trials=True, only=(experiment, cell.dataset.id))
    path = study.layout.ledger(experiment, model, cell.dataset.id)
    before = answered_keys(path)
    command = command_line(study, "preflight", experiment=experiment, model=model)
    call = ask_calls(study, cell, limit=1, live=True, progress=progress, command=command)[0]
    sent, nano_usd = _sent(path, call.call_sha256)
    read = cell.experiment.read
    asked = read.top if isinstance(read, LogprobRead) else None
    listed = None if asked is None else len(call.reply["top_tokens"] or [])
    seen = Preflight(cell, sent, call, nano_usd, call.call_sha256 not in before, asked, listed)
    _require_what_is_read(study, seen)
    _write(study, seen, frozen)
    return seen


def _sent(path: Path, call_sha256: str) -> tuple[dict[str, Any], int]:
    """Return a call's request, whose hash was checked when its reply was read, and what it cost."""
    with reporting(path), closing(open_reader(path)) as connection:
        request, nano_usd = connection.execute(_CALL, (call_sha256,)).fetchone()
    return parse_json(request, source=f"{path} call {call_sha256}"), int(nano_usd)


def _require_what_is_read(study: Study, seen: Preflight) -> None:
    """Stop if the reply shows that this read cannot be had; a refused or blocked item shows nothing of the kind."""
    read, reply = seen.cell.experiment.read, seen.call.reply
    key = f"experiments.{seen.cell.experiment.id}.read"
    kept = "Its one reply is kept. Whatever you change in a frozen plan is an amendment (`counterbalance freeze`)"
    if seen.status == "unavailable" and isinstance(read, LogprobRead | DecideRead):
        raise VendorError(
            f"{study.path} key {key}: model {seen.sent['model']!r} does not give what `{read.kind}` reads "
            f"({reply['reason'] or 'it was not in the reply'}): use another read, or leave the model out of this "
            f"experiment. {kept}"
        )
    asked, listed = seen.logprobs_asked or 0, seen.logprobs_listed or 0
    if listed < asked and seen.status not in {"refused", "blocked"}:
        raise VendorError(
            f"{study.path} key {key}.top: model {seen.sent['model']!r} lists {listed} log-probabilities "
            f"where {asked} are asked for: write `top: {listed}` or less, or use another "
            f"read. {kept}"
        )


def _write(study: Study, seen: Preflight, frozen: "FrozenRecord") -> None:
    experiment, model = seen.cell.experiment.id, seen.cell.model.id
    path = study.layout.preflight(experiment, model)
    write_json(path, _body(seen))
    write_record(
        path,
        study.root,
        stage="preflight",
        inputs=[study.layout.trials(experiment, seen.cell.dataset.id), frozen.path],
        command=command_line(study, "preflight", experiment=experiment, model=model),
        config_sha256=settings_sha256(study, "preflight", experiment=experiment, model=model),
        code_sha256=code_sha256("preflight"),
        frozen_sha256=frozen.sha256,
    )


def _body(seen: Preflight) -> Json:
    reply: dict[str, Any] = seen.call.reply
    model = seen.cell.model
    counts = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
    return {
        "schema": PREFLIGHT_SCHEMA,
        "cell": seen.cell.name,
        "call_sha256": seen.call.call_sha256,
        "sent": {key: seen.sent[key] for key in ("vendor", "base_url", "model", "parameters")},
        "not_accepted": list(model.does_not_accept) if isinstance(model, ApiModel) else [],
        "model": {
            "asked": seen.sent["model"],
            "returned": reply["model_returned"],
            "dated": isinstance(model, ApiModel) and is_dated(model),
            "fingerprint": reply["fingerprint"],
        },
        "status": seen.status,
        "reason": reply["reason"],
        "finish_reason": reply["finish_reason"],
        "log_probabilities": {"asked": seen.logprobs_asked, "listed": seen.logprobs_listed},
        "usage": {name: reply[name] for name in counts},
        "nano_usd": seen.nano_usd,
        "attempts": seen.call.attempts,
    }
