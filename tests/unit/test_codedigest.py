import pytest

from counterbalance.codedigest import reachable
from counterbalance.rerun import STAGES, code_modules, code_sha256


def reached(stage: str) -> set[str]:
    start = frozenset(f"counterbalance.{name}" for name in code_modules(stage))
    return {name.removeprefix("counterbalance.") for name in reachable(start)}


def rooms(stage: str) -> set[str]:
    return {name.split(".")[0] for name in reached(stage)}


def test_a_stage_reaches_what_it_imports_directly_or_not() -> None:
    assert {"stages.score", "designs.mcq.score", "reading.answer", "canonical"} <= reached("score")
    assert {"designs.mcq.estimate", "stats.relabel"} <= reached("contrast")
    assert {"designs.mcq.expand", "arrangements", "prompts"} <= reached("expand")


@pytest.mark.parametrize(
    ("stage", "foreign"),
    [
        ("prepare", {"reading", "stats", "report", "vendors", "ledger", "prompts"}),
        ("expand", {"reading", "stats", "report", "vendors", "ledger"}),
        ("query", {"reading", "stats", "report"}),
        ("score", {"stats", "report", "vendors", "ledger", "arrangements"}),
        ("contrast", {"reading", "report", "vendors", "ledger"}),
        ("report", {"reading", "vendors", "arrangements"}),
    ],
)
def test_editing_one_room_does_not_run_the_others_again(stage, foreign) -> None:
    assert not rooms(stage) & foreign


def test_every_stage_has_a_digest_of_its_own() -> None:
    digests = {stage: code_sha256(stage) for stage in STAGES}
    assert {stage: code_sha256(stage) for stage in STAGES} == digests
    # Joining the cells and estimating them start in the same module; only the design's door differs.
    assert len(set(digests.values())) == len(STAGES)


def test_what_only_a_type_checker_sees_is_not_reached(tmp_path, monkeypatch) -> None:
    (tmp_path / "one.py").write_text(
        "from typing import TYPE_CHECKING\nfrom counterbalance import two\n"
        "if TYPE_CHECKING:\n    from counterbalance import three\n"
    )
    for name in ("two", "three"):
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.setattr("counterbalance.codedigest._FOLDER", tmp_path)
    reachable.cache_clear()
    assert reachable(frozenset({"counterbalance.one"})) == {"counterbalance.one", "counterbalance.two"}
    reachable.cache_clear()
