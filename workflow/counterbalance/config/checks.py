"""What no single block can know: whether accounts, prices, models and reads of a study fit together.

Everything here is said before anything is asked. Each rule yields pairs of key and text; the key is a path into the
study file, so that the message can name the line.
"""

import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from counterbalance.canonical import Json
from counterbalance.config.extra import refused_fields
from counterbalance.config.models import (
    Account,
    AnthropicModel,
    ApiModel,
    CellsModel,
    CellsRead,
    DecideRead,
    Experiment,
    GenerateRead,
    GoogleModel,
    LogprobRead,
    OpenAIModel,
    OptionTextRead,
    StudyConfig,
    TransformersModel,
)
from counterbalance.keys import holds_key

Key = tuple[str | int, ...]
Problem = tuple[Key, str]

# Most log-probabilities that the vendors' interfaces list for one token.
MOST_TOP = 20

HOLDS_KEY = (
    "it holds what looks like a key, and would stand in records, ledger and report: take it out, put it into the "
    "environment variable that the account's `key_env` names, and have it revoked if this file was shared"
)

_NOT_DECIDED = ("seed", "reasoning_effort", "thinking_level", "thinking_budget", "extra")

_DATED = {
    "openai": re.compile(r"-\d{4}-\d{2}-\d{2}$"),
    "anthropic": re.compile(r"-\d{8}$"),
    "google": re.compile(r"-(?:\d{3}|\d{2}-\d{4}|\d{2}-\d{2})$"),
}


def find_problems(config: StudyConfig) -> list[Problem]:
    """Return everything that keeps the models of a study from being asked as it says."""
    accounts = {account.id: account for account in config.accounts}
    problems = list(_secret_problems(config.model_dump(mode="json", by_alias=True), ()))
    for place, model in enumerate(config.models):
        key = ("models", place)
        if isinstance(model, ApiModel):
            problems += _account_problems(model, accounts, key)
            problems += _address_problems(model, key)
            problems += _parameter_problems(model, key)
            problems += _price_problems(model, config)
            problems += _dating_problems(model, key, confirmatory=config.preregistration is not None)
            problems += _seed_problems(model, key)
        elif isinstance(model, TransformersModel):
            problems += _pinning_problems(model, key, confirmatory=config.preregistration is not None)
    known = {model.id for model in config.models if isinstance(model, ApiModel)}
    for name in config.money.prices:
        if name not in known:
            text = f"{name!r} is no model behind an account; those are {sorted(known)}: correct the name or remove it"
            problems.append((("money", "prices", name), text))
    problems += _experiment_problems(config, accounts)
    problems += _cells_problems(config)
    if config.analysis.slot_contrasts is not None and all(e.design != "mcq" for e in config.experiments):
        text = "planned contrasts of mcq, and no experiment has this design: remove the key, or use `contrasts`"
        problems.append((("analysis", "slot_contrasts"), text))
    return problems


def is_dated(model: ApiModel) -> bool:
    """Return whether a model id names one version for good; what another server calls its model never does."""
    return model.base_url is None and bool(_DATED[_vendor(model)].search(model.model))


def read_problems(model: ApiModel, experiment: Experiment, *, batch: bool) -> Iterator[Problem]:
    """Yield what an experiment asks for and a model cannot give; keys are relative to the experiment."""
    read = experiment.read
    match read:
        case GenerateRead():
            yield from _temperature_problems(model, read)
        case LogprobRead():
            yield from _logprob_problems(model, read)
        case OptionTextRead():
            yield (
                ("read", "kind"),
                f"`option_text` needs a model that scores given words, which no paid interface offers (model "
                f"{model.id!r}): use `generate`, `logprob` or a local model",
            )
        case DecideRead():
            yield from _decide_problems(model, experiment, batch=batch)
        case CellsRead():
            pass  # which models and data sets it goes with is checked for all vendors at once


def _cells_problems(config: StudyConfig) -> Iterator[Problem]:
    """Yield where published cells and what is asked of a model would be mixed up."""
    published = {model.id: isinstance(model, CellsModel) for model in config.models}
    cells = {dataset.id: dataset.format == "cells" for dataset in config.datasets}
    for place, experiment in enumerate(config.experiments):
        reads = isinstance(experiment.read, CellsRead)
        for key, kind, known in (("models", "`vendor: cells`", published), ("datasets", "`format: cells`", cells)):
            odd = [name for name in getattr(experiment, key) if known[name] != reads]
            if odd:
                expected = f"only {key} with {kind}" if reads else f"no {key} with {kind}"
                yield (
                    ("experiments", place, key),
                    f"{', '.join(odd)}: with `read: {{kind: {experiment.read.kind}}}` an experiment takes {expected}, "
                    "for published cells and asked models must not be mixed; correct `read`, or write two experiments",
                )


def _experiment_problems(config: StudyConfig, accounts: dict[str, Account]) -> Iterator[Problem]:
    models = {model.id: model for model in config.models}
    for place, experiment in enumerate(config.experiments):
        for key, text in _scout_problems(config, experiment):
            yield ("experiments", place, *key), text
        for name in experiment.models:
            model = models[name]
            if isinstance(model, ApiModel):
                account = accounts.get(model.account)
                batch = account is not None and account.mode == "batch"
                for key, text in read_problems(model, experiment, batch=batch):
                    yield ("experiments", place, *key), text


def _scout_problems(config: StudyConfig, experiment: Experiment) -> Iterator[Problem]:
    if experiment.scout is None:
        return
    for dataset in config.datasets:
        if dataset.id in experiment.datasets and dataset.columns.key is None:
            yield (
                ("scout",),
                f"a scout judges a cell by its accuracy, and data set {dataset.id!r} has no key: name its column in "
                "`columns.key`, or remove `scout`",
            )


def _account_problems(model: ApiModel, accounts: dict[str, Account], key: Key) -> Iterator[Problem]:
    account = accounts.get(model.account)
    if account is None:
        known = f"there are {sorted(accounts)}" if accounts else "there is none"
        yield (
            (*key, "account"),
            f"no account {model.account!r} under `accounts` ({known}): add `- {{id: {model.account}, key_env: NAME_OF_"
            "VARIABLE}`, where the environment variable holds the key",
        )
    elif account.key_env is None and model.base_url is None:
        yield (
            (*key, "account"),
            f"accounts.{account.id}.key_env is null, but {_vendor(model)}'s own server takes no call without a key: "
            "name the environment variable that holds it, or set the model's `base_url` to a server that needs none",
        )


def _address_problems(model: ApiModel, key: Key) -> Iterator[Problem]:
    if model.base_url is None:
        return
    try:
        parts = urlsplit(model.base_url)
        credentials = parts.username is not None or parts.password is not None or bool(parts.query)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        credentials, usable = False, False
    if credentials:
        # The value is not repeated: there may be a key in it.
        yield (
            (*key, "base_url"),
            "it holds credentials or a query, and would stand in records and logs: give the bare address, and put the "
            "key into the environment variable that the account's `key_env` names",
        )
    elif not usable:
        # Nor here, for the same reason.
        yield (*key, "base_url"), "expected an address such as http://127.0.0.1:8080/v1; correct it"


def _secret_problems(value: Json, key: Key) -> Iterator[Problem]:
    """Yield where anything in the study looks like a key; neither a value nor a name that is one is repeated."""
    if isinstance(value, Mapping):
        if any(map(holds_key, value)):
            yield key, HOLDS_KEY
        for name, part in value.items():
            if not holds_key(name):
                yield from _secret_problems(part, (*key, name))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _secret_problems(part, (*key, place))
    elif holds_key(value):
        yield key, HOLDS_KEY


def _price_problems(model: ApiModel, config: StudyConfig) -> Iterator[Problem]:
    if model.id not in config.money.prices:
        yield (
            ("money", "prices"),
            f"no prices for model {model.id!r}, and none is built in: add `{model.id}: {{input: ..., output: ...}}` in "
            "US dollars per million tokens from the vendor's price list; write 0 for both if it costs nothing",
        )


def _dating_problems(model: ApiModel, key: Key, *, confirmatory: bool) -> Iterator[Problem]:
    if confirmatory and not model.allow_undated and not is_dated(model):
        yield (
            (*key, "model"),
            f"{model.model!r} names no dated version, so other weights may answer under the same name while or after a "
            "preregistered study runs: use a dated id, or write `allow_undated: true` for this model",
        )


def _pinning_problems(model: TransformersModel, key: Key, *, confirmatory: bool) -> Iterator[Problem]:
    if not confirmatory or model.allow_unpinned or model.revision or model.files_sha256:
        return
    if model.hub_id is not None:
        what, advice = "hub_id", "add `revision`, the commit of the hub's repository (40 digits)"
    else:
        what, advice = "folder", "add `files_sha256`, the hash of its files (docs/transformers.md says how to get it)"
    yield (
        (*key, what),
        f"{model.hub_id or model.folder!r} is not pinned, so other weights may answer under the same name while or "
        f"after a preregistered study runs: {advice}, or write `allow_unpinned: true` for this model",
    )


def _seed_problems(model: ApiModel, key: Key) -> Iterator[Problem]:
    if model.seed is None:
        return
    if isinstance(model, AnthropicModel):
        yield (*key, "seed"), "Anthropic's interface takes no seed: remove it"
    elif "seed" in model.does_not_accept:
        yield (*key, "seed"), "a seed is set and `does_not_accept` says that the model refuses one: remove one of them"


def _parameter_problems(model: ApiModel, key: Key) -> Iterator[Problem]:
    """Yield settings of a model that cannot be sent, or with which its prices would not hold."""
    if isinstance(model, OpenAIModel):
        for name, reason in refused_fields(model.extra):
            yield (*key, "extra", name), f"model {model.id!r} may not be sent `{name}`: {reason}; remove it"
    elif isinstance(model, GoogleModel) and model.thinking_level is not None and model.thinking_budget is not None:
        yield (
            (*key, "thinking_budget"),
            "the interface takes `thinking_level` (Gemini 3 and later) or `thinking_budget` (Gemini 2.5), not both: "
            "remove one",
        )


def _temperature_problems(model: ApiModel, read: GenerateRead) -> Iterator[Problem]:
    refuses = isinstance(model, AnthropicModel) and model.api_version is None
    if refuses and read.temperature is not None and "temperature" not in model.does_not_accept:
        yield (
            ("read", "temperature"),
            f"Anthropic's interface takes no temperature (model {model.id!r}): write `temperature: null` here, or "
            "`does_not_accept: [temperature]` for the model so that the report says it was not sent, or, for an old "
            'model that still takes one, `api_version: "2023-06-01"`',
        )


def _logprob_problems(model: ApiModel, read: LogprobRead) -> Iterator[Problem]:
    if isinstance(model, AnthropicModel) or "logprobs" in model.does_not_accept:
        why = (
            "Anthropic's interface gives no log-probabilities"
            if isinstance(model, AnthropicModel)
            else "its `does_not_accept` lists logprobs"
        )
        yield (
            ("read", "kind"),
            f"`logprob` needs log-probabilities, which model {model.id!r} does not give ({why}): use another read, or "
            "leave the model out of this experiment; written answers are never taken in their place",
        )
    elif read.top > MOST_TOP and isinstance(model, OpenAIModel | GoogleModel):
        yield (
            ("read", "top"),
            f"{_vendor(model)} lists at most {MOST_TOP} log-probabilities (model {model.id!r}, asked for {read.top}): "
            f"write `top: {MOST_TOP}` or less",
        )


def _decide_problems(model: ApiModel, experiment: Experiment, *, batch: bool) -> Iterator[Problem]:
    if isinstance(model, AnthropicModel):
        yield ("read", "kind"), f"Anthropic has no endpoint for `decide` (model {model.id!r}): use `generate`"
        return
    if batch:
        yield (
            ("read", "kind"),
            f"`decide` cannot be asked in batches (model {model.id!r}): write `mode: live` for account "
            f"{model.account!r}, or give the model another account",
        )
    # Model, prompt and question are all that either decision endpoint takes.
    names = ", ".join(name for name in _NOT_DECIDED if getattr(model, name, None) not in (None, {}))
    if names:
        yield (
            ("read", "kind"),
            f"models.{model.id} sets {names}, which the decision endpoint that experiment {experiment.id!r} asks does "
            f"not take: give this experiment an entry of its own under `models`, without {names}",
        )


def _vendor(model: ApiModel) -> str:
    return (
        "google" if isinstance(model, GoogleModel) else "anthropic" if isinstance(model, AnthropicModel) else "openai"
    )
