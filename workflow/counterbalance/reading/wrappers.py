r"""Take off what only decorates: Markdown, LaTeX, HTML, quotes and brackets around a whole reply.

``\boxed{...}`` stays: it marks an answer and is read as a cue.
"""

import re
from typing import Final

from counterbalance.reading.normalise import collapse

_DECORATION: Final = re.compile(r"[*_`~$\\<>#&\[]")
_SPECIAL: Final = re.compile(r"<\|[^|<>\n]{1,40}\|>|</?s>|<eos>|<bos>|<end_of_turn>|\[/?INST\]|<br ?/?>")
_FENCE: Final = re.compile(r"```(?:json|text|txt|plaintext|python|latex|tex|markdown|md|xml|yaml|html)?(?=[ \n]|$)")
_MACRO: Final = re.compile(
    r"\\(?:text|textbf|textit|textrm|textsf|texttt|mathrm|mathbf|mathit|mathsf|mathtt|mbox|emph|underline|bold|"
    r"operatorname|bf|rm|it)\*? ?\{([^{}\n]*)\}"
)
_LATEX_NOISE: Final = re.compile(
    r"\\(?:[()\[\],;:! ]|quad\b|qquad\b|displaystyle\b|bf\b|rm\b|left\b|right\b|(?=[*_$#~]))"
)
_ENTITY: Final = re.compile(r"&nbsp;|&#160;")
_STRUCK: Final = re.compile(r"~~[^~\n]+~~")
_STARS: Final = re.compile(r"\*{1,3}(?=[^\s*])([^*\n]*[^\s*])\*{1,3}")
_MATHS: Final = re.compile(r"\${1,2}([^\s$]{1,40})\${1,2}")
_UNDERSCORES: Final = re.compile(r"(?<![^\W_])_{1,3}(?=[^\s_])([^_\n]*[^\s_])_{1,3}(?![^\W_])")
_HTML: Final = re.compile(
    r"<(b|strong|i|em|u|code|span|p|div|center|mark|font|h[1-6])(?: [^<>\n]{0,80})?>([^<>]*)</\1>"
)
_LINE_MARK: Final = re.compile(r"^(?: ?(?:#{1,6} |>+ ))+", re.MULTILINE)
_LOOSE_STOP: Final = re.compile(r" (?=[.,;:!?](?:[ \n)\"']|$))")
_PAIRS: Final = {
    "(": ")",
    "[": "]",
    "{": "}",
    "<": ">",
    "\u00ab": "\u00bb",
    "\u2039": "\u203a",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "\u3010": "\u3011",
    "\u3014": "\u3015",
    "\u3008": "\u3009",
    "\u300a": "\u300b",
}
_TWINS: Final = ("```", "***", "**", "*", "___", "__", "_", "``", "`", "$$", "$", '"', "'")
_OUTER_MACRO: Final = re.compile(r"\\[A-Za-z]{2,20}\*? ?\{")
_OUTER_TAG: Final = re.compile(r"<([A-Za-z_]{2,20})>")
_OPENING: Final = frozenset([*_PAIRS, *(mark[0] for mark in _TWINS), "\\"])
_MAX_LAYERS: Final = 20


def strip_outer(text: str) -> str:
    """Take off balanced wrappers around the whole of `text`, layer by layer."""
    text = text.strip()
    if text[:1] not in _OPENING:
        return text
    for _ in range(_MAX_LAYERS):
        inner = _peel(text)
        if inner is None:
            break
        text = inner.strip()
    return text


def flatten(text: str) -> tuple[str, bool]:
    """Give `text` without inline decoration, with blanks folded, and whether struck-out text was dropped."""
    if _DECORATION.search(text) is None:
        return _LOOSE_STOP.sub("", collapse(text)), False
    text = _FENCE.sub("\n", _SPECIAL.sub("\n", text)).replace("`", "")
    text = _ENTITY.sub(" ", text)
    for _ in range(4):
        shorter = _HTML.sub(r"\2", _MACRO.sub(r"\1", text))
        if shorter == text:
            break
        text = shorter
    text = _LATEX_NOISE.sub(" ", text.replace("\\\\", "\n"))
    text = _MATHS.sub(r"\1", text)
    kept = _STRUCK.sub(" ", text)
    struck = kept != text
    text = _UNDERSCORES.sub(r"\1", _STARS.sub(r"\1", kept))
    return _LOOSE_STOP.sub("", collapse(_LINE_MARK.sub("", collapse(text)))), struck


def plain(text: str) -> tuple[str, bool]:
    """Apply `strip_outer` and `flatten` until the text is bare."""
    text, struck = flatten(strip_outer(text))
    return strip_outer(text), struck


def _peel(text: str) -> str | None:
    """`text` without its outermost wrapper, or None if it has none."""
    for mark in _TWINS:
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark):
            inner = text[len(mark) : -len(mark)]
            return None if mark in inner else inner
    for start, end in (("\\(", "\\)"), ("\\[", "\\]")):
        if text.startswith(start) and text.endswith(end) and start not in text[2:]:
            return text[2:-2] if end not in text[2:-2] else None
    tag = _OUTER_TAG.match(text)
    if tag and text.endswith(f"</{tag.group(1)}>"):
        inner = text[tag.end() : -len(tag.group(1)) - 3]
        return None if f"<{tag.group(1)}>" in inner or "</" + tag.group(1) in inner else inner
    macro = _OUTER_MACRO.match(text)
    if macro and text.endswith("}"):
        return text[macro.end() : -1] if _closes_at_end(text[macro.end() - 1 :], "{", "}") else None
    if text[:1] in _PAIRS and text.endswith(_PAIRS[text[0]]) and _closes_at_end(text, text[0], _PAIRS[text[0]]):
        return text[1:-1]
    return None


def _closes_at_end(text: str, opener: str, closer: str) -> bool:
    depth = 0
    for match in re.finditer(f"[{re.escape(opener + closer)}]", text):
        depth += 1 if match.group() == opener else -1
        if depth == 0:
            return match.end() == len(text)
    return False
