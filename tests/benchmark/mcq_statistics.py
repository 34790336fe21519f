"""Bootstraps of many cells, and the estimates of one very large cell: time, and peak memory of its own process.

Peak memory counts the interpreter and its libraries, and the outcomes table that is being estimated.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import permutations

import numpy as np
import pyarrow as pa

from counterbalance.artifacts import SCHEMAS
from counterbalance.config import Analysis
from counterbalance.designs import get_design
from counterbalance.simulation.respondent import Tallies, ability_for, choose, tally, utilities
from counterbalance.simulation.scenarios import respondent
from counterbalance.stats.published import question_level_effects, run_level_effects
from counterbalance.stats.vcc import cluster_corrected_v

CELLS, RESAMPLES, ITEMS = 20, 1000, 50
LARGE = int(sys.argv[1]) if len(sys.argv) > 1 else 14_042
ORDERS = np.array(list(permutations(range(4))))


def main() -> None:
    cells = draw(CELLS, ITEMS)
    levels = {
        "run level (V, Bergsma, rho)": run_level_effects,
        "question level (V, Bergsma, rho)": question_level_effects,
        "question level (corrected V)": cluster_corrected_v,
    }
    total = 0.0
    for name, bootstrap in levels.items():
        took, _ = timed(lambda bootstrap=bootstrap: resample(cells, bootstrap))
        total += took
        print(f"{CELLS} cells x {RESAMPLES} resamples, {name:<34} {1000 * took:8.1f} ms")
    print(f"{CELLS} cells x {RESAMPLES} resamples, {'all of these':<34} {1000 * total:8.1f} ms")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        took, processor, peak = process.submit(large_cell, LARGE).result()
    size = f"{LARGE} items x 24 orders = {LARGE * 24:,} calls"
    print(f"estimate {size}  {took:6.1f} s wall  {processor:6.1f} s CPU  {peak:6.0f} MB peak")


def resample(cells: Tallies, bootstrap: Callable[..., object]) -> None:
    # A seed for each cell, since equal seeds share their draws in one process, and the workflow's cells have one each.
    for seed, correct in enumerate(cells.correct):
        bootstrap(correct, cells.n, n_resamples=RESAMPLES, seed=seed)


def draw(cells: int, items: int) -> Tallies:
    orders = np.broadcast_to(ORDERS, (items, *ORDERS.shape))
    able, rng = biased(), np.random.default_rng(1)
    return tally(choose(utilities(able.effects(cells, items, rng), orders), able.call_noise, rng), orders)


def biased():
    plain = respondent("monotone", 0.3, tau=0.3, noise=0.3)
    return replace(plain, ability_mean=ability_for(0.75, plain))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds on the clock and of the processor."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - used


def large_cell(items: int) -> tuple[float, float, float]:
    outcomes = outcomes_table(items)
    took, processor = timed(lambda: get_design("mcq").estimate(Analysis(), outcomes))
    unit = 1024 if sys.platform == "linux" else 1024**2
    return took, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def outcomes_table(items: int) -> pa.Table:
    """Return the outcomes of one cell as the scoring stage writes them."""
    orders = np.broadcast_to(ORDERS, (items, *ORDERS.shape))
    able, rng = biased(), np.random.default_rng(2)
    chosen = choose(utilities(able.effects(1, items, rng), orders), able.call_noise, rng)[0]
    gold, n = np.argmax(orders == 0, axis=-1).ravel(), items * len(ORDERS)
    names = np.array([f"q{item:05d}" for item in range(items)]).repeat(len(ORDERS))
    index = np.tile(np.arange(len(ORDERS)), items)
    option = np.take_along_axis(orders, chosen[..., None], axis=-1).ravel()
    ids = np.array(["o1", "o2", "o3", "o4"])
    flat = pa.array(np.tile(ids[ORDERS].ravel(), items))
    known = {
        "trial_id": [f"{name}.mcq.{place:04d}.00" for name, place in zip(names, index, strict=True)],
        "item_id": names,
        "group_id": names,
        "condition": ["mcq"] * n,
        "arrangement_index": index,
        "repeat": np.zeros(n, dtype=np.int64),
        "extra": np.zeros(n, dtype=bool),
        "n_options": np.full(n, 4),
        "arrangement": pa.ListArray.from_arrays(np.arange(0, 4 * n + 1, 4, dtype=np.int32), flat),
        "gold_slot": gold,
        "outcome": ["ok"] * n,
        "slot": chosen.ravel(),
        "option_id": ids[option],
        "correct": chosen.ravel() == gold,
        "candidates": [[]] * n,
        "rule": ["label"] * n,
        "parser": ["none"] * n,
    }
    schema = SCHEMAS["outcomes"].arrow
    columns = [
        pa.array(known[field.name]).cast(field.type) if field.name in known else pa.nulls(n, field.type)
        for field in schema
    ]
    return pa.table(columns, names=schema.names)


if __name__ == "__main__":
    main()
