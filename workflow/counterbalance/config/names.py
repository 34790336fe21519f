"""What an id may look like, so that no YAML reader, shell or file system can change it."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator

_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_YAML_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"}


def check_id(value: str) -> str:
    """Return an id unchanged, or raise `ValueError` with the reason it could be misread."""
    if not _PATTERN.fullmatch(value):
        raise ValueError(
            f"{value!r} cannot be an id: start with a letter, then use letters, digits, '_' or '-' (at most 64), "
            f"for example 'run-{re.sub('[^A-Za-z0-9_-]', '-', value)[:20] or '1'}'"
        )
    if value.lower() in _YAML_WORDS:
        raise ValueError(
            f"{value!r} cannot be an id: some YAML readers turn it into a truth value or null; choose another word"
        )
    return value


def fold(value: str) -> str:
    """Return the form under which two names collide on some file system or in some reader's eye."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", value).casefold())


def find_collision(values: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two names that are equal after folding, or None."""
    seen: dict[str, str] = {}
    for value in values:
        key = fold(value)
        if key in seen:
            return seen[key], value
        seen[key] = value
    return None


Id = Annotated[str, AfterValidator(check_id)]
