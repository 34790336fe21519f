# Study: load and check the settings once, for all rules.
#
# Needs:  the study file.
# Leaves: nothing; the settings, paths and input functions that the rules share.

import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from counterbalance.config import load_study
from counterbalance.designs.family import other_datasets
from counterbalance.designs.pairs import compared_cells
from counterbalance.errors import CounterbalanceError
from counterbalance.prereg.gate import check_gate, plan_hash
from counterbalance.rerun import rerun_key
from counterbalance.scouting.outcome import swept_cells

if workflow.config_settings.config:
    raise WorkflowError(
        "--config is not read: every setting that matters is in the study file, where it is checked, hashed and "
        "frozen. Edit the file, or give another with --configfile."
    )

CONFIG_FILES = workflow.config_settings.configfiles or ["config/studies/demo.yaml"]
STUDY_FILE = os.path.relpath(CONFIG_FILES[-1])

try:
    study = load_study(STUDY_FILE)
except CounterbalanceError as error:
    raise WorkflowError(str(error))

if study.root != Path.cwd():
    raise WorkflowError(
        f"{STUDY_FILE} belongs to the project in {study.root}; run snakemake there."
    )

layout = study.layout
RESULTS = f"results/{study.config.id}"
LOGS = f"logs/{study.config.id}"
CELLS = list(study.cells())
SCOUTED = list(study.scouted_cells())
TRIED = [f"{RESULTS}/.tried/{e.id}/{m.id}" for e, m in study.preflights()]


wildcard_constraints:
    experiment="[A-Za-z][A-Za-z0-9_-]*",
    model="[A-Za-z][A-Za-z0-9_-]*",
    dataset="[A-Za-z][A-Za-z0-9_-]*",


def key_of(stage):
    """The stage's settings and code as one hash, so that only what changed runs again."""
    return lambda wildcards: rerun_key(study, stage, **dict(wildcards.items()))


def frozen_record(wildcards):
    """The frozen record, or a stop: no rule that can buy a reply gets past a missing record or a changed plan."""
    try:
        return ancient(os.path.relpath(check_gate(study, trials=False).path))
    except CounterbalanceError as error:
        raise WorkflowError(str(error))


def frozen_plan(wildcards):
    """The plan's hash; what is wrong with the plan is said here, before any job."""
    try:
        return plan_hash(study)
    except CounterbalanceError as error:
        raise WorkflowError(str(error))


def data_file(wildcards):
    """The data set's file; a pinned hf:// path is fetched and checked by prepare itself."""
    path = study.dataset(wildcards.dataset).path
    return [] if path.startswith("hf://") else str(path)


def first_trials(wildcards):
    """The trials of an experiment's first data set, where the preflight takes its call from."""
    dataset = study.experiment(wildcards.experiment).datasets[0]
    return f"{RESULTS}/trials/{wildcards.experiment}/{dataset}.parquet"


def tries_in_vain(wildcards):
    """How often a model could not be tried so far; once more than when it was, and it is tried again."""
    path = Path(f"{RESULTS}/.tried/{wildcards.experiment}/{wildcards.model}.waits")
    return len(path.read_text().splitlines()) if path.is_file() else 0


def others_tried(wildcards):
    """The tries of all other paid models; one that is made again changes nothing for this one."""
    own = f"{RESULTS}/.tried/{wildcards.experiment}/{wildcards.model}"
    return [ancient(path) for path in TRIED if path != own]


def own_preflight(wildcards):
    """The preflight of a cell's own model, if it is behind an account."""
    pair = f"{wildcards.experiment}/{wildcards.model}"
    paid = f"{RESULTS}/.tried/{pair}" in TRIED
    return f"{RESULTS}/preflight/{pair}.json" if paid else []


def scout_decision(wildcards):
    """What the scout of a cell decided, where its experiment has one: the cell is asked after that, not beside it."""
    if study.experiment(wildcards.experiment).scout is None:
        return []
    cell = f"{wildcards.experiment}/{wildcards.model}/{wildcards.dataset}"
    return ancient(f"{RESULTS}/scout/decisions/{cell}.json")


def kept_cells():
    """Every cell; those that are kept, once all scouts have decided."""
    if not SCOUTED:
        return CELLS
    checkpoints.decide_cells.get()
    return swept_cells(study)


def cell_estimates(wildcards):
    """The estimates of every cell that is asked."""
    return [f"{RESULTS}/cells/{c.name}.parquet" for c in kept_cells()]


def family_items(wildcards):
    """The items of the family's other data sets: how many tests a cell's null stands beside depends on them."""
    cell = study.cell(wildcards.experiment, wildcards.model, wildcards.dataset)
    return [f"{RESULTS}/items/{name}.parquet" for name in other_datasets(study, cell)]


def compared_outcomes(wildcards):
    """The outcomes of the cells that are compared with one another."""
    return [
        f"{RESULTS}/outcomes/{c.name}.parquet"
        for c in compared_cells(study, kept_cells())
    ]


def prompt_files(wildcards):
    """The experiment's template and, where named, its solved examples."""
    prompt = study.experiment(wildcards.experiment).prompt
    return [name for name in (prompt.template, prompt.examples) if name]
