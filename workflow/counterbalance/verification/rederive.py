"""Every table once more: data to items, items to prompts, replies to outcomes, outcomes to estimates and verdicts.

Each step starts from the published tables, so that only the step that does not hold is named.
"""

import hashlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, ArtifactSchema, Record, read_table
from counterbalance.artifacts.records import relative
from counterbalance.calls import TRIAL_COLUMNS, plan_calls
from counterbalance.canonical import parse_json
from counterbalance.config import Cell, Dataset, Experiment, Study
from counterbalance.config.models import CellsModel
from counterbalance.designs import get_design
from counterbalance.errors import CounterbalanceError
from counterbalance.items.prepare import prepare_table
from counterbalance.items.source import read_source
from counterbalance.prereg.judge import judge
from counterbalance.prereg.record import FrozenRecord
from counterbalance.rerun import code_sha256
from counterbalance.scouting.look import look
from counterbalance.scouting.outcome import (
    decision_of,
    read_decision,
    skipped_cells,
    summary_body,
    swept_cells,
)
from counterbalance.scouting.trials import scout_trials
from counterbalance.stages.contrast import combine_tables, compare_cells, estimate_cell_table
from counterbalance.stages.score import score_slices
from counterbalance.vendors import get_vendor
from counterbalance.verification.differences import compare, differing_values
from counterbalance.verification.findings import Findings
from counterbalance.verification.published import differing_numbers

# A damaged table can break the code that reads it in any of these ways; each is a finding.
_BREAKS = (CounterbalanceError, ValueError, KeyError, TypeError, pa.ArrowException)
_REPLIES = SCHEMAS["replies"]
# What two trials must share when one reply was bought for both.
_FACTS = [name for name in _REPLIES.arrow.names if name not in {"trial_id", *_REPLIES.volatile}]

Problems = list[str]


class Rederivation:
    """Derives a study's tables again and notes where they differ from the published ones."""

    def __init__(self, study: Study, findings: Findings) -> None:
        self._study, self._findings = study, findings
        self._rounded: dict[str, float] = {}
        self._skipped: list[str] = []
        self._rows = 0

    def run(self, frozen: FrozenRecord | None, made: Iterable[Record]) -> None:
        """Check items, prompts, replies, outcomes, estimates and verdicts, in this order.

        Parameters
        ----------
        frozen
            The record whose predictions are judged.
        made
            The artifacts' records, which name the code that made them.
        """
        study, before = self._study, self._findings.failures
        sets, cells = list(study.trial_sets()), swept_cells(study)
        scouted = list(study.scouted_cells())
        self._step("items: read again from the data", [partial(self._items, entry) for entry in study.used_datasets()])
        self._step("prompts: rendered again, each with its hash", [partial(self._prompts, *pair) for pair in sets])
        if scouted:
            checks: list[Callable[[], Problems]] = [partial(self._scout_prompts, *p) for p in study.scouted_sets()]
            checks += [partial(self._scout, cell) for cell in scouted]
            self._step("scouts: decided again from their replies", [*checks, self._scout_summary])
        self._step("replies: one per trial, each under its own call", [partial(self._replies, cell) for cell in cells])
        self._step("outcomes: read again from the replies", [partial(self._outcomes, cell) for cell in cells])
        self._step("estimates: computed again from the outcomes", [partial(self._cell, cell) for cell in cells])
        self._step("verdicts: corrected and judged again by the frozen predictions", [partial(self._combine, frozen)])
        for text in self._skipped:
            self._findings.note(text)
        if self._rounded:
            self._findings.note(
                f"last digits of reals differ, by at most {max(self._rounded.values()):.1e} of the number, as between "
                f"processors or library versions: {', '.join(self._rounded)}"
            )
        other = _other_code(made)
        if other:
            agrees = "agrees" if self._findings.failures == before else "DOES NOT AGREE"
            self._findings.note(
                f"code differs from the one that made the artifacts ({', '.join(other)}), as expected after an update: "
                f"what the present code derives {agrees} with them"
            )

    def _step(self, name: str, checks: Iterable[Callable[[], Problems]]) -> None:
        problems: Problems = []
        self._rows, skipped = 0, len(self._skipped)
        for check in checks:
            try:
                problems += check()
            except _BREAKS as error:
                problems.append(f"{name.partition(':')[0]} cannot be derived again: {error}")
        left = len(self._skipped) - skipped
        without = f"; {left} could not be, see the notes" if left else ""
        self._findings.check(problems, f"{name} ({self._rows} rows{without})")

    def _items(self, dataset: Dataset) -> Problems:
        layout = self._study.layout
        if dataset.path.startswith("hf://") or not (self._study.root / dataset.path).is_file():
            self._skipped.append(f"items of {dataset.id} were not read again: {dataset.path} is not here")
            return []
        prepared = prepare_table(read_source(dataset, self._study.root).data, dataset, self._study.config.seed)
        problems = self._compare(layout.items(dataset.id), SCHEMAS["items"], prepared.items)
        return problems + self._compare(layout.rejected(dataset.id), SCHEMAS["rejected"], prepared.rejected)

    def _prompts(self, experiment: Experiment, dataset: Dataset) -> Problems:
        study = self._study
        path = study.layout.trials(experiment.id, dataset.id)
        table = read_table(path, SCHEMAS["trials"])
        pairs = zip(table.column("prompt").to_pylist(), table.column("prompt_sha256").to_pylist(), strict=True)
        problems = [
            f"{relative(path, study.root)}: row {row}: the prompt does not hash to its prompt_sha256 {digest}"
            for row, (prompt, digest) in enumerate(pairs)
            if "sha256:" + hashlib.sha256(prompt.encode()).hexdigest() != digest
        ]
        absent = self._absent(experiment)
        if absent:
            self._rows += table.num_rows
            self._skipped.append(f"prompts of {experiment.id} were not rendered again: {', '.join(absent)} not here")
            return problems
        items = read_table(study.layout.items(dataset.id), SCHEMAS["items"])
        rendered = list(get_design(experiment.design).expand(study, experiment, dataset, items))
        derived = pa.concat_tables([SCHEMAS["trials"].arrow.empty_table(), *rendered])
        return problems + self._compare(path, SCHEMAS["trials"], derived)

    def _absent(self, experiment: Experiment) -> list[str]:
        names = [name for name in (experiment.prompt.template, experiment.prompt.examples) if name]
        return [name for name in names if not (self._study.root / name).is_file()]

    def _scout_prompts(self, experiment: Experiment, dataset: Dataset) -> Problems:
        study = self._study
        path = study.layout.scout_trials(experiment.id, dataset.id)
        if self._absent(experiment) or experiment.scout is None:
            return []
        derived = scout_trials(study, experiment, dataset, experiment.scout.items)
        return self._compare(path, SCHEMAS["trials"], derived)

    def _scout(self, cell: Cell) -> Problems:
        study, layout = self._study, self._study.layout
        trials_path = layout.scout_trials(cell.experiment.id, cell.dataset.id)
        path = layout.scout_replies(*_names(cell))
        problems = self._paired(cell, path, trials_path)
        if problems or cell.experiment.scout is None:
            return problems
        trials, replies = read_table(trials_path, SCHEMAS["trials"]), read_table(path, _REPLIES)
        published = read_decision(study, cell)
        derived = look(study, cell, cell.experiment.scout, trials, replies).body
        name = relative(layout.scout_decision(*_names(cell)), study.root)
        return [f"{name}: {text}" for text in differing_values(published, derived)]

    def _scout_summary(self) -> Problems:
        study, path = self._study, self._study.layout.scout_summary
        published = parse_json(path.read_bytes(), source=str(path))
        derived = summary_body([decision_of(read_decision(study, cell)) for cell in study.scouted_cells()])
        return [f"{relative(path, study.root)}: {text}" for text in differing_values(published, derived)]

    def _replies(self, cell: Cell) -> Problems:
        layout = self._study.layout
        trials = layout.trials(cell.experiment.id, cell.dataset.id)
        problems = self._paired(cell, layout.replies(*_names(cell)), trials)
        if cell.experiment.scout is not None:
            problems += self._same_as_scout(cell)
        if isinstance(cell.model, CellsModel):
            problems += self._as_published(cell, cell.model)
        return problems

    def _as_published(self, cell: Cell, model: CellsModel) -> Problems:
        if not (self._study.root / cell.dataset.path).is_file():
            self._skipped.append(f"numbers of {cell.name} were not read again: {cell.dataset.path} is not here")
            return []
        return differing_numbers(self._study, cell, model)

    def _same_as_scout(self, cell: Cell) -> Problems:
        """Return where the scout and the sweep hold different replies to one call."""
        layout = self._study.layout
        scout = read_table(layout.scout_replies(*_names(cell)), _REPLIES).to_pylist()
        calls = {row["call_sha256"] for row in scout}
        path = layout.replies(*_names(cell))
        swept = [row for row in read_table(path, _REPLIES).to_pylist() if row["call_sha256"] in calls]
        name = relative(path, self._study.root)
        return [f"{name} and its scout: {text}" for text in _shared_calls([*scout, *swept])]

    def _paired(self, cell: Cell, path: Path, trials_path: Path) -> Problems:
        study = self._study
        replies = read_table(path, _REPLIES)
        trials = read_table(trials_path, SCHEMAS["trials"], list(TRIAL_COLUMNS))
        self._rows += replies.num_rows
        name = relative(path, study.root)
        rows = replies.to_pylist()
        problems = [f"{name} {text}" for text in _unpaired(trials.column("trial_id").to_pylist(), rows)]
        problems += [f"{name} {text}" for text in _shared_calls(rows)]
        try:
            vendor = get_vendor(cell.model, cell.experiment, study)
            keys = plan_calls(vendor, cell, trials, frozenset(), seed=study.config.seed).keys
        except CounterbalanceError as error:
            self._skipped.append(f"call hashes of {cell.name} were not computed again: {error}")
            return problems
        call_of = dict(zip(trials.column("trial_id").to_pylist(), keys, strict=True))
        return problems + [
            f"{name} row {index} (trial_id {row['trial_id']!r}), column 'call_sha256': {row['call_sha256']} is there, "
            f"the trial's own call is {call_of[row['trial_id']]}"
            for index, row in enumerate(rows)
            if call_of.get(row["trial_id"], row["call_sha256"]) != row["call_sha256"]
        ]

    def _outcomes(self, cell: Cell) -> Problems:
        layout = self._study.layout
        trials = read_table(layout.trials(cell.experiment.id, cell.dataset.id), SCHEMAS["trials"])
        replies = read_table(layout.replies(*_names(cell)), _REPLIES)
        slices = list(score_slices(self._study, cell.experiment.id, trials, replies))
        derived = pa.concat_tables([SCHEMAS["outcomes"].arrow.empty_table(), *slices])
        return self._compare(layout.outcomes(*_names(cell)), SCHEMAS["outcomes"], derived)

    def _cell(self, cell: Cell) -> Problems:
        layout = self._study.layout
        outcomes = read_table(layout.outcomes(*_names(cell)), SCHEMAS["outcomes"])
        derived = estimate_cell_table(self._study, cell, outcomes)
        return self._compare(layout.cell_estimates(*_names(cell)), SCHEMAS["estimates"], derived)

    def _combine(self, frozen: FrozenRecord | None) -> Problems:
        study, layout, schema = self._study, self._study.layout, SCHEMAS["estimates"]
        cells = [read_table(layout.cell_estimates(*_names(cell)), schema) for cell in swept_cells(study)]
        skipped = skipped_cells(study)
        tables = [*cells, compare_cells(study, skipped)]
        problems = self._compare(layout.estimates, schema, combine_tables(study, tables, skipped)[0])
        predictions = frozen.body.predictions if frozen else ()
        derived = judge(predictions, read_table(layout.estimates, schema))
        return problems + self._compare(layout.predictions, SCHEMAS["predictions"], derived)

    def _compare(self, path: Path, schema: ArtifactSchema, derived: pa.Table) -> Problems:
        name = relative(path, self._study.root)
        published = read_table(path, schema)
        self._rows += published.num_rows
        found = compare(published, derived, schema)
        if found.rounding:
            self._rounded[name] = found.rounding
        return [] if found.text is None else [f"{name}: {found.text}"]


def _other_code(made: Iterable[Record]) -> list[str]:
    ran = {(record.stage, record.code_sha256) for record in made}
    here = {stage: code_sha256(stage) for stage in {stage for stage, _ in ran}}
    return sorted({stage for stage, code in ran if code != here[stage]})


def _names(cell: Cell) -> tuple[str, str, str]:
    return cell.experiment.id, cell.model.id, cell.dataset.id


def _unpaired(asked: list[str], rows: list[dict[str, Any]]) -> Problems:
    """Return which trials have no reply, and which replies have no trial or are not the only one of theirs."""
    waiting = dict.fromkeys(asked, 0)
    problems = []
    for index, row in enumerate(rows):
        trial = row["trial_id"]
        if trial not in waiting:
            problems.append(f"row {index}: trial {trial!r} is not among the trials")
            continue
        waiting[trial] += 1
        if waiting[trial] > 1:
            problems.append(f"row {index}: trial {trial!r} has a reply already")
    return problems + [f"trial {trial!r} has no reply" for trial, count in waiting.items() if count == 0]


def _shared_calls(rows: list[dict[str, Any]]) -> Problems:
    """Return where one call, bought for several trials, does not hold the same reply in each of their rows."""
    first: dict[str, tuple[int, dict[str, Any]]] = {}
    problems = []
    for index, row in enumerate(rows):
        before, other = first.setdefault(row["call_sha256"], (index, row))
        odd = [name for name in _FACTS if row[name] != other[name]]
        if odd:
            problems.append(f"row {index}: shares its call with row {before}, and {', '.join(odd)} differ")
    return problems
