"""`counterbalance validate`: are the tests as strict, and the intervals as wide, as they say?"""

import os
import subprocess
import sys
from pathlib import Path

import click

import counterbalance
from counterbalance.errors import ConfigError, CounterbalanceError

_SNAKEFILE = Path(counterbalance.__file__).parents[1] / "validation" / "Snakefile"
_STDERR = 2
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@click.command()
@click.option(
    "--size",
    type=click.Choice(["small", "full"]),
    default="small",
    show_default=True,
    help="small: a few scenarios, under a minute; full: all of them, up to 20 minutes on 2 cores.",
)
@click.option("--cores", type=click.IntRange(1), default=2, show_default=True, help="Scenarios run at once.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results/validation"),
    show_default=True,
    help="Folder of the report; an interrupted study goes on there.",
)
@click.option(
    "--docs",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="With size full: also renew the tables of validation.md in this folder, and counts and figures beside it.",
)
def validate(size: str, cores: int, out: Path, docs: Path | None) -> None:
    """Check the statistics by simulation: type I error and power of every test, coverage of every interval.

    Planted respondents answer, and the pipeline's own code scores and estimates. Writes validation.json, validation.md
    and figures.
    """
    from counterbalance.canonical import parse_json
    from counterbalance.validation.docs import renew_docs
    from counterbalance.validation.text import study_markdown

    if docs is not None and size != "full":
        raise ConfigError(f"--docs with size {size!r}: the documentation holds a run of size full; add --size full")
    run_workflow(size, cores, out)
    path = out / "validation.json"
    click.echo(study_markdown(parse_json(path.read_bytes(), source=str(path))))
    click.echo(f"report: {out / 'validation.md'}")
    for written in renew_docs(out, docs) if docs is not None else ():
        click.echo(f"renewed: {written}")


def run_workflow(size: str, cores: int, out: Path) -> None:
    """Run the study's workflow in a folder.

    Raises
    ------
    ConfigError
        If the package was installed without its workflow.
    CounterbalanceError
        If a job failed; Snakemake has said which.
    """
    if not _SNAKEFILE.is_file():
        raise ConfigError(f"{_SNAKEFILE}: not there; run `validate` from a clone of the project")
    out.mkdir(parents=True, exist_ok=True)
    package = str(_SNAKEFILE.parents[1])
    paths = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": paths}
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(_SNAKEFILE), "--directory", str(out)]
    command += ["--cores", str(cores), "--config", f"size={size}", "--workflow-profile", "none", "--quiet", "rules"]
    command += ["--rerun-incomplete", "--nolock", "--keep-going", "--show-failed-logs"]
    # By number, since a captured sys.stderr is no file; standard output is the report's alone.
    done = subprocess.run(command, env=environment, stdout=_STDERR, check=False)
    if done.returncode:
        raise CounterbalanceError(
            f"the study stopped (exit code {done.returncode}); see the messages above and {out / 'logs'}, "
            "then type the same command again: what is done is kept"
        )
