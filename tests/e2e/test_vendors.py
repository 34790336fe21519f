"""Three vendors through Snakemake, as a user runs them: money that ends, a cap, kill -9, and keys that never show."""

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from loopback import Remote, subprocess_server
from loopback.soak import soak
from loopback.studies import KEYS, key_env, study_body, write_study
from planted_project import Project, make_project
from vendor_cases import VENDORS, assert_no_key

STUDY = "config/studies/loop.yaml"
RUN = ("snakemake", "--cores", "2", "--configfile", STUDY)


@pytest.fixture(scope="module", autouse=True)
def keys() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for vendor, key in KEYS.items():
            patch.setenv(key_env(vendor), key)
        yield


def make_vendor_project(server: Remote, root: Path, *, items: int, in_flight: int = 4, **body: Any) -> Project:
    """Make a project whose study asks all three vendors, and freeze it."""
    project, datasets = make_project(root / "a project é"), {"sums": items}
    urls = {vendor: server.base_url(vendor) for vendor in VENDORS}
    accounts = {vendor: {"max_in_flight": in_flight, "timeout_s": 20.0} for vendor in VENDORS}
    write_study(project.root, study_body(urls, datasets=datasets, accounts=accounts, **body), datasets)
    project.run("snakemake", "freeze_preregistration", *RUN[1:])
    return project


def ledger_rows(project: Project, vendor: str, query: str) -> list[Any]:
    path = project.root / f"ledger/loop/letters/{vendor}/sums.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def whole_charge(project: Project) -> int:
    query = "SELECT sum(coalesce(charged_nano_usd, worst_nano_usd)) FROM attempts"
    return sum(ledger_rows(project, vendor, query)[0][0] for vendor in VENDORS)


def bill(server: Remote, what: str = "bill_nano_usd") -> int:
    return sum(counts[what] for counts in server.state()["vendors"].values())


class Story:
    """A study whose second vendor runs out of funds half-way, is topped up, and finishes."""

    def __init__(self, server: Remote, root: Path) -> None:
        self.server = server
        server.set(keys=KEYS, respondent={"kind": "content", "first_share": 0.3}, latency_ms=3)
        self.project = make_vendor_project(server, root, items=14)
        self.calls = 14 * 6
        # A call costs less than 40,000 nano-USD and more than 20,000: some 40 of them.
        server.set(funds_nano_usd={"anthropic": 1_000_000})
        self.first = self.project.run(*RUN, check=False)
        self.after_first = server.state()["vendors"]
        tables = self.project.root / "results/loop"
        self.tables_after_first = {path.relative_to(tables).as_posix() for path in tables.rglob("*.*")}
        self.names = ("--experiment", "letters", "--model", "anthropic", "--dataset", "sums")
        self.command = ("counterbalance", "query", "--study", STUDY, *self.names)
        self.direct = self.project.run(*self.command, check=False)
        server.top_up("anthropic", 1_000_000_000)
        self.second = self.project.run(*RUN, check=False)
        self.after_second = server.state()["vendors"]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with subprocess_server() as server:
        yield Story(server, tmp_path_factory.mktemp("story"))


def test_the_others_finish_when_one_vendor_is_out_of_funds(story: Story) -> None:
    assert story.first.returncode != 0
    for vendor in ("openai", "google"):
        assert story.after_first[vendor]["delivered"] == story.calls
        assert f"outcomes/letters/{vendor}/sums.parquet" in story.tables_after_first
    assert 0 < story.after_first["anthropic"]["delivered"] < story.calls
    assert not {"replies/letters/anthropic/sums.parquet", "report.html"} & story.tables_after_first


def test_out_of_funds_has_its_own_exit_code_and_says_how_to_go_on(story: Story) -> None:
    assert story.direct.returncode == 10
    said = " ".join(story.direct.stderr.split())
    assert "credit balance is too low" in said
    assert f"{story.after_first['anthropic']['delivered']} of {story.calls} calls are answered" in said
    assert "start the same run again" in said
    assert "counterbalance query --study" in said
    # Snakemake shows the same words where it reports the failed job.
    assert "credit balance is too low" in " ".join((story.first.stdout + story.first.stderr).split())


def test_topped_up_and_run_again_it_finishes_and_buys_nothing_twice(story: Story) -> None:
    assert story.second.returncode == 0, story.second.stderr[-3000:]
    for vendor in VENDORS:
        counts = story.after_second[vendor]
        assert counts["delivered"] == counts["bodies_delivered"] == story.calls
    untouched = [story.after_second[vendor]["requests"] - story.after_first[vendor]["requests"] for vendor in VENDORS]
    assert untouched[0] == untouched[2] == 0
    assert whole_charge(story.project) == bill(story.server)


def test_the_report_compares_the_replies_before_and_after(story: Story) -> None:
    page = (story.project.root / "results/loop/report.html").read_text(encoding="utf-8")
    sessions = ledger_rows(story.project, "anthropic", "SELECT ended_because FROM sessions ORDER BY session")
    assert ("OutOfFundsError",) in sessions
    assert "Before and after an interruption" in page
    assert "First interruption: OutOfFundsError" in page
    assert "chance alone decided which came first" in page


def test_the_results_verify(story: Story) -> None:
    assert (story.project.root / "results/loop/verification.txt").exists()
    assert story.project.run("counterbalance", "verify", "results/loop").returncode == 0


def test_no_key_is_in_any_byte_of_the_project(story: Story) -> None:
    names = {path.name for path in story.project.root.iterdir()}
    assert {"results", "logs", "ledger", ".snakemake"} <= names
    assert_no_key(story.project.root)
    said = "".join(run.stdout + run.stderr for run in (story.first, story.direct, story.second))
    assert not any(key in said for key in KEYS.values())


def test_a_cap_holds_over_all_vendors_and_processes(tmp_path: Path) -> None:
    # 100 tokens of output at 250 dollars a million are 2.5 cents; the prompt adds at most 0.1 cent.
    prices = {"input": 1.0, "output": 250.0}
    with subprocess_server(
        prices=dict.fromkeys(VENDORS, prices), respondent={"kind": "hash", "text": "{label} " + "x" * 398}
    ) as server:
        project = make_vendor_project(
            server,
            tmp_path,
            items=4,
            money={"prices": dict.fromkeys(VENDORS, prices), "cap_usd": 0.10},
            read={"kind": "generate", "temperature": None, "max_tokens": 100},
        )
        for _ in range(2):
            stopped = project.run(*RUN, check=False)
            assert stopped.returncode != 0
            assert "money.cap_usd is $0.10" in stopped.stdout + stopped.stderr
            # Three calls fit; a fourth could have cost more than what is left.
            assert bill(server, "delivered") == 3
            assert 75_000_000 < bill(server) == whole_charge(project) <= 100_000_000
        command = ("counterbalance", "query", "--study", STUDY, "--experiment", "letters", "--model", "openai")
        assert project.run(*command, "--dataset", "sums", check=False).returncode == 12


def test_killed_and_run_again_only_unanswered_calls_go_out(tmp_path: Path) -> None:
    with subprocess_server(latency_ms=40) as server:
        project, calls = make_vendor_project(server, tmp_path, items=10), 60
        with (tmp_path / "snakemake.log").open("wb") as log:
            run = subprocess.Popen(
                RUN, cwd=project.root, env=project.environment, start_new_session=True, stdout=log, stderr=log
            )
        deadline = time.monotonic() + 180
        while bill(server, "delivered") < 3 + calls // 2 and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        while any(counts["in_flight"] for counts in server.state()["vendors"].values()):
            time.sleep(0.05)
        assert bill(server, "delivered") < 3 * calls
        project.run(*RUN)
        for vendor in VENDORS:
            counts = server.vendor(vendor)
            [[attempts, unknown]] = ledger_rows(
                project, vendor, "SELECT count(*), sum(outcome = 'unknown') FROM attempts"
            )
            assert counts["bodies_delivered"] == calls
            assert attempts == calls + unknown
            # A call goes out again only if its process died while it was under way; beyond the four places, the engine
            # writes down at most a quarter as many ahead.
            assert counts["repeats"] <= unknown <= 4 + 1
        assert whole_charge(project) >= bill(server)
        assert_no_key(project.root)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_short_soak(tmp_path: Path, vendor: str) -> None:
    with subprocess_server(latency_ms=5, record=False) as server:
        verdict = soak(server, tmp_path, vendor, calls=300, kills=1, in_flight=32)
    assert verdict.good, str(verdict)
