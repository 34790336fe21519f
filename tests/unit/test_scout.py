"""The scout: which trials it asks, what the rule makes of them, and what a skipped cell leaves behind."""

import json
import math
import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from small_study import TEMPLATE, study_text, sums_csv, write_files

from counterbalance.artifacts import SCHEMAS, read_record, read_table, table_from_rows, write_table
from counterbalance.artifacts.records import record_path
from counterbalance.canonical import parse_json, sha256_file
from counterbalance.cli import main
from counterbalance.config import Study, load_study
from counterbalance.config.models import Scout
from counterbalance.errors import ConfigError, GateError, InputError, VerificationError
from counterbalance.files import write_bytes, write_json
from counterbalance.prereg.record import inspect_chain
from counterbalance.progress import make_progress
from counterbalance.rerun import rerun_key
from counterbalance.scouting.look import look
from counterbalance.scouting.outcome import swept_cells
from counterbalance.scouting.trials import draw_items, scout_trials
from counterbalance.stages.contrast import combine_estimates, estimate_cell
from counterbalance.stages.decide import decide
from counterbalance.stages.expand import expand_trials
from counterbalance.stages.freeze import freeze
from counterbalance.stages.prepare import prepare_items
from counterbalance.stages.query import query_replies
from counterbalance.stages.report import render_report
from counterbalance.stages.resolve import resolve_study
from counterbalance.stages.score import score_replies
from counterbalance.stages.scout import scout_cell
from counterbalance.stages.scout_trials import expand_scout
from counterbalance.stages.verify import verify, write_manifest
from counterbalance.stats.multiplicity import holm
from counterbalance.verification.manifest import build_manifest

N_ITEMS, LOOKED_AT, ORDERS = 12, 5, 6
SCOUT_LINE = "    scout: {items: 5, keep: {max_accuracy: 0.95}}\n"
RESPONDENTS = """\
  - {id: biased, vendor: simulated, seed: 3, ability_mean: 1.0, slot_bonus: [2.0, 0.0], call_noise: 0.3}
  - {id: able, vendor: simulated, seed: 5, ability_mean: 40.0}
"""
REST = f"""\
read: {{kind: generate}}
    arrangement: {{scheme: exhaustive}}
{SCOUT_LINE}analysis: {{resamples: 99, run_resamples: 99}}
"""
STUDY = study_text(
    ("id: tiny", "id: scouted"),
    ("seed: 7", "seed: 11"),
    ("preregistration: null", "preregistration: preregistration/scouted.md"),
    ("  - {id: planted, vendor: simulated}\n", RESPONDENTS),
    ("path: sums.csv", "path: items.csv"),
    ("models: [planted]", "models: [biased, able]"),
    ("read: {kind: generate}\n", REST),
)
PLAN = """\
# Scouted

```yaml predictions
- {id: P1, experiment: letters, model: biased, subset: sums, quantity: picks.slot_1, rule: at_least, value: 0.4}
- {id: P2, experiment: letters, model: able, subset: sums, quantity: accuracy, rule: at_least, value: 0.9}
- {id: P3, experiment: letters, model: able, subset: sums, quantity: relabelling.picks, rule: p_below, value: 0.05}
- {id: P4, experiment: letters, model: able, subset: sums, quantity: verdict, rule: label_is, value: bias}
- {id: P5, experiment: letters, model: biased, subset: sums, quantity: accuracy, rule: less_than,
   than: {experiment: letters, model: able, subset: sums, quantity: accuracy}}
```
"""
QUIET = make_progress("none")


def make_project(root: Path, *, scheme: str = "exhaustive", scout: str = SCOUT_LINE) -> Study:
    files = {
        "Snakefile": "",
        "scouted.yaml": STUDY.replace("scheme: exhaustive", f"scheme: {scheme}").replace(SCOUT_LINE, scout),
        "items.csv": sums_csv(N_ITEMS),
        "letter.j2": TEMPLATE,
        "preregistration/scouted.md": PLAN,
    }
    write_files(root, files)
    return load_study(root / "scouted.yaml")


def make_prompts(study: Study) -> None:
    resolve_study(study)
    prepare_items(study, "sums")
    expand_trials(study, "letters", "sums")
    if study.experiment("letters").scout is not None:
        expand_scout(study, "letters", "sums")


def run_all(study: Study) -> None:
    """Every stage, as the workflow runs them."""
    make_prompts(study)
    freeze(study)
    for model in ("biased", "able"):
        scout_cell(study, "letters", model, "sums", QUIET)
    decide(study)
    derive(study)


def derive(study: Study) -> None:
    for cell in swept_cells(study):
        names = (cell.experiment.id, cell.model.id, cell.dataset.id)
        query_replies(study, *names, QUIET)
        score_replies(study, *names)
        estimate_cell(study, *names)
    combine_estimates(study)
    render_report(study)
    write_manifest(study)


def answered(study: Study, model: str) -> int:
    path = study.layout.ledger("letters", model, "sums")
    if not path.is_file():
        return 0
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT count(*) FROM calls WHERE reply IS NOT NULL").fetchone()[0]


def rows_of(study: Study, name: str) -> list[dict]:
    return read_table(getattr(study.layout, name), SCHEMAS[name]).to_pylist()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = make_project(tmp_path_factory.mktemp("scouted") / "a study é")
    run_all(study)
    return study


@pytest.fixture
def finished(done: Study, tmp_path: Path) -> Study:
    shutil.copytree(done.root, tmp_path / "copy")
    return load_study(tmp_path / "copy" / "scouted.yaml")


@given(st.sets(st.text("abcdef", min_size=1, max_size=4), min_size=3, max_size=20), st.integers(0, 99), st.data())
@settings(max_examples=30, deadline=None)
def test_a_drawn_item_stays_drawn_when_others_go(ids, seed, data) -> None:
    n = data.draw(st.integers(1, len(ids)))
    chosen = draw_items(seed, sorted(ids), n)
    assert chosen == sorted(chosen)
    assert len(chosen) == n
    assert chosen == draw_items(seed, sorted(ids, reverse=True), n)
    assert set(draw_items(seed, sorted(ids), n - 1)) <= set(chosen)
    unchosen = sorted(ids - set(chosen))
    if unchosen:
        assert draw_items(seed, sorted(ids - {unchosen[0]}), n) == chosen


@pytest.mark.parametrize("scheme", ["exhaustive", "identity_reverse", "cyclic", "williams"])
def test_where_the_sweep_asks_an_order_too_its_own_row_is_asked(tmp_path, scheme) -> None:
    study = make_project(tmp_path, scheme=scheme)
    make_prompts(study)
    path = study.layout.scout_trials("letters", "sums")
    scout = read_table(path, SCHEMAS["trials"]).to_pylist()
    sweep = read_table(study.layout.trials("letters", "sums"), SCHEMAS["trials"]).to_pylist()
    own = {("o1", "o2", "o3"), ("o3", "o2", "o1")}
    items = {row["item_id"] for row in scout}
    assert len(items) == LOOKED_AT
    assert {(row["item_id"], tuple(row["arrangement"])) for row in scout} == {(i, o) for i in items for o in own}
    shared = [row for row in sweep if row["item_id"] in items and tuple(row["arrangement"]) in own]
    kept = [row for row in scout if row["condition"] == "mcq"]
    assert kept == shared
    assert all(row["condition"] == "scout" for row in scout if row not in kept)
    assert read_record(path).facts == {"items": LOOKED_AT, "trials": 2 * LOOKED_AT, "reused": len(shared)}
    if scheme in ("exhaustive", "identity_reverse"):
        assert len(shared) == 2 * LOOKED_AT
    if scheme == "cyclic":
        # Three rotations of (1, 2, 3): the order itself is one of them, its reverse is none.
        assert len(shared) == LOOKED_AT


def test_fewer_items_than_asked_for_are_all_looked_at(tmp_path) -> None:
    study = make_project(tmp_path, scout="    scout: {items: 500, action: report}\n")
    make_prompts(study)
    assert read_record(study.layout.scout_trials("letters", "sums")).facts["items"] == N_ITEMS


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("scout: {items: 5}", "`action: skip` needs a rule"),
        ("scout: {items: 1, action: report}", "scout.items"),
        ("scout: {keep: {min_accuracy: 0.2}, keep_bands: [low]}", "two rules"),
        ("scout: {keep: {}}", "every accuracy lies between"),
        ("scout: {keep: {min_accuracy: 0.9, max_accuracy: 0.2}}", "must be below"),
        ("scout: {keep_bands: [medium]}", "keep_bands"),
        ("scout: {keep_bands: [low, middle, high]}", "keep_bands"),
    ],
)
def test_a_scout_that_makes_no_sense_is_refused(tmp_path, line, says) -> None:
    with pytest.raises(ConfigError, match="line ") as caught:
        make_project(tmp_path, scout=f"    {line}\n")
    assert says in str(caught.value)


def test_a_scout_needs_a_key(tmp_path) -> None:
    make_project(tmp_path)
    path = tmp_path / "scouted.yaml"
    text = path.read_text().replace("key: key, id: id", "key: null, id: id").replace("    key: {type: letter}\n", "")
    path.write_text(text)
    with pytest.raises(ConfigError, match="has no key"):
        load_study(path)


def test_without_a_scout_no_stage_of_before_has_other_settings(tmp_path) -> None:
    without = make_project(tmp_path / "a", scout="")
    scouted = make_project(tmp_path / "b")
    names = {"experiment": "letters", "model": "able", "dataset": "sums"}
    for stage in ("prepare", "expand", "query", "score", "contrast", "combine"):
        assert rerun_key(without, stage, **names) == rerun_key(scouted, stage, **names)
    assert list(without.scouted_cells()) == []
    assert swept_cells(without) == list(without.cells())


def test_no_scout_before_the_freeze(tmp_path) -> None:
    study = make_project(tmp_path)
    make_prompts(study)
    with pytest.raises(GateError, match="nothing is frozen"):
        scout_cell(study, "letters", "able", "sums", QUIET)
    result = CliRunner().invoke(main, ["scout", "--study", str(study.path)])
    assert result.exit_code == GateError.exit_code
    assert answered(study, "able") == 0


def test_the_freeze_covers_the_scouts_own_trials(tmp_path) -> None:
    study = make_project(tmp_path, scheme="cyclic")
    make_prompts(study)
    record = freeze(study)
    path = study.layout.scout_trials("letters", "sums")
    assert record.body.parts.trials["letters/sums@scout"] == read_record(path).digest
    rows = read_table(path, SCHEMAS["trials"]).to_pylist()
    rows[0]["prompt"] = '{"text": "Say A."}'
    write_table(path, table_from_rows(rows, SCHEMAS["trials"]), SCHEMAS["trials"])
    with pytest.raises(GateError, match="letters/sums@scout changed"):
        scout_cell(study, "letters", "able", "sums", QUIET)
    path.unlink()
    with pytest.raises(InputError, match="not there"):
        scout_cell(study, "letters", "able", "sums", QUIET)
    with pytest.raises(GateError, match="has not been looked at"):
        query_replies(study, "letters", "able", "sums", QUIET)
    assert answered(study, "able") == 0


def test_the_sweep_buys_none_of_the_scouts_replies_again(done) -> None:
    scout = read_table(done.layout.scout_replies("letters", "biased", "sums"), SCHEMAS["replies"]).to_pylist()
    sweep = read_table(done.layout.replies("letters", "biased", "sums"), SCHEMAS["replies"]).to_pylist()
    assert answered(done, "biased") == len(sweep) == N_ITEMS * ORDERS
    assert answered(done, "able") == len(scout) == 2 * LOOKED_AT
    by_trial = {row["trial_id"]: row for row in sweep}
    assert [by_trial[row["trial_id"]] for row in scout] == scout


def test_other_schemes_buy_what_they_do_not_share(tmp_path) -> None:
    study = make_project(tmp_path, scheme="cyclic")
    run_all(study)
    sweep = parse_json(study.layout.scout_decision("letters", "biased", "sums").read_bytes(), source="decision")[
        "sweep"
    ]
    trials, shared = 3 * N_ITEMS, LOOKED_AT
    assert (sweep["trials"], sweep["reused"], sweep["left"]) == (trials, shared, trials - shared)
    assert answered(study, "biased") == trials + LOOKED_AT
    verify(study.layout.results)


def test_a_skipped_cell_is_listed_with_its_reason_and_its_tests_count(done) -> None:
    rows = rows_of(done, "estimates")
    mine = {row["quantity"]: row for row in rows if row["model"] == "able"}
    assert mine.keys() == {"relabelling.accuracy", "relabelling.picks", "verdict"}
    assert {row["status"] for row in mine.values()} == {"not_asked"}
    assert mine["verdict"]["label"] == "not_asked"
    assert all("above max_accuracy 0.95" in row["reason"] for row in mine.values())
    tests = [row for row in rows if row["family"] is not None]
    assert len(tests) == 4
    assert [row["p_adjusted"] for row in tests] == holm([row["p"] for row in tests])
    smallest = min(row["p"] for row in tests if row["p"] is not None)
    assert min(row["p_adjusted"] for row in tests if row["p_adjusted"] is not None) == pytest.approx(4 * smallest)


def test_predictions_on_a_skipped_cell_are_not_evaluable(done) -> None:
    found = {row["prediction"]: row for row in rows_of(done, "predictions")}
    assert found["P1"]["verdict"] == "confirmed"
    for name in ("P2", "P3", "P4", "P5"):
        assert found[name]["verdict"] == "not_evaluable"
        assert "scout accuracy 1.000 is above max_accuracy 0.95" in found[name]["reason"]


def test_the_summary_says_what_was_saved(done) -> None:
    text = decide(done)
    left = N_ITEMS * ORDERS - 2 * LOOKED_AT
    assert f"1 cells are asked in full, 1 are skipped; saved: {left} calls" in text
    assert "skipped letters/able/sums: scout accuracy 1.000" in text


def test_a_skipped_cell_cannot_be_asked_by_hand(finished) -> None:
    before = answered(finished, "able")
    with pytest.raises(GateError, match="leaves this cell out"):
        query_replies(finished, "letters", "able", "sums", QUIET)
    finished.layout.scout_decision("letters", "biased", "sums").unlink()
    with pytest.raises(GateError, match="has not been looked at"):
        query_replies(finished, "letters", "biased", "sums", QUIET)
    assert answered(finished, "able") == before


def test_the_same_bytes_again_and_no_call(finished) -> None:
    names = [finished.layout.scout_decision("letters", model, "sums") for model in ("biased", "able")]
    names += [finished.layout.scout_summary, finished.layout.estimates, finished.layout.predictions]
    before = [path.read_bytes() for path in names]
    calls = answered(finished, "able")
    shutil.rmtree(finished.layout.results)
    run_all(finished)
    assert [path.read_bytes() for path in names] == before
    assert answered(finished, "able") == calls


def test_verification_decides_again(done) -> None:
    text = str(verify(done.layout.results))
    assert "scouts: decided again from their replies" in text
    assert "1 cells, each with all its artifacts, 1 skipped after their scouts" in text


def forge(study: Study, path: Path, change) -> None:
    """Change a JSON artifact as somebody would who wants it unseen: all hashes follow."""
    body = parse_json(path.read_bytes(), source="forged")
    change(body)
    write_json(path, body)
    for beside in [record_path(path), *study.layout.results.rglob("*.record.json")]:
        record = parse_json(beside.read_bytes(), source=str(beside))
        artifact = record["artifact"]
        artifact["sha256"] = sha256_file(study.root / artifact["path"])
        for entry in artifact["materials"]:
            entry["sha256"] = sha256_file(study.root / entry["path"])
        write_json(beside, record)
    chain, _ = inspect_chain(study.layout)
    write_bytes(study.layout.manifest, build_manifest(study, chain).dumps())


def test_a_forged_decision_is_found(finished) -> None:
    path = finished.layout.scout_decision("letters", "able", "sums")
    forge(finished, path, lambda body: body["accuracy"].update(estimate=0.97))
    with pytest.raises(VerificationError, match=r"accuracy\.estimate: 0\.97 is there, derived again it is 1\.0"):
        verify(finished.layout.results)


def test_a_forged_summary_is_found(finished) -> None:
    forge(finished, finished.layout.scout_summary, lambda body: body.update(saved_calls=1_000_000))
    with pytest.raises(VerificationError, match="saved_calls: 1000000 is there"):
        verify(finished.layout.results)


def test_a_missing_summary_stops_verification_with_words(finished) -> None:
    finished.layout.scout_summary.unlink()
    with pytest.raises(VerificationError, match="cannot be told which cells were asked"):
        verify(finished.layout.results)
    with pytest.raises(InputError, match="not decided"):
        swept_cells(finished)


def test_by_hand_it_says_what_a_person_wants_to_know(finished) -> None:
    options = ["--progress", "none", "--model", "able"]
    result = CliRunner().invoke(main, ["scout", "--study", str(finished.path), *options])
    assert result.exit_code == 0, result.output
    for text in ("letters/able/sums: accuracy 1.000", "band high", "62 left", "SKIP: scout accuracy 1.000 is above"):
        assert text in result.output
    result = CliRunner().invoke(main, ["scout", "--study", str(finished.path), "--model", "nobody"])
    assert result.exit_code == ConfigError.exit_code


def test_a_study_without_scout_is_looked_at_where_its_own_prompts_suffice(tmp_path) -> None:
    study = make_project(tmp_path, scout="")
    make_prompts(study)
    freeze(study)
    before = sorted(path for path in study.layout.results.rglob("*"))
    result = CliRunner().invoke(main, ["scout", "--study", str(study.path), "--json", "--progress", "none"])
    assert result.exit_code == 0, result.output
    bodies = json.loads(result.output)
    assert [body["decision"] for body in bodies] == ["keep", "keep"]
    assert [body["items"] for body in bodies] == [N_ITEMS, N_ITEMS]
    assert sorted(path for path in study.layout.results.rglob("*")) == before
    assert answered(study, "able") == 2 * N_ITEMS
    query_replies(study, "letters", "able", "sums", QUIET)
    assert answered(study, "able") == N_ITEMS * ORDERS


def test_and_refused_where_they_do_not(tmp_path) -> None:
    study = make_project(tmp_path, scheme="cyclic", scout="")
    make_prompts(study)
    freeze(study)
    result = CliRunner().invoke(main, ["scout", "--study", str(study.path), "--progress", "none"])
    assert result.exit_code == GateError.exit_code
    assert f"{N_ITEMS} of the scout's {2 * N_ITEMS} prompts are not among those frozen" in result.output
    assert answered(study, "able") == 0


def test_what_the_sweep_costs_is_told_from_the_scouts_usage(tmp_path) -> None:
    study = make_project(tmp_path)
    make_prompts(study)
    text = study.path.read_text().replace(
        "  - {id: able, vendor: simulated, seed: 5, ability_mean: 40.0}\n",
        "  - {id: able, vendor: openai, model: gpt-x-2025-01-01, account: mine}\n",
    )
    text += "accounts: [{id: mine, key_env: A_KEY}]\nmoney: {prices: {able: {input: 2.0, output: 8.0}}}\n"
    study.path.write_text(text)
    study = load_study(study.path)
    cell = study.cell("letters", "able", "sums")
    trials = scout_trials(study, cell.experiment, cell.dataset, 5)
    usage = [(100 + n, 3) for n in range(trials.num_rows)]
    table = replies(trials, ["A"] * trials.num_rows, usage)
    found = look(study, cell, Scout(action="report"), trials, table).body
    left = N_ITEMS * ORDERS - 10
    tokens = (math.ceil(104.5 * left), 3 * left)
    assert (found["sweep"]["input_tokens"], found["sweep"]["output_tokens"]) == tokens
    assert found["sweep"]["nano_usd"] == 2_000 * tokens[0] + 8_000 * tokens[1]
    # Key A in the source: A is right in the source's order and wrong in the reverse, in every item.
    assert (found["accuracy"]["estimate"], found["band"]) == (0.5, "low")
    assert found["same_option"]["estimate"] == 0


def replies(trials: pa.Table, texts: list[str], usage: list[tuple[int, int]]) -> pa.Table:
    rows = []
    for trial, text, (into, out) in zip(trials.column("trial_id").to_pylist(), texts, usage, strict=True):
        row = dict.fromkeys(SCHEMAS["replies"].arrow.names)
        row |= {"trial_id": trial, "call_sha256": trial, "status": "ok", "text": text, "finish_reason": "stop"}
        row |= {"attempts": 1, "call_order": 0, "session": 1, "started_at": "t"}
        rows.append(row | {"input_tokens": into, "output_tokens": out})
    return table_from_rows(rows, SCHEMAS["replies"])


def test_replies_without_an_answer_skip_nothing(tmp_path) -> None:
    study = make_project(tmp_path)
    make_prompts(study)
    cell = study.cell("letters", "able", "sums")
    trials = scout_trials(study, cell.experiment, cell.dataset, 5)
    mute = replies(trials, ["I would rather not say."] * 10, [(1, 1)] * 10)
    found = look(study, cell, cell.experiment.scout, trials, mute).body
    assert (found["decision"], found["rule_keeps"], found["band"]) == ("keep", None, None)
    assert found["detectable_V"]["least"] is None
    assert found["detectable_V"]["reason"]
