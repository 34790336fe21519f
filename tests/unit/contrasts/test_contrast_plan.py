"""Files of contrasts: strict, and every complaint names file, line and contrast."""

import itertools
from pathlib import Path

import pytest

from counterbalance.contrasts import Condition, Contrast, ContrastFile, EffectTable, load_contrasts
from counterbalance.contrasts.evaluate import evaluate
from counterbalance.errors import ConfigError

EFFECTS = ("token", "role", "order", "serial")
SHIPPED = Path(__file__).parents[3] / "config" / "contrasts" / "ad_series.yaml"


@pytest.fixture
def load(tmp_path):
    def write(contrasts, head="schema: counterbalance/contrasts/1\n"):
        path = tmp_path / "my contrasts é.yaml"
        path.write_text(head + contrasts, encoding="utf-8")
        return load_contrasts(path, effects=EFFECTS)

    return write


def one(expression, more=""):
    return f"contrasts:\n  - id: A1\n    expression: {expression!r}\n    status: inferential\n{more}"


def test_the_smallest_file(load):
    plan = load(one("T1c.serial - T1.serial"))
    assert plan.contrasts[0].conditions == ("T1c", "T1")
    assert plan.contrasts[0].bound == 0.15
    assert plan.order == ("A1",)


def test_references_may_point_forwards_and_carry_their_conditions(load):
    plan = load(
        "bound: 0.2\ncontrasts:\n"
        "  - {id: C, expression: A - B, status: post hoc, bound: 0.3}\n"
        "  - {id: A, expression: T2.serial - T1.serial, status: legacy}\n"
        "  - {id: B, expression: T3.serial, status: confounded}\n"
    )
    assert [entry.id for entry in plan.contrasts] == ["C", "A", "B"]
    assert plan.order.index("C") == 2
    assert plan.contrasts[0].conditions == ("T2", "T1", "T3")
    assert [entry.bound for entry in plan.contrasts] == [0.3, 0.2, 0.2]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (one("T1.seral"), ["line 4, contrast A1, column 1: no effect 'seral'", "did you mean 'serial'?"]),
        (one("T1.serial + A2"), ["line 4, contrast A1, column 13: no contrast 'A2'; there are A1"]),
        (one("T1.serial - "), ["line 4, contrast A1, column 12: found the end", "\n  T1.serial - "]),
        (one("A1 + T1.serial"), ["line 4, contrast A1: circular definition A1 -> A1"]),
        (one("T1.serial", "    stauts: legacy\n"), ["line 6, contrast A1, key contrasts.0.stauts: no such key"]),
        (
            one("T1.serial", "    bound: 0\n"),
            ["line 6, contrast A1, key contrasts.0.bound: expected a number greater than 0"],
        ),
        (one("T1.serial", "    bound: '0.1'\n"), ["expected a number without quotes"]),
        (one("T1.serial", "    family: 3\n"), ["line 6", "expected text"]),
        ("contrasts: []\n", ["key contrasts", "at least 1 item"]),
        ("contrasts:\n  - id: A1\n", ["contrast A1, key contrasts.0.expression: this key is needed"]),
        ("contrasts:\n  - {id: A-1, expression: T1.serial, status: legacy}\n", ["key contrasts.0.id", "letters"]),
        (
            "contrasts:\n  - {id: A, expression: T1.role, status: sure}\n",
            ["key contrasts.0.status: expected 'inferential', ", "'post hoc'"],
        ),
        ("contrasts:\n  - 7\n", ["line 3, key contrasts.0"]),
        ("other: 1\n" + one("T1.serial"), ["line 2, key other: no such key"]),
        ("", ["key contrasts: this key is needed"]),
        ("schema: x\n", ["key 'schema' is there twice"]),
        ("conditions: 3\n" + one("T1.serial"), ["line 2, key conditions: expected keys with values (found 3)"]),
    ],
)
def test_faults_are_named_with_their_place(load, body, expected):
    with pytest.raises(ConfigError) as caught:
        load(body)
    for text in ["my contrasts é.yaml", *expected]:
        assert text in str(caught.value)


def test_conditions_that_are_declared_bind(load):
    head = "schema: counterbalance/contrasts/1\nconditions:\n  T1: {cues: 0}\n  T1c: {cues: 2}\n"
    assert load(one("T1c.serial - T1.serial"), head).file.conditions["T1c"].cues == 2
    with pytest.raises(ConfigError, match=r"line 7, contrast A1, column 13: no condition 'T1b'; .* T1, T1c"):
        load(one("T1.serial - T1b.serial"), head)
    with pytest.raises(ConfigError, match=r"line 3, key conditions.T1.cues"):
        load(one("T1.serial"), head.replace("{cues: 0}", "{cues: -1}"))
    with pytest.raises(ConfigError, match=r"conditions.T1.body: .*'loaded'"):
        load(one("T1.serial"), head.replace("{cues: 0}", "{body: heavy}"))


def test_a_circle_is_shown_whole(load):
    with pytest.raises(ConfigError) as caught:
        load(
            "contrasts:\n"
            "  - {id: A, expression: B + T1.serial, status: legacy}\n"
            "  - {id: B, expression: 'mean(C, T1.serial)', status: legacy}\n"
            "  - {id: C, expression: -A, status: legacy}\n"
            "  - {id: D, expression: T1.serial, status: legacy}\n"
        )
    circle = str(caught.value).split("circular definition ")[1].split(";")[0].split(" -> ")
    assert circle[0] == circle[-1]
    assert set(circle) == {"A", "B", "C"}
    uses = {"A": "B", "B": "C", "C": "A"}
    assert all(uses[first] == second for first, second in itertools.pairwise(circle))


@pytest.mark.parametrize("second", ["A1", "a1"])
def test_an_id_is_given_once(load, second):
    with pytest.raises(ConfigError, match=rf"line 4, contrast {second}: the ids 'A1' and '{second}' are the same"):
        load(
            "contrasts:\n  - {id: A1, expression: T1.serial, status: legacy}\n"
            f"  - {{id: {second}, expression: T1.role, status: legacy}}\n"
        )


def test_a_ratio_is_no_part_of_another_contrast(load):
    with pytest.raises(ConfigError, match="contrast B, column 5: contrast 'A' is a ratio"):
        load(
            "contrasts:\n  - {id: A, expression: T1.role / T1.serial, status: descriptive}\n"
            "  - {id: B, expression: 2 * A, status: descriptive}\n"
        )


def test_families_hold_planned_inferences_only(load):
    with pytest.raises(ConfigError, match=r"contrast A: a family holds planned inferences, and the status is 'post"):
        load("contrasts:\n  - {id: A, expression: T1.serial, status: post hoc, family: F}\n")


def test_files_that_are_none(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read"):
        load_contrasts(tmp_path / "absent.yaml", effects=EFFECTS)
    for content, message in ((b"", "the file is empty"), (b"\xff\xfe", "UTF-8"), (b"a: [", "not valid YAML")):
        (tmp_path / "bad.yaml").write_bytes(content)
        with pytest.raises(ConfigError, match=message):
            load_contrasts(tmp_path / "bad.yaml", effects=EFFECTS)


@pytest.mark.parametrize("block", [ContrastFile, Contrast, Condition])
def test_every_key_is_explained_in_the_docs(block):
    page = (SHIPPED.parents[2] / "docs" / "contrasts.md").read_text(encoding="utf-8")
    for name, field in block.model_fields.items():
        assert f"| `{field.alias or name}` |" in page


def test_the_shipped_file_has_the_papers_contrasts():
    plan = load_contrasts(SHIPPED, effects=EFFECTS)
    ids = [entry.id for entry in plan.contrasts]
    sizes = {"A": 4, "B": 4, "C": 6, "D": 3, "E": 2}
    assert ids[:19] == [f"{letter}{number}" for letter, n in sizes.items() for number in range(1, n + 1)]
    assert {name for entry in plan.contrasts for name in entry.conditions} == set(plan.file.conditions)


def test_the_shipped_definitions_agree_with_the_printed_means():
    # Serial by condition and the contrasts of serial, both as printed (filtered set): equal within the rounding.
    serial = {
        "T1": -0.485, "T1c": -0.884, "T2": -0.377, "T2c": -0.635, "T3": -0.679, "T3c": -0.569,
        "T4": -0.172, "T4c": -0.482, "T5": -0.205, "T5b": -0.265,
    }  # fmt: skip
    printed = {
        "A1": -0.400, "A2": 0.110, "A3": -0.145, "A4": -0.509, "B1": 0.108, "B2": -0.258, "B3": -0.150, "B4": 0.250,
        "C1": 0.153, "C2": 0.315, "C3": -0.162, "C4": -0.194, "C5": 0.347, "C6": 0.205, "E1": 0.216, "E2": -0.033,
    }  # fmt: skip
    values = {name: {effect: {"mean": serial[name]} for effect in EFFECTS} for name in serial}
    found = evaluate(load_contrasts(SHIPPED, effects=EFFECTS), EffectTable.build(["mean"], values))
    means = {entry.planned.id: float(entry.values[0]) for entry in found}
    for name, value in printed.items():
        assert means[name] == pytest.approx(value, abs=0.0026), name
