"""One spelling for texts that look the same: Unicode forms, line ends, invisible characters, look-alikes."""

import re
import unicodedata
from typing import Final

LOOKALIKES: Final[dict[str, str]] = {
    # Cyrillic capitals
    **dict(
        zip(
            "\u0410\u0412\u0421\u0415\u050c\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u051a\u0405\u0422\u051c\u0425\u0423\u04ae",
            "ABCEGHIJKMOPQSTWXYY",
            strict=True,
        )
    ),
    # Greek capitals
    **dict(
        zip(
            "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
            "ABEZHIKMNOPTYX",
            strict=True,
        )
    ),
    # Cyrillic small letters
    **dict(zip("\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443", "aceijopsxy", strict=True)),
    # white letters on a dark disc or square, which NFKC leaves alone
    **{chr(start + i): chr(65 + i) for start in (0x1F150, 0x1F170) for i in range(26)},
}
"""Characters that stand for a Latin letter when they stand alone where a label is expected."""

OWN_ALPHABET: Final = "\u0411\u0413\u0414\u0393\u0394"
"""Second to fifth letters of Cyrillic and Greek with no Latin twin: whoever labels options with one of these
counts in that alphabet, where a look-alike may stand for another place in the list."""

# A base letter carries a handful of marks in any real script; longer runs cost quadratic time to normalise.
_MAX_MARKS: Final = 16

_LINE_ENDS: Final = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_INVISIBLE: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u20e3\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff\ud800-\udfff]"
)
_PUNCTUATION: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2212", "-"),
        **dict.fromkeys("\u2012\u2015", "\u2014"),
    }
)
_INLINE_SPACE: Final = re.compile(r"[^\S\n]+")
_LINES: Final = re.compile(r" ?\n[ \n]*")


def normalise(text: str) -> str:
    """Give `text` in NFKC, with ``\\n`` for every kind of line end and without invisible characters.

    Look-alike letters stay as they are: most of them are letters of words in their own script, so they are
    mapped only where a label stands (see `labelset`).
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _limit_marks(text)).translate(_PUNCTUATION)
    return _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text))


def collapse(text: str) -> str:
    """Fold each run of blanks to one space, each run of line ends to one, and trim."""
    return _LINES.sub("\n", _INLINE_SPACE.sub(" ", text)).strip()


def skeleton(text: str) -> str:
    """Replace each look-alike character by the Latin letter that it looks like."""
    return "".join(LOOKALIKES.get(c, c) for c in text)


def _limit_marks(text: str) -> str:
    run, kept = 0, []
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        if run <= _MAX_MARKS:
            kept.append(char)
    return "".join(kept) if len(kept) < len(text) else text
