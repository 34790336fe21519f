"""From matplotlib's SVG to SVG that can live in a page: themed, with own ids, text alternatives and nothing else."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Literal

from counterbalance.report.text import visible
from counterbalance.report.theme import replacements

SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FONT = re.compile(r"font-family:[^;]+;? ?|font: ")
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def finish(drawing: bytes, *, prefix: str, title: str, description: str, target: Literal["variables", "light"]) -> str:
    """Turn a drawn figure into clean SVG.

    Parameters
    ----------
    drawing
        What matplotlib wrote, in sentinel colours.
    prefix
        Goes before every id, so that figures in one page do not share clip paths or markers.
    title, description
        Text alternatives; any text, escaped here.
    target
        ``variables`` for a figure inside the page (no size of its own, colours follow the theme); ``light`` for a
        file that stands alone (literal colours on a ground).

    Returns
    -------
    str
        One `svg` element; for ``light`` a whole document.
    """
    root = ET.fromstring(drawing)
    colours = replacements(target)
    for element in root.iter():
        # HTML knows the elements without a namespace, and a file declares it once at the root.
        element.tag = element.tag.rpartition("}")[2]
        element.text = (element.text or "").strip("\n ") if element.tag != "text" else element.text
        element.tail = None
    for holder in list(root.iter("defs")):
        for style in holder.findall("style"):
            holder.remove(style)
    _rename(root, prefix)
    for element in root.iter():
        for name in ("style", "fill", "stroke"):
            if name in element.attrib:
                element.set(name, clean_style(element.get(name, ""), colours))
        if "d" in element.attrib:
            element.set("d", " ".join(element.get("d", "").split()))
    root.set("role", "img")
    describe(root, prefix, title, description)
    _frame(root, target)
    text = ET.tostring(root, encoding="unicode")
    return text if target == "variables" else f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _rename(root: ET.Element, prefix: str) -> None:
    wanted = {
        name
        for element in root.iter()
        for key, value in element.attrib.items()
        for name in ([value[1:]] if key == _XLINK else _REFERENCE.findall(value))
    }
    for element in root.iter():
        name = element.attrib.pop("id", None)
        if name in wanted:
            element.set("id", f"{prefix}-{name}")
        target = element.attrib.pop(_XLINK, None)
        if target is not None:
            element.set("href", f"#{prefix}-{target[1:]}")
        for key, value in element.attrib.items():
            element.set(key, _REFERENCE.sub(rf"url(#{prefix}-\1)", value))


def clean_style(style: str, colours: Mapping[str, str]) -> str:
    """Replace sentinel colours in a style, and drop its fonts."""
    style = _FONT.sub("", style)
    for sentinel, colour in colours.items():
        style = style.replace(sentinel, colour)
    return style


def describe(root: ET.Element, prefix: str, title: str, description: str) -> None:
    """Put text alternatives in front, and name the figure by them."""
    entries = []
    for tag, text in (("title", title), ("desc", description)):
        element = ET.Element(tag, {"id": f"{prefix}-{tag}"})
        element.text = visible(text)
        entries.append(element)
    root[:0] = entries
    root.set("aria-labelledby", f"{prefix}-title {prefix}-desc")


def _frame(root: ET.Element, target: Literal["variables", "light"]) -> None:
    root.attrib.pop("version", None)
    root.set("style", "stroke-linejoin: round; stroke-linecap: butt")
    if target == "variables":
        root.attrib.pop("width")
        root.attrib.pop("height")
        root.set("class", "figure")
    else:
        root.set("xmlns", SVG)
        root.set("font-family", FONTS)
