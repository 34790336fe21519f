"""What verification says of an untouched study, and of every way to touch one."""

import re
import shutil

import pyarrow.parquet as pq
import pytest
from verification_cases import (
    ESTIMATES,
    ITEMS,
    OUTCOMES,
    REPLIES,
    TRIALS,
    amend,
    change_alpha,
    derive_after_replies,
    finish,
    forge_settings,
)

from counterbalance.canonical import parse_json, sha256_bytes, sha256_file
from counterbalance.errors import VerificationError
from counterbalance.files import write_json
from counterbalance.stages.freeze import freeze
from counterbalance.stages.verify import verify, write_manifest

FROZEN = "preregistration/frozen/planted-1.json"


def refused(project) -> str:
    with pytest.raises(VerificationError) as caught:
        verify(project.results)
    return str(caught.value)


def failures(text: str) -> list[str]:
    return [line.removeprefix("FAIL ") for line in text.split("\n") if line.startswith("FAIL")]


def test_an_untouched_study_is_verified(finished) -> None:
    text = str(verify(finished.results))
    assert failures(text) == []
    assert text.endswith("results/planted: verified")
    for step in ("manifest", "files", "study", "frozen", "plan", "chain", "items", "prompts", "replies", "outcomes"):
        assert f"\nok   {step}: " in f"\n{text}"
    assert "prompts: rendered again, each with its hash (30 rows)" in text


def test_results_and_preregistration_are_enough_anywhere(finished, tmp_path) -> None:
    for name in ("results", "preregistration"):
        shutil.copytree(finished.root / name, tmp_path / "a stranger's" / name)
    text = str(verify(tmp_path / "a stranger's" / "results" / "planted"))
    assert (
        "not compared with their frozen hashes, because not here: config/items/sums.csv, config/prompts/planted.j2"
        in text
    )
    assert (
        "not checked, because not here: config/items/sums.csv, config/prompts/planted.j2, config/studies/planted.yaml"
        in text
    )
    assert "prompts of letters were not rendered again" in text


def test_the_manifest_is_the_same_when_written_again(project) -> None:
    before = project.study.layout.manifest.read_bytes()
    write_manifest(project.study)
    assert project.study.layout.manifest.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (FROZEN, "planted-1.json does not match"),
        ("preregistration/frozen/planted-1.sha256", "planted-1.json does not match"),
        ("preregistration/planted.md", "plan"),
        ("results/planted/freeze.receipt.json", "freeze.receipt.json"),
        ("config/items/sums.csv", "data set sums changed, config/items/sums.csv"),
        ("config/prompts/planted.j2", "prompt file changed, config/prompts/planted.j2"),
        ("config/studies/planted.yaml", "study.json: was made from config/studies/planted.yaml"),
    ],
)
def test_a_flipped_bit_elsewhere_is_found(project, name, says) -> None:
    project.flip(name, 0.4)
    assert says in refused(project)


@pytest.mark.parametrize("name", [ITEMS, REPLIES, "results/planted/report.html"])
def test_a_flipped_bit_in_an_artifact_is_found(project, name) -> None:
    project.flip(name, 0.3)
    assert any(line.startswith(name) for line in failures(refused(project)))


@pytest.mark.parametrize("place", [0.1, 0.4, 0.7, 0.9])
def test_a_flipped_bit_in_the_manifest_is_found(project, place) -> None:
    project.flip("results/planted/manifest.json", place)
    assert refused(project)


def test_an_artifact_taken_out_of_the_manifest_is_missed(project) -> None:
    path = project.study.layout.manifest
    body = parse_json(path.read_bytes(), source="manifest")
    body["artifacts"] = [entry for entry in body["artifacts"] if entry["path"] != OUTCOMES]
    write_json(path, body)
    project.path(OUTCOMES).unlink()
    project.path(f"{OUTCOMES}.record.json").unlink()
    found = failures(refused(project))
    assert f"{OUTCOMES}: the study asks for it and the manifest does not list it" in found
    assert any(f"was made from {OUTCOMES}" in line and "no artifact of the manifest" in line for line in found)


def test_another_parquet_writer_is_told_from_other_content(project) -> None:
    table = pq.read_table(project.path(OUTCOMES))
    pq.write_table(table, project.path(OUTCOMES), compression="snappy")
    found = failures(refused(project))
    assert len(found) == 1
    assert f"{OUTCOMES}: content equal, bytes differ" in found[0]


def test_a_study_written_by_another_parquet_writer_holds(project) -> None:
    pq.write_table(pq.read_table(project.path(OUTCOMES)), project.path(OUTCOMES), compression="snappy")
    project.edit_record(OUTCOMES, lambda record: record.update(sha256=sha256_file(project.path(OUTCOMES))))
    project.follow()
    assert str(verify(project.results)).endswith("verified")


def exchange(rows, column) -> None:
    """Exchange a column between the first row and the next one that has another value there."""
    other = next(row for row in rows if row[column] != rows[0][column])
    rows[0][column], other[column] = other[column], rows[0][column]


def set_first(column, value):
    return lambda rows: rows[0].update({column: value})


FORGERIES = {
    "reply text exchanged": (
        REPLIES,
        "replies",
        lambda rows: exchange(rows, "text"),
        [OUTCOMES, "row 0", "'slot'"],
    ),
    "reply moved": (REPLIES, "replies", lambda rows: exchange(rows, "call_sha256"), [REPLIES, "row 0", "call_sha256"]),
    "reply dropped": (REPLIES, "replies", lambda rows: rows.pop(0), [REPLIES, "has no reply"]),
    "reply of no trial": (REPLIES, "replies", set_first("trial_id", "a.mcq.0000.00"), ["'a.mcq.0000.00' is not among"]),
    "outcome": (
        OUTCOMES,
        "outcomes",
        lambda rows: rows[5].update(correct=not rows[5]["correct"]),
        ["row 5", "'correct'"],
    ),
    "estimate": (ESTIMATES, "estimates", set_first("n_items", 9), [ESTIMATES, "row 0", "'n_items'", "9 is there"]),
    "estimate by a millionth": (
        ESTIMATES,
        "estimates",
        lambda rows: rows[0].update(estimate=rows[0]["estimate"] * (1 + 1e-6)),
        [ESTIMATES, "'estimate'"],
    ),
    "combined": (
        "results/planted/estimates.parquet",
        "estimates",
        set_first("label", "x"),
        ["estimates.parquet", "'label'"],
    ),
    "surplus estimate": (
        ESTIMATES,
        "estimates",
        lambda rows: rows.append({**rows[-1], "quantity": "zz"}),
        [ESTIMATES, "'zz' is surplus"],
    ),
    "verdict": (
        "results/planted/predictions.parquet",
        "predictions",
        set_first("verdict", "falsified"),
        ["predictions.parquet: row 0 (prediction 'P1'), column 'verdict': 'falsified' is there", "'confirmed'"],
    ),
    "trial": (TRIALS, "trials", set_first("gold_slot", 2), [TRIALS, "'gold_slot'", "trials of letters/sums changed"]),
    "prompt": (TRIALS, "trials", set_first("prompt", '{"text":"x"}'), ["row 0: the prompt does not hash to its"]),
    "item": (ITEMS, "items", set_first("gold_option_id", "o2"), ["items of sums changed", ITEMS, "'gold_option_id'"]),
    "rejected": (
        "results/planted/rejected/sums.parquet",
        "rejected",
        lambda rows: rows.append({"source_row": 9, "item_id": None, "rule": "taste", "reason": "not liked"}),
        ["rejected/sums.parquet: row 0", "surplus"],
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_table_is_found_when_all_hashes_follow(project, name) -> None:
    table, kind, change, says = FORGERIES[name]
    project.forge(table, kind, change)
    found = "\n".join(failures(refused(project)))
    for part in says:
        assert part in found


def test_a_moved_reply_is_found_when_everything_after_it_is_derived_again(project) -> None:
    def move(rows) -> None:
        other = next(row for row in rows if row["text"] != rows[0]["text"])
        rows[0]["trial_id"], other["trial_id"] = other["trial_id"], rows[0]["trial_id"]

    project.forge(REPLIES, "replies", move)
    derive_after_replies(project.study)
    found = failures(refused(project))
    assert len(found) == 2
    assert all(REPLIES in line and "the trial's own call is" in line for line in found)


def test_a_call_shared_by_two_trials_has_one_reply(project) -> None:
    def share(rows) -> None:
        other = next(row for row in rows if row["text"] != rows[0]["text"])
        other["call_sha256"] = rows[0]["call_sha256"]

    project.forge(REPLIES, "replies", share)
    assert "shares its call with row 0, and text differ" in refused(project)


def test_last_digits_of_another_processor_are_noted_and_accepted(project) -> None:
    for name in (ESTIMATES, "results/planted/estimates.parquet"):
        project.forge(name, "estimates", lambda rows: rows[0].update(estimate=rows[0]["estimate"] * (1 + 4e-16)))
    assert "last digits of reals differ, by at most" in str(verify(project.results))


def test_other_code_is_noted_and_what_it_derives_decides(project) -> None:
    project.edit_record(OUTCOMES, lambda record: record.update(code_sha256=sha256_bytes(b"older code")))
    project.follow()
    text = str(verify(project.results))
    assert re.search(
        r"code differs from the one that made the artifacts \(.*score.*\).* derives agrees with them", text
    )
    assert "\nok   outcomes: read again from the replies (30 rows)" in text
    project.forge(OUTCOMES, "outcomes", lambda rows: rows[5].update(correct=not rows[5]["correct"]))
    assert "what the present code derives DOES NOT AGREE with them" in refused(project)


def test_a_report_of_another_plan_is_found(project) -> None:
    name = "results/planted/report.html"
    digest = sha256_file(project.path(FROZEN)).removeprefix("sha256:")
    project.replace(name, project.path(name).read_bytes().replace(digest.encode(), b"0" * 64))
    project.edit_record(name, lambda record: record.update(sha256=sha256_file(project.path(name))))
    project.follow()
    assert failures(refused(project)) == [f"report.html does not name the frozen record sha256:{digest}"]


def test_settings_that_are_not_the_frozen_ones_are_found(project) -> None:
    forge_settings(project, lambda config: config["analysis"].update(alpha=0.01))
    found = "\n".join(failures(refused(project)))
    assert "settings.analysis.alpha: 0.05 -> 0.01" in found


def test_settings_that_do_not_hash_to_their_hash_stop_the_derivation(project) -> None:
    path = project.study.layout.resolved_config
    body = parse_json(path.read_bytes(), source="study")
    body["config"]["analysis"]["alpha"] = 0.01
    write_json(path, body)
    found = "\n".join(failures(refused(project)))
    assert "study.json: its bytes are not those listed" in found
    assert "the settings cannot be read, so no number is derived again" in found


def test_an_amended_study_is_verified_and_says_so(project) -> None:
    amend(project)
    text = str(verify(project.results))
    assert "note planted-2.json amends number 1 after 30 observed calls: 0.05 was a typing error" in text
    assert "frozen: planted-2.json" in text
    project.path(FROZEN).unlink()
    assert "planted-1.json is missing while" in refused(project)


def test_an_exchanged_first_record_breaks_the_chain(project) -> None:
    amend(project)
    data = project.path(FROZEN).read_bytes()
    at = data.index(b'"contrast":"sha256:') + len(b'"contrast":"sha256:')
    data = data[:at] + b"0" * 64 + data[at + 64 :]
    project.replace(FROZEN, data)
    line = f"{sha256_bytes(data).removeprefix('sha256:')}  planted-1.json\n"
    project.replace("preregistration/frozen/planted-1.sha256", line.encode())
    found = "\n".join(failures(refused(project)))
    assert "planted-2.json replaces a record of hash" in found
    assert "the manifest names the frozen records" in found


def test_results_from_before_an_amendment_are_found(project) -> None:
    change_alpha(project)
    freeze(project.study, reason="0.05 was a typing error")
    found = "\n".join(failures(refused(project)))
    assert f"{REPLIES}: was made under the frozen record" in found
    assert "planted-2.json" in found


def test_a_late_freeze_is_told(project) -> None:
    for number in ("planted-1.json", "planted-1.sha256"):
        project.path(f"preregistration/frozen/{number}").unlink()
    finish(project.study)
    assert "note planted-1.json was frozen LATE, after 30 observed calls" in str(verify(project.results))


def test_without_the_frozen_record_there_is_no_verification(project) -> None:
    shutil.rmtree(project.path("preregistration/frozen"))
    assert "no frozen record can be read; get the preregistration folder as well" in refused(project)


def test_a_reply_of_invented_text_derived_anew_is_beyond_verification(project) -> None:
    """The limit that docs/verification.md states: a folder that was made anew as a whole is consistent."""
    project.forge(REPLIES, "replies", lambda rows: exchange(rows, "text"))
    derive_after_replies(project.study)
    assert str(verify(project.results)).endswith("verified")


def test_a_folder_that_is_no_results_folder_is_refused(tmp_path) -> None:
    with pytest.raises(VerificationError, match="give a folder results/STUDY"):
        verify(tmp_path)
