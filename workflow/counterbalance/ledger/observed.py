"""What had been observed by some moment: counted and hashed, for the frozen record."""

import hashlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from counterbalance.config import Study
from counterbalance.ledger.schema import open_reader, read_meta, reporting


@dataclass(frozen=True)
class Observed:
    """The calls of a study that have their reply.

    Attributes
    ----------
    by_cell
        Number of answered calls by cell name, cells that the study no longer has included.
    calls_sha256
        `sha256:<hex>` over the lines ``CELL CALL_SHA256``, sorted as bytes, each ended by a newline: what
        ``LC_ALL=C sort | sha256sum`` says of the same lines.
    """

    by_cell: Mapping[str, int]
    calls_sha256: str

    @property
    def calls(self) -> int:
        return sum(self.by_cell.values())


def observed_calls(study: Study) -> Observed:
    """Return what the study's ledgers hold by now, without changing them.

    Raises
    ------
    InputError
        If a ledger is damaged.
    """
    lines: list[bytes] = []
    by_cell: dict[str, int] = {}
    for path in _ledgers(study):
        cell, keys = _answered(path)
        by_cell[cell] = len(keys)
        lines.extend(f"{cell} {key}\n".encode() for key in keys)
    digest = hashlib.sha256()
    for line in sorted(lines):
        digest.update(line)
    return Observed(by_cell, f"sha256:{digest.hexdigest()}")


def count_observed(study: Study) -> dict[str, int]:
    """Return the number of answered calls by cell name."""
    return dict(observed_calls(study).by_cell)


def _ledgers(study: Study) -> list[Path]:
    folder = study.layout.ledger("experiment", "model", "dataset").parents[2]
    return sorted(folder.glob("*/*/*.sqlite"))


def _answered(path: Path) -> tuple[str, list[str]]:
    with reporting(path), closing(open_reader(path)) as connection:
        cell = read_meta(connection, path)["cell"]
        rows = connection.execute("SELECT call_sha256 FROM calls WHERE reply IS NOT NULL")
        return cell, [key for (key,) in rows]
