"""The registry of designs."""

from counterbalance.designs.base import Design
from counterbalance.errors import ConfigError

__all__ = ["DESIGNS", "Design", "get_design"]

DESIGNS = ("mcq", "crossing")


def get_design(name: str) -> Design:
    """Return a design by the name that studies use.

    Raises
    ------
    ConfigError
        If there is no such design.
    """
    if name not in DESIGNS:
        raise ConfigError(f"no design {name!r}; there are {', '.join(DESIGNS)}")
    return Design(name)
