"""Loading a study: the file, strictly read; the resolved settings, canonical and hashed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from counterbalance.canonical import Json, canonical_json, sha256_json
from counterbalance.config.checks import HOLDS_KEY, find_problems
from counterbalance.config.layout import Layout
from counterbalance.config.models import Account, ApiModel, Dataset, Experiment, Model, StudyConfig
from counterbalance.config.yaml import read_yaml
from counterbalance.errors import ConfigError, InputError
from counterbalance.keys import holds_key, learn_keys, redact

_Entry = TypeVar("_Entry", Dataset, Model, Experiment, Account)

_HINTS = {
    "extra_forbidden": "no such key; the keys are listed in docs/configuration.md",
    "missing": "this key is needed; see docs/configuration.md",
    "string_type": "expected text; put it in quotes if it is meant as text",
    "int_type": "expected a whole number without quotes",
    "float_type": "expected a number without quotes",
    "bool_type": "expected true or false",
}
_KEY_ENV = "expected the name of an environment variable, such as OPENAI_API_KEY, and never the key itself"


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

    def account(self, name: str) -> Account:
        return _by_id(self.config.accounts, name, "account", self.path)

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

    def preflights(self) -> Iterator[tuple[Experiment, Model]]:
        """Yield every experiment x model that an account pays: each is tried with one call before its sweep."""
        for experiment in self.config.experiments:
            for model in map(self.model, experiment.models):
                if isinstance(model, ApiModel):
                    yield experiment, model

    def trial_sets(self) -> Iterator[tuple[Experiment, Dataset]]:
        """Yield every experiment x data set: the unit of expansion, the same for every model."""
        for experiment in self.config.experiments:
            for dataset in experiment.datasets:
                yield experiment, self.dataset(dataset)

    def scouted_sets(self) -> Iterator[tuple[Experiment, Dataset]]:
        """Yield every experiment x data set whose cells are looked at before they are asked."""
        return ((experiment, dataset) for experiment, dataset in self.trial_sets() if experiment.scout is not None)

    def scouted_cells(self) -> Iterator[Cell]:
        """Yield every cell that is looked at before it is asked."""
        return (cell for cell in self.cells() if cell.experiment.scout is not None)

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
    root = find_root(path)
    learn_keys(_key_variables(value))
    for key in ("contrasts", "slot_contrasts"):
        _include_contrasts(value, key, root, _message(path, lines, ("analysis", key), ""))
    try:
        # JSON mode: a list may become a tuple, while text still never becomes a number.
        config = StudyConfig.model_validate_json(json.dumps(value))
    except ValidationError as error:
        raise ConfigError(_explain(error, path, lines)) from None
    if problems := [_message(path, lines, key, text) for key, text in find_problems(config)]:
        raise ConfigError("\n".join(problems))
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


def _include_contrasts(value: Json, key: str, root: Path, where: str) -> None:
    """Put the content of the named file of contrasts in the place of its name, so that it is resolved and frozen."""
    analysis = value.get("analysis") if isinstance(value, dict) else None
    name = analysis.get(key) if isinstance(analysis, dict) else None
    if isinstance(analysis, dict) and isinstance(name, str):
        path = root / name
        if not path.resolve().is_relative_to(root.resolve()) or not path.is_file():
            raise ConfigError(
                f"{where}no file {redact(repr(name))} in {root}; correct the path, which is relative to the project"
            )
        analysis[key] = read_yaml(path)[0]


def _explain(error: ValidationError, path: Path, lines: dict[tuple[str | int, ...], int]) -> str:
    messages = []
    for problem in error.errors():
        text = problem["msg"].removeprefix("Value error, ")
        about_key = "key_env" in problem["loc"] and problem["type"] != "missing"
        hint = _KEY_ENV if about_key else _HINTS.get(problem["type"])
        secret = holds_key(problem["input"])
        quiet = secret or about_key or problem["type"] in {"missing", "value_error", "extra_forbidden"}
        given = "" if quiet else f" (found {problem['input']!r})"
        # Some texts make a proposal out of what was given.
        said = hint or (HOLDS_KEY if secret else text)
        messages.append(_message(path, lines, tuple(problem["loc"]), f"{said}{given}"))
    return "\n".join(messages)


def _message(path: Path, lines: dict[tuple[str | int, ...], int], location: tuple[str | int, ...], text: str) -> str:
    key = ".".join(str(part) for part in location) or "(whole file)"
    # Who wrote a secret key into the file is not to find it in every log as well.
    return f"{path} line {lines.get(_known_prefix(location, lines), 1)}, key {redact(key)}: {redact(text)}"


def _key_variables(value: Json) -> list[str]:
    """Return the environment variables that accounts name, of a file that is not checked yet."""
    accounts = value.get("accounts") if isinstance(value, dict) else None
    blocks = [entry for entry in accounts if isinstance(entry, dict)] if isinstance(accounts, list) else []
    return [entry["key_env"] for entry in blocks if isinstance(entry.get("key_env"), str)]


def _known_prefix(location: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    # Union branches add their tag to the location; only what is in the file has a line.
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
