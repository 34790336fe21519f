from money_cases import CENT, paid_study, write_ledger

from counterbalance.spending.spent import at_worst_nano_usd, held_by_cell

ATTEMPTS = [
    {"worst": 4 * CENT, "charged": CENT},
    {"worst": 4 * CENT, "charged": 4 * CENT},
    {"worst": 4 * CENT, "charged": 0, "outcome": "transport_error"},
    {"worst": 4 * CENT, "charged": 4 * CENT, "outcome": "transport_error", "maybe_billed": True},
    {"worst": 4 * CENT},
]


def test_a_cell_holds_what_was_charged_and_the_worst_case_of_what_is_not_known(tmp_path) -> None:
    study = paid_study(tmp_path)
    path = study.layout.ledger("letters", "bought", "sums")
    write_ledger(path, ATTEMPTS)
    assert held_by_cell(study) == {("letters/bought/sums", "purse"): 13 * CENT}
    assert at_worst_nano_usd(path) == 12 * CENT


def test_models_that_no_account_pays_hold_nothing_and_their_ledgers_are_not_read(tmp_path) -> None:
    study = paid_study(tmp_path)
    path = study.layout.ledger("letters", "planted", "sums")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert held_by_cell(study) == {}
