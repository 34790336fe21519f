from pathlib import Path

import pytest
from planted_project import Project, make_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "a project é")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that has run to the end; tests that change it restore what they changed."""
    project = make_project(tmp_path_factory.mktemp("finished") / "a project é")
    project.snakemake("freeze_preregistration")
    project.snakemake()
    return project
