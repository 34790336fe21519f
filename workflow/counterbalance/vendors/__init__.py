"""The registry of vendors."""

from counterbalance.config import Experiment, Model, Study
from counterbalance.config.models import LocalModel, ReplayModel, SimulatedModel
from counterbalance.vendors.base import Vendor

__all__ = ["get_vendor"]


def get_vendor(model: Model, experiment: Experiment, study: Study) -> Vendor:
    """Return the vendor of a model, set up for an experiment but not open yet.

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
        case SimulatedModel():
            from counterbalance.vendors.simulated import SimulatedVendor

            return SimulatedVendor(model, experiment)
        case ReplayModel():
            from counterbalance.vendors.replay import ReplayVendor

            return ReplayVendor(model, experiment, study)
