"""From items to prompts: the right number, the right order, and everything refused that is not balanced."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from crossing_cases import TEMPLATE, make_study, make_trials

from counterbalance.config import load_study
from counterbalance.designs import get_design
from counterbalance.designs.crossing.expand import count_cues
from counterbalance.errors import ConfigError, InputError
from counterbalance.items.prepare import prepare_table
from counterbalance.stages.expand import expand_trials
from counterbalance.stages.prepare import prepare_items

REPOSITORY = Path(__file__).parents[3]


def text_of(row):
    return json.loads(row["prompt"])["text"]


def wordings(text):
    """By source, the first word of its sentence."""
    blocks = [line.removeprefix("Report of ").split(": ") for line in text.split("\n")[:2]]
    return {source: sentence.split()[0] for source, sentence in blocks}


def test_14_items_in_ten_conditions_are_784_passes(tmp_path) -> None:
    trials = make_trials(make_study(tmp_path))
    assert trials.num_rows == 784
    assert (
        len(set(trials.column("trial_id").to_pylist())) == len(set(trials.column("prompt_sha256").to_pylist())) == 784
    )
    per_condition = Counter(trials.column("condition").to_pylist())
    assert per_condition == {n: 14 * (8 if n in ("T2", "T2c", "T4", "T4c") else 4) for n in per_condition}
    assert len(per_condition) == 10


def test_repeats_multiply_the_passes(tmp_path) -> None:
    assert make_trials(make_study(tmp_path, items=2, repeats=3)).num_rows == 2 * 56 * 3


def test_each_cell_prints_its_sources_and_answers_in_its_order(tmp_path) -> None:
    study = make_study(tmp_path, items=1)
    rows = {(r["condition"], r["arrangement_index"]): r for r in make_trials(study).to_pylist()}
    lines = {n: text_of(rows["T1", n]).split("\n")[:2] for n in range(4)}
    # Item 1: A is blue, B is brown; Source P1 is the stale one, Source Q1 the recent one.
    assert lines == {
        0: ["Source P1: door 1 is blue.", "Source Q1: door 1 is brown."],
        1: ["Source Q1: door 1 is brown.", "Source P1: door 1 is blue."],
        2: ["Source P1: door 1 is brown.", "Source Q1: door 1 is blue."],
        3: ["Source Q1: door 1 is blue.", "Source P1: door 1 is brown."],
    }
    assert [rows["T1", n]["arrangement"] for n in range(4)] == [["o1", "o2"], ["o2", "o1"], ["o2", "o1"], ["o1", "o2"]]
    assert rows["T1", 0]["labels"] == rows["T1", 0]["option_texts"] == ["blue", "brown"]


def test_mixed_wordings_change_blocks_and_loaded_ones_stay_with_their_role(tmp_path) -> None:
    rows = {
        (r["condition"], r["arrangement_index"]): text_of(r)
        for r in make_trials(make_study(tmp_path, items=1)).to_pylist()
    }
    for cell in range(4):
        first, second = rows["T2c", cell], rows["T2c", cell + 4]
        assert wordings(first) == {"Source P1": "lately", "Source Q1": "recently"}
        assert wordings(second) == {"Source P1": "recently", "Source Q1": "lately"}
        assert wordings(rows["T5b", cell]) == {"Source P1": "before", "Source Q1": "since"}
    assert ("T5b", 4) not in rows


def test_cues_are_counted_as_whole_words_of_the_text() -> None:
    prompt = json.dumps({"text": "Now\nnow: Nowhere at present, known.\nAt present"})
    assert count_cues(prompt, ["now", "at present"]) == 4
    assert count_cues(json.dumps({"messages": [{"role": "system", "content": "now"}]}), ["now"]) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('2: {"same": "lately "}', '2: {"same": "of late "}', "T1c, cell e1: the prompt holds 0 cues, .* has 2"),
        ('"a": "lately ", "b": ""}', '"a": "lately ", "b": "lately "}', "T2, cell e1: the prompt holds 2 cues"),
        ("{{ question }}", "Since when? {{ question }}", "condition T1, cell e1: the prompt holds 1 cues"),
        ("{% for block in blocks %}", "{% for block in blocks | reverse %}", "not printed in the order"),
        ("in blocks %}", "in blocks | sort(attribute='source') %}", "not printed in the order"),
        ("{{ question }}", "{{ question }} {{ blocks[0].answer }} or", "2 times"),
        ("{{ block.answer }}.", ".", "0 times"),
        ("{{ block.source }}: ", "", "the same prompt"),
        ('{{ "Report of " if header == "framed" }}', "", "never uses `header`"),
        ("{{ fields.claim }} {{ block.answer }}", "{{ fields.colour }} {{ block.answer }}", "colour"),
    ],
)  # fmt: skip
def test_a_template_that_is_not_balanced_is_refused(tmp_path, old, new, message) -> None:
    assert old in TEMPLATE
    study = make_study(tmp_path, template=TEMPLATE.replace(old, new, 1), items=2)
    with pytest.raises(ConfigError, match=message):
        make_trials(study)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",blue,", ",light blue,", "answer 'light blue' is not one word"),
        ("door 1 is,", "lately door 1 is,", "the prompt holds"),
        ("What about door 1?", "What about the blue door?", "'blue' 2 times"),
    ],
)
def test_an_item_that_is_not_one_of_a_crossing_is_refused(tmp_path, old, new, message) -> None:
    study = make_study(tmp_path, items=2)
    path = tmp_path / "items.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises((InputError, ConfigError), match=message):
        make_trials(study)


def test_an_empty_field_of_an_item_is_refused_by_the_reader(tmp_path) -> None:
    study = make_study(tmp_path, items=2)
    path = tmp_path / "items.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("Source Q1", "", 1), encoding="utf-8")
    with pytest.raises(InputError, match="row 2, field 'recent_source': the field is empty"):
        make_trials(study)


def test_both_sources_need_the_same_fields(tmp_path) -> None:
    study = make_study(tmp_path, items=2)
    path = tmp_path / "tiny.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace('"stale_source", ', ""), encoding="utf-8")
    with pytest.raises(ConfigError, match="the same columns for both sources"):
        make_trials(load_study(path))
    assert study.path == path


def test_contrasts_of_conditions_that_are_not_asked_are_warned_of_at_expand(tmp_path) -> None:
    entries = [
        {"id": "A", "expression": "T1c.serial - T1.serial", "status": "inferential"},
        {"id": "B", "expression": "T3c.serial - T1.serial", "status": "inferential"},
        {"id": "C", "expression": "B - T5.role", "status": "inferential"},
    ]
    dials = [{"header": "neutral", "body": "verbatim", "cues": cues} for cues in (0, 2)]
    for conditions, warnings in (
        ("all", []),
        (
            dials,
            [
                "warning: condition T3c is not in experiment 'notes', so that B, C cannot be evaluated",
                "warning: condition T5 is not in experiment 'notes', so that C cannot be evaluated",
            ],
        ),
    ):
        study = make_study(tmp_path, items=2, contrasts={"contrasts": entries}, crossing={"conditions": conditions})
        prepare_items(study, "doors")
        line, *more = expand_trials(study, "notes", "doors").splitlines()
        assert line.endswith("trials of 2 items")
        assert more == warnings


def test_planned_contrasts_are_checked_before_anything_is_frozen(tmp_path) -> None:
    entry = {"id": "X", "status": "inferential"}
    unknown = make_study(tmp_path, items=2, contrasts={"contrasts": [{**entry, "expression": "T6.serial - T1.serial"}]})
    with pytest.raises(ConfigError, match=r"contrasts\.yaml line 1, contrast X, column 1: no condition 'T6'; there"):
        make_trials(unknown)
    broken = make_study(tmp_path, items=2, contrasts={"contrasts": [{**entry, "expression": "T1.seria1"}]})
    with pytest.raises(ConfigError, match=r"contrasts\.yaml line 1, contrast X.*no effect 'seria1'.*mean 'serial'"):
        make_trials(broken)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crossing": {"conditions": [{"header": "neutral", "body": "loaded", "cues": 1}]}}, "incoherent"),
        ({"crossing": {"conditions": [{"header": "neutral", "body": "loaded", "cues": 3}]}}, "cues"),
        ({"read": {"kind": "decide"}}, "`decide` needs labels"),
        ({"read": {"kind": "option_text", "length": "per_token"}}, "single tokens"),
        ({"repeat_share": 0.5}, "no use for repeat_share"),
        ({"arrangement": {"scheme": "cyclic"}}, "no use for arrangement"),
        ({"design": "mcq"}, "`crossing` is needed when `design` is `crossing`, and only then"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path, change, message) -> None:
    with pytest.raises(ConfigError, match=message):
        make_trials(make_study(tmp_path, items=2, **change))


def test_the_content_of_the_contrasts_file_is_part_of_the_settings(tmp_path) -> None:
    entry = {"id": "X", "status": "inferential", "expression": "T1c.serial - T1.serial"}
    study = make_study(tmp_path, contrasts={"contrasts": [entry]})
    assert study.resolved["analysis"]["contrasts"]["contrasts"][0]["expression"] == "T1c.serial - T1.serial"
    other = make_study(tmp_path, contrasts={"contrasts": [{**entry, "expression": "T1.serial - T1c.serial"}]})
    assert other.sha256 != study.sha256
    (tmp_path / "contrasts.yaml").unlink()
    with pytest.raises(ConfigError, match=r"analysis.contrasts: no file 'contrasts.yaml'"):
        load_study(study.path)


def test_our_own_bank_and_both_of_its_template_sets(tmp_path) -> None:
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    (tmp_path / "Snakefile").touch()
    study = load_study(tmp_path / "config/studies/crossing.yaml")
    dataset = study.dataset("sources")
    items = prepare_table((study.root / dataset.path).read_bytes(), dataset, study.config.seed).items
    assert items.num_rows >= 12
    assert len(study.config.experiments) == 2
    for experiment in study.config.experiments:
        tables = list(get_design("crossing").expand(study, experiment, dataset, items))
        assert sum(table.num_rows for table in tables) == items.num_rows * 56
