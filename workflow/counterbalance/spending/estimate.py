"""What a study still has to buy: calls, tokens, cost and time per cell and account. Asks nothing, opens no vendor."""

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import cast

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.calls import TRIAL_COLUMNS, CallPlan, iter_trials, plan_calls
from counterbalance.canonical import Json
from counterbalance.config import Cell, Study
from counterbalance.config.models import Account, ApiModel
from counterbalance.config.vendors import Prices
from counterbalance.ledger import answered_keys, read_answered
from counterbalance.spending.measured import Measured, measure
from counterbalance.spending.prices import Tariff
from counterbalance.spending.spent import calls_in_batches
from counterbalance.stages.preflight import MOST_CALLS
from counterbalance.vendors import get_vendor
from counterbalance.vendors.base import PaidVendor, TokenBounds, Vendor

# Seconds per call on one core of a shared 2-core x86-64 machine, for a plan before the first reply; see docs/speed.md.
_LOCAL_SECONDS_PER_CALL = 0.1


@dataclass(frozen=True)
class Time:
    """About how long something takes, and what that is based on; None where nothing is known yet."""

    seconds: float | None
    basis: str


@dataclass(frozen=True)
class Buying:
    """What the new calls of a cell use and cost; amounts in nano-USD.

    Attributes
    ----------
    input_about
        Input tokens as estimated.
    output_about, output_most
        Output tokens by the mean of the replies bought so far (None: there are none yet), and at the output limit.
    cost_about, cost_most
        By `input_about` and `output_about` (the limit, while there is none), and in the worst case.
    live_about, live_most
        The calls among them that are asked live although the account hands in batches, and so without its discount:
        the preflight's, if its first reply shows what is read, and if it needs all that it may ask.
    """

    input_about: int
    output_about: int | None
    output_most: int
    cost_about: int
    cost_most: int
    live_about: int = 0
    live_most: int = 0


@dataclass(frozen=True)
class ScoutCalls:
    """New calls of a cell's scout, and those of them that the sweep does not ask."""

    new: int
    alone: int


@dataclass(frozen=True)
class CellPlan:
    """What a cell still has to ask.

    Attributes
    ----------
    calls, answered, under_way, new
        Calls of the cell, its scout's own included; those with a reply; those in batches that are not collected yet,
        whose money is reserved; and the others.
    buying
        What the new ones cost; None where no account pays.
    had, wanted
        Short names of the calls that were sent before, and of the new ones; empty where no account pays.
    scout
        Those of the new calls that its scout asks; None where there is no scout, or its prompts are not made yet.
    """

    cell: Cell
    calls: int
    answered: int
    under_way: int
    new: int
    buying: Buying | None
    time: Time
    measured: Measured
    had: Sequence[int] = ()
    wanted: Sequence[int] = ()
    scout: ScoutCalls | None = None


def plan_cell(study: Study, cell: Cell) -> CellPlan | None:
    """Work out what a cell still has to ask; None if its prompts are not made yet."""
    path = study.layout.trials(cell.experiment.id, cell.dataset.id)
    if not path.is_file():
        return None
    ledger = study.layout.ledger(cell.experiment.id, cell.model.id, cell.dataset.id)
    vendor = get_vendor(cell.model, cell.experiment, study)
    sweep = read_table(path, SCHEMAS["trials"], list(TRIAL_COLUMNS))
    scout = _read_scout(study, cell)
    # Rows of the scout behind those of the sweep: what both ask is one call, in the sweep's row.
    trials = sweep if scout is None else pa.concat_tables([sweep, scout])
    calls = plan_calls(vendor, cell, trials, answered_keys(ledger), seed=study.config.seed)
    measured = _measured(study, cell)
    # Nobody buys these: a batch run collects them, a live run refuses to start.
    batched = calls_in_batches(ledger)
    rows = [row for row in calls.pending if calls.keys[row] not in batched]
    looked_at = None if scout is None else _count_scout(calls, rows, sweep.num_rows)
    if not isinstance(cell.model, ApiModel):
        time = _free_time(cell, len(rows), measured)
        return CellPlan(cell, calls.calls, calls.answered, 0, len(rows), None, time, measured, scout=looked_at)
    account = study.account(cell.model.account)
    bounds = dict(zip(rows, _bounds(vendor, cell, trials, rows), strict=True))
    live = _preflight_rows(cell, sweep, calls, ledger, bounds) if account.mode == "batch" else []
    buying = _buying(study.config.money.prices[cell.model.id], account, bounds, live, measured)
    asking = _asking_seconds(account, len(rows), measured)
    time = paid_time(account, len(rows), buying.input_about + buying.output_most, asking)
    under_way = len(calls.pending) - len(rows)
    wanted = _short(calls.keys, rows)
    had = _short(calls.keys, set(calls.order).difference(rows))
    counts = (calls.calls, calls.answered, under_way, len(rows))
    return CellPlan(cell, *counts, buying, time, measured, had, wanted, looked_at)


def _read_scout(study: Study, cell: Cell) -> pa.Table | None:
    path = study.layout.scout_trials(cell.experiment.id, cell.dataset.id)
    if cell.experiment.scout is None or not path.is_file():
        return None
    return read_table(path, SCHEMAS["trials"], list(TRIAL_COLUMNS))


def _count_scout(calls: CallPlan, rows: Sequence[int], swept: int) -> ScoutCalls:
    asked = set(calls.keys[swept:])
    return ScoutCalls(sum(calls.keys[row] in asked for row in rows), sum(row >= swept for row in rows))


def _bounds(vendor: Vendor, cell: Cell, trials: pa.Table, rows: Sequence[int]) -> Iterator[TokenBounds]:
    paid = cast(PaidVendor, vendor)
    return (paid.bounds(vendor.request(trial)) for trial in iter_trials(trials, rows, cell))


def _preflight_rows(cell: Cell, sweep: pa.Table, calls: CallPlan, ledger: Path, new: Collection[int]) -> Sequence[int]:
    """Return the new calls that the preflight may still ask, in its order: none once a reply showed what is read."""
    if cell.dataset.id != cell.experiment.datasets[0]:
        return []
    items = sweep.column("item_id").to_pylist()
    first: dict[str, int] = {}
    for row in calls.order:
        if row < len(items):
            first.setdefault(items[row], row)
    rows = list(first.values())[:MOST_CALLS]
    replies = read_answered(ledger, [calls.keys[row] for row in rows if row not in new]) if ledger.exists() else {}
    shown = any(_shows(call.reply) for call in replies.values())
    return [] if shown else [row for row in rows if row in new]


def _shows(reply: Mapping[str, Json]) -> bool:
    return reply["status"] == "ok" or (reply["status"] == "truncated" and bool((reply["text"] or "").strip()))


def count_bought_again(plans: Iterable[CellPlan]) -> tuple[int, int]:
    """Return how many new calls other cells ask or have asked word for word too, and about what these copies cost.

    Each cell buys its own reply to a call. Of several new copies, all but one count.
    """
    plans = list(plans)
    seen = {name for plan in plans for name in plan.had}
    copies, cost = 0, Fraction(0)
    for plan in plans:
        again = sum(name in seen for name in plan.wanted)
        copies += again
        if again and plan.buying is not None:
            cost += Fraction(plan.buying.cost_about * again, plan.new)
        seen.update(plan.wanted)
    return copies, math.ceil(cost)


def _short(keys: Sequence[str], rows: Iterable[int]) -> Sequence[int]:
    # Eight bytes of a call's hash: a million calls fit in 8 MB, and two different ones hardly ever meet.
    return array("Q", (int(keys[row].removeprefix("sha256:")[:16], 16) for row in rows))


def _buying(
    prices: Prices, account: Account, bounds: Mapping[int, TokenBounds], live: Sequence[int], measured: Measured
) -> Buying:
    usual, undiscounted = Tariff.of(prices, batch=account.mode == "batch"), Tariff.of(prices, batch=False)
    mean, first = measured.output_tokens, set(live[:1])

    def about(tariff: Tariff, rows: Sequence[int]) -> int:
        output = sum(bounds[row].output_most for row in rows) if mean is None else math.ceil(mean * len(rows))
        return tariff.cost(sum(bounds[row].input_about for row in rows), 0, output)

    return Buying(
        input_about=sum(b.input_about for b in bounds.values()),
        output_about=None if mean is None else math.ceil(mean * len(bounds)),
        output_most=sum(b.output_most for b in bounds.values()),
        cost_about=about(usual, [row for row in bounds if row not in first]) + about(undiscounted, list(first)),
        cost_most=sum((undiscounted if row in live else usual).worst(b) for row, b in bounds.items()),
        live_about=len(first),
        live_most=len(live),
    )


def account_time(account: Account, cells: Iterable[CellPlan]) -> Time:
    """Return about how long the new calls of an account take, its cells one after the other."""
    plans = [cell for cell in cells if cell.new]
    asking = [_asking_seconds(account, cell.new, cell.measured) for cell in plans]
    known = [part for part in asking if part is not None]
    tokens = sum(cell.buying.input_about + cell.buying.output_most for cell in plans if cell.buying)
    return paid_time(
        account, sum(cell.new for cell in plans), tokens, _sum(known) if len(known) == len(asking) else None
    )


def paid_time(account: Account, calls: int, tokens: int, asking: Time | None) -> Time:
    """Return how long calls take at the account's limits: the slowest of its paces and of the vendor's own.

    Parameters
    ----------
    tokens
        Of all these calls, as `tokens_per_minute` counts them.
    asking
        How long they take without limits; None if that is not known.
    """
    if not calls:
        return Time(0.0, "nothing to ask")
    if account.mode == "batch":
        return Time(None, "in batches, which the vendor returns within a day")
    known = [] if asking is None else [asking]
    for limit, amount, name in (
        (account.requests_per_minute, calls, "requests_per_minute"),
        (account.tokens_per_minute, tokens, "tokens_per_minute"),
    ):
        if limit is not None:
            known.append(Time(60.0 * amount / limit, f"{name}: {limit}"))
    if not known:
        return Time(None, "not known before the first reply")
    slowest = max(known, key=lambda time: time.seconds or 0.0)
    if asking is None:
        return Time(slowest.seconds, f"at least, by {slowest.basis}; no reply was timed yet")
    return slowest


def _asking_seconds(account: Account, calls: int, measured: Measured) -> Time | None:
    if measured.latency_ms is None:
        return None
    seconds = calls * measured.latency_ms / 1000 / min(account.max_in_flight, max(calls, 1))
    basis = f"{measured.latency_ms:.0f} ms a reply (mean of {measured.timed}), {account.max_in_flight} at once"
    return Time(seconds, basis)


def _free_time(cell: Cell, calls: int, measured: Measured) -> Time:
    if not calls:
        return Time(0.0, "nothing to ask")
    if measured.latency_ms is not None:
        basis = f"{measured.latency_ms:.0f} ms a reply (mean of {measured.timed})"
        return Time(calls * measured.latency_ms / 1000, basis)
    if cell.model.vendor == "local":
        return Time(calls * _LOCAL_SECONDS_PER_CALL, "0.1 s a call on one core, see docs/speed.md")
    if cell.model.vendor == "transformers":
        return Time(None, "not known before the first reply")
    return Time(0.0, "no model is asked")


def _measured(study: Study, cell: Cell) -> Measured:
    # Replies to one experiment's prompt are alike over its data sets; the preflight's reply is among them.
    experiment = cell.experiment
    return measure(study.layout.ledger(experiment.id, cell.model.id, dataset) for dataset in experiment.datasets)


def _sum(times: list[Time]) -> Time | None:
    if not times:
        return None
    bases = {time.basis for time in times}
    return Time(sum(time.seconds or 0.0 for time in times), bases.pop() if len(bases) == 1 else "the replies so far")
