"""Collecting everything that is wrong with a file, so that one run names it all."""

from counterbalance.errors import InputError

_SHOWN = 20


class Problems:
    """What is wrong with a data file, row by row.

    Rows are physical lines for text files (where the record starts) and rows from 1 for Parquet.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[tuple[int, str]] = []
        self._notes: list[str] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, row: int, field: str | None, text: str) -> None:
        """Add a problem: `text` says what is wrong, what was expected and what to do."""
        place = f"{self._name} row {row}" + (f", field {field!r}" if field else "")
        self._found.append((row, f"{place}: {text}"))

    def note(self, text: str) -> None:
        """Add a remark on the whole file, printed only if there is a problem."""
        self._notes.append(text)

    def check(self) -> None:
        """Raise `InputError` with all problems, the first 20 in full, or return if there are none."""
        if not self._found:
            return
        lines = [text for _, text in sorted(self._found, key=lambda entry: entry[0])]
        if len(lines) > 1:
            shown = f", the first {_SHOWN} are" if len(lines) > _SHOWN else ""
            lines = [f"{self._name}: {len(lines)} problems{shown}:", *lines[:_SHOWN]]
        raise InputError("\n".join([*lines, *(f"{self._name}: {note}" for note in self._notes)]))
