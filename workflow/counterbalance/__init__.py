"""Measure position bias in language models, from frozen plan to verified report."""

__version__ = "0.1.0"
