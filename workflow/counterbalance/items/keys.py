"""The answer key: read as declared, never guessed."""

import re
from collections import Counter
from collections.abc import Sequence

from counterbalance.config.models import Key
from counterbalance.items.folding import fold_text

_NUMBER = re.compile(r"0|[1-9][0-9]{0,3}")


def gold_index(written: str, key: Key, options: Sequence[str]) -> int:
    """Find the correct option.

    Parameters
    ----------
    written
        The key as the file has it; white space around it does not count.
    key
        How keys are written in this data set.
    options
        The item's option texts, in the file's order.

    Returns
    -------
    int
        Index of the correct option, from 0.

    Raises
    ------
    ValueError
        With the reason, if the key does not name exactly one of the options.
    """
    value = written.strip()
    if not value:
        raise ValueError("the key is empty; every item needs one (set `columns.key: null` if the data set has none)")
    match key.type:
        case "letter":
            return _by_letter(value, len(options))
        case "index":
            return _by_number(value, key.base or 0, len(options))
        case "text":
            return _by_text(value, options)


def describe_key(written: str, key: Key, gold: int) -> str:
    """Return the value under which a key is counted: the letter, the number, or the option's id."""
    match key.type:
        case "letter":
            return written.strip().upper()
        case "index":
            return written.strip()
        case "text":
            return f"o{gold + 1}"


def counting_note(numbers: Counter[int], key: Key, most_options: int) -> str | None:
    """Return a remark if all numeric keys of a file look as if counted from another base than declared.

    Parameters
    ----------
    numbers
        Every number that a key is written as, also those out of range.
    key
        The declaration.
    most_options
        Number of options of the longest item.
    """
    if key.type != "index" or key.base is None or sum(numbers.values()) < 2 or numbers[key.base]:
        return None
    last = most_options - 1 + key.base
    if key.base == 0 and numbers[most_options]:
        return f"no key is 0 and some are {most_options}: keys seem to be counted from 1; declare `base: 1`"
    if numbers[last]:
        return f"no key is {key.base} although some are {last}; check that `base: {key.base}` is right for this file"
    return None


def key_number(written: str) -> int | None:
    """Return the number that a key is written as, or None."""
    value = written.strip()
    return int(value) if _NUMBER.fullmatch(value) else None


def _by_letter(value: str, count: int) -> int:
    if not re.fullmatch("[A-Za-z]", value):
        raise ValueError(f"{value!r} is not a letter; `key.type: letter` needs one of {_letters(count)}")
    index = ord(value.upper()) - ord("A")
    if index >= count:
        raise ValueError(f"{value!r} is beyond the {count} options of this item; expected one of {_letters(count)}")
    return index


def _by_number(value: str, base: int, count: int) -> int:
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"{value!r} is not a whole number; `key.type: index` needs {base} to {base + count - 1}")
    index = int(value) - base
    if not 0 <= index < count:
        raise ValueError(f"{value} is outside {base} to {base + count - 1}, the {count} options counted from {base}")
    return index


def _by_text(value: str, options: Sequence[str]) -> int:
    wanted = fold_text(value)
    found = [index for index, option in enumerate(options) if fold_text(option) == wanted]
    if len(found) != 1:
        where = "is none of the options" if not found else f"is the text of options {', '.join(_ordinals(found))}"
        raise ValueError(f"{value!r} {where}; `key.type: text` needs the text of exactly one")
    return found[0]


def _ordinals(indices: Sequence[int]) -> list[str]:
    return [str(index + 1) for index in indices]


def _letters(count: int) -> str:
    return f"A to {chr(ord('A') + count - 1)}"
