"""Scouts of paid models: what they ask and what that saves, counted by the vendors' server; kill -9; a cap."""

import csv
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Remote, subprocess_server
from loopback.settings import draw
from loopback.studies import KEYS, key_env, study_body, write_study
from planted_project import REPOSITORY
from vendor_cases import QUICK, assert_no_key

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.canonical import parse_json
from counterbalance.config import Study, load_study
from counterbalance.errors import BudgetError, GateError
from counterbalance.progress import SilentProgress
from counterbalance.scouting.outcome import swept_cells
from counterbalance.stages.contrast import combine_estimates, estimate_cell
from counterbalance.stages.decide import decide
from counterbalance.stages.expand import expand_trials
from counterbalance.stages.freeze import freeze
from counterbalance.stages.preflight import preflight_model
from counterbalance.stages.prepare import prepare_items
from counterbalance.stages.query import query_replies
from counterbalance.stages.report import render_report
from counterbalance.stages.resolve import resolve_study
from counterbalance.stages.score import score_replies
from counterbalance.stages.scout import scout_cell
from counterbalance.stages.scout_trials import expand_scout
from counterbalance.stages.verify import verify, write_manifest

VENDORS = ("openai", "google")
DATASETS = ("sure", "sums")
ITEMS, ORDERS, LOOKED_AT = 12, 6, 5
SWEEP, SCOUT, IN_FLIGHT = ITEMS * ORDERS, 2 * LOOKED_AT, 2
SCOUTED = {"scout": {"items": LOOKED_AT, "keep": {"max_accuracy": 0.95}}}
# Every model is swept on one data set and is found to need no sweep on the other.
BOUGHT = SWEEP + SCOUT


@pytest.fixture(scope="module", autouse=True)
def keys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for vendor, key in KEYS.items():
            patch.setenv(key_env(vendor), key)
        yield


def make_scouted(server: Remote, root: Path, **body: Any) -> Study:
    """Freeze a study of a data set that the respondent guesses and one whose keys are what it answers."""
    datasets = dict.fromkeys(DATASETS, ITEMS)
    urls = {vendor: server.base_url(vendor) for vendor in VENDORS}
    accounts = {vendor: QUICK | {"max_in_flight": IN_FLIGHT} for vendor in VENDORS}
    path = write_study(
        root, study_body(urls, datasets=datasets, accounts=accounts, experiment=SCOUTED, **body), datasets
    )
    set_keys_to_answers(root / "config/items/sure.csv")
    study = load_study(path)
    resolve_study(study)
    for name in DATASETS:
        prepare_items(study, name)
        expand_trials(study, "letters", name)
        expand_scout(study, "letters", name)
    freeze(study)
    return study


def set_keys_to_answers(path: Path) -> None:
    with path.open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    for row in rows:
        row["key"] = min("ABC", key=lambda letter: draw("content", row[letter.lower()]))
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def run_and_kill(server: Remote, study: Study, stage: str, vendor: str, after: int) -> None:
    """Start a stage of a vendor's first cell and kill it, hard, once so many more replies are delivered."""
    until = server.vendor(vendor)["delivered"] + after
    # The server delivers no more before the process is dead, however late on a busy machine that is seen.
    server.set(hold={vendor: until})
    names = ("--study", str(study.path), "--experiment", "letters", "--model", vendor, "--dataset", "sums")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "workflow")}
    with (study.root / "killed.log").open("ab") as log:
        command = (sys.executable, "-m", "counterbalance", stage, *names)
        run = subprocess.Popen(command, cwd=study.root, env=environment, stdout=log, stderr=log)
    deadline = time.monotonic() + 180
    while server.vendor(vendor)["delivered"] < until and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    run.kill()
    run.wait()
    server.set(hold={})
    while server.vendor(vendor)["in_flight"]:
        time.sleep(0.01)


class Story:
    """Each vendor's scout is killed and goes on, its sweep is killed and goes on, and the study is finished."""

    def __init__(self, server: Remote, root: Path) -> None:
        server.set(keys=KEYS, respondent={"kind": "content"}, latency_ms=5)
        self.server, self.study = server, make_scouted(server, root)
        self.stopped: dict[str, list[int]] = {vendor: [] for vendor in VENDORS}
        for vendor in VENDORS:
            preflight_model(self.study, "letters", vendor, SilentProgress())
            self._kill(vendor, "scout", SCOUT // 2)
            for name in DATASETS:
                scout_cell(self.study, "letters", vendor, name, SilentProgress())
            self.stopped[vendor].append(server.vendor(vendor)["bodies_delivered"])
        self.decided = decide(self.study)
        for vendor in VENDORS:
            self._kill(vendor, "query", SWEEP // 3)
            query_replies(self.study, "letters", vendor, "sums", SilentProgress())
        self.counts = server.state()["vendors"]
        for cell in swept_cells(self.study):
            names = (cell.experiment.id, cell.model.id, cell.dataset.id)
            score_replies(self.study, *names)
            estimate_cell(self.study, *names)
        combine_estimates(self.study)
        render_report(self.study)
        write_manifest(self.study)

    def _kill(self, vendor: str, stage: str, after: int) -> None:
        run_and_kill(self.server, self.study, stage, vendor, after)
        self.stopped[vendor].append(self.server.vendor(vendor)["bodies_delivered"])

    def table(self, name: str, kind: str) -> list[dict[str, Any]]:
        return list(read_table(self.study.layout.results / name, SCHEMAS[kind]).to_pylist())


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with subprocess_server() as server:
        yield Story(server, tmp_path_factory.mktemp("scouted") / "a project é")


def test_the_kills_hit_a_scout_and_a_sweep_under_way(story: Story) -> None:
    for in_scout, scouted, in_sweep in story.stopped.values():
        # The preflight's call comes before and is one that the first data set's scout asks too.
        assert 1 + SCOUT // 2 <= in_scout <= 1 + SCOUT // 2 + IN_FLIGHT
        assert scouted == 2 * SCOUT
        assert scouted < in_sweep <= scouted + SWEEP // 3 + IN_FLIGHT


def test_every_call_is_bought_once_and_a_skipped_cell_costs_its_scout_alone(story: Story) -> None:
    for vendor in VENDORS:
        counts = story.counts[vendor]
        assert counts["bodies_delivered"] == BOUGHT
        # What was under way when a process died may go out once more, and nothing else.
        assert counts["repeats"] <= 2 * IN_FLIGHT
        assert BOUGHT <= counts["delivered"] <= BOUGHT + counts["repeats"]


def test_a_scout_asks_the_source_s_order_and_its_reverse(story: Story) -> None:
    options = {row["item_id"]: row["option_ids"] for row in story.table("items/sums.parquet", "items")}
    asked: dict[str, list[list[str]]] = {}
    for row in story.table("scout/trials/letters/sums.parquet", "trials"):
        asked.setdefault(row["item_id"], []).append(row["arrangement"])
    assert len(asked) == LOOKED_AT
    for item, orders in asked.items():
        assert sorted(orders) == sorted([options[item], options[item][::-1]])


def test_the_sweep_holds_the_scout_s_own_replies(story: Story) -> None:
    for vendor in VENDORS:
        tables = (f"{place}/letters/{vendor}/sums.parquet" for place in ("scout/replies", "replies"))
        scout, sweep = ({row["call_sha256"]: row for row in story.table(name, "replies")} for name in tables)
        assert (len(scout), len(sweep)) == (SCOUT, SWEEP)
        assert scout.keys() <= sweep.keys()
        assert all(sweep[call]["request_id"] == row["request_id"] for call, row in scout.items())


def test_the_rule_skips_and_the_report_says_what_and_how_much_that_saved(story: Story) -> None:
    summary = parse_json(story.study.layout.scout_summary.read_bytes(), source="summary")
    left = len(VENDORS) * (SWEEP - SCOUT)
    assert (summary["kept"], summary["skipped"], summary["saved_calls"]) == (2, 2, left)
    assert f"2 are skipped; saved: {left} calls, about $" in story.decided
    page = story.study.layout.report.read_text(encoding="utf-8")
    assert f"2 cells left out: {left} calls not made, about $" in page
    why = r"scout accuracy 1\.000 is above max_accuracy 0\.95; the interval, [^<]*; {} calls not made"
    assert re.search(why.format(SWEEP - SCOUT), page)
    verdicts = [row for row in story.table("estimates.parquet", "estimates") if row["quantity"] == "verdict"]
    assert {(row["model"], row["subset"]) for row in verdicts if row["label"] == "not_asked"} == {
        (vendor, "sure") for vendor in VENDORS
    }


def test_the_report_s_example_is_one_that_was_answered(story: Story) -> None:
    page = story.study.layout.report.read_text(encoding="utf-8")
    shown = page[page.index("Replies to the example") :].partition("</table>")[0]
    assert all(f">{vendor}</th>" in shown for vendor in VENDORS)
    assert "in sums?" in page


def test_a_skipped_cell_is_not_asked_even_when_told_to(story: Story) -> None:
    with pytest.raises(GateError, match="the frozen rule leaves this cell out"):
        query_replies(story.study, "letters", "openai", "sure", SilentProgress())
    assert story.server.vendor("openai")["requests"] == story.counts["openai"]["requests"]


def test_the_results_verify_and_hold_no_key(story: Story) -> None:
    assert "verified" in str(verify(story.study.layout.results))
    assert_no_key(story.study.root)


def test_a_scout_stops_at_the_cap_and_buys_no_more_when_run_again(tmp_path: Path) -> None:
    # 100 tokens of output at 250 dollars a million are 2.5 cents; the prompt adds at most 0.1 cent.
    prices = {vendor: {"input": 1.0, "output": 250.0} for vendor in VENDORS}
    with subprocess_server(prices=prices, respondent={"kind": "hash", "text": "{label} " + "x" * 398}) as server:
        study = make_scouted(
            server,
            tmp_path,
            money={"prices": prices, "cap_usd": 0.10},
            read={"kind": "generate", "temperature": None, "max_tokens": 100},
        )
        for vendor in ("openai", "openai", "google"):
            with pytest.raises(BudgetError, match=r"money\.cap_usd is \$0\.10"):
                scout_cell(study, "letters", vendor, "sums", SilentProgress())
            # Three calls fit, whoever asks; a fourth could have cost more than what is left.
            assert sum(counts["delivered"] for counts in server.state()["vendors"].values()) == 3
            assert not study.layout.scout_decision("letters", vendor, "sums").exists()
