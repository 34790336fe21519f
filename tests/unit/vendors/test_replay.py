import asyncio
import itertools
import json
from dataclasses import fields
from pathlib import Path

import pytest
from small_study import study_body, trial_row, write_study

from counterbalance.artifacts import SCHEMAS, table_from_rows, write_table
from counterbalance.canonical import sha256_file
from counterbalance.config import Study, load_study
from counterbalance.errors import ConfigError, InputError, VendorError
from counterbalance.vendors import get_vendor
from counterbalance.vendors.base import Reply, Trial

THEIRS = {
    "id": "published",
    "vendor": "replay",
    "replies": "theirs/{experiment}/{subset}.replies.parquet",
    "trials": "theirs/{experiment}/{subset}.trials.parquet",
}


def two_options(item: str, index: int, order: tuple[str, ...], *, text: str | None = None) -> dict:
    return trial_row(item, index, order, {"text": text or f"{item} {order} Answer:"})


def reply_row(trial_id: str, number: int) -> dict:
    return {
        "trial_id": trial_id,
        "call_sha256": f"sha256:{number:064d}",
        "status": "ok",
        "reason": None,
        "text": f"reply {number}",
        "top_tokens": ["A", "B"],
        "top_logprobs": [-0.25, -1.5],
        "option_logprobs": None,
        "option_tokens": None,
        "finish_reason": "stop",
        "model_returned": "their-model-1",
        "fingerprint": "fp",
        "request_id": "r1",
        "input_tokens": 12,
        "cached_tokens": 0,
        "output_tokens": 1,
        "reasoning_tokens": None,
        "attempts": 1,
        "latency_ms": 12.5,
        "session": 0,
        "call_order": number,
        "started_at": "2026-01-02T03:04:05.678Z",
    }


ROWS = [
    two_options(item, index, order)
    for item in ("theirs-1", "theirs-2")
    for index, order in enumerate(itertools.permutations(("o1", "o2")))
]


def publish(root: Path, trials: list[dict] = ROWS, replies: list[dict] | None = None) -> None:
    replies = replies or [reply_row(row["trial_id"], number) for number, row in enumerate(trials)]
    for name, rows in (("trials", trials), ("replies", replies)):
        schema = SCHEMAS[name]
        write_table(root / "theirs" / "letters" / f"sums.{name}.parquet", table_from_rows(rows, schema), schema)


def as_trial(row: dict, **changed) -> Trial:
    names = {entry.name for entry in fields(Trial)}
    kept = {name: value for name, value in row.items() if name in names}
    return Trial(**{**kept, "experiment": "letters", "subset": "sums", "prompt": json.loads(row["prompt"]), **changed})


@pytest.fixture
def study(tmp_path: Path) -> Study:
    publish(tmp_path)
    return load_study(write_study(tmp_path, study_body([THEIRS])))


def make_vendor(study: Study):
    return get_vendor(study.model("published"), study.experiment("letters"), study)


def ask(vendor, trial: Trial) -> Reply:
    async def within() -> Reply:
        async with vendor:
            return await vendor.ask(vendor.request(trial), trial)

    return asyncio.run(within())


def test_the_published_reply_comes_back_field_by_field(study: Study) -> None:
    published = reply_row("any", 2)
    reply = ask(make_vendor(study), as_trial(ROWS[2]))
    assert vars(reply) == {entry.name: published[entry.name] for entry in fields(Reply)}


def test_trials_are_matched_by_what_was_asked_not_by_their_names(study: Study) -> None:
    trial = as_trial(ROWS[3], trial_id="mine.mcq.0007.00", item_id="mine")
    assert ask(make_vendor(study), trial).text == "reply 3"


@pytest.mark.parametrize("changed", [{"arrangement": ["o2", "o9"]}, {"repeat": 1}, {"prompt_sha256": "sha256:0"}])
def test_another_prompt_arrangement_or_repeat_is_not_matched(study: Study, changed: dict) -> None:
    with pytest.raises(VendorError, match=r"no published reply for 1 trials of letters/sums \(first: theirs-1"):
        ask(make_vendor(study), as_trial(ROWS[0], **changed))


def test_what_is_not_covered_is_counted_before_the_first_reply(study: Study) -> None:
    mine = [*ROWS, two_options("z-new", 0, ("o1", "o2")), two_options("z-new", 1, ("o2", "o1"))]
    path = study.layout.trials("letters", "sums")
    write_table(path, table_from_rows(mine, SCHEMAS["trials"]), SCHEMAS["trials"])
    with pytest.raises(VendorError, match=r"no published reply for 2 of 6 trials .*first: z-new\.mcq\.0000\.00"):
        ask(make_vendor(study), as_trial(ROWS[0]))


def test_the_files_hashes_belong_to_the_identity_of_a_call(study: Study) -> None:
    trial = as_trial(ROWS[0])
    first = make_vendor(study).request(trial)
    replies = study.root / "theirs" / "letters" / "sums.replies.parquet"
    assert first.parameters["replies_sha256"] == sha256_file(replies)
    publish(study.root, replies=[reply_row(row["trial_id"], number + 50) for number, row in enumerate(ROWS)])
    assert make_vendor(study).request(trial).sha256 != first.sha256


def test_two_published_replies_to_one_prompt_are_not_chosen_between(study: Study) -> None:
    trials = [two_options(item, 0, ("o1", "o2"), text="the same") for item in ("theirs-1", "theirs-2")]
    publish(study.root, trials)
    with pytest.raises(InputError, match=r"theirs-2\.mcq\.0000\.00 and theirs-1\.mcq\.0000\.00 .* different calls"):
        ask(make_vendor(study), as_trial(trials[0]))
    shared = [reply_row(row["trial_id"], 4) for row in trials]
    publish(study.root, trials, shared)
    assert ask(make_vendor(study), as_trial(trials[1])).text == "reply 4"


def test_a_missing_file_is_named(study: Study) -> None:
    (study.root / "theirs" / "letters" / "sums.trials.parquet").unlink()
    with pytest.raises(ConfigError, match=r"models\.published\.trials: no file .*sums\.trials\.parquet"):
        make_vendor(study).request(as_trial(ROWS[0]))


@pytest.mark.parametrize("place", ["{model}", "{subset.name}", "{}", "{subset"])
def test_an_odd_place_holder_is_named(study: Study, place: str) -> None:
    odd = study.model("published").model_copy(update={"replies": f"theirs/{place}.parquet"})
    vendor = get_vendor(odd, study.experiment("letters"), study)
    with pytest.raises(ConfigError, match=r"place holder other than \{experiment\} and \{subset\}"):
        vendor.request(as_trial(ROWS[0]))
