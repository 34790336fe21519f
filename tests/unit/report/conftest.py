from pathlib import Path

import pytest
from sample import make_sample, sources_of

from counterbalance.report.build import Report, build_report
from counterbalance.report.sources import Sources


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """Two experiments, two models, three subsets: every kind of cell."""
    return sources_of(make_sample(tmp_path_factory.mktemp("full") / "a study é"))


@pytest.fixture(scope="session")
def report(sources: Sources) -> Report:
    return build_report(sources)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """One model, one subset."""
    return sources_of(make_sample(tmp_path_factory.mktemp("small"), models=["smollm2"], subsets=["copying"]))


@pytest.fixture(scope="session")
def study_root(sources: Sources) -> Path:
    return sources.study.root
