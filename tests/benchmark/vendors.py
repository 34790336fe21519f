"""Buying 24,000 replies from a local server that answers after 50 ms, 100 in flight: the pipeline beside bare loops.

The server speaks the three wire formats in a process of its own, on the same machine; its CPU is in a column of its
own. With 100 in flight and 50 ms nothing can take less than 24,000 / 100 x 0.05 s = 12 s. Each row is asked by fresh
processes that have imported Python's packages before the clock starts.

``pipeline`` is stage query itself, with ledger, frozen record, prices, purse and caps: one cell, one process.
``pipeline x2`` is the same number of replies as two cells (two data sets) in two processes that share the account and
its purse, half of the places each. ``asking`` is the time from the first call to the last; ``whole`` adds what the
stage does before (reading trials, building requests, planning) and after (writing the table of replies).
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve()
# In place of this folder, whose files may be named like modules of the standard library.
sys.path[:1] = [str(HERE.parents[1]), str(HERE.parents[2] / "workflow")]

from loopback import Remote, subprocess_server  # noqa: E402
from loopback.loops import STYLES, run_loop  # noqa: E402
from loopback.studies import freeze_study, prompts_of, set_keys, study_body, write_study  # noqa: E402

LATENCY_MS = 50.0
PADDING = "Here is a question about the sums of whole numbers, to be answered without any explanation. " * 9
SDK = {"openai": "openai", "anthropic": "anthropic", "google": "google.genai"}


@dataclass(frozen=True)
class Row:
    """What one process took: seconds, and megabytes at its peak."""

    asking: float
    whole: float
    cpu: float
    peak: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replies", type=int, default=24_000)
    parser.add_argument("--in-flight", type=int, default=100)
    parser.add_argument("--vendors", nargs="+", default=list(SDK))
    parser.add_argument("--only", choices=["loops", "pipeline"], default=None)
    given = parser.parse_args()
    ideal = given.replies / given.in_flight * LATENCY_MS / 1000
    print(f"{given.replies:,} replies, {given.in_flight} in flight, {LATENCY_MS:g} ms: ideal {ideal:.1f} s")
    print(f"{'':<26}{'asking s':>9}{'x ideal':>9}{'whole s':>9}{'CPU ms':>8}{'server':>8}{'peak MB':>11}")
    with tempfile.TemporaryDirectory() as name, subprocess_server(latency_ms=LATENCY_MS, record=False) as server:
        for vendor in given.vendors:
            bench = Bench(server, vendor, given.replies, given.in_flight, ideal)
            bench.run(Path(name) / vendor, loops=given.only != "pipeline", pipeline=given.only != "loops")


@dataclass(frozen=True)
class Bench:
    """The rows of one vendor."""

    server: Remote
    vendor: str
    replies: int
    in_flight: int
    ideal: float

    def run(self, root: Path, *, loops: bool, pipeline: bool) -> None:
        """Measure and print."""
        # Six orders of three options: that many replies an item.
        one = self._study(root / "one", {"all": self.replies // 6}, self.in_flight)
        if loops:
            prompts = prompts_of(freeze_study(one), "all")
            url = self.server.base_url(self.vendor)
            for style in STYLES[self.vendor]:
                self._measure(f"loop, {style}", [("loop", self.vendor, style, url, prompts, self.in_flight)])
        if pipeline:
            freeze_study(one)
            self._measure("pipeline", [("query", self.vendor, one, "all")])
            halves = {"first": self.replies // 12, "second": self.replies // 12}
            two = self._study(root / "two", halves, self.in_flight // 2)
            freeze_study(two)
            self._measure("pipeline x2", [("query", self.vendor, two, half) for half in halves])

    def _study(self, root: Path, datasets: dict[str, int], in_flight: int) -> Path:
        body = study_body(
            {self.vendor: self.server.base_url(self.vendor)},
            datasets=datasets,
            accounts={self.vendor: {"max_in_flight": in_flight, "cap_usd": 1000.0}},
            money={"cap_usd": 1000.0},
            limits={"max_calls": 10_000_000},
        )
        return write_study(root, body, datasets, padding=PADDING)

    def _measure(self, what: str, jobs: Sequence[tuple[object, ...]]) -> None:
        """Run jobs side by side, one process each, and print what they took together."""
        self.server.reset()
        before = cpu_of(self.server.pid)
        rows = run_processes(jobs)
        spent = cpu_of(self.server.pid) - before
        counted = self.server.vendor(self.vendor)
        if (counted["delivered"], counted["repeats"]) != (self.replies, 0):
            raise SystemExit(f"{what}: {counted['delivered']} replies delivered, {counted['repeats']} repeats")
        asking, whole = (max(getattr(row, name) for row in rows) for name in ("asking", "whole"))
        peak = " + ".join(f"{row.peak:.0f}" for row in rows)
        ours, servers = (1000 * seconds / self.replies for seconds in (sum(row.cpu for row in rows), spent))
        print(
            f"{self.vendor + ', ' + what:<26}{asking:9.1f}{asking / self.ideal:9.2f}{whole:9.1f}"
            f"{ours:8.2f}{servers:8.2f}{peak:>11}",
            flush=True,
        )


def run_processes(jobs: Sequence[tuple[object, ...]]) -> list[Row]:
    """Run each job in a process of its own; all start together, when each has imported what it needs."""
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[Row] = context.Queue()
    start = context.Barrier(len(jobs))
    processes = [context.Process(target=_measured, args=(results, start, *job)) for job in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a process ended with {process.exitcode}")
    return [results.get() for _ in processes]


def _measured(results: object, start: object, kind: str, vendor: str, *arguments: object) -> None:
    __import__(SDK[vendor])
    if kind == "query":
        import counterbalance.spending.allowance
        import counterbalance.stages.query  # noqa: F401
    start.wait()  # type: ignore[attr-defined]
    began, cpu = time.perf_counter(), time.process_time()
    asking = run_loop(vendor, *arguments) if kind == "loop" else query(vendor, *arguments)  # type: ignore[arg-type]
    whole, cpu = time.perf_counter() - began, time.process_time() - cpu
    results.put(Row(asking, whole, cpu, peak_mb()))  # type: ignore[attr-defined]


def query(vendor: str, path: Path, dataset: str) -> float:
    """Run stage query for a cell; return the seconds from the first sending to the last reply, by its progress."""
    from counterbalance.config import load_study
    from counterbalance.progress import SilentProgress
    from counterbalance.stages.query import query_replies

    class Watch(SilentProgress):
        began = ended = 0.0

        def start(self, *told: object, **counts: object) -> None:
            self.began = time.perf_counter()

        def finish(self) -> None:
            self.ended = time.perf_counter()

    set_keys()
    watch = Watch()
    query_replies(load_study(path), "letters", vendor, dataset, watch)
    return watch.ended - watch.began


def peak_mb() -> float:
    """Return this process's peak memory. On Linux, getrusage would count what the parent had before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def cpu_of(pid: int | None) -> float:
    """Return the CPU seconds of a process; 0 where the system has no /proc."""
    path = Path(f"/proc/{pid}/stat")
    return sum(map(int, path.read_text().split()[13:15])) / 100 if path.exists() else 0.0


if __name__ == "__main__":
    main()
