"""One job of the validation study, or its end: what the workflow's rules call."""

from pathlib import Path

import click

from counterbalance.validation.collect import collect_study, write_job
from counterbalance.validation.jobs import run_job, size_named


@click.group()
def main() -> None:
    """Run parts of the validation study; `counterbalance validate` runs all of it."""


@main.command()
@click.argument("name")
@click.option("--size", required=True)
@click.option("--to", "path", required=True, type=click.Path(path_type=Path))
def job(name: str, size: str, path: Path) -> None:
    """Run one job and write its counts."""
    write_job(path, run_job(name, size_named(size)))


@main.command()
@click.argument("jobs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--size", required=True)
@click.option("--to", "folder", required=True, type=click.Path(path_type=Path))
def collect(jobs: tuple[Path, ...], size: str, folder: Path) -> None:
    """Join the jobs' counts."""
    collect_study(size_named(size), jobs, folder)


main()
