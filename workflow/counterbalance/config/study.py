"""Loading a study: the file, strictly read; the resolved settings, canonical and hashed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from counterbalance.canonical import Json, canonical_json, sha256_json
from counterbalance.config.layout import Layout
from counterbalance.config.models import Dataset, Experiment, Model, StudyConfig
from counterbalance.config.yaml import read_yaml
from counterbalance.errors import ConfigError, InputError

_Entry = TypeVar("_Entry", Dataset, Model, Experiment)

_HINTS = {
    "extra_forbidden": "no such key; the keys are listed in docs/configuration.md",
    "missing": "this key is needed; see docs/configuration.md",
    "string_type": "expected text; put it in quotes if it is meant as text",
    "int_type": "expected a whole number without quotes",
    "float_type": "expected a number without quotes",
    "bool_type": "expected true or false",
}


@dataclass(frozen=True)
class Cell:
    """One experiment x model x subset."""

    experiment: Experiment
    model: Model
    dataset: Dataset

    @property
    def name(self) -> str:
        return f"{self.experiment.id}/{self.model.id}/{self.dataset.id}"


@dataclass(frozen=True)
class Study:
    """A loaded study.

    Attributes
    ----------
    path, root
        The study file and the project's folder, to which all paths in it are relative.
    config
        The typed settings, defaults filled in.
    """

    path: Path
    root: Path
    config: StudyConfig

    @property
    def layout(self) -> Layout:
        return Layout(self.root, self.config.id)

    @property
    def resolved(self) -> Json:
        """Every setting with its default, as JSON values."""
        return self.config.model_dump(mode="json", by_alias=True)

    @property
    def sha256(self) -> str:
        """Hash of the resolved settings."""
        return sha256_json(self.resolved)

    def dataset(self, name: str) -> Dataset:
        return _by_id(self.config.datasets, name, "data set", self.path)

    def model(self, name: str) -> Model:
        return _by_id(self.config.models, name, "model", self.path)

    def experiment(self, name: str) -> Experiment:
        return _by_id(self.config.experiments, name, "experiment", self.path)

    def cell(self, experiment: str, model: str, dataset: str) -> Cell:
        found = Cell(self.experiment(experiment), self.model(model), self.dataset(dataset))
        if model not in found.experiment.models or dataset not in found.experiment.datasets:
            raise ConfigError(f"{self.path}: experiment {experiment!r} does not join {model!r} and {dataset!r}")
        return found

    def cells(self) -> Iterator[Cell]:
        """Yield every cell, in the file's order."""
        for experiment in self.config.experiments:
            for model in experiment.models:
                for dataset in experiment.datasets:
                    yield Cell(experiment, self.model(model), self.dataset(dataset))

    def trial_sets(self) -> Iterator[tuple[Experiment, Dataset]]:
        """Yield every experiment x data set: the unit of expansion, the same for every model."""
        for experiment in self.config.experiments:
            for dataset in experiment.datasets:
                yield experiment, self.dataset(dataset)

    def used_datasets(self) -> list[Dataset]:
        """Return the data sets that an experiment uses, in the file's order."""
        used = {name for experiment in self.config.experiments for name in experiment.datasets}
        return [entry for entry in self.config.datasets if entry.id in used]


def load_study(path: Path | str) -> Study:
    """Read, check and resolve a study file.

    Raises
    ------
    ConfigError
        With file, line, key, what was expected and what to do.
    """
    path = Path(path)
    value, lines = read_yaml(path)
    try:
        # JSON mode: a list may become a tuple, while text still never becomes a number.
        config = StudyConfig.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise ConfigError(_explain(error, path, lines)) from None
    root = find_root(path)
    study = Study(path, root, config)
    try:
        canonical_json(study.resolved)
    except InputError as error:
        raise ConfigError(f"{path}: {error}") from error
    return study


def find_root(path: Path) -> Path:
    """Return the nearest folder above a study file that holds a Snakefile, or the study file's own folder."""
    for folder in path.resolve().parents:
        if (folder / "Snakefile").is_file() or (folder / "workflow" / "Snakefile").is_file():
            return folder
    return path.resolve().parent


def _explain(error: ValidationError, path: Path, lines: dict[tuple[str | int, ...], int]) -> str:
    messages = []
    for problem in error.errors():
        # Union branches add their tag to the location; only what is in the file has a line.
        location = tuple(part for part in problem["loc"])
        known = _known_prefix(location, lines)
        text = problem["msg"].removeprefix("Value error, ")
        hint = _HINTS.get(problem["type"])
        given = "" if problem["type"] in {"missing", "value_error"} else f" (found {problem['input']!r})"
        key = ".".join(str(part) for part in location) or "(whole file)"
        messages.append(f"{path} line {lines.get(known, 1)}, key {key}: {hint or text}{given}")
    return "\n".join(messages)


def _known_prefix(location: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    known: tuple[str | int, ...] = ()
    for part in location:
        if (*known, part) in lines:
            known = (*known, part)
    return known


def _by_id(entries: list[_Entry], name: str, kind: str, path: Path) -> _Entry:
    for entry in entries:
        if entry.id == name:
            return entry
    known = ", ".join(entry.id for entry in entries)
    raise ConfigError(f"{path}: no {kind} {name!r}; there are {known}")
