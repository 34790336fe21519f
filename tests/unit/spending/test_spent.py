import shutil

import pytest
from money_cases import CENT, paid_study, write_ledger

from counterbalance.errors import InputError
from counterbalance.ledger import Ledger, Sending
from counterbalance.spending.budget import read_budgets
from counterbalance.spending.spent import Paid, held_by_cell, paid_by_account

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
    # A charge that equals the worst case may be one.
    assert paid_by_account(study) == {"purse": Paid(13 * CENT, 12 * CENT, sendings_at_worst=3, maybe_billed=1)}


def test_models_that_no_account_pays_hold_nothing(tmp_path) -> None:
    study = paid_study(tmp_path)
    with Ledger(study.layout.ledger("letters", "planted", "sums"), study="paid", cell="letters/planted/sums") as ledger:
        ledger.save([], [Sending("call", "{}")], frozen_sha256="none")
    assert held_by_cell(study) == {}
    assert paid_by_account(study) == {}


def test_what_a_model_cost_that_is_free_by_now_was_spent_all_the_same(tmp_path) -> None:
    study = paid_study(tmp_path, study_cap=0.20)
    # `planted` was behind an account once; a simulated one has its name now.
    write_ledger(study.layout.ledger("letters", "planted", "sums"), ATTEMPTS)
    assert held_by_cell(study) == {("letters/planted/sums", "purse"): 13 * CENT}
    whole, accounts = read_budgets(study)
    assert (whole.spent, whole.left, accounts["purse"].spent) == (13 * CENT, 7 * CENT, 13 * CENT)


def test_a_copy_of_a_ledger_does_not_count_twice(tmp_path) -> None:
    study = paid_study(tmp_path)
    path = study.layout.ledger("letters", "bought", "sums")
    write_ledger(path, ATTEMPTS)
    shutil.copy(path, path.with_name("backup.sqlite"))
    for count in (held_by_cell, paid_by_account):
        with pytest.raises(
            InputError, match=r"backup\.sqlite: is the ledger of cell 'letters/bought/sums'.*move a copy"
        ):
            count(study)
