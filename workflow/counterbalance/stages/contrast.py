"""Stage contrast: estimates per cell; then the family's correction and the verdict on every prediction."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table, table_from_rows, write_record, write_table
from counterbalance.config import Cell, Study
from counterbalance.designs import get_design
from counterbalance.designs.family import family_name, family_size, other_datasets, planned_tests
from counterbalance.designs.mixed import estimate_parts, mixed_verdict
from counterbalance.designs.pairs import compared_cells, compared_pairs
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.scouting.outcome import CellDecision, skipped_cells, swept_cells
from counterbalance.stages.command import command_line
from counterbalance.stats.multiplicity import holm

Row = dict[str, Any]

NOT_ASKED = "not_asked"
"""Status of the tests, and verdict, of a cell that its scout left out."""

_UNCORRECTED = {"p_adjusted": None, "family": None}
_ESTIMATES = SCHEMAS["estimates"]
_PREDICTIONS = SCHEMAS["predictions"]


def estimate_cell(study: Study, experiment: str, model: str, dataset: str) -> str:
    """Estimate one cell from its outcomes; return what was done, in a line."""
    names = {"experiment": experiment, "model": model, "dataset": dataset}
    cell, path = study.cell(**names), study.layout.cell_estimates(**names)
    outcomes = study.layout.outcomes(**names)
    table = estimate_cell_table(study, cell, read_table(outcomes, SCHEMAS["outcomes"]))
    write_record(
        path,
        study.root,
        stage="contrast",
        inputs=[outcomes, *map(study.layout.items, other_datasets(study, cell))],
        command=command_line(study, "contrast", **names),
        config_sha256=settings_sha256(study, "contrast", **names),
        code_sha256=code_sha256("contrast"),
        schema=_ESTIMATES,
        written=write_table(path, table, _ESTIMATES),
    )
    return f"{cell.name}: {table.num_rows} estimates"


def estimate_cell_table(study: Study, cell: Cell, outcomes: pa.Table) -> pa.Table:
    """Return a cell's estimates, before any correction for the number of cells."""
    design = get_design(cell.experiment.design)
    family = {"tests": family_size(study, cell, outcomes)} if design.by_options else {}
    results = estimate_parts(design, study.config.analysis, outcomes, **family)
    rows = [_place(cell) | _UNCORRECTED | {"quantity": name} | vars(result) for name, result in results.items()]
    return table_from_rows(rows, _ESTIMATES)


def combine_estimates(study: Study) -> str:
    """Join all cells, correct, judge the frozen predictions; return the counts, in a line."""
    from counterbalance.prereg.gate import check_gate

    layout = study.layout
    frozen = check_gate(study, trials=True)
    skipped = skipped_cells(study)
    swept = swept_cells(study)
    cells = [layout.cell_estimates(*_names(cell)) for cell in swept]
    compared = [layout.outcomes(*_names(cell)) for cell in compared_cells(study, swept)]
    scouts = [layout.scout_summary] if any(study.scouted_cells()) else []
    tables = [read_table(path, _ESTIMATES) for path in cells]
    estimates, predictions = combine_tables(study, [*tables, compare_cells(study, skipped)], skipped)
    for path, table, schema in (
        (layout.estimates, estimates, _ESTIMATES),
        (layout.predictions, predictions, _PREDICTIONS),
    ):
        write_record(
            path,
            study.root,
            stage="combine",
            inputs=[*cells, *compared, *scouts, frozen.path],
            command=command_line(study, "combine"),
            config_sha256=settings_sha256(study, "combine"),
            code_sha256=code_sha256("combine"),
            schema=schema,
            written=write_table(path, table, schema),
            frozen_sha256=frozen.sha256,
        )
    verdicts = predictions.column("verdict").to_pylist()
    counted = ", ".join(f"{verdicts.count(name)} {name}" for name in sorted(set(verdicts))) or "no predictions"
    left_out = f" ({len(skipped)} more not asked after their scouts)" if skipped else ""
    return f"{estimates.num_rows} estimates in {len(cells)} cells{left_out}; {counted}"


def compare_cells(study: Study, skipped: Mapping[str, CellDecision] = MappingProxyType({})) -> pa.Table:
    """Return the estimates that rest on two cells, each under the first one's name; read from the cells' outcomes."""
    rows: list[Row] = []
    for cell, other in compared_pairs(study, [cell for cell in study.cells() if cell.name not in skipped]):
        design, name = get_design(cell.experiment.design), other.experiment.id
        if other.name in skipped:
            found = design.uncompared(name, f"{other.name} was not asked: {skipped[other.name].reason}")
        else:
            found = design.compare(study.config.analysis, name, _outcomes(study, cell), _outcomes(study, other))
        rows += [_place(cell) | _UNCORRECTED | {"quantity": key} | vars(result) for key, result in found.items()]
    return table_from_rows(rows, _ESTIMATES)


def _names(cell: Cell) -> tuple[str, str, str]:
    return cell.experiment.id, cell.model.id, cell.dataset.id


def _outcomes(study: Study, cell: Cell) -> pa.Table:
    return read_table(study.layout.outcomes(*_names(cell)), SCHEMAS["outcomes"])


def _place(cell: Cell) -> Row:
    return {"experiment": cell.experiment.id, "model": cell.model.id, "subset": cell.dataset.id}


def combine_tables(
    study: Study, cells: Sequence[pa.Table], skipped: Mapping[str, CellDecision] = MappingProxyType({})
) -> tuple[pa.Table, pa.Table]:
    """Return all estimates with Holm-adjusted p-values, and the judged predictions.

    The family is every confirmatory test in every cell of the experiment (or of the study, as the analysis plan
    says), those of items with another number of options included; a test without a p-value still counts, and so do
    the tests of cells that were skipped after their scout. The verdicts follow from the corrected values.
    """
    from counterbalance.prereg.judge import judge
    from counterbalance.prereg.plan import load_predictions

    rows = [row for cell in cells for row in cell.to_pylist()]
    for cell in study.cells():
        if cell.name in skipped:
            rows += _not_asked(cell, skipped[cell.name], planned_tests(study, cell))
    for family, members in _families(study, rows).items():
        adjusted = holm([row["p"] for row in members])
        for row, value in zip(members, adjusted, strict=True):
            row["family"], row["p_adjusted"] = family, value
    estimates = table_from_rows([*rows, *_verdicts(study, rows)], _ESTIMATES)
    return estimates, judge(load_predictions(study), estimates)


def _families(study: Study, rows: Iterable[Row]) -> dict[str, list[Row]]:
    families: dict[str, list[Row]] = {}
    for row in rows:
        if get_design(study.experiment(row["experiment"]).design).is_test(row["quantity"]):
            families.setdefault(family_name(study, row["experiment"]), []).append(row)
    return families


def _verdicts(study: Study, rows: Iterable[Row]) -> Iterator[Row]:
    cells: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        cells.setdefault((row["experiment"], row["model"], row["subset"]), {})[row["quantity"]] = row
    for (experiment, model, subset), quantities in cells.items():
        design = get_design(study.experiment(experiment).design)
        place = {"experiment": experiment, "model": model, "subset": subset, "quantity": "verdict"}
        if any(row["status"] == NOT_ASKED for row in quantities.values()):
            # Its one word was written together with its tests.
            continue
        verdict = mixed_verdict(quantities) or design.verdict(study.config.analysis, quantities)
        yield place | _UNCORRECTED | vars(verdict)


def _not_asked(cell: Cell, decision: CellDecision, tests: Iterable[str]) -> Iterator[Row]:
    """Yield the planned tests of a cell that was skipped, and its verdict; nothing in it was estimated."""
    empty = dict.fromkeys(("estimate", "low", "high", "level", "p", "label"))
    shared = {**empty, **_place(cell), **_UNCORRECTED, "method": "none", "status": NOT_ASKED}
    reason = f"not asked, as the frozen plan foresees: {decision.reason}; {decision.left:,} calls not made"
    for quantity in tests:
        yield shared | {"quantity": quantity, "n_items": 0, "n_calls": 0, "reason": reason}
    scouted = {"n_items": decision.items, "n_calls": decision.calls, "method": "scout", "label": NOT_ASKED}
    yield shared | scouted | {"quantity": "verdict", "reason": reason}
