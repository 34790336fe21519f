"""Which design is shown by which room of the report; a further design adds one line here."""

from collections.abc import Callable

from counterbalance.config import Experiment
from counterbalance.errors import ConfigError
from counterbalance.report.mcq.glossary import GLOSSARY as MCQ_GLOSSARY
from counterbalance.report.mcq.section import Section, build_section
from counterbalance.report.sources import Sources

_SECTIONS: dict[str, Callable[[Sources, Experiment], Section]] = {"mcq": build_section}
_GLOSSARIES = {"mcq": MCQ_GLOSSARY}


def section_of(sources: Sources, experiment: Experiment) -> Section:
    """Return an experiment's view.

    Raises
    ------
    ConfigError
        If the report knows no such design.
    """
    if experiment.design not in _SECTIONS:
        raise ConfigError(f"experiment {experiment.id!r}: the report cannot show design {experiment.design!r}")
    return _SECTIONS[experiment.design](sources, experiment)


def glossary_of(designs: set[str]) -> list[tuple[str, str, str]]:
    """Return term, quantity names and meaning for the designs in a study."""
    return [entry for design in sorted(designs) for entry in _GLOSSARIES[design]]
