"""The command that a record names, as a person would type it."""

from counterbalance.artifacts.records import relative
from counterbalance.config import Study


def command_line(study: Study, stage: str, **names: str) -> list[str]:
    """Return the command of a stage, with the study's path relative to the project."""
    command = ["counterbalance", stage, "--study", relative(study.path, study.root)]
    for name, value in names.items():
        command += [f"--{name}", value]
    return command
