"""`counterbalance plan`: what would be asked, what it costs and how long it takes, before anything is sent."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from counterbalance.canonical import Json
from counterbalance.cli.options import study_option
from counterbalance.config import Cell, Study
from counterbalance.errors import CounterbalanceError
from counterbalance.progress import duration

if TYPE_CHECKING:
    from counterbalance.spending.budget import Budget
    from counterbalance.spending.estimate import CellPlan, Time

PLAN_SCHEMA = "counterbalance/plan/1"
_NANO = 1_000_000_000


@click.command()
@study_option
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON; amounts are whole nano-USD.")
def plan(study: Study, as_json: bool) -> None:
    """Say what a run would do: new calls, tokens, cost and time per cell, and what the caps leave.

    Asks no model and needs no key. Before the prompts are made (`snakemake freeze_preregistration` makes them) the
    number of calls is not known yet, and the plan says so.
    """
    from counterbalance.scouting.outcome import decided_to_skip
    from counterbalance.spending.estimate import plan_cell

    skipped = decided_to_skip(study)
    cells = [(cell, plan_cell(study, cell)) for cell in study.cells() if cell.name not in skipped]
    if as_json:
        click.echo(json.dumps(_as_json(study, cells, skipped), indent=2))
    else:
        click.echo("\n".join(_lines(study, cells, skipped)))


Cells = Sequence[tuple[Cell, "CellPlan | None"]]


def _lines(study: Study, cells: Cells, skipped: Mapping[str, str]) -> list[str]:
    lines = [f"{study.config.title} ({study.path})", f"settings {study.sha256}", f"frozen   {_frozen(study)}", ""]
    paid = bool(study.config.accounts)
    width = max((len(cell.name) for cell, _ in cells), default=0)
    money = f"  {'input':>11}  {'output':>11}  {'cost':>10}  {'cost':>10}" if paid else ""
    units = f"  {'about':>11}  {'at most':>11}  {'about':>10}  {'at most':>10}" if paid else ""
    if paid:
        lines.append(f"{'':<{width}}  {'':>8}  {'':>8}  {'':>8}{money}")
    lines.append(f"{'cell':<{width}}  {'calls':>8}  {'answered':>8}  {'new':>8}{units}  about")
    lines += [f"{cell.name:<{width}}  {_cell_line(entry, paid)}" for cell, entry in cells]
    known = [entry for _, entry in cells if entry is not None]
    new = sum(entry.new for entry in known)
    lines += ["", *_scout_lines(cells, skipped)]
    if len(known) < len(cells):
        missing = (
            f"{len(cells) - len(known)} of {len(cells)} cells have no prompts yet; they are in none of the sums below"
        )
        lines += [missing, ""]
    if not paid:
        seconds = sum(entry.time.seconds or 0.0 for entry in known)
        untimed = any(entry.time.seconds is None for entry in known)
        time = "time not known yet" if untimed else f"about {seconds:.0f} s of computing"
        free = f"{new} new calls, {time}; no money is spent by these vendors."
        return [*lines, free, *_stranger_lines(study)]
    return lines + _account_lines(study, known)


def _scout_lines(cells: Cells, skipped: Mapping[str, str]) -> list[str]:
    """Say which cells are left out, and that others may be as long as their scouts have something to ask."""
    lines = [f"{name} is not asked: {reason}" for name, reason in skipped.items()]
    scouted = [entry for cell, entry in cells if cell.experiment.scout is not None]
    scouts = [entry.scout for entry in scouted if entry is not None]
    unmade = sum(scout is None for scout in scouts)
    known = [scout for scout in scouts if scout is not None and scout.new]
    waiting = scouted.count(None) + unmade + len(known)
    if waiting:
        said = f"{waiting} cells are scouted first, and those that the frozen rule skips cost less"
        new, alone = sum(scout.new for scout in known), sum(scout.alone for scout in known)
        if known:
            said += f"; {new:,} of the new calls are theirs, {alone:,} of these for the scout alone"
        if unmade:
            said += f"; the scouts' prompts of {unmade} cells are not made yet, and are in none of the sums below"
        lines.append(said)
    return [*lines, ""] if lines else []


def _cell_line(entry: "CellPlan | None", paid: bool) -> str:
    if entry is None:
        return f"{'?':>8}  {'?':>8}  {'?':>8}  prompts are not made yet"
    counts = f"{entry.calls:>8}  {entry.answered:>8}  {entry.new:>8}"
    if paid:
        buying = entry.buying
        amounts = (
            [f"{buying.input_about:,}", f"{buying.output_most:,}", _usd(buying.cost_about), _usd(buying.cost_most)]
            if buying
            else ["-", "-", "$0", "$0"]
        )
        counts += f"  {amounts[0]:>11}  {amounts[1]:>11}  {amounts[2]:>10}  {amounts[3]:>10}"
    waiting = f"; {entry.under_way} more in batches, to be collected" if entry.under_way else ""
    return f"{counts}  {_time(entry.time)}{waiting}"


def _account_lines(study: Study, known: "Sequence[CellPlan]") -> list[str]:
    from counterbalance.spending.budget import read_budgets
    from counterbalance.spending.estimate import account_time, count_bought_again

    whole, budgets = read_budgets(study)
    lines = []
    for account in study.config.accounts:
        cells = [entry for entry in known if getattr(entry.cell.model, "account", None) == account.id]
        lines.append(f"account {account.id} ({account.mode}): {_total(cells)}; {_time(account_time(account, cells))}")
        lines += _preflight_lines(cells)
        lines += _budget_lines(budgets[account.id], f"accounts.{account.id}.cap_usd", cells)
    lines.append(f"study: {_total(known)}")
    lines += _budget_lines(whole, "money.cap_usd", known)
    lines += _stranger_lines(study)
    copies, cost = count_bought_again(known)
    if copies:
        lines.append(
            f"  {copies:,} of the new calls are word for word also asked in another cell; each cell buys its own "
            f"reply, for {_usd(cost)} (about) of the above"
        )
    lines.append(
        "About: input as estimated; output by the mean of the replies bought so far, or at its limit where there is "
        "none yet. At most: one sending of each call."
    )
    return lines


def _preflight_lines(cells: "Sequence[CellPlan]") -> list[str]:
    """Say what is not bought at the discount of the batches."""
    buying = [entry.buying for entry in cells if entry.buying]
    about, most = sum(b.live_about for b in buying), sum(b.live_most for b in buying)
    if not about:
        return []
    more = f" (up to {most}, where the first replies show nothing)" if most > about else ""
    return [f"  without the discount, as preflights that are asked live before the batches: {about} of them{more}"]


def _stranger_lines(study: Study) -> list[str]:
    """Say what accounts have paid that the study no longer names."""
    from counterbalance.spending.budget import strangers

    then = ""
    if study.config.accounts:
        then = (
            "; it counts to the cap of the study and of every account (if that was another key than theirs, put the "
            "account back)"
        )
    return [
        f"  {_usd(held)} were paid by account {name!r}, which the study no longer names{then}"
        for name, held in sorted(strangers(study).items())
    ]


def _total(cells: "Sequence[CellPlan]") -> str:
    buying = [entry.buying for entry in cells if entry.buying]
    return (
        f"{sum(entry.new for entry in cells):,} new calls, {sum(b.input_about for b in buying):,} input tokens (about)"
        f", {sum(b.output_most for b in buying):,} output tokens (at most), {_usd(sum(b.cost_about for b in buying))} "
        f"(about), {_usd(sum(b.cost_most for b in buying))} (at most)"
    )


def _budget_lines(budget: "Budget", key: str, cells: "Sequence[CellPlan]") -> list[str]:
    spent = f"  spent so far {_usd(budget.spent)}"
    if budget.sendings_at_worst:
        spent += f", of it {_usd(budget.at_worst)} at the worst case of {budget.sendings_at_worst} sendings"
    if budget.maybe_billed:
        spent += f"; {budget.maybe_billed} sendings without a reply may have been billed"
    if budget.left is None:
        return [f"{spent}; no {key} is set"]
    left = _usd(budget.left, up=False)
    lines = [f"{spent}; {key} {_usd(budget.cap or 0)}, left {left}"]
    most = sum(entry.buying.cost_most for entry in cells if entry.buying)
    if most > budget.left:
        lines.append(f"  the cap may stop this run: at most {_usd(most)} is more than the {left} left")
    return lines


def _time(time: "Time") -> str:
    return time.basis if time.seconds is None else f"{duration(time.seconds)} ({time.basis})"


def _usd(amount: int, *, up: bool = True) -> str:
    """Write nano-USD to a hundredth of a cent, below a cent to a hundredth of that, so that no plan sounds too cheap.

    `up` says which way it is rounded: costs upwards, what is left downwards.
    """
    unit, digits = (100_000, 4) if abs(amount) >= _NANO // 100 else (1_000, 6)
    whole = -(-amount // unit) if up else amount // unit
    dollars = whole * unit / _NANO
    return f"-${-dollars:,.{digits}f}" if whole < 0 else f"${dollars:,.{digits}f}" if whole else "$0"


def _frozen(study: Study) -> str:
    from counterbalance.prereg.gate import check_gate

    try:
        record = check_gate(study, trials=False)
    except CounterbalanceError as error:
        return f"NOT READY: {error}"
    return f"{record.path.name} {record.sha256}"


def _as_json(study: Study, cells: Cells, skipped: Mapping[str, str]) -> Json:
    from counterbalance.spending.budget import read_budgets, strangers
    from counterbalance.spending.estimate import account_time, count_bought_again

    whole, budgets = read_budgets(study)
    known = [entry for _, entry in cells if entry is not None]
    accounts = {}
    for account in study.config.accounts:
        mine = [entry for entry in known if getattr(entry.cell.model, "account", None) == account.id]
        accounts[account.id] = {
            "mode": account.mode,
            "new": sum(entry.new for entry in mine),
            "time": vars(account_time(account, mine)),
            **_budget_json(budgets[account.id]),
        }
    return {
        "schema": PLAN_SCHEMA,
        "study": study.config.id,
        "settings": study.sha256,
        "frozen": _frozen(study),
        "cells": [_cell_json(cell, entry) for cell, entry in cells],
        "skipped": dict(skipped),
        "accounts": accounts,
        "strangers": strangers(study),
        "bought_again": dict(zip(("calls", "cost_about"), count_bought_again(known), strict=True)),
        "whole": {"new": sum(entry.new for entry in known), **_budget_json(whole)},
    }


def _budget_json(budget: "Budget") -> dict[str, Json]:
    body = {name: value for name, value in vars(budget).items() if name != "strangers"}
    return {**body, "left": budget.left}


def _cell_json(cell: Cell, entry: "CellPlan | None") -> Json:
    body: dict[str, Json] = {"cell": cell.name, "model": cell.model.id, "vendor": cell.model.vendor}
    if entry is None:
        unknown = ("calls", "answered", "under_way", "new", "scout", "buying", "time")
        return {**body, **dict.fromkeys(unknown)}
    buying = None if entry.buying is None else vars(entry.buying)
    counts: dict[str, Json] = {"calls": entry.calls, "answered": entry.answered}
    counts |= {"under_way": entry.under_way, "new": entry.new}
    scout = None if entry.scout is None else vars(entry.scout)
    return {**body, **counts, "scout": scout, "buying": buying, "time": vars(entry.time)}
