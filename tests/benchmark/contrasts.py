"""Time of 40 contrasts x 13 items x 9,999 resamples in one call and in one call each, and coverage at n = 13."""

import time

import numpy as np
from scipy import stats

from counterbalance.contrasts import Resampling, estimate_means
from counterbalance.stats.resampling import bca_means

CONTRASTS, ITEMS, RESAMPLES = 40, 13, 9999
DATA_SETS, BLOCK = 10_000, 50


def best(work, times: int = 5) -> float:
    """Return the shortest of several times in seconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def speed() -> None:
    rows = list(np.random.default_rng(1).normal(0.1, 0.3, (CONTRASTS, ITEMS)))
    settings = Resampling(n_resamples=RESAMPLES)

    def each() -> None:
        for row in rows:
            for level in settings.levels:
                stats.bootstrap(
                    (row,), np.mean, method="BCa", n_resamples=RESAMPLES, confidence_level=level, random_state=42
                )

    whole = best(lambda: estimate_means(rows, [0.15] * CONTRASTS, settings))
    intervals = best(lambda: bca_means(rows, seed=42, n_resamples=RESAMPLES))
    alone = best(each, 2)
    print(f"{CONTRASTS} contrasts x {ITEMS} items x {RESAMPLES} resamples")
    print(f"  one call: intervals at one level             {intervals * 1000:7.0f} ms")
    print(f"  one call: both levels, sign-flip p and TOST  {whole * 1000:7.0f} ms")
    print(f"  scipy, one call for each contrast and level  {alone * 1000:7.0f} ms ({alone / whole:.1f} times as long)")


def coverage() -> None:
    rng = np.random.default_rng(2)
    shapes = {
        "normal": lambda size: rng.normal(size=size),
        "t, 4 degrees of freedom": lambda size: rng.standard_t(4, size),
        "skewed (exponential)": lambda size: rng.exponential(size=size) - 1,
        "two kinds of items, 30 to 70": lambda size: rng.normal(size=size) / 3 + (rng.random(size) < 0.3) - 0.3,
    }
    print(f"coverage of the mean at n = {ITEMS}, {DATA_SETS} data sets (standard error .003)")
    for name, draw in shapes.items():
        hits = dict.fromkeys((0.95, 0.90), 0)
        for block in range(DATA_SETS // BLOCK):
            settings = Resampling(n_resamples=1999, seed=block)
            for found in estimate_means(list(draw((BLOCK, ITEMS))), [None] * BLOCK, settings):
                for interval in found.intervals:
                    hits[interval.level] += interval.low is not None and interval.low <= 0 <= interval.high
        print(f"  {name:30} " + "  ".join(f"{level:.0%}: {hit / DATA_SETS:.3f}" for level, hit in hits.items()))


if __name__ == "__main__":
    speed()
    coverage()
