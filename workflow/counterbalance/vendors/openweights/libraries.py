"""The optional libraries, imported when a model is opened and never before."""

import importlib
import importlib.metadata
from dataclasses import dataclass
from typing import Any

from counterbalance.errors import VendorError

_EXTRA = ("torch", "transformers", "tokenizers", "safetensors")


@dataclass(frozen=True)
class Libraries:
    """PyTorch and transformers as modules; they are not typed here, for they need not be installed."""

    torch: Any
    transformers: Any

    @property
    def versions(self) -> str:
        """Names and versions of everything that numbers depend on."""
        return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _EXTRA)


def load_libraries() -> Libraries:
    """Import PyTorch and transformers, and keep transformers from writing to the terminal.

    Raises
    ------
    VendorError
        If the extra is not installed, or cannot be loaded on this machine.
    """
    for name in _EXTRA:
        load(name)
    found = Libraries(load("torch"), load("transformers"))
    found.transformers.logging.set_verbosity_error()
    found.transformers.logging.disable_progress_bar()
    return found


def load(name: str) -> Any:
    """Import one of the extra's libraries.

    Raises
    ------
    VendorError
        As `load_libraries`.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        raise VendorError(
            f"models with `vendor: transformers` need the optional extra `transformers` of this package, and {name!r} "
            f"cannot be imported ({error}): install the extra into the environment that runs the study, with "
            "`uv pip install --override envs/overrides.txt -e '.[transformers]'` in the project's folder; "
            "docs/transformers.md has the way without uv. Replies that were bought before are read without it"
        ) from error
