"""What a study has spent, read from its cells' ledgers, which are the truth about money."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from counterbalance.config import Study
from counterbalance.config.models import ApiModel
from counterbalance.ledger import held_nano_usd
from counterbalance.ledger.schema import open_reader, read_meta, reporting
from counterbalance.spending.purse import Held

_AT_WORST = """
SELECT coalesce(sum(worst_nano_usd), 0) FROM attempts
WHERE worst_nano_usd > 0 AND coalesce(charged_nano_usd, worst_nano_usd) = worst_nano_usd
"""
_IN_BATCHES = """
SELECT call_sha256 FROM batch_calls JOIN batches USING (run_id) WHERE state IN ('intended', 'submitted')
"""


def ledger_paths(study: Study) -> Iterator[tuple[str, str, Path]]:
    """Yield cell, account and path of every ledger of a study that may hold money.

    Cells that are no longer in the study file are among them: what they cost was spent. Their account is the empty
    name if the study no longer has their model.
    """
    accounts = {model.id: model.account if isinstance(model, ApiModel) else None for model in study.config.models}
    for path in sorted(study.layout.ledgers.glob("*/*/*.sqlite")):
        experiment, model = path.parent.parent.name, path.parent.name
        account = accounts.get(model, "")
        if account is not None:
            yield f"{experiment}/{model}/{path.stem}", account, path


def held_by_cell(study: Study) -> dict[str, Held]:
    """Return what every cell of a study has charged or must keep reserved."""
    return {cell: Held(account, held_nano_usd(path)) for cell, account, path in ledger_paths(study)}


def at_worst_nano_usd(path: Path) -> int:
    """Return the part of a ledger's money that is no known cost but a worst case.

    Raises
    ------
    InputError
        If the ledger is damaged.
    """
    with reporting(path), closing(open_reader(path)) as connection:
        read_meta(connection, path)
        return int(connection.execute(_AT_WORST).fetchone()[0])


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
