"""The command line: one command per stage, and the ones a person needs around them."""

from counterbalance.cli.main import main

__all__ = ["main"]
