"""The study file: typed, strict, resolved and hashed."""

from counterbalance.config.layout import Layout
from counterbalance.config.models import (
    Analysis,
    Arrangement,
    Dataset,
    Experiment,
    Limits,
    Model,
    Prompt,
    Read,
    StudyConfig,
)
from counterbalance.config.study import Cell, Study, load_study

__all__ = [
    "Analysis",
    "Arrangement",
    "Cell",
    "Dataset",
    "Experiment",
    "Layout",
    "Limits",
    "Model",
    "Prompt",
    "Read",
    "Study",
    "StudyConfig",
    "load_study",
]
