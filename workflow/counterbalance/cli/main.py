"""The root command: help, errors with exit codes, and a log file where Snakemake asks for one."""

import logging
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from counterbalance import __version__
from counterbalance.errors import CounterbalanceError
from counterbalance.keys import redact

_COMMANDS = {
    "resolve": "stages",
    "prepare": "stages",
    "expand": "stages",
    "scout-trials": "scout",
    "freeze": "stages",
    "preflight": "stages",
    "scout": "scout",
    "decide": "scout",
    "query": "stages",
    "score": "stages",
    "contrast": "stages",
    "combine": "stages",
    "report": "stages",
    "manifest": "stages",
    "verify": "stages",
    "answer": "answer",
    "plan": "plan",
    "power": "power",
    "validate": "validate",
    "doctor": "doctor",
    "analyze": "analyze",
}


class _Root(click.Group):
    """Loads a command's module only when it is called: Snakemake starts a process per job."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f"counterbalance.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CounterbalanceError as error:
            logging.getLogger("counterbalance").error("%s", error)
            click.echo(redact(f"counterbalance: {error}"), err=True)
            ctx.exit(error.exit_code)


@click.group(
    cls=_Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 other error, 2 study file or usage, 3 input data, 4 frozen record, "
    "5 verification, 6 calls still pending (run again), 7 ledger in use, 8 model or vendor, 9 degenerate data, "
    "10 no credit left, 11 key refused, 12 a cap is met.",
)
@click.version_option(__version__, prog_name="counterbalance")
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), help="Also write messages to this file.")
def main(log: Path | None) -> None:
    """Measure position bias in language models.

    Usually you type `snakemake --cores 2`, which runs every stage in order. Each stage is also a command here:

    \b
      resolve -> prepare -> expand -> freeze -> preflight -> query -> score -> contrast -> combine -> report ->
      manifest -> verify

    With `scout` in an experiment, scout-trials comes before freeze, scout and decide before query (docs/scout.md).

    Before a study: `counterbalance plan --study FILE` says how many calls it needs, what they cost and how long they
    take; `counterbalance power` which bias it would show.
    With logs of your own: `counterbalance analyze mcq runs.csv`.
    To check somebody's results: `counterbalance verify results/demo`.
    """
    logger = logging.getLogger("counterbalance")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    handler: logging.Handler = logging.NullHandler()
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(log, mode="w", encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.info("counterbalance %s: %s", __version__, " ".join(sys.argv[1:]))
