"""The markdown of a preregistration: what is read, and every way in which it can be wrong, with its line."""

import pytest
from prereg_cases import WRONG

from counterbalance.errors import ConfigError
from counterbalance.prereg.plan import load_plan, load_predictions

BLOCK = "```yaml predictions\n{}\n```\n"
ONE = "- {id: P1, experiment: letters, model: fair, subset: sums, quantity: accuracy, rule: at_least, value: 1}"


def test_predictions_come_back_in_order_and_typed(project) -> None:
    first, second = load_predictions(project.study)
    assert (first.id, first.rule, first.value) == ("P1", "at_least", 0.5)
    assert second.key == ("letters", "fair", "sums", "V.corrected")


def test_an_exploratory_study_has_no_plan(project) -> None:
    project.edit("tiny.yaml", "preregistration: preregistration/tiny.md", "preregistration: null")
    assert load_plan(project.study) is None
    assert load_predictions(project.study) == ()


def test_a_missing_file_is_named_with_what_to_do(project) -> None:
    (project.root / "preregistration/tiny.md").unlink()
    with pytest.raises(ConfigError, match=r"preregistration/tiny\.md.*write it, or set `preregistration: null`"):
        load_plan(project.study)


def test_no_predictions_must_be_said(project) -> None:
    project.write("preregistration/tiny.md", BLOCK.format("[]"))
    assert load_predictions(project.study) == ()


@pytest.mark.parametrize(
    "text",
    [
        BLOCK.format(ONE).replace("\n", "\r\n"),
        "\ufeff" + BLOCK.format(ONE),
        BLOCK.format(ONE).replace("```", "~~~~"),
        f"````markdown\n```yaml predictions\nan example in another block\n```\n````\n\n{BLOCK.format(ONE)}",
        f"```yaml\nother: block\n```\n{BLOCK.format(ONE)}",
        f"inline ```yaml predictions``` is text\n\n{BLOCK.format(ONE)}",
    ],
)
def test_forms_of_markdown_that_hold_one_block(project, text) -> None:
    project.write("preregistration/tiny.md", text)
    assert [entry.id for entry in load_predictions(project.study)] == ["P1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no block at all\n", "no block of predictions found; exactly one is needed"),
        (BLOCK.format("[]") * 2, r"2 blocks \(lines 1, 4\)"),
        ("\n" + BLOCK.format(""), r"line 2: the block of predictions is empty"),
        ("a\n```yaml predictions\n[]\n", "line 2: the block of predictions is never closed"),
        ("a\n```yaml prediction\n[]\n```\n", "line 2: ```yaml prediction is not read"),
        ("```Predictions\n[]\n```\n" + BLOCK.format("[]"), "line 1: ```Predictions is not read"),
        ("\n\n" + BLOCK.format("id: P1"), "line 4: expected a list"),
    ],
)
def test_markdown_without_exactly_one_block_is_refused(project, text, message) -> None:
    project.write("preregistration/tiny.md", text)
    with pytest.raises(ConfigError, match=message):
        load_plan(project.study)


def test_bytes_that_are_not_utf8_are_refused(project) -> None:
    project.write("preregistration/tiny.md", "“".encode("cp1252"))
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_plan(project.study)


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_wrong_prediction_is_refused_with_its_line_and_key(project, case) -> None:
    text = "# Plan\n\n" + BLOCK.format(f"{ONE}\n{case.yaml}")
    project.write("preregistration/tiny.md", text)
    with pytest.raises(ConfigError) as caught:
        load_plan(project.study)
    message = str(caught.value)
    assert message.startswith(f"preregistration/tiny.md line {case.line}")
    for part in case.says:
        assert part in message


def test_broken_yaml_is_placed_by_the_lines_of_the_file(project) -> None:
    project.write("preregistration/tiny.md", "# Plan\n\n" + BLOCK.format(f"{ONE}\n- {{id: P2, rule: [at_least}}"))
    with pytest.raises(ConfigError, match=r"preregistration/tiny\.md line 5, column 27: not valid YAML"):
        load_plan(project.study)


def test_every_problem_is_listed_at_once(project) -> None:
    wrong = ONE.replace("fair", "nobody").replace("sums", "nothing")
    project.write("preregistration/tiny.md", BLOCK.format(f"{ONE}\n{wrong}"))
    with pytest.raises(ConfigError) as caught:
        load_plan(project.study)
    assert str(caught.value).count("\n") == 2
    assert "ids 'P1' and 'P1'" in str(caught.value)
    assert "'nobody' is not in experiment letters; there are planted, fair" in str(caught.value)
    assert "'nothing' is not in experiment letters; there are sums" in str(caught.value)
