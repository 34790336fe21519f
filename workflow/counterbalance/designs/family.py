"""The family of tests that Holm's correction runs over, as it is planned: from the study file and the items.

How many tests a cell has depends on its items where a design takes those with another number of options apart.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.config import Cell, Study
from counterbalance.designs import get_design
from counterbalance.stats.multiplicity import draws_needed


def family_name(study: Study, experiment: str) -> str:
    """Return the name of the family to which an experiment's tests belong."""
    scope = experiment if study.config.analysis.family == "experiment" else study.config.id
    return f"{scope}: confirmatory tests"


def family_size(study: Study, cell: Cell, outcomes: pa.Table) -> int:
    """Return how many tests the family of a cell holds, skipped cells included.

    Parameters
    ----------
    outcomes
        The cell's own, which tell the numbers of options of its data set; those of other data sets are read from
        their items.
    """
    known: dict[str, Sequence[int]] = {}
    known[cell.dataset.id] = _by_frequency(outcomes.column("n_options"), outcomes.column("group_id"))
    return _count(study, family_name(study, cell.experiment.id), known)


def other_datasets(study: Study, cell: Cell) -> list[str]:
    """Return the further data sets whose items `family_size` reads."""
    if not get_design(cell.experiment.design).by_options:
        return []
    name = family_name(study, cell.experiment.id)
    found = [
        other.dataset.id
        for other in study.cells()
        if family_name(study, other.experiment.id) == name and get_design(other.experiment.design).by_options
    ]
    return [dataset for dataset in dict.fromkeys(found) if dataset != cell.dataset.id]


def planned_tests(study: Study, cell: Cell) -> Sequence[str]:
    """Return the confirmatory quantities of a cell, as its items say."""
    return _tests(study, cell, {})


def too_few_draws(study: Study) -> Iterator[str]:
    """Say where no test could reach alpha after the correction, however strong the effect, for want of draws."""
    analysis = study.config.analysis
    drawn = [entry.id for entry in study.config.experiments if get_design(entry.design).by_options]
    for name in dict.fromkeys(family_name(study, experiment) for experiment in drawn):
        size = _count(study, name, {})
        needed = draws_needed(analysis.alpha, size)
        if analysis.resamples < needed:
            yield (
                f"{study.path}: analysis.resamples is {analysis.resamples:,}, and the family {name!r} has {size:,} "
                f"tests: Holm's correction needs a p below {analysis.alpha:g} / {size:,}, and random relabellings give "
                f"none so small, however strong the bias; write `resamples: {needed}` or more, or plan fewer cells"
            )


def _count(study: Study, name: str, known: dict[str, Sequence[int]]) -> int:
    members = [cell for cell in study.cells() if family_name(study, cell.experiment.id) == name]
    return sum(len(_tests(study, cell, known)) for cell in members)


def _tests(study: Study, cell: Cell, known: dict[str, Sequence[int]]) -> Sequence[str]:
    design, dataset = get_design(cell.experiment.design), cell.dataset.id
    if design.by_options and dataset not in known:
        items = read_table(study.layout.items(dataset), SCHEMAS["items"], ["option_ids", "group_id"])
        known[dataset] = _by_frequency(pc.list_value_length(items.column("option_ids")), items.column("group_id"))
    return design.tests(known.get(dataset, ()))


def _by_frequency(options: pa.ChunkedArray, groups: pa.ChunkedArray) -> list[int]:
    """Return the numbers of options, that of most groups first."""
    table = pa.table({"k": options, "group": groups}).group_by("k").aggregate([("group", "count_distinct")])
    counts: Mapping[int, int] = dict(
        zip(table.column("k").to_pylist(), table.column("group_count_distinct").to_pylist(), strict=True)
    )
    return sorted(counts, key=lambda k: (-counts[k], k))
