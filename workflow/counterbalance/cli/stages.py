"""One command per stage; each reads artifacts, writes artifacts and says in a line what it did."""

from pathlib import Path

import click

from counterbalance.cli.options import dataset_option, experiment_option, model_option, say, study_option
from counterbalance.config import Study


@click.command()
@study_option
def resolve(study: Study) -> None:
    """Check the study file and write every setting, defaults included, to results/STUDY/study.json."""
    from counterbalance.stages.resolve import resolve_study

    say(f"wrote {resolve_study(study)}; settings {study.sha256}")


@click.command()
@study_option
@dataset_option
def prepare(study: Study, dataset: str) -> None:
    """Read and check a data set; write its items, and the rows it excludes with the reason."""
    from counterbalance.stages.prepare import prepare_items

    say(prepare_items(study, dataset))


@click.command()
@study_option
@experiment_option
@dataset_option
def expand(study: Study, experiment: str, dataset: str) -> None:
    """Render every prompt of an experiment: item x arrangement x repeat, the same for every model."""
    from counterbalance.stages.expand import expand_trials

    say(expand_trials(study, experiment, dataset))


@click.command()
@study_option
@click.option("--amend", is_flag=True, help="Freeze a changed plan as an amendment that chains to the one before.")
@click.option("--reason", help="Why the plan is amended; needed with --amend, and published.")
def freeze(study: Study, amend: bool, reason: str | None) -> None:
    """Freeze the plan, its predictions, the items and the prompts, before any reply is bought.

    Writes preregistration/frozen/STUDY-N.json and a file for `sha256sum -c`, once and for ever. Commit both, and
    publish the hash somewhere you do not control if others are to believe the date.
    """
    from counterbalance.stages.freeze import freeze as freeze_study

    if amend != (reason is not None):
        raise click.UsageError("--amend and --reason TEXT go together")
    say(freeze_study(study, reason=reason))


@click.command()
@study_option
@experiment_option
@model_option
def preflight(study: Study, experiment: str, model: str) -> None:
    """Ask a paid model one call, kept for the sweep, and see that it is answered as the study needs.

    Where the reply shows nothing of the model, as when it refuses the item, the next item follows, up to five. Stops
    before anything else is spent if the key or a parameter is refused, the model is unknown, or nothing that the study
    reads comes back. Run again, it asks nothing.
    """
    from counterbalance.progress import make_progress
    from counterbalance.stages.preflight import preflight_model

    say(preflight_model(study, experiment, model, make_progress("none")))


@click.command()
@study_option
@experiment_option
@model_option
@dataset_option
@click.option("--progress", type=click.Choice(["auto", "plain", "none"]), default="auto", help="Progress on stderr.")
def query(study: Study, experiment: str, model: str, dataset: str, progress: str) -> None:
    """Ask a model what is still unanswered. Stop it at any time, even with kill -9: run it again and it goes on."""
    from counterbalance.progress import make_progress
    from counterbalance.stages.query import query_replies

    say(query_replies(study, experiment, model, dataset, make_progress(progress)))


@click.command()
@study_option
@experiment_option
@model_option
@dataset_option
def score(study: Study, experiment: str, model: str, dataset: str) -> None:
    """Read each reply's answer. Free: nothing is asked of the model."""
    from counterbalance.stages.score import score_replies

    say(score_replies(study, experiment, model, dataset))


@click.command()
@study_option
@experiment_option
@model_option
@dataset_option
def contrast(study: Study, experiment: str, model: str, dataset: str) -> None:
    """Estimate one cell: accuracy, V, tests, shape, each with interval, n and status."""
    from counterbalance.stages.contrast import estimate_cell

    say(estimate_cell(study, experiment, model, dataset))


@click.command()
@study_option
def combine(study: Study) -> None:
    """Join all cells, correct over the family, and judge every frozen prediction."""
    from counterbalance.stages.contrast import combine_estimates

    say(combine_estimates(study))


@click.command()
@study_option
def report(study: Study) -> None:
    """Write results/STUDY/report.html, one self-contained file for a person."""
    from counterbalance.stages.report import render_report

    say(f"wrote {render_report(study)}")


@click.command()
@study_option
def manifest(study: Study) -> None:
    """List every artifact with its hashes in results/STUDY/manifest.json."""
    from counterbalance.stages.verify import write_manifest

    say(f"wrote {write_manifest(study)}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Also write the findings here.")
def verify(folder: Path, output: Path | None) -> None:
    """Check published results: hashes, the chain to the frozen record, and every number derived again.

    FOLDER is a study's results, for example results/demo. Needs no key and asks no model. The findings go to standard
    output, whether everything holds or not; if something does not, the exit code is 5.
    """
    from counterbalance.errors import VerificationError
    from counterbalance.files import write_bytes
    from counterbalance.stages.verify import verify as verify_folder
    from counterbalance.verification.findings import NotVerifiedError

    try:
        report, holds = verify_folder(folder), True
    except NotVerifiedError as error:
        report, holds = error.report, False
    if output is not None:
        write_bytes(output, f"{report}\n".encode())
    say(report)
    if not holds:
        raise VerificationError(f"{report.verdict}; the lines that begin with FAIL say what, and where")
