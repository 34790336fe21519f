"""What a study has spent, read from all ledgers below its folder, which are the truth about money."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from counterbalance.config import Study
from counterbalance.errors import InputError
from counterbalance.ledger import held_by_account
from counterbalance.ledger.money import HELD
from counterbalance.ledger.schema import open_reader, read_meta, reporting

_PAID = f"""
SELECT coalesce(account, ''), sum({HELD}),
    sum(CASE WHEN worst_nano_usd > 0 AND coalesce(charged_nano_usd, worst_nano_usd) = worst_nano_usd
        THEN worst_nano_usd ELSE 0 END),
    sum(coalesce(worst_nano_usd > 0 AND coalesce(charged_nano_usd, worst_nano_usd) = worst_nano_usd, 0)),
    sum(maybe_billed)
FROM attempts JOIN sessions USING (session) GROUP BY 1
"""
_IN_BATCHES = """
SELECT call_sha256 FROM batch_calls JOIN batches USING (run_id) WHERE state IN ('intended', 'submitted')
"""


@dataclass(frozen=True)
class Paid:
    """What an account has paid in a ledger; nano-USD.

    Attributes
    ----------
    spent
        Everything charged, and everything of unknown outcome at its worst case.
    at_worst, sendings_at_worst
        The part of it that is no known cost but a worst case, and the sendings behind it.
    maybe_billed
        Sendings without a reply that the vendor may have charged.
    """

    spent: int = 0
    at_worst: int = 0
    sendings_at_worst: int = 0
    maybe_billed: int = 0

    def __add__(self, other: "Paid") -> "Paid":
        return Paid(
            self.spent + other.spent,
            self.at_worst + other.at_worst,
            self.sendings_at_worst + other.sendings_at_worst,
            self.maybe_billed + other.maybe_billed,
        )


def ledger_paths(study: Study) -> Iterator[tuple[str, Path]]:
    """Yield cell and path of every ledger of a study, whatever its study file says by now.

    Cells that are no longer in the study are among them, and models that are free by now: what they cost was spent.

    Raises
    ------
    InputError
        If a ledger is damaged, or is that of another cell: a copy would count twice.
    """
    for path in sorted(study.layout.ledgers.glob("*/*/*.sqlite")):
        cell = f"{path.parent.parent.name}/{path.parent.name}/{path.stem}"
        with reporting(path), closing(open_reader(path)) as connection:
            owner = read_meta(connection, path).get("cell")
        if owner != cell:
            raise InputError(
                f"{path}: is the ledger of cell {owner!r}, and counts to the caps where it lies; move a copy out of "
                f"{study.layout.ledgers}, or the ledger back to its own place"
            )
        yield cell, path


def held_by_cell(study: Study) -> dict[tuple[str, str], int]:
    """Return what every cell of a study has charged or must keep reserved, by cell and the account that paid."""
    return {
        (cell, account): held
        for cell, path in ledger_paths(study)
        for account, held in held_by_account(path).items()
        if held
    }


def paid_by_account(study: Study) -> dict[str, Paid]:
    """Return what a study has paid, by account; accounts that have paid nothing are left out.

    Raises
    ------
    InputError
        If a ledger is damaged.
    """
    found: dict[str, Paid] = {}
    for _, path in ledger_paths(study):
        with reporting(path), closing(open_reader(path)) as connection:
            read_meta(connection, path)
            for account, *amounts in connection.execute(_PAID):
                found[account] = found.get(account, Paid()) + Paid(*amounts)
    return {account: paid for account, paid in found.items() if paid != Paid()}


def calls_in_batches(path: Path) -> set[str]:
    """Return the calls of a ledger that are in batches which are not collected yet; none where there is no ledger.

    Raises
    ------
    InputError
        If the ledger is damaged.
    """
    if not path.exists():
        return set()
    with reporting(path), closing(open_reader(path)) as connection:
        read_meta(connection, path)
        return {key for (key,) in connection.execute(_IN_BATCHES)}
