"""The report as bytes: the page, and every figure as a file that stands alone."""

from collections.abc import Mapping
from dataclasses import dataclass

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
    pictures = [*(cover.picture for cover in covers), *(p for section in view.sections for p in section.pictures)]
    figures = {f"{picture.name}.svg": picture.file for picture in pictures}
    return Report(render_html(view), figures | {f"{cover.picture.name}.png": cover.png for cover in covers})
