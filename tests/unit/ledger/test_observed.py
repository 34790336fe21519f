import hashlib
from pathlib import Path

from small_study import STUDY, write_study

from counterbalance.canonical import canonical_json, sha256_bytes
from counterbalance.config import Study, load_study
from counterbalance.ledger import Attempt, Ledger, Sending, count_observed, observed_calls

NOTHING = "sha256:" + hashlib.sha256(b"").hexdigest()


def make_study(root: Path) -> Study:
    return load_study(write_study(root, STUDY))


def buy(study: Study, model: str, numbers: range, *, answered: bool = True) -> list[str]:
    texts = [canonical_json({"model": model, "number": number}) for number in numbers]
    calls = [Sending(sha256_bytes(text), text.decode()) for text in texts]
    path = study.layout.ledger("letters", model, "sums")
    with Ledger(path, study="tiny", cell=f"letters/{model}/sums") as ledger:
        ledger.save([], calls, frozen_sha256="sha256:" + "f" * 64)
        if answered:
            replies = [Attempt(key, "answered", reply='{"status":"ok"}') for key, *_ in calls]
            ledger.save(replies, [], frozen_sha256="sha256:" + "f" * 64)
    return [key for key, *_ in calls]


def test_before_the_first_call_nothing_is_observed_and_nothing_is_made(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    observed = observed_calls(study)
    assert (observed.calls, observed.by_cell, observed.calls_sha256) == (0, {}, NOTHING)
    assert not (tmp_path / "ledger").exists()


def test_answered_calls_are_counted_also_of_cells_that_the_study_dropped(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    planted = buy(study, "planted", range(3))
    buy(study, "planted", range(5, 7), answered=False)
    dropped = buy(study, "dropped", range(2))
    observed = observed_calls(study)
    assert observed.calls == 5
    assert count_observed(study) == {"letters/planted/sums": 3, "letters/dropped/sums": 2}
    lines = [f"letters/planted/sums {key}\n" for key in planted] + [f"letters/dropped/sums {key}\n" for key in dropped]
    expected = hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()
    assert observed.calls_sha256 == f"sha256:{expected}"


def test_one_more_reply_changes_the_digest(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    buy(study, "planted", range(2))
    before = observed_calls(study).calls_sha256
    buy(study, "planted", range(2, 3))
    assert observed_calls(study).calls_sha256 != before
