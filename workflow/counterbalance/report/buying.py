"""How the replies were bought: what was sent, in how many attempts and sessions, for how much."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterbalance.config import Analysis
from counterbalance.report.bought import Bought, in_random_order, sessions_of
from counterbalance.report.interruptions import InterruptionTable, view_interruptions
from counterbalance.report.published import is_published
from counterbalance.report.sent import SentView, view_sent
from counterbalance.report.text import MISSING, anchor_of, count, dollars, plural

_ORDERS = {
    True: "mixed by the seed",
    False: "by common beginnings",
}


@dataclass(frozen=True)
class BuyingRow:
    """One cell's purchase.

    Attributes
    ----------
    lost
        Attempts without a reply that the vendor may have answered, and charged.
    open
        Attempts that were under way when a process ended.
    at_worst
        Attempts that count at the most they can have cost.
    """

    cell: str
    model: str
    experiment: str
    anchor: str
    calls: str
    attempts: str
    errors: str
    lost: str
    open: str
    spent: str
    at_worst: str
    order: str
    models: str
    sessions: Sequence[str]


@dataclass(frozen=True)
class BuyingView:
    """The whole section."""

    sent: Sequence[SentView]
    rows: Sequence[BuyingRow]
    money: str
    interruptions: Sequence[InterruptionTable]


def view_buying(cells: Sequence[Bought], analysis: Analysis) -> BuyingView:
    """Format it for all cells but published ones, for which nothing was sent and nothing was bought."""
    cells = [bought for bought in cells if not is_published(bought.cell)]
    return BuyingView(
        sent=view_sent(cells),
        rows=[_row(bought) for bought in cells],
        money=_money([bought.facts for bought in cells]),
        interruptions=view_interruptions(cells, analysis),
    )


def _row(bought: Bought) -> BuyingRow:
    cell, facts = bought.cell, bought.facts
    return BuyingRow(
        cell=cell.dataset.id,
        model=cell.model.id,
        experiment=cell.experiment.id,
        anchor=anchor_of(cell.name),
        calls=_number(facts, "calls"),
        attempts=_number(facts, "attempts"),
        errors=_number(facts, "transport_errors"),
        lost=_number(facts, "maybe_billed"),
        open=_number(facts, "possibly_sent_twice"),
        spent=_spent(facts),
        at_worst=_number(facts, "charged_at_worst"),
        order=_ORDERS[in_random_order(bought)],
        models=_models(bought),
        sessions=[_session(entry) for entry in sessions_of(bought)],
    )


def _number(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    return MISSING if value is None else count(value)


def _spent(facts: Mapping[str, Any]) -> str:
    nano = facts.get("spent_nano_usd")
    return MISSING if nano is None else dollars(nano)


def _models(bought: Bought) -> str:
    parts = [f"{model} ({count(calls)})" if len(bought.models) > 1 else model for model, calls in bought.models.items()]
    named = ", ".join(parts) or "not named"
    if len(bought.fingerprints) > 1:
        named += f"; {len(bought.fingerprints)} system fingerprints"
    return named


def _session(entry: Mapping[str, Any]) -> str:
    calls = entry.get("calls")
    why = entry.get("ended_because") or "end not written down"
    return f"{entry['session']}: {MISSING if calls is None else plural(calls, 'call')}, {why}"


def _money(facts: Sequence[Mapping[str, Any]]) -> str:
    known = [entry for entry in facts if entry.get("spent_nano_usd") is not None]
    if not known:
        return "No call had a price."
    total = sum(entry["spent_nano_usd"] for entry in known)
    worst = sum(entry.get("charged_at_worst") or 0 for entry in known)
    text = f"{dollars(total)} in all, by the study's prices and the usage that the vendors reported."
    if worst:
        text += (
            f" {plural(worst, 'attempt')} without usable usage, or of unknown fate, {'is' if worst == 1 else 'are'} "
            "counted at the most they could have cost."
        )
    return text
