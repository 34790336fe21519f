"""What a study has spent, read from its cells' ledgers, which are the truth about money."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from counterbalance.config import Study
from counterbalance.config.models import ApiModel
from counterbalance.ledger import held_by_account
from counterbalance.ledger.schema import open_reader, read_meta, reporting

_AT_WORST = """
SELECT coalesce(sum(worst_nano_usd), 0) FROM attempts JOIN sessions USING (session)
WHERE worst_nano_usd > 0 AND coalesce(charged_nano_usd, worst_nano_usd) = worst_nano_usd
    AND (:account IS NULL OR account = :account)
"""
_IN_BATCHES = """
SELECT call_sha256 FROM batch_calls JOIN batches USING (run_id) WHERE state IN ('intended', 'submitted')
"""


def ledger_paths(study: Study) -> Iterator[tuple[str, Path]]:
    """Yield cell and path of every ledger of a study that may hold money.

    Cells that are no longer in the study file are among them: what they cost was spent.
    """
    free = {model.id for model in study.config.models if not isinstance(model, ApiModel)}
    for path in sorted(study.layout.ledgers.glob("*/*/*.sqlite")):
        experiment, model = path.parent.parent.name, path.parent.name
        if model not in free:
            yield f"{experiment}/{model}/{path.stem}", path


def held_by_cell(study: Study) -> dict[tuple[str, str], int]:
    """Return what every cell of a study has charged or must keep reserved, by cell and the account that paid."""
    return {
        (cell, account): held for cell, path in ledger_paths(study) for account, held in held_by_account(path).items()
    }


def at_worst_nano_usd(path: Path, account: str | None = None) -> int:
    """Return the part of a ledger's money that is no known cost but a worst case; with `account`, of that one's.

    Raises
    ------
    InputError
        If the ledger is damaged.
    """
    with reporting(path), closing(open_reader(path)) as connection:
        read_meta(connection, path)
        return int(connection.execute(_AT_WORST, {"account": account}).fetchone()[0])


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
