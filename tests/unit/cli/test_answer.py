import pytest
from click.testing import CliRunner
from money_cases import paid_study

from counterbalance.artifacts import SCHEMAS, table_from_rows, write_table
from counterbalance.cli import main
from counterbalance.cli.answer import _number, _show
from counterbalance.designs import DESIGNS, get_design

ROW = {"estimate": -0.4851, "low": -1.25, "high": 10.5, "p_adjusted": 0.0004, "label": None}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, ".000"), (0.4851, ".485"), (-0.4851, "-.485"), (10.5, "10.500"), (1.0, "1.000"), (13.0, "13"), (None, "-")],
)
def test_numbers_below_one_lose_their_zero_and_no_other_digit(value: float | None, text: str) -> None:
    assert _number(value) == text


def test_parts_of_a_row() -> None:
    assert _show(ROW, "interval") == "-.485 [-1.250, 10.500]"
    assert _show({**ROW, "low": None}, "interval") == _show(ROW, "estimate") == "-.485"
    assert _show(ROW, "p_adjusted") == "<.001"
    assert _show(ROW, "label") == _show(None, "estimate") == "-"


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_says_what_it_has(design: str) -> None:
    columns = get_design(design).answer
    assert {part for _, _, part in columns} <= {"estimate", "interval", "p_adjusted", "label"}
    assert all(get_design(design).describe(quantity) for _, quantity, _ in columns)


def test_simulated_respondents_are_named_as_no_evidence(tmp_path) -> None:
    study = paid_study(tmp_path)
    for name in ("estimates", "predictions"):
        path = getattr(study.layout, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, table_from_rows([], SCHEMAS[name]), SCHEMAS[name])
    lines = CliRunner().invoke(main, ["answer", "--study", str(study.path)], catch_exceptions=False).output.splitlines()
    (line,) = [line for line in lines if "no evidence about a model" in line]
    assert line.endswith("letters/planted/sums")
