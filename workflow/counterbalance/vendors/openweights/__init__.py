"""Models with open weights through PyTorch, an optional extra: nothing here imports it before a model is opened."""

from counterbalance.vendors.openweights.engine import Span, TorchEngine
from counterbalance.vendors.openweights.files import ModelFiles, check_files, find_folder, read_files

__all__ = ["ModelFiles", "Span", "TorchEngine", "check_files", "find_folder", "read_files"]
