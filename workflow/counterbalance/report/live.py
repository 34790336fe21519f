"""A figure that stretches with the page and whose marks can be pointed at and followed, without script.

Across, places are shares of the width; upright, they are pixels. So text keeps its size whatever the width.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from markupsafe import Markup

from counterbalance.report.svg import FONTS, SVG, clean_style, describe
from counterbalance.report.text import visible
from counterbalance.report.theme import LIGHT, replacements

_FILE_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 56, 24, 30, 48


def element(parent: ET.Element, tag: str, text: str | None = None, **attributes: Any) -> ET.Element:
    """Add an element to a drawing; a trailing underscore of a name is dropped, other underscores become dashes."""
    names = {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items()}
    made = ET.SubElement(parent, tag, names)
    made.text = None if text is None else visible(text)
    return made


@dataclass(frozen=True)
class LivePicture:
    """A drawn figure with its words.

    Attributes
    ----------
    name
        File name without its ending, unique in the study.
    title, description
        Text alternatives; the description gives the numbers.
    drawn
        A `g` element in sentinel colours, its origin the plot's upper left corner.
    height
        Height of the plot in pixels; labels of the axes lie outside of it.
    """

    name: str
    title: str
    description: str
    drawn: str
    height: int

    @property
    def inline(self) -> Markup:
        """The figure as an element of the page."""
        root = ET.Element("svg", {"class": "live", "role": "group", "height": str(self.height)})
        root.append(self._coloured("variables"))
        # Everything in it was built as an XML tree and is escaped when that is written.
        return Markup(self._write(root))

    @property
    def file(self) -> bytes:
        """The figure as a file that stands alone, where its links would lead nowhere."""
        height = self.height + _TOP + _BOTTOM
        size = {"width": str(_FILE_WIDTH), "height": str(height), "viewBox": f"0 0 {_FILE_WIDTH} {height}"}
        root = ET.Element("svg", {"xmlns": SVG, "role": "img", "font-family": FONTS, **size})
        element(root, "rect", width="100%", height="100%", fill=LIGHT.paper)
        width = _FILE_WIDTH - _LEFT - _RIGHT
        plot = element(root, "svg", x=_LEFT, y=_TOP, width=width, height=self.height, overflow="visible")
        plot.append(self._coloured("light"))
        for link in plot.iter("a"):
            link.tag = "g"
            link.attrib.clear()
        return f'<?xml version="1.0" encoding="utf-8"?>\n{self._write(root)}\n'.encode()

    def _coloured(self, target: Literal["variables", "light"]) -> ET.Element:
        drawing = ET.fromstring(self.drawn)
        colours: Mapping[str, str] = replacements(target)
        for entry in drawing.iter():
            for name in ("style", "fill", "stroke"):
                if name in entry.attrib:
                    entry.set(name, clean_style(entry.attrib[name], colours))
        return drawing

    def _write(self, root: ET.Element) -> str:
        describe(root, self.name, self.title, self.description)
        return ET.tostring(root, encoding="unicode")
