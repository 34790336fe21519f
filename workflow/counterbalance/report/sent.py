"""What was really sent to each model, in words: never what was asked for, and no claim that replies repeat."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterbalance.canonical import canonical_json
from counterbalance.config import Experiment, Model
from counterbalance.config.checks import is_dated
from counterbalance.config.models import ApiModel, GenerateRead
from counterbalance.report.bought import Bought
from counterbalance.report.text import listing

_NOT_WRITTEN = "not written down: the replies were bought by a release that did not keep it"


@dataclass(frozen=True)
class SentView:
    """What one experiment sent to one model: in words, and every set of parameters as sent."""

    experiment: str
    model: str
    words: str
    parameters: Sequence[str]


def view_sent(cells: Iterable[Bought]) -> list[SentView]:
    """Describe the parameters of every pair of experiment and model."""
    pairs: dict[tuple[str, str], list[Bought]] = {}
    for bought in cells:
        pairs.setdefault((bought.cell.experiment.id, bought.cell.model.id), []).append(bought)
    return [_describe(entries) for entries in pairs.values()]


def _describe(entries: Sequence[Bought]) -> SentView:
    experiment, model = entries[0].cell.experiment, entries[0].cell.model
    sent: dict[str, Mapping[str, Any]] = {}
    for bought in entries:
        for parameters in bought.facts.get("parameters_sent") or ():
            sent[canonical_json(parameters).decode()] = parameters
    sets = [sent[text] for text in sorted(sent)]
    words = "; ".join(_words(experiment, model, sets)) if sets else _NOT_WRITTEN
    return SentView(experiment.id, model.id, words, sorted(sent))


def _words(experiment: Experiment, model: Model, sets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(sets) > 1:
        yield f"{len(sets)} different sets of parameters"
    if isinstance(model, ApiModel) and not is_dated(model):
        yield "warning: the model id names no dated version, so what answered under it may change"
    # Only a vendor behind an interface has a default of its own that would hold.
    remote = isinstance(model, ApiModel)
    for name, default in (("temperature", "the vendor's default holds"), ("seed", "the vendor draws")):
        values = [list(_find(parameters, name)) for parameters in sets]
        told = sorted({f"{value:g}" if isinstance(value, float) else str(value) for found in values for value in found})
        if told:
            yield f"{name} {listing(told)}"
        if remote and not all(values):
            yield f"no {name} was sent; {default}"
    if isinstance(model, ApiModel) and model.does_not_accept:
        yield f"left out because the model is declared not to accept it: {listing(list(model.does_not_accept))}"
    if remote and isinstance(experiment.read, GenerateRead):
        planned = experiment.read.temperature
        if planned is not None and not any(list(_find(parameters, "temperature")) for parameters in sets):
            yield f"the plan's temperature {planned:g} did not reach the model"


def _find(value: Any, name: str) -> Iterator[Any]:
    """Yield the values under a key, however deep the vendor's form puts it."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == name and inner is not None:
                yield inner
            else:
                yield from _find(inner, name)
