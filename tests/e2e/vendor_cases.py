"""A small study of one vendor against the loopback server, bought through stage query; no key is left anywhere."""

import sqlite3
import traceback
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopback import Remote
from loopback.studies import KEYS, freeze_study, study_body, write_study

VENDORS = ("openai", "anthropic", "google")
QUICK = {"max_in_flight": 4, "timeout_s": 60.0, "tries": 4, "deadline_s": 120.0}


@dataclass(frozen=True)
class Attempted:
    """One row of the ledger's attempts."""

    outcome: str
    detail: str | None
    worst: int
    charged: int | None
    maybe_billed: bool


@dataclass(frozen=True)
class Case:
    """A frozen study in a folder, and the server that it asks."""

    server: Remote
    vendor: str
    path: Path

    @property
    def root(self) -> Path:
        return self.path.parents[2]

    def buy(self, dataset: str = "sums", model: str | None = None) -> Any:
        """Run stage query for a cell; whatever it raises holds no key, and neither does anything it wrote."""
        from counterbalance.config import load_study
        from counterbalance.progress import SilentProgress
        from counterbalance.stages.query import query_replies

        try:
            return query_replies(load_study(self.path), "letters", model or self.vendor, dataset, SilentProgress())
        except Exception as error:
            shown = "".join(traceback.format_exception(error))
            assert not any(key in shown for key in KEYS.values())
            raise
        finally:
            assert_no_key(self.root)

    def replies(self, dataset: str = "sums", model: str | None = None) -> list[dict[str, Any]]:
        from counterbalance.artifacts import SCHEMAS, read_table
        from counterbalance.config import load_study

        path = load_study(self.path).layout.replies("letters", model or self.vendor, dataset)
        return list(read_table(path, SCHEMAS["replies"]).to_pylist())

    def facts(self) -> dict[str, Any]:
        from counterbalance.artifacts import read_record
        from counterbalance.config import load_study

        return dict(read_record(load_study(self.path).layout.replies("letters", self.vendor, "sums")).facts)

    def rows(self, query: str, dataset: str = "sums", model: str | None = None) -> list[Any]:
        from counterbalance.config import load_study

        ledger = load_study(self.path).layout.ledger("letters", model or self.vendor, dataset)
        with closing(sqlite3.connect(ledger)) as connection:
            return connection.execute(query).fetchall()

    def attempts(self, dataset: str = "sums") -> list[Attempted]:
        columns = "outcome, detail, worst_nano_usd, charged_nano_usd, maybe_billed"
        rows = self.rows(f"SELECT {columns} FROM attempts ORDER BY call_order, attempt", dataset)
        return [
            Attempted(outcome, detail, worst, charged, bool(billed)) for outcome, detail, worst, charged, billed in rows
        ]

    def settled(self) -> int:
        """Return what the ledger charged for replies, in nano-USD."""
        return sum(entry.charged or 0 for entry in self.attempts() if entry.outcome == "answered")

    def held(self) -> int:
        """Return the whole charge: what is settled, and the worst case of what is not known."""
        return sum(entry.worst if entry.charged is None else entry.charged for entry in self.attempts())

    def counts(self) -> dict[str, Any]:
        """Return the server's counts of this vendor."""
        return self.server.vendor(self.vendor)


def make_case(
    server: Remote,
    root: Path,
    vendor: str,
    *,
    items: int = 3,
    model: dict[str, Any] | None = None,
    account: dict[str, Any] | None = None,
    **body: Any,
) -> Case:
    """Freeze a study of `items` items in two orders each: twice as many calls."""
    datasets = {"sums": items}
    body = {"arrangement": {"scheme": "identity_reverse"}, **body}
    study = study_body(
        {vendor: server.base_url(vendor)},
        datasets=datasets,
        models={vendor: model or {}},
        accounts={vendor: QUICK | (account or {})},
        **body,
    )
    path = write_study(root, study, datasets)
    freeze_study(path)
    return Case(server, vendor, path)


def assert_no_key(root: Path) -> None:
    """See that no file below a folder holds a canary key."""
    canaries = [key.encode() for key in KEYS.values()]
    for path in root.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(key in content for key in canaries), path
