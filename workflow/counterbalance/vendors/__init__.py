"""The registry of vendors."""

from counterbalance.config import Experiment, Model, Study
from counterbalance.config.models import (
    AnthropicModel,
    CellsModel,
    GoogleModel,
    LocalModel,
    OpenAIModel,
    ReplayModel,
    SimulatedModel,
    TransformersModel,
)
from counterbalance.vendors.base import Vendor

__all__ = ["get_vendor"]


def get_vendor(model: Model, experiment: Experiment, study: Study) -> Vendor:
    """Return the vendor of a model, set up for an experiment but not open yet; needs no key.

    A model behind an account whose mode is `batch` comes as a `BatchVendor`, which can also be asked call by call.

    Raises
    ------
    ConfigError
        If the model's settings do not fit the experiment.
    VendorError
        If the model cannot be used here.
    """
    match model:
        case LocalModel():
            from counterbalance.vendors.local_vendor import LocalVendor

            return LocalVendor(model, experiment, study)
        case TransformersModel():
            from counterbalance.vendors.transformers_vendor import TransformersVendor

            return TransformersVendor(model, experiment, study)
        case SimulatedModel():
            from counterbalance.vendors.simulated import SimulatedVendor

            return SimulatedVendor(model, experiment)
        case ReplayModel():
            from counterbalance.vendors.replay import ReplayVendor

            return ReplayVendor(model, experiment, study)
        case CellsModel():
            from counterbalance.vendors.cells import CellsVendor

            return CellsVendor(model, experiment, study)
        case OpenAIModel():
            from counterbalance.vendors.openai_batch import OpenAIBatchVendor
            from counterbalance.vendors.openai_vendor import OpenAIVendor

            account = study.account(model.account)
            return (OpenAIBatchVendor if account.mode == "batch" else OpenAIVendor)(model, account, experiment, study)
        case AnthropicModel():
            from counterbalance.vendors.anthropic_batch import AnthropicBatchVendor
            from counterbalance.vendors.anthropic_vendor import AnthropicVendor

            account = study.account(model.account)
            return (AnthropicBatchVendor if account.mode == "batch" else AnthropicVendor)(
                model, account, experiment, study
            )
        case GoogleModel():
            from counterbalance.vendors.google_batch import GoogleBatchVendor
            from counterbalance.vendors.google_vendor import GoogleVendor

            account = study.account(model.account)
            return (GoogleBatchVendor if account.mode == "batch" else GoogleVendor)(model, account, experiment, study)
