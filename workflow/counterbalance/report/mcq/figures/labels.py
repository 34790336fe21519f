"""Where the numbers beside crowded marks go, so that none lies on another or on a mark."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

_CHARACTER, _HEIGHT, _MARK = 6.2, 9.0, 5.0

Box = tuple[float, float, float, float]
Spot = tuple[float, float]


@dataclass(frozen=True)
class Label:
    """A label's middle and base line, in pixels from its mark.

    Attributes
    ----------
    roomy
        Whether it has its place only where the figure is wide.
    """

    dx: float
    dy: float
    roomy: bool


def place_labels(marks: Sequence[Spot], texts: Sequence[str], *, narrow: float, wide: float) -> list[Label | None]:
    """Find a place beside each mark, the first marks first; None where there is no room.

    Parameters
    ----------
    marks
        Each mark's place across as a share of the width, and its place down in pixels.
    narrow, wide
        Widths in pixels: what finds no place at the narrow one may have one at the wide one.
    """
    tight = _place(marks, texts, (narrow, wide), [None] * len(marks))
    loose = _place(marks, texts, (wide,), tight)
    return [
        Label(*offset, roomy=first is None) if offset is not None else None
        for first, offset in zip(tight, loose, strict=True)
    ]


def _place(
    marks: Sequence[Spot], texts: Sequence[str], widths: Sequence[float], given: Sequence[Spot | None]
) -> list[Spot | None]:
    """Add places that are free at all of the widths to those given."""
    layouts = [_Layout.of(marks, width) for width in widths]
    found = list(given)
    for index, offset in enumerate(given):
        if offset is not None:
            for layout in layouts:
                layout.taken.append(layout.box(index, texts[index], offset))
    for index, text in enumerate(texts):
        free = (offset for offset in _offsets(text) if all(one.is_free(index, text, offset) for one in layouts))
        if found[index] is None and (offset := next(free, None)) is not None:
            found[index] = offset
            for layout in layouts:
                layout.taken.append(layout.box(index, text, offset))
    return found


@dataclass(frozen=True)
class _Layout:
    """The figure at one width: where its marks are, and what is taken."""

    width: float
    spots: Sequence[Spot]
    taken: list[Box]

    @classmethod
    def of(cls, marks: Sequence[Spot], width: float) -> Self:
        spots = [(share * width, down) for share, down in marks]
        return cls(width, spots, [(x - _MARK, y - _MARK, x + _MARK, y + _MARK) for x, y in spots])

    def box(self, index: int, text: str, offset: Spot) -> Box:
        (x, y), (dx, dy) = self.spots[index], offset
        half = _CHARACTER * len(text) / 2
        return (x + dx - half, y + dy - _HEIGHT, x + dx + half, y + dy)

    def is_free(self, index: int, text: str, offset: Spot) -> bool:
        box = self.box(index, text, offset)
        inside = box[0] >= -_MARK and box[2] <= self.width + 3 * _MARK
        return inside and not any(_overlap(box, other) for other in self.taken)


def _offsets(text: str) -> list[Spot]:
    """Places around a mark: right, left, above, below, then the corners."""
    side = round(_MARK + 2 + _CHARACTER * len(text) / 2, 1)
    up, down = -_MARK - 3, _MARK + _HEIGHT + 1
    corners = [(dx, dy) for dy in (up, down) for dx in (0.8 * side, -0.8 * side)]
    return [(side, 3.5), (-side, 3.5), (0.0, up), (0.0, down), *((round(dx, 1), dy) for dx, dy in corners)]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
