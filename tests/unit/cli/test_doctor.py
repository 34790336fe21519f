import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from money_cases import paid_study

from counterbalance.cli import main

CANARY = "sk-canary-4b1f"


@pytest.mark.parametrize("there", [True, False])
def test_it_says_whether_the_keys_of_a_study_are_set_and_never_what_they_are(tmp_path, monkeypatch, there) -> None:
    study = paid_study(tmp_path)
    if there:
        monkeypatch.setenv("SOME_KEY", CANARY)
    else:
        monkeypatch.delenv("SOME_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    output = CliRunner().invoke(main, ["doctor", "--study", str(study.path)]).output
    (line,) = [line for line in output.splitlines() if "SOME_KEY" in line]
    assert line.startswith("ok" if there else "MISSING")
    assert "(account purse)" in line
    assert CANARY not in output
    assert any("OPENAI_API_KEY" in line and line.endswith(" set") for line in output.splitlines())


def test_what_it_says_to_make_is_a_target_of_the_makefile(tmp_path, monkeypatch) -> None:
    study = paid_study(tmp_path)
    monkeypatch.delenv("SOME_KEY", raising=False)
    output = CliRunner().invoke(main, ["doctor", "--study", str(study.path)]).output
    (target,) = re.findall(r"`make (\S+)` installs", output)
    makefile = Path(__file__).parents[3] / "Makefile"
    assert f"\n{target}:" in makefile.read_text(encoding="utf-8")
