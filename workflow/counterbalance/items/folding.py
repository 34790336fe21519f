"""The form under which two texts are the same to a reader."""

import unicodedata

_SCRIPT_BLOCKS = ((0xAA, 0xBA), (0x2B0, 0x2E4), (0x1D2C, 0x1DBF), (0x2070, 0x209F))
_MARKS = {"<super>": "^", "<sub>": "_"}


def _raised_and_lowered() -> dict[int, str]:
    table = {}
    for first, last in _SCRIPT_BLOCKS:
        for code in range(first, last + 1):
            kind, _, plain = unicodedata.decomposition(chr(code)).partition(" ")
            if kind in _MARKS:
                table[code] = _MARKS[kind] + "".join(chr(int(part, 16)) for part in plain.split())
    return table


_SCRIPTS = _raised_and_lowered()


def fold_text(text: str) -> str:
    """Fold what cannot be seen: compatibility forms, invisible characters and white space of every kind.

    NFKC alone would also join `2⁵` and `25`, which mean different things; raised and lowered characters are written
    with `^` and `_` first. Case and punctuation stay.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_SCRIPTS))
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return " ".join(text.split())
