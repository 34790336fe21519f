"""One row to one item: every field checked, nothing repaired."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from counterbalance.canonical import canonical_json, sha256_json
from counterbalance.config import Dataset
from counterbalance.items.folding import fold_text
from counterbalance.items.keys import describe_key, gold_index, key_number
from counterbalance.items.problems import Problems
from counterbalance.items.readers import Row
from counterbalance.items.references import find_references

MAX_OPTIONS = 26
_MAX_ID = 100


@dataclass(frozen=True)
class Candidate:
    """A row that is well formed.

    Attributes
    ----------
    row
        Physical line (text files) or row from 1 (Parquet).
    gold
        Index of the correct option, from 0, or None where the data set has no key.
    strata
        Canonical JSON of the columns named in `strata` and `fields`.
    key_value
        The key as it is counted in the histogram.
    excluded
        Rules under which the item is excluded, each with the reason.
    line_ends_folded
        Whether CRLF in the stem became LF.
    """

    row: int
    item_id: str
    group_id: str
    stem: str
    options: tuple[str, ...]
    gold: int | None
    strata: str
    key_value: str | None
    excluded: tuple[tuple[str, str], ...]
    line_ends_folded: bool


class RowReader:
    """Reads the rows of one data set; what is wrong goes to `problems`, what numeric keys say to `key_numbers`."""

    def __init__(self, dataset: Dataset, problems: Problems) -> None:
        self._dataset = dataset
        self._columns = dataset.columns
        self._problems = problems
        self.key_numbers: list[tuple[int, int]] = []
        """Every numeric key, also those out of range, with its item's number of options."""

    def read(self, row: Row) -> Candidate | None:
        """Return the item, or None after adding at least one problem."""
        known = len(self._problems)
        stem, folded = self._stem(row)
        options = self._options(row)
        excluded = self._exclusions(row, stem, options) if options else ()
        gold, key_value = self._key(row, options, excluded) if options else (None, None)
        named = self._id(row)
        group = self._label(row, self._columns.group) if self._columns.group else None
        strata = {name: self._label(row, name) for name in (*self._columns.strata, *self._columns.fields)}
        if len(self._problems) > known or options is None:
            return None
        item_id = named or "q-" + sha256_json({"stem": stem, "options": options}).removeprefix("sha256:")[:12]
        return Candidate(
            row=row.number,
            item_id=item_id,
            group_id=group or item_id,
            stem=stem,
            options=options,
            gold=gold,
            strata=canonical_json(strata).decode(),
            key_value=key_value,
            excluded=excluded,
            line_ends_folded=folded,
        )

    def _stem(self, row: Row) -> tuple[str, bool]:
        field = self._columns.question
        written = self._text(row, field, row.values.get(field)) or ""
        stem = written.replace("\r\n", "\n")
        if not fold_text(stem):
            self._problems.add(row.number, field, "the question is empty; write it, or delete the row")
        self._check_characters(row, field, stem, allowed="\n\t")
        return stem, stem != written

    def _options(self, row: Row) -> tuple[str, ...] | None:
        known = len(self._problems)
        fields, texts = self._raw_options(row)
        if self._dataset.trailing_empty_options:
            while texts and not fold_text(texts[-1]):
                texts.pop()
        for field, text in zip(fields, texts, strict=False):
            if not fold_text(text):
                self._problems.add(row.number, field, self._empty_option())
            elif any(mark in text for mark in "\n\r\u2028\u2029"):
                self._problems.add(
                    row.number,
                    field,
                    "the option contains a line break, which could pass for another option; join it",
                )
            else:
                self._check_characters(row, field, text, allowed="")
        if not 2 <= len(texts) <= MAX_OPTIONS:
            self._problems.add(
                row.number, fields[0] if fields else None, f"{len(texts)} options; an item has 2 to {MAX_OPTIONS}"
            )
        return tuple(texts) if len(self._problems) == known else None

    def _raw_options(self, row: Row) -> tuple[list[str], list[str]]:
        named = self._columns.options
        if isinstance(named, str):
            value = row.values.get(named)
            if not isinstance(value, list):
                self._problems.add(row.number, named, f"found {_kind(value)}; expected a list of option texts")
                return [], []
            fields = [f"{named}[{number}]" for number in range(1, len(value) + 1)]
            values: Sequence[Any] = value
        else:
            fields, values = named, [row.values.get(name) for name in named]
        return fields, [self._text(row, *pair) or "" for pair in zip(fields, values, strict=True)]

    def _empty_option(self) -> str:
        if self._dataset.trailing_empty_options:
            return "the option is empty although one after it is not; write it, or move the empty ones to the end"
        return (
            "the option is empty; write it, or set `trailing_empty_options: true` if empty fields at the end "
            "mean fewer options"
        )

    def _exclusions(self, row: Row, stem: str, options: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        found = []
        pair = _equal_pair(options)
        if pair:
            first, second = pair
            found.append(
                (
                    "duplicate_options",
                    f"options {first + 1} and {second + 1} are the same to a reader: "
                    f"{options[first]!r} and {options[second]!r}",
                )
            )
        references = find_references(options, stem)
        if references:
            texts = ", ".join(f"option {index + 1} {options[index]!r}" for index in references)
            found.append(("option_refers_to_others", f"refers to other options or their positions: {texts}"))
        for rule, reason in found:
            if rule not in self._dataset.exclude:
                self._problems.add(
                    row.number, None, f"{reason}; name the rule {rule!r} in `exclude`, or correct the item"
                )
        return tuple(found)

    def _key(
        self, row: Row, options: tuple[str, ...], excluded: tuple[tuple[str, str], ...]
    ) -> tuple[int | None, str | None]:
        field, key = self._columns.key, self._dataset.key
        if field is None or key is None:
            return None, None
        written = self._text(row, field, row.values.get(field)) or ""
        number = key_number(written)
        if key.type == "index" and number is not None:
            self.key_numbers.append((number, len(options)))
        try:
            gold = gold_index(written, key, options)
        except ValueError as error:
            # Equal options are named already; that a text key fits both says nothing new.
            if not (key.type == "text" and any(rule == "duplicate_options" for rule, _ in excluded)):
                self._problems.add(row.number, field, str(error))
            return None, None
        return gold, describe_key(written, key, gold)

    def _id(self, row: Row) -> str | None:
        field = self._columns.id
        if field is None:
            return None
        value = self._text(row, field, row.values.get(field)) or ""
        if not 1 <= len(value) <= _MAX_ID or any(_unfit_for_id(char) for char in value):
            self._problems.add(
                row.number,
                field,
                f"{value[:_MAX_ID]!r} cannot be an id; expected 1 to {_MAX_ID} visible characters without white space",
            )
        return value

    def _label(self, row: Row, field: str) -> str:
        value = self._text(row, field, row.values.get(field))
        if value is None:
            self._problems.add(row.number, field, "the value is missing; write it, or do not declare the column")
            return ""
        if (field == self._columns.group or field in self._columns.fields) and not fold_text(value):
            what = "group" if field == self._columns.group else "field"
            self._problems.add(row.number, field, f"the {what} is empty; write it")
        self._check_characters(row, field, value, allowed="")
        return value

    def _text(self, row: Row, field: str, value: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        self._problems.add(
            row.number, field, f"found {_kind(value)}; expected text: put it in quotes as it should read"
        )
        # The row is refused already; going on with some text finds what else is wrong with it.
        return str(value)

    def _check_characters(self, row: Row, field: str, text: str, *, allowed: str) -> None:
        if text.isascii() and text.isprintable():
            return
        for position, char in enumerate(text, start=1):
            kind = unicodedata.category(char)
            if kind == "Cs" or (kind == "Cc" and char not in allowed):
                what = "half of a surrogate pair" if kind == "Cs" else "a control character"
                self._problems.add(
                    row.number, field, f"character {position} is U+{ord(char):04X}, {what}; remove or replace it"
                )
                return


def _equal_pair(options: Sequence[str]) -> tuple[int, int] | None:
    seen: dict[str, int] = {}
    for index, option in enumerate(options):
        first = seen.setdefault(fold_text(option), index)
        if first != index:
            return first, index
    return None


def _unfit_for_id(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cc", "Cf", "Cs")


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    names = {bool: "true or false", float: "a number with a fraction or exponent", dict: "an object", list: "a list"}
    return names.get(type(value), type(value).__name__)
