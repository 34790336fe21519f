"""Options that several commands share."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from counterbalance.config import Study, load_study

Command = TypeVar("Command", bound=Callable[..., Any])


def say(text: object) -> None:
    """Print a line, and write it to the log file where there is one."""
    logging.getLogger("counterbalance").info("%s", text)
    click.echo(str(text))


def _load(ctx: click.Context, parameter: click.Parameter, value: Path) -> Study:
    return load_study(value)


def study_option(command: Command) -> Command:
    """Add `--study FILE`, given to the command as a loaded study."""
    return click.option(
        "--study",
        required=True,
        type=click.Path(path_type=Path),
        callback=_load,
        help="Study file, for example config/studies/demo.yaml.",
    )(command)


def experiment_option(command: Command) -> Command:
    """Add `--experiment ID`."""
    return click.option("--experiment", required=True, help="Id of an experiment in the study file.")(command)


def model_option(command: Command) -> Command:
    """Add `--model ID`."""
    return click.option("--model", required=True, help="Id of a model in the study file.")(command)


def dataset_option(command: Command) -> Command:
    """Add `--dataset ID`."""
    return click.option("--dataset", required=True, help="Id of a data set in the study file.")(command)
