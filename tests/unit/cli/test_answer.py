import pytest
from click.testing import CliRunner
from crossing_cases import finish, make_study
from money_cases import paid_study

from counterbalance.artifacts import SCHEMAS, read_table, table_from_rows, write_table
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


def test_p_values_are_never_none_or_all() -> None:
    assert [_show({"p": p}, "p") for p in (0.00099, 0.001, 0.9996, None)] == ["<.001", ".001", ">.999", "-"]


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_says_what_it_has(design: str) -> None:
    found = get_design(design)
    parts = found.breakdown
    columns = [*found.answer, *(parts.columns if parts else [])]
    assert {part for _, _, part in columns} <= {"estimate", "interval", "p_adjusted", "label"}
    names = parts.names if parts else [""]
    assert all(found.describe(quantity.format(name)) for _, quantity, _ in columns for name in names)
    assert parts is None or all("{}" in quantity for _, quantity, _ in parts.columns)


def said(study) -> str:
    return CliRunner().invoke(main, ["answer", "--study", str(study.path)], catch_exceptions=False).output


def lines_below(text: str, head: str) -> list[str]:
    """Return the lines of the block that begins with a heading."""
    lines = text.splitlines()
    start = lines.index(head) + 1
    return lines[start : lines.index("", start)]


def test_a_crossing_says_what_was_measured_in_nats(tmp_path) -> None:
    varied = {"id": "first", "vendor": "simulated", "seed": 3, "distractor_sd": 0.3, "slot_bonus": [1.0, 0.0]}
    conditions = [{"header": "neutral", "body": body, "cues": 2} for body in ("verbatim", "mixed")]
    entries = [
        {"id": "mixing", "expression": "T2c.serial - T1c.serial", "status": "inferential", "family": "A"},
        {"id": "cue", "expression": "T1c.serial - T1.serial", "status": "descriptive"},
    ]
    study = make_study(
        tmp_path,
        items=8,
        models=(varied,),
        contrasts={"contrasts": entries},
        read={"kind": "logprob"},
        crossing={"conditions": conditions},
    )
    text = said(finish(study))
    rows = read_table(study.layout.estimates, SCHEMAS["estimates"]).to_pylist()
    found = {row["quantity"]: row for row in rows}
    cell = next(study.cells()).name
    head, *effects = lines_below(text, f"{cell}: half-effects of the kept items, in nats, with 95% intervals")
    assert head.split("  ")[0] == "condition"
    assert [line.split()[0] for line in effects] == ["T1c", "T2c"]
    assert all(_show(found[f"serial.{line.split()[0]}"], "interval") in line for line in effects)
    head, mixing, *notes = lines_below(text, f"{cell}: planned contrasts, in nats, with 95% intervals")
    assert mixing.split()[:2] == ["mixing", "inferential"]
    assert _show(found["contrast.mixing"], "interval") in mixing
    assert "  cue: condition T1 not in the data, which have T1c, T2c" in notes
    assert not [line for line in notes if line.startswith("cue")]


def test_a_crossing_of_written_answers_is_labelled_as_probability(tmp_path) -> None:
    noisy = {"id": "first", "vendor": "simulated", "seed": 3, "call_noise": 1.0, "distractor_sd": 0.3}
    conditions = [{"header": "neutral", "body": "verbatim", "cues": 0}]
    study = make_study(
        tmp_path, items=8, models=(noisy,), read={"kind": "generate"}, crossing={"conditions": conditions}
    )
    text = said(finish(study))
    assert "scale of probability (half-differences of shares of answers, not nats), with 95% intervals\n" in text
    assert "in nats" not in text


def test_predictions_say_where_what_and_by_which_numbers(tmp_path) -> None:
    study = paid_study(tmp_path)
    judged = {"experiment": "letters", "model": "planted", "subset": "sums", "quantity": "accuracy", "rule": "at_most"}
    judged |= {
        "prediction": "P10",
        "expected": "estimate at most 0.5",
        "verdict": "falsified",
        "reason": "estimate 0.6",
    }
    judged |= dict.fromkeys(("estimate", "low", "high", "label"))
    for name, rows in (("estimates", []), ("predictions", [judged])):
        path = getattr(study.layout, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, table_from_rows(rows, SCHEMAS[name]), SCHEMAS[name])
    line = next(line for line in said(study).splitlines() if line.startswith("P10"))
    words = ["P10", "falsified", "letters/planted/sums", "accuracy", "estimate at most 0.5", "estimate 0.6"]
    assert [part.strip() for part in line.split("  ") if part] == words


def test_simulated_respondents_are_named_as_no_evidence(tmp_path) -> None:
    study = paid_study(tmp_path)
    for name in ("estimates", "predictions"):
        path = getattr(study.layout, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(path, table_from_rows([], SCHEMAS[name]), SCHEMAS[name])
    (line,) = [line for line in said(study).splitlines() if "no evidence about a model" in line]
    assert line.endswith("letters/planted/sums")
