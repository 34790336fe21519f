"""How the report writes numbers and text from outside: one form each, everywhere."""

import unicodedata

MISSING = "–"
_MINUS = "−"
_FIXED = "\u00a0"
# Joiners are part of ordinary words in several scripts; every other invisible character is spelled out.
_HARMLESS = frozenset("\n\t\u200c\u200d")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    """Spell out characters that could not be seen or that reorder what is around them.

    Control and format characters (bidi overrides among them), line separators, private and unassigned code points
    become ``⟨U+202E⟩``; new lines, tabs and the two joiners stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_spell(character) for character in text)


def _spell(character: str) -> str:
    if character in _HARMLESS or unicodedata.category(character) not in _HIDDEN:
        return character
    return f"⟨U+{ord(character):04X}⟩"


def shorten(text: str, length: int) -> str:
    """Return visible text of at most `length` characters on one line, with an ellipsis where it was cut."""
    flat = " ".join(visible(text).split())
    return flat if len(flat) <= length else flat[: length - 1].rstrip() + "…"


def proportion(value: float, digits: int = 3) -> str:
    """Write a number without its leading zero: ``.214``, ``−.052``, ``1.000``."""
    text = f"{abs(value):.{digits}f}"
    sign = _MINUS if value < 0 and text.strip("0.") else ""
    return sign + (text[1:] if text.startswith("0.") else text)


def nats(value: float) -> str:
    """Write an amount in nats with its sign and two digits: ``+0.83``, ``−1.20``, ``0.00``."""
    return signed(value, 2)


def signed(value: float, digits: int) -> str:
    """Write a number with its sign: ``+0.83``, ``−1.20``, ``0.00``."""
    text = f"{abs(value):.{digits}f}"
    if not text.strip("0."):
        return text
    return (_MINUS if value < 0 else "+") + text


def percent(share: float) -> str:
    """Write a share as whole per cent; one that is not quite none or all is not rounded to it."""
    if 0 < share <= 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{100 * share:.0f}%"


def interval(low: str, high: str) -> str:
    """Write an interval from its written ends, without a line break inside: ``[.150, .281]``."""
    return f"[{low},{_FIXED}{high}]"


def p_value(p: float) -> str:
    """Write a p-value with three digits, never as zero or one: ``.004``, ``<.001``, ``>.999``."""
    if p < 0.001:
        return "<.001"
    return ">.999" if p > 0.9995 else proportion(p)


def p_equals(p: float) -> str:
    """Write a p-value for running text: ``p = .004``, ``p < .001``."""
    text = p_value(p)
    return f"p {text[0]} {text[1:]}".replace(" ", _FIXED) if text[0] in "<>" else f"p = {text}".replace(" ", _FIXED)


def dollars(nano_usd: int) -> str:
    """Write an amount in nano-USD as US dollars: ``$1.2300``; one that is not quite nothing is not rounded to it."""
    return "<$0.0001" if 0 < nano_usd < 100_000 else f"${nano_usd / 1e9:,.4f}"


def count(number: int) -> str:
    """Write a whole number with commas: ``24,000``."""
    return f"{number:,}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun: ``1 cell``, ``24,000 calls``."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def listing(words: list[str], last: str = "and") -> str:
    """Join words for running text: ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def anchor_of(cell: str) -> str:
    """Return the id of a cell's element on the page, from its name ``experiment/model/subset``."""
    return f"cell-{cell.replace('/', '.')}"
