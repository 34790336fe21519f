"""A crossing put to a tiny model through all stages, as a user runs it; and a table of options, read three ways."""

import json
import sys
from pathlib import Path

import crossing_cases
import pytest
from click.testing import CliRunner
from open_weights import POSITIONS, WORDS, libraries, write_model
from query_cases import make_study, open_gate, trial_rows, write_trials

from counterbalance.artifacts import SCHEMAS, read_record, read_table
from counterbalance.cli.main import main
from counterbalance.config import Study
from counterbalance.prereg import gate
from counterbalance.progress import make_progress
from counterbalance.stages.query import query_replies
from counterbalance.vendors.openweights import Span, TorchEngine, read_files

LAST_BITS = 5e-6
ONE_CONDITION = {"conditions": [{"header": "neutral", "body": "verbatim", "cues": 0}]}


@pytest.fixture(scope="module", autouse=True)
def _extra() -> None:
    libraries()


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose tokenizer has all answers of the crossing but one as tokens."""
    words = WORDS.replace("teal", "").replace("five", "")
    return write_model(tmp_path_factory.mktemp("weights") / "a model é", words=words)


def a_crossing(root: Path, weights: Path, read: dict, **model: object) -> Study:
    root.mkdir(parents=True)
    models = [{"id": "tiny", "vendor": "transformers", "folder": str(weights), "context_tokens": POSITIONS, **model}]
    study = crossing_cases.make_study(root, models=models, items=5, read=read, crossing=ONE_CONDITION)
    return crossing_cases.finish(study)


def replies_of(study: Study) -> list[dict]:
    return read_table(study.layout.replies("notes", "tiny", "doors"), SCHEMAS["replies"]).to_pylist()


def outcomes_of(study: Study) -> dict[str, dict]:
    table = read_table(study.layout.outcomes("notes", "tiny", "doors"), SCHEMAS["outcomes"])
    return {row["trial_id"]: row for row in table.to_pylist()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Study:
    return a_crossing(tmp_path_factory.mktemp("study") / "a study é", weights, {"kind": "option_text"})


def test_every_call_has_its_numbers_its_weights_and_the_way_it_was_run(finished: Study, weights: Path) -> None:
    rows = replies_of(finished)
    assert len(rows) == 5 * 4
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["model_returned"] for row in rows} == {f"tiny@{read_files(weights).sha256}"}
    (fingerprint,) = {row["fingerprint"] for row in rows}
    assert "float32, 1 thread, at most 1 a pass" in fingerprint
    (sent,) = read_record(finished.layout.replies("notes", "tiny", "doors")).facts["parameters_sent"]
    assert sent["files_sha256"] == read_files(weights).sha256


def test_outcomes_are_what_the_engine_says_of_the_prompts(finished: Study, weights: Path) -> None:
    trials = read_table(finished.layout.trials("notes", "doors"), SCHEMAS["trials"]).to_pylist()
    outcomes = outcomes_of(finished)
    with TorchEngine(weights, context_tokens=POSITIONS) as engine:
        for trial in trials[:4]:
            ids, text, specials = engine.encode(json.loads(trial["prompt"])["text"])
            row = engine.logprobs([Span(tuple(ids))])[0][0]
            tails = [engine.tokens.tail(text, specials, ids, f" {answer}") for answer in trial["option_texts"]]
            assert outcomes[trial["trial_id"]]["slot_logprobs"] == [float(row[token]) for (token,) in tails]


def test_answers_of_several_tokens_are_excluded_and_listed(finished: Study) -> None:
    odd = {row["item_id"] for row in outcomes_of(finished).values() if row["outcome"] == "several_tokens"}
    items = read_table(finished.layout.trials("notes", "doors"), SCHEMAS["trials"]).to_pylist()
    assert odd == {row["item_id"] for row in items if "teal" in row["option_texts"]}
    assert len(odd) == 1
    estimates = read_table(finished.layout.estimates, SCHEMAS["estimates"]).to_pylist()
    (incomplete,) = [row for row in estimates if row["quantity"] == "incomplete.T1"]
    assert incomplete["estimate"] == 1
    assert odd.pop() in incomplete["reason"]


def test_nothing_is_asked_twice_and_the_table_is_made_again_without_the_libraries(
    finished: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = finished.layout.replies("notes", "tiny", "doors")
    before = path.read_bytes()
    path.unlink()
    monkeypatch.setitem(sys.modules, "torch", None)
    counts = query_replies(finished, "notes", "tiny", "doors", make_progress("none"))
    assert (counts.new, path.read_bytes()) == (0, before)


def test_the_report_names_the_weights_and_every_number_is_derived_again(finished: Study) -> None:
    for stage in ("report", "manifest"):
        assert CliRunner().invoke(main, [stage, "--study", str(finished.path)]).exit_code == 0
    report = next(finished.root.rglob("report.html")).read_text(encoding="utf-8")
    assert "open weights: " in report
    assert "(not pinned), float32, on the processor" in report
    verified = CliRunner().invoke(main, ["verify", str(finished.root / "results" / "tiny")])
    assert verified.exit_code == 0, verified.output
    assert "outcomes: read again from the replies (20 rows)" in verified.output


def test_passes_of_several_move_the_last_bits_at_most(finished: Study, tmp_path: Path, weights: Path) -> None:
    batched = a_crossing(tmp_path / "batched", weights, {"kind": "option_text"}, batch_size=4)
    alone, together = outcomes_of(finished), outcomes_of(batched)
    assert alone.keys() == together.keys()
    for name, outcome in alone.items():
        assert together[name]["outcome"] == outcome["outcome"]
        assert together[name]["slot_logprobs"] == (
            None if outcome["slot_logprobs"] is None else pytest.approx(outcome["slot_logprobs"], abs=LAST_BITS)
        )
    record = read_record(batched.layout.replies("notes", "tiny", "doors"))
    assert record.facts["call_order"] == "prefix"


def test_listed_tokens_give_what_the_answers_themselves_give(finished: Study, tmp_path: Path, weights: Path) -> None:
    listed = a_crossing(tmp_path / "listed", weights, {"kind": "logprob", "top": 1000, "min_label_mass": 1e-9})
    exact = outcomes_of(finished)
    compared = 0
    for name, outcome in outcomes_of(listed).items():
        if outcome["outcome"] == "ok" and exact[name]["outcome"] == "ok":
            # A listed answer counts with and without a blank before it; the latter are never whole tokens here.
            assert outcome["slot_logprobs"] == pytest.approx(exact[name]["slot_logprobs"], abs=1e-9)
            compared += 1
    assert compared == 4 * 4


@pytest.mark.parametrize(
    "read", [{"kind": "logprob", "min_label_mass": 1e-9}, {"kind": "generate"}, {"kind": "option_text"}]
)
def test_a_table_of_options_is_read(tmp_path: Path, weights: Path, read: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    models = [{"id": "tiny", "vendor": "transformers", "folder": str(weights), "context_tokens": POSITIONS}]
    study = make_study(tmp_path / "a study é", models, read=read)
    write_trials(study, trial_rows(2))
    monkeypatch.setattr(gate, "check_gate", open_gate(study))
    counts = query_replies(study, "letters", "tiny", "sums", make_progress("none"))
    rows = read_table(study.layout.replies("letters", "tiny", "sums"), SCHEMAS["replies"]).to_pylist()
    assert (counts.new, len(rows)) == (12, 12)
    if read["kind"] == "option_text":
        assert all(len(row["option_logprobs"]) == 3 for row in rows)
    elif read["kind"] == "logprob":
        assert all(len(row["top_logprobs"]) == 200 for row in rows)
    else:
        assert {row["status"] for row in rows} <= {"ok", "truncated", "empty"}
        assert all(row["finish_reason"] in {"stop", "length"} for row in rows)
