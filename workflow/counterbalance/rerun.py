"""What a stage depends on besides its input files: its own settings and its own code, as one hash.

Snakemake runs a rule again when its parameters change. Giving it one hash per stage and cell makes an edited scoring
rule score again and an edited report render again, and nothing else.
"""

from collections.abc import Callable

from counterbalance.canonical import Json, sha256_json
from counterbalance.codedigest import stage_digest
from counterbalance.config import Study
from counterbalance.designs import DESIGNS

_MODULES = {"combine": "contrast", "manifest": "verify", "scout-trials": "scout_trials"}
STAGES = (
    "resolve",
    "prepare",
    "expand",
    "scout-trials",
    "freeze",
    "preflight",
    "scout",
    "decide",
    "query",
    "score",
    "contrast",
    "combine",
    "report",
    "manifest",
)


_DOORS = {
    "expand": ["expand"],
    "scout-trials": ["expand"],
    "scout": ["score"],
    "score": ["score"],
    "contrast": ["estimate"],
    "combine": ["verdict", "compare"],
}


def code_modules(stage: str) -> list[str]:
    """Return the modules where a stage's code starts: its own, and its doors in every design."""
    doors = [f"designs.{design}.{door}" for door in _DOORS.get(stage, []) for design in DESIGNS]
    return [f"stages.{_MODULES.get(stage, stage)}", *doors]


def code_sha256(stage: str) -> str:
    """Digest of the code that a stage runs, everything it imports from this package included."""
    return stage_digest(*code_modules(stage))


def settings_sha256(study: Study, stage: str, **names: str) -> str:
    """Digest of the settings that a stage reads.

    Parameters
    ----------
    study
        The loaded study.
    stage
        One of `STAGES`.
    names
        ``experiment``, ``model`` and ``dataset`` ids, as far as the stage has them.
    """
    return sha256_json(_SETTINGS.get(stage, _whole)(study, names))


def rerun_key(study: Study, stage: str, **names: str) -> str:
    """Digest of a stage's settings and code together."""
    return sha256_json([settings_sha256(study, stage, **names), code_sha256(stage)])


def _whole(study: Study, names: dict[str, str]) -> Json:
    return study.resolved


def _prepare(study: Study, names: dict[str, str]) -> Json:
    return {"seed": study.config.seed, "dataset": study.dataset(names["dataset"]).model_dump(mode="json")}


def _expand(study: Study, names: dict[str, str]) -> Json:
    experiment = study.experiment(names["experiment"])
    keys = {"id", "design", "prompt", "read", "arrangement", "crossing", "repeats", "repeat_share"}
    analysis = study.config.analysis
    contrasts = {"crossing": analysis.contrasts, "mcq": analysis.slot_contrasts}.get(experiment.design)
    return {
        "seed": study.config.seed,
        "experiment": experiment.model_dump(mode="json", include=keys),
        "max_arrangements": study.config.limits.max_arrangements,
        # Its expansion checks them, before anything is frozen.
        "contrasts": contrasts.model_dump(mode="json") if contrasts else None,
    }


def _query(study: Study, names: dict[str, str]) -> Json:
    model = study.model(names["model"]).model_dump(mode="json")
    settings = {**_expand(study, names), "call_order": study.experiment(names["experiment"]).call_order}
    return {**settings, "model": model, "limits": study.config.limits.model_dump(mode="json")}


def _scout_trials(study: Study, names: dict[str, str]) -> Json:
    scout = study.experiment(names["experiment"]).scout
    return {**_expand(study, names), "items": scout.items if scout else None}


def _scout(study: Study, names: dict[str, str]) -> Json:
    scout, prices = study.experiment(names["experiment"]).scout, study.config.money.prices.get(names["model"])
    account = getattr(study.model(names["model"]), "account", None)
    return {
        **_query(study, names),
        "scout": scout.model_dump(mode="json") if scout else None,
        "analysis": study.config.analysis.model_dump(mode="json"),
        "prices": prices.model_dump(mode="json") if prices else None,
        "mode": None if account is None else study.account(account).mode,
    }


def _decide(study: Study, names: dict[str, str]) -> Json:
    return {"study": study.config.id, "cells": [cell.name for cell in study.scouted_cells()]}


def _score(study: Study, names: dict[str, str]) -> Json:
    return study.experiment(names["experiment"]).model_dump(
        mode="json", include={"design", "prompt", "read", "repeats"}
    )


def _contrast(study: Study, names: dict[str, str]) -> Json:
    analysis = study.config.analysis
    # The level at which a cell's null is claimed depends on how many cells its family has.
    within = (names["experiment"],) if analysis.family == "experiment" else None
    family: list[Json] = [c.name for c in study.cells() if within is None or c.experiment.id in within]
    return {"analysis": analysis.model_dump(mode="json"), "family": family, **_score(study, names)}


def _combine(study: Study, names: dict[str, str]) -> Json:
    return {"analysis": study.config.analysis.model_dump(mode="json"), "study": study.config.id}


_SETTINGS: dict[str, Callable[[Study, dict[str, str]], Json]] = {
    "prepare": _prepare,
    "expand": _expand,
    "scout-trials": _scout_trials,
    "preflight": _query,
    "scout": _scout,
    "decide": _decide,
    "query": _query,
    "score": _score,
    "contrast": _contrast,
    "combine": _combine,
}
