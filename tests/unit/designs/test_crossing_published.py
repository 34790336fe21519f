"""Published cells as a study: the numbers of `analyze crossing`, nothing made up, and wrong files stopped early."""

import json
import re

import pytest
from published_cells import (
    AD_SERIES,
    HEADER,
    PLANTED,
    REPOSITORY,
    analysed,
    differences,
    finish,
    make_study,
    planted_file,
    run,
    settings,
)

from counterbalance.artifacts import SCHEMAS, read_table, table_from_rows, write_table
from counterbalance.config import load_study
from counterbalance.errors import ConfigError, VerificationError
from counterbalance.stages.verify import verify
from counterbalance.verification.published import differing_numbers

PREPARE = ("prepare", "--dataset", "theirs")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made = make_study(tmp_path_factory.mktemp("cells"), planted_file())
    return made, finish(made)


def test_the_numbers_are_those_of_analyze_to_the_last_digit(study) -> None:
    made, estimates = study
    n, odd = differences(estimates, analysed(made.root / "cells.csv", made.root / "contrasts.yaml", "modern"))
    assert n > 700
    assert odd == []


def test_a_planted_lean_is_found_and_the_marked_item_left_out(study) -> None:
    estimates = study[1]
    # 8 items with a spread of .15 each: five standard errors.
    for name, (_, _, serial) in PLANTED.items():
        assert estimates[f"serial.{name}"]["estimate"] == pytest.approx(serial, abs=5 * 0.15 / 8**0.5)
    assert estimates["verdict"]["label"] == "primacy"
    assert (estimates["items.kept"]["estimate"], estimates["items.all"]["estimate"]) == (8, 9)
    assert estimates["null.role.T5"]["label"] == "not_applicable"


def test_verify_derives_it_again_and_finds_a_changed_digit(study) -> None:
    made, _ = study
    report = str(verify(made.root / "results" / "cells"))
    assert "replies: one per trial" in report
    path = made.root / "cells.csv"
    original = path.read_bytes()
    try:
        path.write_bytes(original.replace(b"T1,Pair/0,yes,-", b"T1,Pair/0,yes,-1", 1))
        with pytest.raises(VerificationError, match=r"FAIL data set theirs changed, cells\.csv"):
            verify(made.root / "results" / "cells")
    finally:
        path.write_bytes(original)


def test_numbers_that_are_not_those_of_the_file_are_named(study) -> None:
    made, _ = study
    (cell,) = made.cells()
    assert differing_numbers(made, cell, cell.model) == []
    path, schema = made.layout.replies("crossed", "published", "theirs"), SCHEMAS["replies"]
    original, rows = path.read_bytes(), read_table(path, schema).to_pylist()
    try:
        write_table(
            path, table_from_rows([{**rows[0], "text": '{"e1":"-9.0","kept":"yes"}'}, *rows[1:]], schema), schema
        )
        (problem,) = differing_numbers(made, cell, cell.model)
    finally:
        path.write_bytes(original)
    assert 'trial 01-Pair/0.T1.0000.00: \'{"e1":"-9.0","kept":"yes"}\' is there, and cells.csv holds' in problem


def test_no_prompt_and_no_answer_is_made_up(study) -> None:
    made, _ = study
    trials = read_table(made.layout.trials("crossed", "theirs"), SCHEMAS["trials"]).to_pylist()
    assert len(trials) == 9 * 4 * 4
    first = trials[0]
    lines = (made.root / "cells.csv").read_text(encoding="utf-8").splitlines()
    address = json.loads(first["prompt"])["published_cell"]
    assert address == {"cell": "e1", "condition": "T1", "item": "Pair/0", "line": 11}
    assert lines[address["line"] - 1].startswith("T1,Pair/0,")
    assert {text for row in trials for text in row["labels"]} == {"A", "B"}
    replies = read_table(made.layout.replies("crossed", "published", "theirs"), SCHEMAS["replies"]).to_pylist()
    written = dict(zip(HEADER.split(","), lines[address["line"] - 1].split(","), strict=True))
    assert json.loads(replies[0]["text"]) == {"e1": written["e1"], "kept": "yes"}
    unknown = ("model_returned", "fingerprint", "top_logprobs", "option_logprobs", "input_tokens")
    assert all(row[name] is None for row in replies for name in unknown)
    outcomes = read_table(made.layout.outcomes("crossed", "published", "theirs"), SCHEMAS["outcomes"]).to_pylist()
    assert all(row["slot_logprobs"] is None and row["label_mass"] is None for row in outcomes)


def test_the_page_cannot_be_taken_for_one_of_bought_replies(study) -> None:
    made, _ = study
    html = made.layout.report.read_text(encoding="utf-8")
    words = re.sub(r"<[^>]+>", " ", html)
    for text in ("Published cells, not bought by this study", "no model was asked for these numbers", "cells.csv"):
        assert text in words
    assert "no model asked" in words
    assert "144 published numbers" in words
    assert "Model, in the source’s words: a model of theirs" in words
    for text in ("How the replies were bought", "What was sent", "As it was sent", "Calls without an answer"):
        assert text not in words
    assert "Published cells, not measured by this study." in (made.layout.figures / "hero.svg").read_text("utf-8")


def test_without_a_column_of_flags_the_rule_decides(tmp_path) -> None:
    rows = [line.split(",") for line in planted_file().splitlines()]
    made = make_study(tmp_path, "\n".join(",".join([*row[:2], *row[3:]]) for row in rows) + "\n")
    estimates = finish(made)
    n, odd = differences(estimates, analysed(made.root / "cells.csv", made.root / "contrasts.yaml", "modern"))
    assert (n > 700, odd) == (True, [])
    # The last item's order effect of .7 is beyond .50.
    assert estimates["items.kept"]["estimate"] == 8
    assert "order" in estimates["items.kept"]["method"]


@pytest.mark.parametrize("flags", [True, False])
def test_what_a_file_lacks_is_listed_and_the_rest_is_that_of_analyze(tmp_path, flags) -> None:
    rows = [line.split(",") for line in planted_file().splitlines()]
    del rows[-2], rows[12]  # item 7 of T5 and item 3 of T1
    shown = rows if flags else [[*row[:2], *row[3:]] for row in rows]
    made = make_study(tmp_path, "\n".join(map(",".join, shown)) + "\n")
    estimates = finish(made)
    n, odd = differences(estimates, analysed(made.root / "cells.csv", made.root / "contrasts.yaml", "modern"))
    assert (n > 700, odd) == (True, [])
    assert estimates["incomplete.T1"]["reason"].endswith("Pair/2 (not in the file)")
    assert estimates["incomplete.T5"]["estimate"] == estimates["incomplete.T1"]["estimate"] == 1
    # The column keeps 8 of 9 items; without it the two incomplete ones are left out too.
    kept = 8 if flags else 6
    sizes = {"serial.T1": (7, 8), "serial.T1c": (8, 9), "serial.T5": (7, 8), "contrast.A1": (7, 8)}
    for name, (with_column, everything) in sizes.items():
        assert estimates[name]["n_items"] == min(kept, with_column)
        assert estimates[f"{name}@all"]["n_items"] == everything
    assert estimates["items.kept"]["estimate"] == kept
    assert "replies: one per trial" in str(verify(made.root / "results" / "cells"))


@pytest.mark.skipif(not AD_SERIES.is_file(), reason="../shared/data/ad_series is not beside the repository")
def test_published_values_come_out_of_a_study_with_the_legacy_stream(tmp_path) -> None:
    made = make_study(tmp_path, AD_SERIES.read_text(encoding="utf-8"), settings("legacy"))
    estimates = finish(made)
    n, odd = differences(estimates, analysed(AD_SERIES, made.root / "contrasts.yaml", "legacy"))
    assert (n > 500, odd) == (True, [])

    def shown(name):
        return tuple(f"{estimates[name][key]:+.3f}" for key in ("estimate", "low", "high"))

    # arXiv 2609.30716, tables 4 to 9.
    assert shown("serial.T1") == ("-0.485", "-0.611", "-0.283")
    assert shown("serial.T1@all") == ("-0.463", "-0.592", "-0.282")
    assert shown("serial.T1c") == ("-0.884", "-1.074", "-0.708")
    assert shown("token.T1") == ("-0.216", "-0.438", "-0.028")
    assert shown("contrast.A1") == ("-0.400", "-0.578", "-0.237")
    assert shown("contrast.A1@all") == ("-0.407", "-0.573", "-0.251")
    assert (estimates["negative.serial.T1"]["estimate"], estimates["items.kept"]["estimate"]) == (12, 13)
    assert "legacy stream" in made.layout.report.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("T1,Pair/0,yes,-", "T1,Pair/0,yes,x", 1), r"cells\.csv: .*\nline 11, e1: found 'x0"),
        (lambda text: text.replace("T1,Pair/0,yes", "T1,Pair/0,maybe", 1), "line 11, kept: found 'maybe'; expected 1"),
        (lambda text: text.replace("kept", "used", 1), None),
        (lambda text: text.replace(",e4", ",e5", 1), "line 1: no column e4; expected condition,item"),
        (
            lambda text: text.replace("T1,Pair/0,yes", "T1,Pair/2,yes", 1),
            "line 13: condition 'T1', item 'Pair/2' is on",
        ),
        (lambda text: HEADER + "\n", "no rows"),
    ],
)
def test_wrong_files_stop_at_prepare_with_line_and_field(tmp_path, change, message) -> None:
    made = make_study(tmp_path, change(planted_file()))
    if message is None:
        run(made, *PREPARE)
        return
    with pytest.raises(AssertionError, match=message):
        run(made, *PREPARE)


def test_a_condition_that_no_crossing_has_is_named_with_its_line(tmp_path) -> None:
    made = make_study(tmp_path, planted_file().replace("T3,", "plain,"))
    run(made, *PREPARE)
    with pytest.raises(AssertionError, match=r"cells\.csv line 2, condition: found 'plain'; in a study .* T1, T1c"):
        run(made, "expand", "--experiment", "crossed", "--dataset", "theirs")


def changed(**changes):
    value = settings()
    for key, more in changes.items():
        value[key] = [{**value[key][0], **more}]
    return value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"experiments": {"prompt": {"template": "x.j2", "style": "plain"}}}, "say nothing about prompt; remove it"),
        ({"experiments": {"crossing": {"cues": ["now"]}}}, "say nothing about crossing"),
        ({"experiments": {"repeats": 2}}, "say nothing about repeats"),
        ({"experiments": {"design": "mcq"}}, "write `design: crossing`"),
        ({"experiments": {"read": {"kind": "logprob"}, "crossing": {"cues": ["now"]}}}, "`prompt` is needed"),
        ({"datasets": {"take": {"n": 3}}}, "published cells have no use for take"),
        ({"datasets": {"format": "csv"}}, "`columns` is needed"),
        ({"datasets": {"format": "csv", "columns": {"options": ["a", "b"], "key": None}}}, "takes only datasets with"),
        ({"models": {"vendor": "simulated", "described_as": None}}, "described_as"),
    ],
)
def test_what_is_not_known_cannot_be_declared(tmp_path, changes, message) -> None:
    with pytest.raises(ConfigError, match=message):
        make_study(tmp_path, planted_file(), changed(**changes))


def test_published_and_asked_cannot_be_mixed_in_one_experiment(tmp_path) -> None:
    value = settings()
    value["models"].append({"id": "asked", "vendor": "simulated"})
    value["experiments"][0]["models"] = ["published", "asked"]
    with pytest.raises(ConfigError, match=r"experiments\.0\.models: asked: with .* only models with `vendor: cells`"):
        make_study(tmp_path, planted_file(), value)


def test_predictions_of_published_cells_are_never_called_blind(tmp_path) -> None:
    value = {**settings(), "preregistration": "plan.md"}
    place = "id: P1, experiment: crossed, model: published, subset: theirs"
    line = f"{{{place}, quantity: serial.T1, rule: interval_below, value: 0}}"
    (tmp_path / "plan.md").write_text(f"```yaml predictions\n- {line}\n```\n", encoding="utf-8")
    made = make_study(tmp_path, planted_file(), value)
    finish(made)
    (row,) = read_table(made.layout.predictions, SCHEMAS["predictions"]).to_pylist()
    assert row["verdict"] == "confirmed"
    html = made.layout.report.read_text(encoding="utf-8")
    assert "no prediction of them is blind" in html
    assert "Written down before the first reply" not in html


def test_the_shipped_example_can_be_loaded_and_says_that_it_is_invented() -> None:
    example = load_study(REPOSITORY / "config" / "studies" / "published-cells.yaml")
    assert example.config.datasets[0].format == "cells"
    assert "invented" in example.config.title
    assert "invented" in example.config.datasets[0].source
