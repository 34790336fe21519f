"""Calls that a vendor turns down as malformed: final for that call where others are answered, a stop where none is."""

from pathlib import Path

import pytest
from batch_cases import Depot, DepotVendor, Purse, echo, replies
from batch_cases import session as run_batches
from query_cases import ScriptedVendor, trial_rows
from test_engine import Session

from counterbalance.errors import VendorError
from counterbalance.vendors.base import CallRefusedError, Reply
from counterbalance.vendors.batch_ids import HopelessError

SENT = 30


def refusal() -> CallRefusedError:
    reply = Reply("unavailable", reason="the vendor refused this call", input_tokens=0, output_tokens=0)
    return CallRefusedError("HTTP 400: no; change the read", reply)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path, trial_rows(5))


def statuses(session: Session) -> dict[str, int]:
    found = ("ok", "unavailable")
    return {name: session.count("calls", f"json_extract(reply, '$.status') = '{name}'") for name in found}


@pytest.mark.parametrize("max_in_flight", [1, 4])
def test_where_others_are_answered_it_is_final_for_that_call(tmp_path: Path, max_in_flight: int) -> None:
    # The calls of the first item come first, before anything is answered.
    rows = [row | {"item_id": "bad"} if number in (0, 1, 9) else row for number, row in enumerate(trial_rows(5))]
    session = Session(tmp_path, rows)
    vendor = ScriptedVendor({"bad": [refusal()]}, max_in_flight=max_in_flight)
    tally = session.run(vendor)
    assert (tally.answered, tally.sent) == (SENT, SENT)
    assert statuses(session) == {"ok": SENT - 3, "unavailable": 3}
    assert session.count("attempts", "outcome = 'answered'") == SENT
    assert session.run(vendor).sent == 0


def test_where_none_is_answered_it_stops_and_the_calls_stay_pending(session: Session) -> None:
    vendor = ScriptedVendor({f"i{number:03}": [refusal()] for number in range(6)}, max_in_flight=2)
    for sendings in (range(5, 8), range(10, 16)):
        with pytest.raises(CallRefusedError, match="change the read"):
            session.run(vendor)
        assert len(vendor.asked) in sendings
        assert session.count("calls", "reply IS NOT NULL") == 0
        assert session.count("attempts", "outcome = 'transport_error'") == len(vendor.asked)


def test_a_single_call_that_is_refused_stops(tmp_path: Path) -> None:
    session = Session(tmp_path, trial_rows(1)[:1])
    with pytest.raises(CallRefusedError):
        session.run(ScriptedVendor({"i000": [refusal()], "i001": [refusal()]}))
    assert session.count("calls", "reply IS NOT NULL") == 0


def test_what_an_earlier_session_was_answered_counts(session: Session) -> None:
    gone = VendorError("gone")
    with pytest.raises(VendorError, match="gone"):
        session.run(ScriptedVendor({"i002": [gone]}, max_in_flight=1))
    assert session.count("calls", "reply IS NOT NULL") > 0
    before = session.count("calls", "reply IS NOT NULL")
    vendor = ScriptedVendor({f"i{number:03}": [refusal()] for number in range(2, 6)}, max_in_flight=1)
    # Four are taken for faults of the calls, the fifth in a row for one of all.
    with pytest.raises(CallRefusedError):
        session.run(vendor)
    assert statuses(session)["unavailable"] == 4
    assert session.count("calls", "reply IS NOT NULL") == before + 4


def test_answers_under_other_parameters_prove_nothing(session: Session) -> None:
    with pytest.raises(VendorError, match="gone"):
        session.run(ScriptedVendor({"i002": [VendorError("gone")]}, max_in_flight=1))

    class OtherVendor(ScriptedVendor):
        def request(self, trial):
            found = super().request(trial)
            return type(found)(**{**vars(found), "parameters": {"max_tokens": 17}})

    with pytest.raises(CallRefusedError):
        session.run(OtherVendor({f"i{number:03}": [refusal()] for number in range(6)}, max_in_flight=1))
    assert statuses(session)["unavailable"] == 0


def test_in_batches_too(tmp_path: Path) -> None:
    path, stop = tmp_path / "cell.sqlite", HopelessError(refusal())
    some = Depot(lambda text, nth: stop if text == "prompt 3" else echo(text, nth))
    tally = run_batches(path, DepotVendor(some), 5, allowance=Purse())
    assert (tally.answered, tally.sent, tally.stopped) == (5, 5, None)
    assert replies(path, 5) == {f"prompt {i}": None if i == 3 else f"re prompt {i}" for i in range(5)}
    # The last call is alone in its batch; what this ledger has been answered is enough.
    assert run_batches(path, DepotVendor(Depot(lambda _text, _nth: stop)), 6, allowance=Purse()).answered == 1


def test_a_batch_of_nothing_but_refusals_stops(tmp_path: Path) -> None:
    stop = HopelessError(refusal())
    with pytest.raises(CallRefusedError):
        run_batches(tmp_path / "cell.sqlite", DepotVendor(Depot(lambda _text, _nth: stop)), 5, allowance=Purse())
    assert replies(tmp_path / "cell.sqlite", 5) == {}
