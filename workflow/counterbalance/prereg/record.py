"""The frozen record: what it holds, how it is written once, and the chain of a plan and its amendments."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from counterbalance.artifacts.records import relative
from counterbalance.canonical import Json, canonical_json, parse_json, sha256_bytes, sha256_json
from counterbalance.config import Layout
from counterbalance.config.datasets import Sha256
from counterbalance.config.vendors import Block
from counterbalance.errors import CounterbalanceError, GateError
from counterbalance.files import create_bytes
from counterbalance.prereg.predictions import PREDICTIONS, Prediction

FROZEN_SCHEMA: Literal["counterbalance/frozen/1"] = "counterbalance/frozen/1"
Hashes = dict[str, Sha256]
Count = Annotated[int, Field(ge=0)]


class Parts(Block):
    """The hash of each thing that the gate compares; `items` and `trials` are logical digests of tables."""

    plan_text: Sha256 | None
    predictions: Sha256
    settings: Hashes
    prompts: Hashes
    data: Hashes
    items: Hashes = Field(default_factory=dict)
    trials: Hashes = Field(default_factory=dict)


class Previous(Block):
    """The record that an amendment replaces."""

    number: Annotated[int, Field(ge=1)]
    sha256: Sha256


class Observed(Block):
    """What had been bought when the record was frozen."""

    calls: Count
    by_cell: dict[str, Count]
    calls_sha256: Sha256


class FrozenBody(Block):
    """Content of a frozen record. It holds no clock: a date is proved by anchors beside it, never inside."""

    schema_version: Literal["counterbalance/frozen/1"] = Field(alias="schema")
    study: str
    number: Annotated[int, Field(ge=1)]
    previous: Previous | None
    reason: str | None
    exploratory: bool
    late: bool
    plan_hash: Sha256
    parts: Parts
    predictions: tuple[Prediction, ...]
    config: dict[str, Any]
    counts: dict[str, dict[str, Count]]
    code: Hashes
    observed: Observed

    def dumps(self) -> bytes:
        """Return the file's bytes: canonical JSON and a newline."""
        return canonical_json(self.model_dump(mode="json", by_alias=True)) + b"\n"


@dataclass(frozen=True)
class FrozenRecord:
    """A frozen record on disk.

    Attributes
    ----------
    path, sha256
        The file and the hash of its bytes.
    body
        Its content.
    created
        Whether this call wrote it (False when an earlier one did).
    """

    path: Path
    sha256: str
    body: FrozenBody
    created: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        calls = sum(self.body.counts["calls"].values())
        what = "frozen" if self.created else "already frozen, plan unchanged"
        notes = [f"{calls} calls planned", f"{len(self.body.predictions)} predictions"]
        notes += [f"amends number {self.body.previous.number}"] if self.body.previous else []
        notes += ["exploratory"] if self.body.exploratory else []
        notes += [f"{self.body.observed.calls} calls observed before it"] if self.body.observed.calls else []
        notes += ["LATE: calls had been observed before the first freeze"] if self.body.late else []
        return f"{what}: {self.path.name} {self.sha256} ({', '.join(notes)})"


def predictions_hash(predictions: tuple[Prediction, ...]) -> str:
    """Return the hash of predictions in the order written."""
    return sha256_json(PREDICTIONS.dump_python(predictions, mode="json"))


def plan_hash_of(parts: Parts) -> str:
    """Return the one hash of what a plan says, tables left out."""
    body = parts.model_dump(mode="json", exclude={"items", "trials"})
    return sha256_json(body)


def sum_line(data: bytes, name: str) -> bytes:
    """Return the line that `sha256sum -c` accepts for a file of this content and name."""
    return f"{sha256_bytes(data).removeprefix('sha256:')}  {name}\n".encode()


def write_frozen(layout: Layout, body: FrozenBody) -> FrozenRecord:
    """Write a record and its `.sha256`, both create-only and read-only.

    Raises
    ------
    GateError
        If either file exists.
    """
    path, beside, data = layout.frozen(body.number), layout.frozen_sum(body.number), body.dumps()
    try:
        create_bytes(beside, sum_line(data, path.name))
        create_bytes(path, data)
    except FileExistsError as error:
        raise GateError(f"{error.filename2 or error.filename} exists; a frozen file is never overwritten") from error
    return FrozenRecord(path, sha256_bytes(data), body, created=True)


def read_chain(layout: Layout) -> list[FrozenRecord]:
    """Return a study's frozen records, oldest first; an empty list where nothing was frozen.

    Raises
    ------
    GateError
        With one sentence for everything that is wrong with the files or their chain.
    """
    records, problems = inspect_chain(layout)
    if problems:
        raise GateError("\n".join(problems))
    return records


def inspect_chain(layout: Layout) -> tuple[list[FrozenRecord], list[str]]:
    """Read all frozen records that can be read, and say all that is wrong with them."""
    numbers = _numbers(layout)
    records: list[FrozenRecord] = []
    problems: list[str] = []
    for number in range(1, max(numbers, default=0) + 1):
        if number not in numbers:
            name = _name(layout.frozen(number), layout)
            problems.append(f"{name} is missing while number {max(numbers)} is there; restore it, the chain has a gap")
            continue
        try:
            record = _read_frozen(layout, number)
        except CounterbalanceError as error:
            problems.append(str(error))
            continue
        previous = records[-1] if records else None
        problems.extend(_broken_links(record, previous, layout))
        records.append(record)
    return records, problems


def _numbers(layout: Layout) -> set[int]:
    pattern = re.compile(re.escape(layout.study) + r"-([1-9][0-9]*)\.(json|sha256)")
    if not layout.frozen_folder.is_dir():
        return set()
    matches = [pattern.fullmatch(path.name) for path in layout.frozen_folder.iterdir()]
    return {int(match[1]) for match in matches if match}


def _name(path: Path, layout: Layout) -> str:
    return relative(path, layout.root)


def _read_frozen(layout: Layout, number: int) -> FrozenRecord:
    path, beside = layout.frozen(number), layout.frozen_sum(number)
    name, sum_name = _name(path, layout), _name(beside, layout)
    restore = "restore both files from version control"
    if not path.is_file():
        raise GateError(
            f"{name} is missing while {sum_name} is there; {restore}, or, if a freeze was interrupted just now, "
            f"delete {sum_name} and freeze again"
        )
    if not beside.is_file():
        raise GateError(f"{sum_name} is missing; {restore}")
    data = path.read_bytes()
    expected, found = sum_line(data, path.name), beside.read_bytes()
    if found != expected:
        edited = crlf_note(data, "sha256:" + found.decode("utf-8", "replace")[:64])
        edited = edited or crlf_note(found, sha256_bytes(expected))
        raise GateError(
            f"{name} does not match {sum_name}: the record hashes to {expected.decode().split()[0]}, the other file "
            f"says {found.decode('utf-8', 'replace').strip()!r}; one of them was edited{edited}; {restore}"
        )
    body = _parse(data, name)
    if (body.study, body.number) != (layout.study, number):
        raise GateError(f"{name} holds number {body.number} of study {body.study!r}; frozen files are never renamed")
    if body.dumps() != data or not _holds_together(body):
        raise GateError(
            f"{name} was not written by `counterbalance freeze`: its settings, predictions and hashes do not agree"
        )
    return FrozenRecord(path, sha256_bytes(data), body)


def _parse(data: bytes, name: str) -> FrozenBody:
    value: Json = parse_json(data, source=name)
    schema = value.get("schema") if isinstance(value, Mapping) else None
    if schema != FROZEN_SCHEMA:
        raise GateError(f"{name} has schema {schema!r}; this version reads {FROZEN_SCHEMA}")
    try:
        return FrozenBody.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise GateError(f"{name} key {where}: {first['msg']}; restore it from version control") from None


def _holds_together(body: FrozenBody) -> bool:
    """Whether the settings and predictions written out are those of the hashes."""
    return (
        plan_hash_of(body.parts) == body.plan_hash
        and body.parts.settings == {key: sha256_json(value) for key, value in body.config.items()}
        and body.parts.predictions == predictions_hash(body.predictions)
        and body.exploratory == (body.parts.plan_text is None)
    )


def _broken_links(record: FrozenRecord, previous: FrozenRecord | None, layout: Layout) -> list[str]:
    name, link = _name(record.path, layout), record.body.previous
    if link is None:
        return [] if record.body.number == 1 else [f"{name} is an amendment and names no record before it"]
    if previous is None or link.number != record.body.number - 1 or link.number != previous.body.number:
        return [f"{name} names number {link.number} as the record before it, which is not the one that is there"]
    if link.sha256 != previous.sha256:
        old = _name(previous.path, layout)
        return [f"{name} replaces a record of hash {link.sha256}, but {old} has {previous.sha256}; one was exchanged"]
    return []


def crlf_note(data: bytes, expected: str) -> str:
    """Return a remark where a file differs from the expected hash only in its line ends, else nothing."""
    unix = data.replace(b"\r\n", b"\n")
    for variant, ends in ((unix, "LF"), (unix.replace(b"\n", b"\r\n"), "CRLF")):
        if variant != data and sha256_bytes(variant) == expected:
            return (
                f" (only the line ends differ: it was frozen with {ends}; a checkout with automatic line ends does "
                f"this, so keep `-text` in .gitattributes and check the file out again)"
            )
    return ""
