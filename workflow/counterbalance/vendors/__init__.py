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
from counterbalance.vendors.base import PaidVendor, Vendor

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
        case OpenAIModel() | AnthropicModel() | GoogleModel():
            return _paid_vendor(model, experiment, study)


def _paid_vendor(model: OpenAIModel | AnthropicModel | GoogleModel, experiment: Experiment, study: Study) -> PaidVendor:
    account = study.account(model.account)
    batch = account.mode == "batch"
    match model:
        case OpenAIModel():
            if batch:
                from counterbalance.vendors.openai_batch import OpenAIBatchVendor

                return OpenAIBatchVendor(model, account, experiment, study)
            from counterbalance.vendors.openai_vendor import OpenAIVendor

            return OpenAIVendor(model, account, experiment, study)
        case AnthropicModel():
            if batch:
                from counterbalance.vendors.anthropic_batch import AnthropicBatchVendor

                return AnthropicBatchVendor(model, account, experiment, study)
            from counterbalance.vendors.anthropic_vendor import AnthropicVendor

            return AnthropicVendor(model, account, experiment, study)
        case GoogleModel():
            if batch:
                from counterbalance.vendors.google_batch import GoogleBatchVendor

                return GoogleBatchVendor(model, account, experiment, study)
            from counterbalance.vendors.google_vendor import GoogleVendor

            return GoogleVendor(model, account, experiment, study)
