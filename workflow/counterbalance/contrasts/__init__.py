"""Planned contrasts: named expressions over the effects of conditions, checked, evaluated per item, estimated."""

from counterbalance.config.contrasts import Condition, Contrast, ContrastFile
from counterbalance.contrasts.estimate import Estimate, Resampling, estimate_means
from counterbalance.contrasts.family import ContrastEstimate, estimate_contrasts
from counterbalance.contrasts.plan import ContrastPlan, PlannedContrast, load_contrasts
from counterbalance.contrasts.table import EffectTable

__all__ = [
    "Condition",
    "Contrast",
    "ContrastEstimate",
    "ContrastFile",
    "ContrastPlan",
    "EffectTable",
    "Estimate",
    "PlannedContrast",
    "Resampling",
    "estimate_contrasts",
    "estimate_means",
    "load_contrasts",
]
