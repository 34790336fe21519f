"""The report as bytes: the page, and every figure as a file that stands alone."""

from collections.abc import Mapping
from dataclasses import dataclass

from counterbalance.report.pictures import Figure
from counterbalance.report.render import render_html
from counterbalance.report.sections import covers_of
from counterbalance.report.sources import Sources
from counterbalance.report.view import view_report


@dataclass(frozen=True)
class Report:
    """The page and, by file name, the figures."""

    html: bytes
    figures: Mapping[str, bytes]


def build_report(sources: Sources) -> Report:
    """Make the report; a pure function of the artifacts."""
    view = view_report(sources)
    covers = covers_of(sources, view.sections)
    shown = [*view.overviews.values(), *view.sections]
    pictures: list[Figure] = [cover.picture for cover in covers]
    pictures += [picture for part in shown for picture in part.pictures]
    figures = {f"{picture.name}.svg": picture.file for picture in pictures}
    return Report(render_html(view), figures | {f"{cover.picture.name}.png": cover.png for cover in covers})
