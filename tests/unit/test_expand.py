"""Items to trials: complete, in key order, pure; and the two stages that write them."""

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from small_study import TEMPLATE, study_body, study_text, sums_csv, write_files

from counterbalance.artifacts import SCHEMAS, read_record, read_table, table_from_rows
from counterbalance.canonical import sha256_bytes, sha256_file
from counterbalance.config import Study, load_study
from counterbalance.designs.mcq.expand import expand
from counterbalance.errors import ConfigError, InputError
from counterbalance.stages.expand import expand_trials
from counterbalance.stages.prepare import prepare_items

TRIALS = SCHEMAS["trials"]
MMLU = Path(__file__).parents[3] / "shared" / "data" / "mmlu"
SUBJECTS = ("college_mathematics", "elementary_mathematics", "formal_logic", "philosophy", "professional_medicine")
# Rows that the rule on references excludes; judged by eye, one by one, as the files have them.
REFERRING = dict(zip(SUBJECTS, (3, 2, 3, 56, 0), strict=True))

ITEMS = sums_csv(8)


@pytest.fixture
def make_study(tmp_path):
    def make(*changes: tuple[str, str], template: str = TEMPLATE, items: str = ITEMS) -> Study:
        text = study_text(("path: sums.csv", "path: items.csv"), *changes)
        write_files(tmp_path, {"letter.j2": template, "items.csv": items, "tiny.yaml": text})
        return load_study(tmp_path / "tiny.yaml")

    return make


def items(*item_ids: str, gold: str | None = "o2", k: int = 3) -> pa.Table:
    rows = [
        {
            "item_id": item_id,
            "group_id": "g",
            "stem": f"{item_id}?",
            "option_ids": [f"o{number}" for number in range(1, k + 1)],
            "option_texts": [f"{item_id} text {number}" for number in range(1, k + 1)],
            "gold_option_id": gold,
            "strata": "{}",
            "source_row": row,
        }
        for row, item_id in enumerate(item_ids, start=1)
    ]
    return table_from_rows(rows, SCHEMAS["items"])


def trials(study: Study, table: pa.Table) -> list[dict[str, object]]:
    batches = list(expand(study, study.experiment("letters"), study.dataset("sums"), table))
    return pa.concat_tables(batches).to_pylist() if batches else []


def test_every_item_in_every_order_and_repeat(make_study) -> None:
    found = trials(make_study(("kind: generate}", "kind: generate}\n    repeats: 2")), items("i1", "i2"))
    assert [row["trial_id"] for row in found] == [
        f"{item}.mcq.{order:04d}.{repeat:02d}" for item in ("i1", "i2") for order in range(6) for repeat in range(2)
    ]
    assert Counter((row["item_id"], row["gold_slot"]) for row in found) == {
        (item, slot): 4 for item in ("i1", "i2") for slot in range(3)
    }
    for row in found:
        assert row["arrangement"][row["gold_slot"]] == "o2"
        assert row["option_texts"] == [f"{row['item_id']} text {option[1:]}" for option in row["arrangement"]]
        lines = [f"{label}. {text}" for label, text in zip("ABC", row["option_texts"], strict=True)]
        assert json.loads(row["prompt"]) == {"text": "\n".join([f"{row['item_id']}?", *lines, "Answer:"])}
        assert row["prompt_sha256"] == sha256_bytes(row["prompt"].encode())


def test_the_first_order_is_the_sources_and_neighbours_share_prefixes(make_study) -> None:
    orders = [row["arrangement"] for row in trials(make_study(), items("i1"))]
    assert orders[0] == ["o1", "o2", "o3"]
    assert orders == sorted(orders)


@pytest.mark.parametrize("scheme", ["{scheme: exhaustive}", "{scheme: williams}", "{scheme: sampled, n: 4}"])
def test_dropping_an_item_moves_nothing_else(make_study, scheme) -> None:
    study = make_study(("kind: generate}", f"kind: generate}}\n    arrangement: {scheme}"))
    whole = trials(study, items("i1", "i2", "i3"))
    assert trials(study, items("i1", "i3")) == [row for row in whole if row["item_id"] != "i2"]


def test_batches_are_of_bounded_size_and_keep_the_order(make_study, monkeypatch) -> None:
    study = make_study()
    table = items(*(f"i{number:05d}" for number in range(40)))
    whole = trials(study, table)
    monkeypatch.setattr("counterbalance.designs.trials._BATCH", 50)
    monkeypatch.setattr("counterbalance.designs.trials._ITEMS", 7)
    parts = list(expand(study, study.experiment("letters"), study.dataset("sums"), table))
    assert [part.num_rows for part in parts] == [54, 54, 54, 54, 24]
    assert pa.concat_tables(parts).to_pylist() == whole


def test_items_without_a_key_have_no_gold_slot(make_study) -> None:
    assert {row["gold_slot"] for row in trials(make_study(), items("i1", gold=None))} == {None}


def test_labels_follow_the_items_own_number_of_options(make_study) -> None:
    study = make_study(("style: plain}", "style: plain, labels: ['1', '2', '3', '4']}"))
    assert {tuple(row["labels"]) for row in trials(study, items("i1", k=2))} == {("1", "2")}
    with pytest.raises(ConfigError, match="item 'i1': 5 options but only 4 labels"):
        trials(study, items("i1", k=5))


def test_too_many_orders_are_refused_before_anything_is_written(make_study) -> None:
    study = make_study()
    with pytest.raises(ConfigError, match=r"item 'i1': .*6! = 720 .*`williams` gives 6"):
        trials(study, items("i1", k=6))


def test_a_template_that_hides_the_order_is_refused(make_study) -> None:
    sorting = TEMPLATE.replace("in options", "in options | sort(attribute='text')").replace("{{ o.label }}", "-")
    with pytest.raises(ConfigError, match=r"letter\.j2: different orders of item 'i1' give the same prompt"):
        trials(make_study(template=sorting), items("i1"))


def test_a_prompt_that_is_continued_may_be_the_same_in_all_orders(make_study) -> None:
    study = make_study(("kind: generate", "kind: option_text"), template="{{ question }}")
    assert len(trials(study, items("i1"))) == 6


def test_solved_examples_come_before_the_item_and_are_the_same_for_all(make_study, tmp_path) -> None:
    (tmp_path / "e.yaml").write_text("- {question: 'one?', options: ['1', '2'], answer: 0}\n", encoding="utf-8")
    block = "{% for e in examples %}{{ e.question }} {{ e.answer_label }} {{ e.answer_text }}\n{% endfor %}"
    study = make_study(("style: plain}", "style: plain, examples: e.yaml}"), template=block + TEMPLATE)
    starts = {json.loads(row["prompt"])["text"].split("\n")[0] for row in trials(study, items("i1", "i2"))}
    assert starts in ({"one? A 1"}, {"one? B 1"})


def test_drawn_example_slots_favour_no_label_and_follow_the_order_alone(make_study, tmp_path) -> None:
    """With one example of three options and 240 prompts each label is its answer in 80 of them, give or take 7."""
    (tmp_path / "e.yaml").write_text("- {question: 'q?', options: [x, y, z], answer: 2}\n", encoding="utf-8")
    block = "{% for e in examples %}{{ e.question }} {{ e.answer_label }} {{ e.answer_text }}\n{% endfor %}"
    drawn = ("style: plain}", "style: plain, examples: e.yaml, example_slots: drawn}")
    table = items(*(f"i{number:02d}" for number in range(40)))
    every = trials(make_study(drawn, template=block + TEMPLATE), table)
    answers = Counter(json.loads(str(row["prompt"]))["text"].split()[1] for row in every)
    assert set(answers) == set("ABC")
    assert max(answers.values()) - min(answers.values()) < 45
    assert all(" z\n" in json.loads(str(row["prompt"]))["text"] for row in every)
    # Another scheme asks the same prompt for the same order, so that a scout's reply serves the sweep.
    scheme = ("kind: generate}", "kind: generate}\n    arrangement: {scheme: identity_reverse}")
    of_order = {(row["item_id"], tuple(row["arrangement"])): row["prompt"] for row in every}
    for row in trials(make_study(drawn, scheme, template=block + TEMPLATE), table):
        assert row["prompt"] == of_order[row["item_id"], tuple(row["arrangement"])]


def test_drawn_example_slots_favour_no_label_where_examples_differ_in_length(make_study, tmp_path) -> None:
    """Of 240 prompts the example of two options is answered A in 120, give or take 8; moved by 0 to 2, in 160."""
    (tmp_path / "e.yaml").write_text(
        "- {question: 'two?', options: [x, y], answer: 1}\n- {question: 'q?', options: [x, y, z], answer: 2}\n",
        encoding="utf-8",
    )
    block = "{% for e in examples %}{{ e.answer_label }} {% endfor %}\n"
    drawn = ("style: plain}", "style: plain, examples: e.yaml, example_slots: drawn}")
    every = trials(make_study(drawn, template=block + TEMPLATE), items(*(f"i{number:02d}" for number in range(40))))
    answers = [json.loads(str(row["prompt"]))["text"].split()[:2] for row in every]
    first = Counter(labels[0] for labels in answers)
    assert set(first) == {"A", "B"}
    assert abs(first["A"] - first["B"]) < 50
    assert {tuple(labels) for labels in answers} == {(one, two) for one in "AB" for two in "ABC"}


def test_drawn_example_slots_need_examples(make_study) -> None:
    with pytest.raises(ConfigError, match="needs `examples`"):
        make_study(("style: plain}", "style: plain, example_slots: drawn}"))


def test_an_item_that_is_its_own_example_is_refused(make_study, tmp_path) -> None:
    (tmp_path / "e.yaml").write_text("- {question: 'i1?', options: [i1 text 2, i1 text 1, i1 text 3], answer: 0}\n")
    study = make_study(("style: plain}", "style: plain, examples: e.yaml}"), template="{{ examples }}" + TEMPLATE)
    with pytest.raises(InputError, match=r"items\.csv row 1: item 'i1' is also a solved example in e\.yaml"):
        trials(study, items("i1"))


@pytest.mark.parametrize("named", ["../letter.j2", "missing.j2"])
def test_a_template_has_to_be_a_file_of_the_project(make_study, tmp_path, named) -> None:
    (tmp_path.parent / "letter.j2").write_text(TEMPLATE, encoding="utf-8")
    with pytest.raises(ConfigError, match=named.replace(".", r"\.")):
        trials(make_study(("template: letter.j2", f"template: {named}")), items("i1"))


def test_the_stages_leave_tables_and_records(make_study, tmp_path) -> None:
    study = make_study(items=ITEMS + "s99,q?,cats,dogs,neither,A\n")
    assert prepare_items(study, "sums") == "sums: 8 items of 9 rows, 1 excluded by option_refers_to_others"
    assert expand_trials(study, "letters", "sums") == "letters/sums: 48 trials of 8 items"
    layout = study.layout
    assert read_table(layout.rejected("sums"), SCHEMAS["rejected"]).column("item_id").to_pylist() == ["s99"]
    prepared, expanded = read_record(layout.items("sums")), read_record(layout.trials("letters", "sums"))
    assert [(m.path, m.sha256) for m in prepared.materials] == [("items.csv", sha256_file(tmp_path / "items.csv"))]
    assert prepared.command == ("counterbalance", "prepare", "--study", "tiny.yaml", "--dataset", "sums")
    assert prepared.facts["source"] == {"path": "items.csv", "sha256": sha256_file(tmp_path / "items.csv")}
    assert {m.path for m in expanded.materials} == {"results/tiny/items/sums.parquet", "letter.j2"}
    assert expanded.materials[0].digest == prepared.digest
    assert expanded.facts == {"items": 8, "trials": 48, "gold_slots": {"0": 16, "1": 16, "2": 16}}
    assert (prepared.rows, expanded.rows) == (8, 48)


def test_both_stages_give_the_same_bytes_again(make_study) -> None:
    study = make_study()
    paths = [study.layout.items("sums"), study.layout.rejected("sums"), study.layout.trials("letters", "sums")]

    def run() -> list[str]:
        prepare_items(study, "sums")
        expand_trials(study, "letters", "sums")
        return [sha256_file(path) for path in paths]

    assert run() == run()


def test_a_malformed_file_leaves_no_table(make_study) -> None:
    study = make_study(items=ITEMS + "s99,q?,1,2,3,D\n")
    with pytest.raises(InputError, match=r"items\.csv row 10, field 'key'"):
        prepare_items(study, "sums")
    assert not study.layout.results.exists()


def test_a_warning_about_keys_is_told_and_kept(make_study) -> None:
    study = make_study(("key: {type: letter}", "key: {type: index, base: 0}"), items=ITEMS.replace(",A\n", ",2\n"))
    assert "\nwarning: items.csv: no key is 0 although some are 2" in prepare_items(study, "sums")
    assert len(read_record(study.layout.items("sums")).facts["warnings"]) == 1


def test_an_experiment_expands_its_own_data_sets_only(make_study) -> None:
    other = json.dumps(study_body()["datasets"][0] | {"id": "other"})
    study = make_study(("experiments:\n", f"  - {other}\nexperiments:\n"))
    with pytest.raises(ConfigError, match="'letters' does not use data set 'other'"):
        expand_trials(study, "letters", "other")


@pytest.mark.skipif(not MMLU.is_dir(), reason="shared/data/mmlu is not beside the project's folder")
@pytest.mark.parametrize("subject", SUBJECTS)
def test_50_real_questions_become_1200_trials(make_study, tmp_path, subject) -> None:
    columns = "{question: column_1, options: [column_2, column_3, column_4, column_5], key: column_6}"
    study = make_study(
        ("path: items.csv\n    format: csv\n", f"path: {subject}.csv\n    format: csv_headerless\n"),
        ("columns: {options: [a, b, c], key: key, id: id}", f"columns: {columns}"),
        (
            "licence:",
            "exclude: [option_refers_to_others, duplicate_options]\n    take: {n: 50, how: random}\n    licence:",
        ),
    )
    data = (MMLU / f"{subject}_test.csv").read_bytes()
    (tmp_path / f"{subject}.csv").write_bytes(data)
    if subject == "elementary_mathematics":
        # One question stands there twice, word for word.
        with pytest.raises(InputError, match="row 300: the same question and options as in row 105"):
            prepare_items(study, "sums")
        lines = data.splitlines(keepends=True)
        (tmp_path / f"{subject}.csv").write_bytes(b"".join(lines[:299] + lines[300:]))
    prepare_items(study, "sums")
    facts = read_record(study.layout.items("sums")).facts
    assert facts["rejected"].get("option_refers_to_others", 0) == REFERRING[subject]
    # One question of this subject has the option 687 twice.
    assert facts["rejected"].get("duplicate_options", 0) == (subject == "elementary_mathematics")
    assert facts["rows"] == facts["kept"] + sum(facts["rejected"].values())
    expand_trials(study, "letters", "sums")
    table = read_table(study.layout.trials("letters", "sums"), TRIALS)
    assert table.num_rows == 1200
    assert Counter(table.column("gold_slot").to_pylist()) == dict.fromkeys(range(4), 300)
