"""A figure on its way into the page and into a file of its own."""

from dataclasses import dataclass
from typing import Protocol

from markupsafe import Markup

from counterbalance.report.svg import finish


class Figure(Protocol):
    """What stands in the page and in a file of its own."""

    @property
    def name(self) -> str:
        """File name without its ending, unique in the study."""

    @property
    def inline(self) -> Markup:
        """The figure as an element of the page."""

    @property
    def file(self) -> bytes:
        """The figure as a file that stands alone."""


@dataclass(frozen=True)
class Picture:
    """A drawn figure with its words.

    Attributes
    ----------
    name
        File name without its ending, unique in the study.
    title, description
        Text alternatives; the description gives the numbers.
    drawn
        matplotlib's SVG in sentinel colours.
    """

    name: str
    title: str
    description: str
    drawn: bytes

    @property
    def inline(self) -> Markup:
        """The figure as an element of the page."""
        # Everything in it was built as an XML tree and escaped when that was written.
        return Markup(self._finish("variables"))

    @property
    def file(self) -> bytes:
        """The figure as a file that stands alone."""
        return self._finish("light").encode()

    def _finish(self, target: str) -> str:
        return finish(
            self.drawn,
            prefix=self.name,
            title=self.title,
            description=self.description,
            target="variables" if target == "variables" else "light",
        )


@dataclass(frozen=True)
class Cover:
    """All cells in one picture, for a title page: as a vector figure and as pixels."""

    picture: Picture
    png: bytes
