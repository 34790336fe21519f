"""What a ledger says of money and of its sessions. Amounts are whole nano-USD."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from counterbalance.ledger.schema import open_reader, read_meta, reporting

# What was charged, or may have been: an attempt of unknown outcome counts at the most it could cost.
HELD = "coalesce(charged_nano_usd, worst_nano_usd, 0)"
_SPENT = f"""
SELECT CASE WHEN count(worst_nano_usd) > 0 THEN sum({HELD}) END,
    coalesce(sum(worst_nano_usd > 0 AND coalesce(charged_nano_usd, worst_nano_usd) = worst_nano_usd), 0),
    coalesce(sum(maybe_billed), 0)
FROM attempts JOIN sessions USING (session) WHERE :account IS NULL OR account = :account
"""
_BY_ACCOUNT = f"""
SELECT coalesce(account, ''), sum({HELD}) FROM attempts JOIN sessions USING (session) GROUP BY 1
"""


@dataclass(frozen=True)
class Spent:
    """The money of a ledger, over all calls and sessions, calls that no trial asks for any more included.

    Attributes
    ----------
    nano_usd
        Sum of the charges; what is not known counts at the worst case. None where no call had a price.
    at_worst
        Attempts that count at the worst case: of unknown outcome, perhaps billed, or without usable usage.
    maybe_billed
        Attempts without a reply that the vendor may have answered, and charged, all the same.
    """

    nano_usd: int | None = None
    at_worst: int = 0
    maybe_billed: int = 0


@dataclass(frozen=True)
class Session:
    """One session that sent something; `ended_because` is None if its process was killed, or is still at work."""

    session: int
    ended_because: str | None


def held_nano_usd(path: Path) -> int:
    """Return what a cell has charged or must keep reserved; 0 where there is no ledger yet.

    Raises
    ------
    InputError
        If the ledger is damaged.
    """
    return (read_spent(path).nano_usd or 0) if path.exists() else 0


def held_by_account(path: Path) -> dict[str, int]:
    """Return the same by the account that paid: a model may have changed its account between two sessions.

    Raises
    ------
    InputError
        If the ledger is damaged.
    """
    if not path.exists():
        return {}
    with reporting(path), closing(open_reader(path)) as connection:
        read_meta(connection, path)
        return {account: int(held) for account, held in connection.execute(_BY_ACCOUNT)}


def read_spent(path: Path, account: str | None = None) -> Spent:
    """Return the money of a ledger; with `account`, only what that one has paid.

    Raises
    ------
    InputError
        If the ledger is damaged.
    """
    with reporting(path), closing(open_reader(path)) as connection:
        read_meta(connection, path)
        return Spent(*connection.execute(_SPENT, {"account": account}).fetchone())


def read_sessions(path: Path) -> list[Session]:
    """Return the sessions of a ledger, first one first.

    Raises
    ------
    InputError
        If the ledger is damaged.
    """
    with reporting(path), closing(open_reader(path)) as connection:
        read_meta(connection, path)
        rows = connection.execute("SELECT session, ended_because FROM sessions ORDER BY session").fetchall()
    return [Session(*row) for row in rows]
