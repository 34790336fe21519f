"""Stage preflight: one call per experiment and paid model, to see that it is answered as the study needs.

The call is the first that the sweep would send, and its reply is kept in the same ledger, so it is bought once. Where
that reply shows nothing of the model (a refused item, one that is too long), the next item's call is bought too, up to
five. What the record says is derived from the ledger: a second run asks nothing and writes the same bytes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterbalance.artifacts import write_record
from counterbalance.canonical import Json, parse_json
from counterbalance.config import Cell, Study
from counterbalance.config.checks import is_dated
from counterbalance.config.models import ApiModel, GenerateRead, LogprobRead, Read
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
from counterbalance.vendors.base import CallRefusedError

if TYPE_CHECKING:
    from counterbalance.prereg.record import FrozenRecord

PREFLIGHT_SCHEMA = "counterbalance/preflight/1"
MOST_CALLS = 5
"""A preflight asks so many calls at most, each of another item."""

_CALL = f"""
SELECT request, coalesce(sum({HELD}), 0) FROM calls JOIN attempts USING (call_order) WHERE call_sha256 = ?
"""
_ADVICE = {
    "refused": "take other items or another prompt",
    "blocked": "take other items or another prompt",
    "truncated": "raise `max_tokens`, or have the model reason less",
    "empty": "look at the model's settings, first of all those of its reasoning",
    "unknown": "look at the settings of the model and of its server",
    "unavailable": "use another read, or shorter prompts and a lower `max_tokens` where they are too long",
}


@dataclass(frozen=True)
class Preflight:
    """What a model's first calls have shown of it.

    Attributes
    ----------
    sent
        The request of the call that decided, as JSON values.
    calls
        All that were asked, the one that decided last.
    nano_usd
        What they cost over all their sendings, what is not known at its worst case.
    bought
        Whether this run bought any of them; else earlier ones had.
    logprobs_asked, logprobs_listed
        How many log-probabilities the read asks for, and how many came back; None where it asks for none.
    """

    cell: Cell
    sent: dict[str, Any]
    calls: Sequence[AnsweredCall]
    nano_usd: int
    bought: bool
    logprobs_asked: int | None
    logprobs_listed: int | None

    @property
    def call(self) -> AnsweredCall:
        return self.calls[-1]

    @property
    def status(self) -> str:
        return str(self.call.reply["status"])

    @property
    def dated(self) -> bool:
        return isinstance(self.cell.model, ApiModel) and is_dated(self.cell.model)

    def __str__(self) -> str:
        asked, returned = self.sent["model"], self.call.reply["model_returned"]
        name = asked if returned in {None, asked} else f"{asked}, which calls itself {returned}"
        listed = ""
        if self.logprobs_asked is not None:
            listed = f", {self.logprobs_listed} of {self.logprobs_asked} log-probabilities"
        before = f" after {_counted(self.calls[:-1])}" if len(self.calls) > 1 else ""
        cost = f"cost {show_usd(self.nano_usd)}" if self.bought else "bought before, nothing was asked"
        undated = "" if self.dated else "; warning: this id names no dated version, what answers under it may change"
        return f"{self.cell.name}: {name}: {self.status}{before}{listed}; {cost}{undated}"


def preflight_model(study: Study, experiment: str, model: str, progress: Progress) -> Preflight:
    """Buy the first call of an experiment's first data set, unless it is there, and check what came back.

    Where the reply shows nothing of the model, the next item's call follows.

    Raises
    ------
    ConfigError
        If no account pays for the model.
    VendorError
        If the model is unknown, refuses a parameter, gives no or too few log-probabilities, or if no reply shows what
        the read needs.
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
    calls = _ask(study, cell, progress)
    sent = [_sent(path, call.call_sha256) for call in calls]
    bought = any(call.call_sha256 not in before for call in calls)
    read = cell.experiment.read
    asked = read.top if isinstance(read, LogprobRead) else None
    listed = None if asked is None else len(calls[-1].reply["top_tokens"] or [])
    seen = Preflight(cell, sent[-1][0], calls, sum(cost for _, cost in sent), bought, asked, listed)
    _require_what_is_read(study, seen)
    _write(study, seen, frozen)
    return seen


def _ask(study: Study, cell: Cell, progress: Progress) -> Sequence[AnsweredCall]:
    """Return the first calls up to one that shows what the read needs, one session each; all that may be, if none."""
    command = command_line(study, "preflight", experiment=cell.experiment.id, model=cell.model.id)
    calls: Sequence[AnsweredCall] = ()
    for limit in range(1, MOST_CALLS + 1):
        try:
            found = ask_calls(study, cell, limit=limit, live=True, progress=progress, command=command)
        except CallRefusedError:
            # Whether the vendor finds fault with this item or with all of them, the next one shows.
            if limit == MOST_CALLS:
                raise
            continue
        if len(found) == len(calls):
            break
        calls = found
        if _shows(cell.experiment.read, calls[-1].reply):
            break
    return calls


def _shows(read: Read, reply: Mapping[str, Any]) -> bool:
    """Whether a reply shows that the model is answered as the read needs it."""
    cut = isinstance(read, GenerateRead) and reply["status"] == "truncated"
    return reply["status"] == "ok" or (cut and bool((reply["text"] or "").strip()))


def _counted(calls: Sequence[AnsweredCall]) -> str:
    """Say how calls ended."""
    endings = Counter(f"{call.reply['status']} ({call.reply['reason'] or 'no reason given'})" for call in calls)
    return ", ".join(f"{n} {ending}" for ending, n in endings.items())


def _sent(path: Path, call_sha256: str) -> tuple[dict[str, Any], int]:
    """Return a call's request, whose hash was checked when its reply was read, and what it cost."""
    with reporting(path), closing(open_reader(path)) as connection:
        request, nano_usd = connection.execute(_CALL, (call_sha256,)).fetchone()
    return parse_json(request, source=f"{path} call {call_sha256}"), int(nano_usd)


def _require_what_is_read(study: Study, seen: Preflight) -> None:
    """Stop if no reply shows what is read, or if one shows that this read cannot be had."""
    read, asked, listed = seen.cell.experiment.read, seen.logprobs_asked or 0, seen.logprobs_listed or 0
    key = f"{study.path} key experiments.{seen.cell.experiment.id}.read"
    kept = (
        "What came back is kept and not asked again: a server that was mended needs a model of another `id`. Whatever "
        "you change in a frozen plan is an amendment (`counterbalance freeze`)"
    )
    if not _shows(read, seen.call.reply):
        statuses = {str(call.reply["status"]) for call in seen.calls}
        # Where words are read, a refusal is an answer: a study may be about it.
        if isinstance(read, GenerateRead) and "refused" in statuses and statuses <= {"refused", "blocked"}:
            return
        advice = dict.fromkeys(text for status, text in _ADVICE.items() if status in statuses)
        raise VendorError(
            f"{key}: model {seen.sent['model']!r} gives nothing that `{read.kind}` reads. What came back, a call each "
            f"for the first items: {_counted(seen.calls)}. To go on, {'; or '.join(advice)}; or leave the model out of "
            f"this experiment. {kept}"
        )
    if listed < asked:
        raise VendorError(
            f"{key}.top: model {seen.sent['model']!r} lists {listed} log-probabilities where {asked} are asked for: "
            f"write `top: {listed}` or less, or use another read. {kept}"
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
            "dated": seen.dated,
            "fingerprint": reply["fingerprint"],
        },
        "status": seen.status,
        "reason": reply["reason"],
        "finish_reason": reply["finish_reason"],
        "log_probabilities": {"asked": seen.logprobs_asked, "listed": seen.logprobs_listed},
        "usage": {name: reply[name] for name in counts},
        "nano_usd": seen.nano_usd,
        "attempts": seen.call.attempts,
        "calls": [
            {"call_sha256": call.call_sha256, "status": call.reply["status"], "reason": call.reply["reason"]}
            for call in seen.calls
        ],
    }
