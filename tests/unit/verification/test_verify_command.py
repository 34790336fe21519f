"""What the command prints and where: findings on standard output either way, one line on standard error, exit codes."""

from click.testing import CliRunner
from verification_cases import OUTCOMES

from counterbalance.cli import main
from counterbalance.stages.verify import verify


def test_findings_of_what_holds_are_the_output(finished) -> None:
    done = CliRunner().invoke(main, ["verify", str(finished.results)])
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{verify(finished.results)}\n"


def test_findings_of_what_does_not_hold_are_the_output_too(project, tmp_path) -> None:
    project.flip(OUTCOMES, 0.5)
    beside = tmp_path / "findings.txt"
    done = CliRunner().invoke(main, ["verify", str(project.results), "--output", str(beside)])
    assert done.exit_code == 5
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith("FAIL ")]
    assert any(OUTCOMES in line for line in failed)
    assert any(line.startswith("ok ") for line in lines)
    assert lines[-1].startswith(f"{project.results}: NOT VERIFIED: {len(failed)} failure")
    assert done.stderr == f"counterbalance: {lines[-1]}; the lines that begin with FAIL say what, and where\n"
    assert beside.read_text(encoding="utf-8") == done.stdout


def test_a_folder_that_cannot_be_checked_has_no_findings(tmp_path) -> None:
    done = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (5, "")
    assert "give a folder results/STUDY" in done.stderr
