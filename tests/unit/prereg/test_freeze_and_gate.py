"""Freezing once, amending with a reason, and the gate's message for every part that can change."""

import re
import shutil
import subprocess
import time

import pytest

from counterbalance.artifacts import SCHEMAS, read_record, table_from_rows, write_table
from counterbalance.canonical import parse_json, sha256_bytes, sha256_file
from counterbalance.errors import ConfigError, GateError, InputError
from counterbalance.ledger import Observed
from counterbalance.prereg.gate import check_gate, plan_hash
from counterbalance.prereg.parts import frozen_settings, table_digest
from counterbalance.prereg.record import inspect_chain, read_chain, write_frozen
from counterbalance.stages import freeze as stage
from counterbalance.stages.freeze import freeze

SHA_OLD_NEW = r"sha256:[0-9a-f]{64} -> sha256:[0-9a-f]{64}"


def refused(project, *, trials=False) -> str:
    with pytest.raises(GateError) as caught:
        check_gate(project.study, trials=trials)
    return str(caught.value)


def test_nothing_frozen_says_what_to_type(project) -> None:
    message = refused(project)
    assert "snakemake freeze_preregistration --cores 2 --configfile tiny.yaml" in message
    assert not (project.root / "preregistration/frozen").exists()


def test_a_frozen_plan_passes_and_is_checked_by_sha256sum(project) -> None:
    record = freeze(project.study)
    assert check_gate(project.study, trials=True) == record
    folder = project.root / "preregistration/frozen"
    done = subprocess.run(["sha256sum", "-c", "tiny-1.sha256"], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "tiny-1.json: OK\n")
    assert (folder / "tiny-1.json").stat().st_mode & 0o777 == 0o444


def test_the_record_holds_what_was_frozen(project) -> None:
    record = freeze(project.study)
    body = parse_json(record.path.read_bytes(), source="record")
    study = project.study
    assert body["parts"]["plan_text"] == sha256_file(project.root / "preregistration/tiny.md")
    assert body["parts"]["prompts"] == {"letter.j2": sha256_file(project.root / "letter.j2")}
    assert body["parts"]["data"] == {"sums": sha256_file(project.root / "sums.csv")}
    # Who pays and at which price is not frozen: no reply depends on it.
    assert set(body["parts"]["settings"]) == set(study.resolved) - {"accounts", "money"}
    assert body["config"] == frozen_settings(study)
    assert body["config"]["limits"] == study.resolved["limits"]
    assert body["counts"] == {
        "items": {"sums": 3},
        "trials": {"letters/sums": 6},
        "calls": {"letters/planted/sums": 6, "letters/fair/sums": 6},
    }
    assert (body["number"], body["previous"], body["reason"], body["exploratory"], body["late"]) == (
        1,
        None,
        None,
        False,
        False,
    )
    assert body["observed"]["calls"] == 0
    assert body["plan_hash"] == plan_hash(study)
    assert parse_json(study.layout.receipt.read_bytes(), source="receipt")["sha256"] == record.sha256


def test_an_exploratory_study_is_frozen_as_such(project) -> None:
    project.edit("tiny.yaml", "preregistration: preregistration/tiny.md", "preregistration: null")
    record = freeze(project.study)
    assert record.body.exploratory
    assert record.body.parts.plan_text is None
    assert record.body.predictions == ()
    assert "exploratory" in str(record)


def test_freezing_an_unchanged_plan_again_changes_nothing(project) -> None:
    first = freeze(project.study)
    before = first.path.stat()
    second = freeze(project.study)
    assert (second, second.created) == (first, False)
    assert "already frozen, plan unchanged" in str(second)
    assert first.path.stat().st_mtime_ns == before.st_mtime_ns


def test_the_same_plan_gives_the_same_bytes(project) -> None:
    first = freeze(project.study)
    data = first.path.read_bytes()
    first.path.unlink()
    project.study.layout.frozen_sum(1).unlink()
    time.sleep(0.01)
    assert freeze(project.study).path.read_bytes() == data


CHANGES = {
    "alpha": (
        "tiny.yaml",
        "alpha: 0.05",
        "alpha: 0.01",
        ["settings.analysis changed", "settings.analysis.alpha: 0.05 -> 0.01"],
    ),
    "default": (
        "tiny.yaml",
        "analysis: {alpha: 0.05}",
        "analysis: {alpha: 0.05, resamples: 999}",
        ["settings.analysis.resamples: 9999 -> 999"],
    ),
    "seed": ("tiny.yaml", "seed: 7", "seed: 8", ["settings.seed changed", "settings.seed: 7 -> 8"]),
    "title": ("tiny.yaml", "A tiny study", "A small study", ['settings.title: "A tiny study" -> "A small study"']),
    "bonus": (
        "tiny.yaml",
        "slot_bonus: [0.5, 0.0]",
        "slot_bonus: [0.4, 0.0]",
        ["settings.models.planted.slot_bonus: [0.5,0] -> [0.4,0]"],
    ),
    "order": (
        "tiny.yaml",
        "models: [planted, fair]",
        "models: [fair, planted]",
        ["settings.experiments.letters.models"],
    ),
    "text": (
        "preregistration/tiny.md",
        "What we expect",
        "What we had expected",
        ["plan text changed, preregistration/tiny.md"],
    ),
    "prediction": (
        "preregistration/tiny.md",
        "value: 0.5}",
        "value: 0.4}",
        ["plan text changed", "predictions changed", "predictions.P1.value: 0.5 -> 0.4"],
    ),
    "prompt": ("letter.j2", "Answer:", "Answer: ", ["prompt file changed, letter.j2"]),
    "data": ("sums.csv", "1 + 1", "1+1", ["data set sums changed, sums.csv"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_named_with_both_hashes_and_how_to_amend(project, name) -> None:
    file, old, new, says = CHANGES[name]
    record = freeze(project.study)
    frozen_hash = plan_hash(project.study)
    project.edit(file, old, new)
    message = refused(project)
    for part in says:
        assert part in message
    assert re.search(SHA_OLD_NEW, message)
    assert 'counterbalance freeze --study tiny.yaml --amend --reason "why"' in message
    assert plan_hash(project.study) != frozen_hash
    with pytest.raises(GateError, match="the plan is not the one frozen"):
        make_current_and_freeze(project)
    assert [entry.sha256 for entry in read_chain(project.study.layout)] == [record.sha256]


def make_current_and_freeze(project, reason=None):
    project.make_tables()
    return freeze(project.study, reason=reason)


def test_all_changes_are_listed_at_once(project) -> None:
    freeze(project.study)
    project.edit("tiny.yaml", "alpha: 0.05", "alpha: 0.01")
    project.edit("letter.j2", "Answer:", "Answer: ")
    project.edit("preregistration/tiny.md", "value: 0.1}", "value: 0.2}")
    message = refused(project)
    assert len(re.findall(r"^- ", message, re.MULTILINE)) == 4


@pytest.mark.parametrize("name", ["preregistration/tiny.md", "letter.j2", "sums.csv"])
def test_changed_line_ends_are_refused_and_recognised(project, name) -> None:
    freeze(project.study)
    project.write(name, project.read(name).replace("\n", "\r\n"))
    assert "only the line ends differ: it was frozen with LF" in refused(project)


def test_trials_are_compared_by_content(project) -> None:
    freeze(project.study)
    project.make_tables(stem="{n} + {n} = ?")
    assert check_gate(project.study, trials=False)
    message = refused(project, trials=True)
    assert "items of sums changed" in message
    assert "trials of letters/sums changed" in message


def test_a_missing_table_stops_the_check(project) -> None:
    freeze(project.study)
    project.study.layout.trials("letters", "sums").unlink()
    with pytest.raises(GateError, match=r"trials table is not there"):
        check_gate(project.study, trials=True, only=("letters", "sums"))


def test_a_missing_data_file_stops_and_is_named(project) -> None:
    freeze(project.study)
    (project.root / "sums.csv").unlink()
    with pytest.raises(InputError, match=r"sums\.csv: the file is not there"):
        check_gate(project.study, trials=False)


def test_a_downloaded_data_set_enters_with_its_declared_hash(project) -> None:
    declared = sha256_bytes(b"elsewhere")
    project.edit("tiny.yaml", "path: sums.csv", f"path: hf://datasets/a/b@0123456/f.csv\n    sha256: {declared}")
    (project.root / "sums.csv").unlink()
    before = plan_hash(project.study)
    project.edit("tiny.yaml", declared, sha256_bytes(b"other"))
    assert plan_hash(project.study) != before


def test_a_downloaded_data_set_without_hash_is_refused(project) -> None:
    project.edit("tiny.yaml", "path: sums.csv", "path: hf://datasets/a/b@0123456/f.csv")
    with pytest.raises(ConfigError, match=r"data set 'sums'.*`sha256` is needed"):
        plan_hash(project.study)


def test_an_amendment_chains_and_says_why(project) -> None:
    first = freeze(project.study)
    project.edit("tiny.yaml", "alpha: 0.05", "alpha: 0.01")
    second = make_current_and_freeze(project, reason="  0.05 was a typing error ")
    assert (second.body.number, second.body.reason) == (2, "0.05 was a typing error")
    assert second.body.previous is not None
    assert second.body.previous.sha256 == first.sha256
    assert check_gate(project.study, trials=True) == second
    assert [entry.sha256 for entry in read_chain(project.study.layout)] == [first.sha256, second.sha256]
    assert "amends number 1" in str(second)


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_an_amendment_without_a_reason_is_refused(project, reason) -> None:
    freeze(project.study)
    project.edit("tiny.yaml", "alpha: 0.05", "alpha: 0.01")
    with pytest.raises(GateError, match="the reason is empty"):
        make_current_and_freeze(project, reason=reason)


def test_there_must_be_something_to_amend(project) -> None:
    with pytest.raises(GateError, match="no frozen record to amend"):
        freeze(project.study, reason="why not")
    freeze(project.study)
    with pytest.raises(GateError, match="there is nothing to amend"):
        freeze(project.study, reason="why not")


def test_a_new_version_of_the_code_may_be_amended_for_but_need_not(project, monkeypatch) -> None:
    first = freeze(project.study)
    other = {name: sha256_bytes(b"after an update") for name in first.body.code}
    monkeypatch.setattr(stage, "_code", lambda study: other)
    assert freeze(project.study) == first == check_gate(project.study, trials=True)
    second = freeze(project.study, reason="frozen again with the next release")
    assert (second.body.number, second.body.code, second.body.plan_hash) == (2, other, first.body.plan_hash)
    assert check_gate(project.study, trials=True) == second


def test_what_was_observed_is_written_down(project, monkeypatch) -> None:
    seen = Observed({"letters/planted/sums": 4}, sha256_bytes(b"four calls"))
    freeze(project.study)
    monkeypatch.setattr(stage, "observed_calls", lambda study: seen)
    project.edit("tiny.yaml", "alpha: 0.05", "alpha: 0.01")
    record = make_current_and_freeze(project, reason="a typing error")
    assert record.body.observed.model_dump() == {
        "calls": 4,
        "by_cell": {"letters/planted/sums": 4},
        "calls_sha256": sha256_bytes(b"four calls"),
    }
    assert not record.body.late
    assert "4 calls observed before it" in str(record)


def test_a_first_freeze_after_calls_is_stamped_late(project, monkeypatch) -> None:
    monkeypatch.setattr(stage, "observed_calls", lambda study: Observed({"c": 1}, sha256_bytes(b"one")))
    record = freeze(project.study)
    assert record.body.late
    assert "LATE" in str(record)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p.edit("tiny.yaml", "seed: 7", "seed: 8"), "made with other settings"),
        (lambda p: p.edit("letter.j2", "Answer:", "Answer: "), "made from another letter.j2"),
        (lambda p: p.edit("sums.csv", "1 + 1", "1+1"), "made from another sums.csv"),
        (lambda p: p.study.layout.trials("letters", "sums").unlink(), "the table is not there"),
        (lambda p: p.study.layout.items("sums").write_bytes(b"PAR1"), "not the one that its record describes"),
    ],
)
def test_stale_tables_are_not_frozen(project, change, message) -> None:
    change(project)
    with pytest.raises(InputError, match=f"{message}.*counterbalance (prepare|expand) --study tiny.yaml"):
        freeze(project.study)
    assert read_chain(project.study.layout) == []


@pytest.fixture(scope="module")
def chain_template(template, tmp_path_factory):
    made = type(template)(tmp_path_factory.mktemp("chain") / "project")
    shutil.copytree(template.root, made.root)
    freeze(made.study)
    for old, new, reason in (("0.05", "0.01", "a typing error"), ("0.01", "0.02", "another")):
        made.edit("tiny.yaml", f"alpha: {old}", f"alpha: {new}")
        make_current_and_freeze(made, reason=reason)
    return made


@pytest.fixture
def three_records(chain_template, tmp_path):
    root = tmp_path / "three"
    shutil.copytree(chain_template.root, root)
    return type(chain_template)(root)


def resum(project, number) -> None:
    data = project.read(project.frozen(number)).encode()
    line = f"{sha256_bytes(data).removeprefix('sha256:')}  tiny-{number}.json\n"
    project.write(f"preregistration/frozen/tiny-{number}.sha256", line)


def edit_reason(project, number, old, new) -> None:
    project.edit(project.frozen(number), old, new)
    resum(project, number)


def remove(project, name) -> None:
    (project.root / "preregistration/frozen" / name).unlink()


DAMAGE = {
    "edited": (
        lambda p: p.edit(p.frozen(2), "a typing error", "A typing error"),
        "does not match .*one of them was edited",
    ),
    "edited sum": (
        lambda p: p.write("preregistration/frozen/tiny-1.sha256", "0" * 64 + "  tiny-1.json\n"),
        "does not match",
    ),
    "sum gone": (lambda p: remove(p, "tiny-3.sha256"), r"tiny-3\.sha256 is missing"),
    "record gone": (lambda p: remove(p, "tiny-3.json"), r"tiny-3\.json is missing while .*tiny-3\.sha256 is there"),
    "gap": (
        lambda p: (remove(p, "tiny-2.json"), remove(p, "tiny-2.sha256")),
        r"tiny-2\.json is missing while number 3 is there.*gap",
    ),
    "edited with its sum": (
        lambda p: edit_reason(p, 2, "a typing error", "A typing error"),
        r"tiny-3\.json replaces a record of hash .* but .*tiny-2\.json has .*exchanged",
    ),
    "edited parts": (
        lambda p: edit_reason(p, 3, '"alpha":0.02', '"alpha":0.03'),
        "its settings, predictions and hashes do not agree",
    ),
    "white space": (
        lambda p: edit_reason(p, 3, '"reason":', '"reason": '),
        "was not written by `counterbalance freeze`",
    ),
    "unknown key": (lambda p: edit_reason(p, 3, '"reason":', '"reasons":'), "key reason"),
    "other study": (lambda p: edit_reason(p, 3, '"study":"tiny"', '"study":"tony"'), "holds number 3 of study 'tony'"),
    "other number": (lambda p: edit_reason(p, 3, '"number":3', '"number":4'), "holds number 4"),
    "other schema": (lambda p: edit_reason(p, 3, "frozen/1", "frozen/9"), "has schema 'counterbalance/frozen/9'"),
    "line ends": (
        lambda p: p.write(p.frozen(1), p.read(p.frozen(1)).replace("\n", "\r\n")),
        "only the line ends differ: it was frozen with LF",
    ),
    "line ends of the sum": (
        lambda p: p.write(
            "preregistration/frozen/tiny-1.sha256",
            p.read("preregistration/frozen/tiny-1.sha256").replace("\n", "\r\n"),
        ),
        "only the line ends differ",
    ),
}


def test_a_whole_chain_is_fine(three_records) -> None:
    records, problems = inspect_chain(three_records.study.layout)
    assert [record.body.number for record in records] == [1, 2, 3]
    assert problems == []


@pytest.mark.parametrize("name", DAMAGE)
def test_each_damage_has_its_own_sentence(three_records, name) -> None:
    damage, message = DAMAGE[name]
    damage(three_records)
    with pytest.raises(GateError, match=message):
        check_gate(three_records.study, trials=False)
    with pytest.raises(GateError, match=message):
        freeze(three_records.study, reason="to hide it")


def test_what_changed_is_said_before_what_is_stale(project) -> None:
    freeze(project.study)
    project.edit("tiny.yaml", "seed: 7", "seed: 8")
    with pytest.raises(GateError, match=r"settings\.seed: 7 -> 8"):
        freeze(project.study)
    with pytest.raises(InputError, match="made with other settings"):
        freeze(project.study, reason="another seed")


def test_a_record_is_never_written_twice(project) -> None:
    record = freeze(project.study)
    data = record.path.read_bytes()
    with pytest.raises(GateError, match="a frozen file is never overwritten"):
        write_frozen(project.study.layout, record.body.model_copy(update={"late": True}))
    assert record.path.read_bytes() == data


def test_other_files_beside_the_records_are_left_alone(project) -> None:
    record = freeze(project.study)
    project.write("preregistration/frozen/tiny-1.tsr", b"an anchor")
    project.write("preregistration/frozen/tiny-1-2.json", b"of a study named tiny-1")
    assert read_chain(project.study.layout) == [record]


def test_the_plan_is_hashed_in_no_time(project) -> None:
    study = project.study
    seconds = []
    for _ in range(5):
        start = time.process_time()
        plan_hash(study)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.05


def test_the_streamed_digest_is_the_written_one(project) -> None:
    path = project.study.layout.trials("letters", "sums")
    found, record = table_digest(path, SCHEMAS["trials"]), read_record(path)
    assert (found.rows, found.digest, found.stable_digest) == (6, record.digest, record.stable_digest)
    empty = project.root / "empty.parquet"
    written = write_table(empty, table_from_rows([], SCHEMAS["rejected"]), SCHEMAS["rejected"])
    assert table_digest(empty, SCHEMAS["rejected"]) == written
