"""The registry of designs."""

from collections.abc import Callable

from counterbalance.designs.base import Design, Estimate
from counterbalance.errors import ConfigError

__all__ = ["Design", "Estimate", "get_design"]


def _mcq() -> Design:
    from counterbalance.designs.mcq import McqDesign

    return McqDesign()


_DESIGNS: dict[str, Callable[[], Design]] = {"mcq": _mcq}


def get_design(name: str) -> Design:
    """Return a design by the name that studies use.

    Raises
    ------
    ConfigError
        If there is no such design.
    """
    if name not in _DESIGNS:
        raise ConfigError(f"no design {name!r}; there are {', '.join(_DESIGNS)}")
    return _DESIGNS[name]()
