"""A vendor without a key stops its own cells and no others from the start; a model that is refused stops the study."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from loopback import Remote, subprocess_server
from loopback.studies import KEYS, freeze_study, key_env, study_body, write_study
from planted_project import Project, make_project

VENDORS = ("openai", "anthropic")
STUDY = "config/studies/loop.yaml"
CALLS = 2 * 2
TABLES = {vendor: f"results/loop/replies/letters/{vendor}/sums.parquet" for vendor in VENDORS}
# Who was asked is seen from the replies; what follows them would take most of the time.
RUN = ("snakemake", *TABLES.values(), "--cores", "2", "--configfile", STUDY)


@dataclass(frozen=True)
class Ended:
    code: int
    said: str
    delivered: dict[str, int]
    written: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    server: Remote
    project: Project

    def run(self, *, keys: Sequence[str] = VENDORS) -> Ended:
        """Run with the keys of some vendors; return how it ended, and what was bought and written by then."""
        with pytest.MonkeyPatch.context() as patch:
            # Each of a dozen processes would compile the package anew.
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            for vendor in VENDORS:
                patch.delenv(key_env(vendor), raising=False)
            for vendor in keys:
                patch.setenv(key_env(vendor), KEYS[vendor])
            done = self.project.run(*RUN, check=False)
        delivered = {vendor: self.server.vendor(vendor)["delivered"] for vendor in VENDORS}
        tables = {vendor: self.project.root / name for vendor, name in TABLES.items()}
        written = {vendor: path.stat().st_mtime_ns for vendor, path in tables.items() if path.exists()}
        return Ended(done.returncode, " ".join((done.stdout + done.stderr).split()), delivered, written)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    project, datasets = make_project(tmp_path / "p"), {"sums": 2}
    with subprocess_server() as server:
        urls = {vendor: server.base_url(vendor) for vendor in VENDORS}
        body = study_body(urls, datasets=datasets, arrangement={"scheme": "identity_reverse"})
        freeze_study(write_study(project.root, body, datasets))
        yield World(server, project)


def test_one_vendor_waits_and_the_same_command_goes_on(world: World) -> None:
    world.server.set(models={"anthropic": ["another"]})
    refused = world.run()
    assert refused.code != 0
    assert "not_found_error" in refused.said
    # A model that cannot be had stops the study: one preflight, and no sweep.
    assert refused.delivered == {"openai": 1, "anthropic": 0}
    assert refused.written == {}

    world.server.set(models={})
    keyless = world.run(keys=["openai"])
    assert keyless.code != 0
    assert f"variable {key_env('anthropic')} is not set" in keyless.said
    assert keyless.delivered == {"openai": CALLS, "anthropic": 0}
    assert list(keyless.written) == ["openai"]

    paid = world.run()
    assert paid.code == 0, paid.said
    assert paid.delivered == {"openai": CALLS, "anthropic": CALLS}
    assert paid.written["openai"] == keyless.written["openai"]
    # What had to wait is tried again before it passes, and nothing else is.
    assert re.findall(r"rule (\w+):", paid.said) == ["try_model", "preflight_model", "query_replies"]
