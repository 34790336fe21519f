"""The parts of the study that run in parallel, at two sizes."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterbalance.canonical import Json
from counterbalance.errors import ConfigError
from counterbalance.simulation.scenarios import NULLS, SCENARIOS
from counterbalance.validation.detectable import check_detectable
from counterbalance.validation.replicates import run_scenario
from counterbalance.validation.shapes import shape_labels


@dataclass(frozen=True)
class Size:
    """How much is simulated.

    Attributes
    ----------
    scenarios, shape_items
        Which scenarios; numbers of items of the confusion table.
    doors
        Replicates of each scenario that go through the pipeline reply by reply.
    nulls, planted, shapes
        Replicates of a null scenario, of a planted one, and of each row of the confusion table.
    cells, detected
        Cells whose detectable V is computed, and cells in which it is planted; 0 leaves this check out.
    resamples
        Draws of every resampling.
    """

    name: str
    scenarios: Sequence[str]
    shape_items: Sequence[int]
    doors: int
    nulls: int
    planted: int
    shapes: int
    cells: int
    detected: int
    resamples: int


SIZES = {
    "small": Size("small", ("N3b", "N7", "C8"), (50,), 20, 100, 40, 10, 0, 0, 299),
    "full": Size("full", tuple(SCENARIOS), (25, 50, 200), 100, 1000, 500, 500, 40, 500, 999),
}
_DETECTABLE = "detectable"
_SHAPES = "shapes-"
_SEEDS_EACH = 1_000_000


def size_named(name: str) -> Size:
    """Return a size.

    Raises
    ------
    ConfigError
        If there is none of this name.
    """
    if name not in SIZES:
        raise ConfigError(f"no size {name!r} of the validation study; there are {', '.join(SIZES)}")
    return SIZES[name]


def job_names(size: Size) -> list[str]:
    """Return the names of all jobs, the longest first so that no core waits for it at the end."""
    names = [f"{_SHAPES}{n_items}" for n_items in sorted(size.shape_items, reverse=True)]
    names += [_DETECTABLE] if size.cells else []
    return names + sorted(size.scenarios, key=lambda name: -SCENARIOS[name].n_items)


def run_job(name: str, size: Size) -> Json:
    """Run one job and return its counts as JSON values.

    Raises
    ------
    ConfigError
        If the size has no such job.
    """
    if name not in job_names(size):
        raise ConfigError(f"size {size.name!r} has no job {name!r}; there are {', '.join(job_names(size))}")
    if name.startswith(_SHAPES):
        n_items = int(name.removeprefix(_SHAPES))
        return {"shapes": shape_labels(n_items, size.shapes, resamples=size.resamples)}
    if name == _DETECTABLE:
        return {"detectable": check_detectable(size.cells, size.detected, resamples=size.resamples)}
    scenario = SCENARIOS[name]
    replicates = size.nulls if scenario in NULLS else size.planted
    # Seeds of its own, or the same items would be drawn in every scenario and all rates would be off together.
    first = 1 + _SEEDS_EACH * list(SCENARIOS).index(name)
    counted = run_scenario(scenario, replicates, through_doors=size.doors, resamples=size.resamples, first_seed=first)
    return {"scenario": {"name": name, **counted.as_json()}}
