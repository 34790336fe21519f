"""The vendor `replay`: another study's published replies, found again by what was asked."""

from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from counterbalance.artifacts import SCHEMAS, read_table
from counterbalance.canonical import sha256_file
from counterbalance.config import Experiment, Study
from counterbalance.config.models import ReplayModel
from counterbalance.errors import ConfigError, InputError, VendorError
from counterbalance.vendors.base import Reply, Request, Trial

_MATCHED_BY = ["prompt_sha256", "arrangement", "repeat"]
_REPLY_FIELDS = [entry.name for entry in fields(Reply)]

Key = tuple[str, tuple[str, ...], int]


@dataclass(frozen=True)
class _Files:
    replies: Path
    trials: Path
    replies_sha256: str
    trials_sha256: str


@dataclass(frozen=True)
class _Published:
    replies: pa.Table
    rows: dict[Key, int]


class ReplayVendor:
    """Replies from files; a trial is matched by prompt hash, arrangement and repeat."""

    max_in_flight = 32
    shares_prefixes = True

    def __init__(self, model: ReplayModel, experiment: Experiment, study: Study) -> None:
        self._model, self._experiment, self._study = model, experiment, study
        self._files: dict[str, _Files] = {}
        self._published: dict[str, _Published] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._published.clear()

    def request(self, trial: Trial) -> Request:
        """Build the request; the hashes of the two files belong to it, so other files are other calls."""
        files = self._find(trial.subset)
        parameters = {
            "replies_sha256": files.replies_sha256,
            "trials_sha256": files.trials_sha256,
            "arrangement": list(trial.arrangement),
        }
        return Request("replay", None, self._model.id, parameters, trial.prompt, None, trial.repeat)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        """Return the published reply, every field as it was.

        Raises
        ------
        VendorError
            If the published tables do not cover this study's trials; how many are missing, and the first of them.
        """
        if trial.subset not in self._published:
            self._published[trial.subset] = self._load(trial.subset)
        published = self._published[trial.subset]
        row = published.rows.get((trial.prompt_sha256, tuple(trial.arrangement), trial.repeat))
        if row is None:
            raise VendorError(self._uncovered(trial.subset, 1, trial.trial_id))
        found = published.replies.slice(row, 1).to_pylist()[0]
        return Reply(**{name: found[name] for name in _REPLY_FIELDS})

    def _find(self, subset: str) -> _Files:
        if subset not in self._files:
            replies, trials = self._path("replies", subset), self._path("trials", subset)
            self._files[subset] = _Files(replies, trials, sha256_file(replies), sha256_file(trials))
        return self._files[subset]

    def _path(self, key: str, subset: str) -> Path:
        template: str = getattr(self._model, key)
        where = f"{self._study.path}: models.{self._model.id}.{key}"
        try:
            text = template.format(experiment=self._experiment.id, subset=subset)
        except (AttributeError, KeyError, IndexError, ValueError) as error:
            raise ConfigError(
                f"{where}: {template!r} has a place holder other than {{experiment}} and {{subset}}: {error}"
            ) from error
        path = self._study.root / text
        if not path.is_file():
            raise ConfigError(f"{where}: no file {path}; the place holders are {{experiment}} and {{subset}}")
        return path

    def _load(self, subset: str) -> _Published:
        files = self._find(subset)
        replies = read_table(files.replies, SCHEMAS["replies"])
        trials = read_table(files.trials, SCHEMAS["trials"], ["trial_id", *_MATCHED_BY])
        calls = replies.column("call_sha256").to_pylist()
        by_trial = {trial: row for row, trial in enumerate(replies.column("trial_id").to_pylist())}
        rows: dict[Key, int] = {}
        for trial in trials.to_pylist():
            row = by_trial.get(trial["trial_id"])
            if row is None:
                continue
            before = rows.setdefault(_key(trial), row)
            if calls[before] != calls[row]:
                raise InputError(
                    f"{files.trials}: trials {trial['trial_id']} and {replies.column('trial_id')[before]} have the "
                    "same prompt, arrangement and repeat but different calls; it cannot be told which to replay"
                )
        self._check_coverage(subset, rows)
        return _Published(replies.select(_REPLY_FIELDS), rows)

    def _check_coverage(self, subset: str, rows: dict[Key, int]) -> None:
        path = self._study.layout.trials(self._experiment.id, subset)
        if not path.is_file():
            return
        mine = read_table(path, SCHEMAS["trials"], ["trial_id", *_MATCHED_BY]).to_pylist()
        missing = [trial["trial_id"] for trial in mine if _key(trial) not in rows]
        if missing:
            raise VendorError(self._uncovered(subset, len(missing), missing[0], of=len(mine)))

    def _uncovered(self, subset: str, n: int, first: str, of: int | None = None) -> str:
        total = f" of {of}" if of is not None else ""
        return (
            f"{self._files[subset].replies}: no published reply for {n}{total} trials of {self._experiment.id}/{subset}"
            f" (first: {first}); matched by {', '.join(_MATCHED_BY)}. Use the items, prompt and arrangement of the "
            "study whose replies these are"
        )


def _key(trial: dict[str, Any]) -> Key:
    return trial["prompt_sha256"], tuple(trial["arrangement"]), trial["repeat"]
