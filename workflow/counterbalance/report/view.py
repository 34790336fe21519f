"""The whole report as plain values: formats what the tables hold and computes nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.config import Dataset, Model, Study, StudyConfig
from counterbalance.prereg.record import FrozenRecord
from counterbalance.report.buying import BuyingView, view_buying
from counterbalance.report.numbers import CellNumbers, Shown, show, show_p, writer_of
from counterbalance.report.planned import PlannedView, view_planned
from counterbalance.report.provenance import Provenance, view_provenance
from counterbalance.report.published import PublishedView, is_published, predictions_words, view_published
from counterbalance.report.sections import Overview, Room, Section, overviews_of, room_of, rooms_of
from counterbalance.report.sources import Row, Sources
from counterbalance.report.text import MISSING, anchor_of, count, interval, listing, percent, plural, proportion

_REJECTED_SHOWN = 50
_STREAMS = {
    "modern": "modern stream (NumPy's Generator)",
    "legacy": "legacy stream (RandomState, as in papers whose intervals were drawn with it)",
}
PREDICTION_WORDS = {"confirmed": "Confirmed", "falsified": "Falsified", "not_evaluable": "Not evaluable"}


@dataclass(frozen=True)
class PredictionView:
    """A prediction: what it said, what was found, and the verdict."""

    id: str
    anchor: str
    cell: str
    quantity: str
    said: str
    found: Shown
    verdict: str
    words: str


@dataclass(frozen=True)
class DatasetView:
    """A data set: where it is from, and what was left out."""

    id: str
    source: str
    licence: str
    items: str
    options: str
    rules: Sequence[tuple[str, str]]
    rejected: Sequence[tuple[str, str, str, str]]
    more: str


@dataclass(frozen=True)
class NumberRow:
    """One estimate in the list of all numbers."""

    quantity: str
    value: Shown
    p: str
    adjusted: str
    n_items: str
    n_calls: str
    method: str
    status: str
    reason: str


@dataclass(frozen=True)
class ReportView:
    """Everything the templates print."""

    title: str
    question: str
    study: str
    exploratory: bool
    late: bool
    simulated: Sequence[str]
    published: Sequence[PublishedView]
    size: str
    sections: Sequence[Section]
    rooms: Mapping[str, Room]
    overviews: Mapping[str, Overview]
    planned: Sequence[PlannedView]
    predictions: Sequence[PredictionView]
    predictions_summary: str
    predictions_when: str
    models: Sequence[tuple[str, str]]
    datasets: Sequence[DatasetView]
    buying: BuyingView
    plan: Sequence[tuple[str, str]]
    power: str
    measurable_v: str
    provenance: Provenance
    glossary: Sequence[tuple[str, str, str]]
    numbers: Sequence[tuple[str, Sequence[NumberRow]]]


def view_report(sources: Sources) -> ReportView:
    """Make the whole view."""
    study = sources.study
    config = study.config
    rooms = rooms_of(config.experiments)
    sections = [room_of(experiment).build(sources, experiment) for experiment in config.experiments]
    predictions = [_prediction(row) for row in sources.predictions]
    return ReportView(
        title=config.title,
        question=config.question,
        study=config.id,
        exploratory=sources.chain[-1].body.exploratory,
        late=sources.chain[0].body.late,
        simulated=[model.id for model in _used_models(study) if model.vendor == "simulated"],
        published=view_published(sources.bought.values()),
        size=_size(sources),
        sections=sections,
        rooms=rooms,
        overviews=overviews_of(sources, sections),
        planned=view_planned(sources),
        predictions=predictions,
        predictions_summary=_summary(predictions),
        predictions_when=predictions_words(list(study.cells())) or _when(sources.chain),
        models=[(model.id, _describe_model(model)) for model in _used_models(study)],
        datasets=[_dataset(sources, dataset) for dataset in study.used_datasets()],
        buying=view_buying(list(sources.bought.values()), config.analysis),
        plan=_plan(config),
        power=percent(config.analysis.detectable_power),
        measurable_v=proportion(config.analysis.measurable_v, 2),
        provenance=view_provenance(sources),
        glossary=[entry for room in rooms.values() for entry in room.glossary],
        numbers=[(" · ".join(key), _number_rows(numbers)) for key, numbers in sources.cells.items()],
    )


def _used_models(study: Study) -> list[Model]:
    used = {name for experiment in study.config.experiments for name in experiment.models}
    return [model for model in study.config.models if model.id in used]


def _size(sources: Sources) -> str:
    config = sources.study.config
    taken = sum(
        max((number.n_calls for number in sources.cells[key].values()), default=0)
        for key, bought in sources.bought.items()
        if is_published(bought.cell)
    )
    calls = sum(bought.facts.get("calls") or 0 for bought in sources.bought.values() if not is_published(bought.cell))
    asked = [model for model in _used_models(sources.study) if model.vendor != "cells"]
    parts = [
        *([plural(len(asked), "model")] if asked else ["no model asked"]),
        plural(sum(sources.n_items.values()), "item"),
        plural(len(config.experiments), "experiment"),
        plural(len(sources.cells), "cell"),
        *([plural(calls, "call")] if asked else []),
        *([plural(taken, "published number")] if taken else []),
    ]
    return ", ".join(parts)


def _prediction(row: Row) -> PredictionView:
    names = (row["experiment"], row["model"], row["subset"])
    write = writer_of(row["quantity"])
    text, ends = "", ""
    # A rule on p is not about the test's statistic; the reason gives the p.
    if row["label"] is not None:
        text = row["label"].replace("_", " ")
    elif row["estimate"] is not None and not row["rule"].startswith("p_"):
        text = write(row["estimate"])
        if row["low"] is not None and row["high"] is not None:
            ends = interval(write(row["low"]), write(row["high"]))
    return PredictionView(
        id=row["prediction"],
        anchor=anchor_of("/".join(names)),
        cell=" · ".join(names),
        quantity=row["quantity"],
        said=row["expected"],
        found=Shown(text, ends, row["reason"]),
        verdict=row["verdict"],
        words=PREDICTION_WORDS.get(row["verdict"], str(row["verdict"])),
    )


def _summary(predictions: Sequence[PredictionView]) -> str:
    counts = Counter(entry.words.lower() for entry in predictions)
    found = [f"{counts[word.lower()]} {word.lower()}" for word in PREDICTION_WORDS.values() if counts[word.lower()]]
    return f"{plural(len(predictions), 'prediction')}: {listing(found)}."


def _when(chain: Sequence[FrozenRecord]) -> str:
    """Say what had been seen when the predictions took their present form."""
    governing = chain[-1].body
    if governing.observed.calls == 0:
        return "Written down before the first reply, judged by the pipeline."
    seen = plural(governing.observed.calls, "reply", "replies")
    return (
        f"Judged by the pipeline as record {governing.number} has them, which was frozen when {seen} had been bought."
    )


def _describe_model(model: Model) -> str:
    match model.vendor:
        case "local":
            return f"local: {model.model}, {count(model.context_tokens)} tokens of context, on the processor"
        case "transformers":
            pinned = model.files_sha256 or (f"commit {model.revision}" if model.revision else "not pinned")
            return f"open weights: {model.hub_id or model.folder} ({pinned}), float32, on the processor"
        case "simulated":
            bonus = model.slot_bonus if isinstance(model.slot_bonus, list) else "set per data set"
            return f"simulated respondent with planted slot bonus {bonus}; not a language model"
        case "replay":
            return f"replies taken from {model.replies}"
        case "cells":
            said = f"; its source describes the model as: {model.described_as}" if model.described_as else ""
            return f"no model of this study: published cells, taken from the data set's file{said}"
        case "openai" | "anthropic" | "google":
            server = f" at {model.base_url}" if model.base_url else ""
            return f"{model.vendor}: {model.model}{server}"


def _dataset(sources: Sources, dataset: Dataset) -> DatasetView:
    rows = sources.rejected[dataset.id]
    left = len(rows) - _REJECTED_SHOWN
    return DatasetView(
        id=dataset.id,
        source=dataset.source,
        licence=dataset.licence,
        items=count(sources.n_items[dataset.id]),
        options=listing([str(size) for size in sources.option_counts[dataset.id]], "or"),
        rules=[(rule, count(n)) for rule, n in sorted(Counter(row["rule"] for row in rows).items())],
        rejected=[
            (count(row["source_row"]), row["item_id"] or MISSING, row["rule"], row["reason"])
            for row in rows[:_REJECTED_SHOWN]
        ],
        more=f"and {plural(left, 'more row')} in the table of rejected rows" if left > 0 else "",
    )


def _plan(config: StudyConfig) -> list[tuple[str, str]]:
    analysis = config.analysis
    low, high = analysis.capability_band
    of_mcq = [
        (
            "“No bias seen” needs",
            f"{percent(analysis.detectable_power)} power to show V ≥ {proportion(analysis.measurable_v, 2)}",
        ),
        ("Middle band of accuracy", f"{percent(low)} to {percent(high)}"),
        ("Resamples of the published method", count(analysis.run_resamples)),
    ]
    return [
        ("Significance level", proportion(analysis.alpha, 2)),
        ("Level of intervals", percent(analysis.level)),
        ("Correction", f"Holm over all confirmatory tests in all cells of the {analysis.family}"),
        ("Resamples", count(analysis.resamples)),
        ("Random numbers of BCa intervals", _STREAMS[analysis.stream]),
        *(of_mcq if any(experiment.design == "mcq" for experiment in config.experiments) else []),
        ("Seed", str(analysis.seed)),
    ]


def _number_rows(numbers: CellNumbers) -> list[NumberRow]:
    return [
        NumberRow(
            quantity=name,
            value=show(number),
            p=show_p(number, adjusted=False).text if number.p is not None else "",
            adjusted=show_p(number, adjusted=True).text if number.p_adjusted is not None else "",
            n_items=count(number.n_items),
            n_calls=count(number.n_calls),
            method=number.method,
            status=number.status.replace("_", " "),
            reason=number.reason or "",
        )
        for name, number in sorted(numbers.items())
    ]
