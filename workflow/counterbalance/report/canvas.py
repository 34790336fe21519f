"""Drawing with matplotlib so that the same numbers give the same bytes, whatever the user's settings."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from counterbalance.report.theme import Theme

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

_SETTINGS: "dict[RcKeyType, Any]" = {
    "svg.fonttype": "none",
    "svg.hashsalt": "counterbalance",
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    # A dollar sign in somebody's label is not mathematics.
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 0.0,
    "axes.axisbelow": True,
    "lines.solid_capstyle": "round",
}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with our settings alone, and leave the caller's as they were."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A script that the measuring font lacks is still written as text, and the reader's font has it.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def new_figure(width: float, height: float, theme: Theme) -> Figure:
    """Return an empty figure; sizes in inches (72 units of the SVG each)."""
    return Figure(figsize=(width, height), facecolor=theme.paper)


def style_axes(axes: Axes, theme: Theme, *, grid: Literal["x", "y"] | None = "y") -> None:
    """Give axes quiet lines and readable ticks."""
    axes.set_facecolor("none")
    for spine in axes.spines.values():
        spine.set_color(theme.line)
    axes.tick_params(colors=theme.muted, labelcolor=theme.muted)
    axes.spines["left"].set_visible(False)
    if grid:
        axes.grid(axis=grid, color=theme.line, linewidth=0.6)


def share_axis(axes: Axes) -> None:
    """Scale the upright axis from 0 to 100 per cent, the same in every figure."""
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100%"])


def svg_bytes(figure: Figure) -> bytes:
    """Return matplotlib's SVG, without date or version."""
    buffer = io.BytesIO()
    FigureCanvasSVG(figure)
    figure.savefig(buffer, format="svg", metadata=_NO_METADATA, facecolor=figure.get_facecolor())
    return buffer.getvalue()


def png_bytes(figure: Figure, *, dpi: int) -> bytes:
    """Return a PNG, without version."""
    buffer = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None}, facecolor=figure.get_facecolor())
    return buffer.getvalue()
