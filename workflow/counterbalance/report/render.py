"""From view to HTML: one file, nothing loaded from elsewhere, no script."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from counterbalance.canonical import sha256_file
from counterbalance.errors import InputError
from counterbalance.report.text import visible
from counterbalance.report.theme import DARK, LIGHT, css_variables
from counterbalance.report.view import ReportView

TEMPLATES = Path(__file__).parents[2] / "report"


def render_html(view: ReportView) -> bytes:
    """Return the page as UTF-8.

    Raises
    ------
    InputError
        If the templates are not where the workflow keeps them.
    """
    if not (TEMPLATES / "report.html.j2").is_file():
        raise InputError(f"{TEMPLATES}: the report's templates are not there; restore the folder workflow/report")
    style = _environment(False).get_template("style.css.j2")
    css = style.render(light=css_variables(LIGHT), dark=css_variables(DARK))
    page = _environment(True).get_template("report.html.j2")
    # The style sheet holds nothing but our own text.
    return page.render(view=view, style=Markup(css)).encode()


def template_hashes() -> dict[str, str]:
    """Return name and hash of every template, which no digest of Python modules covers."""
    return {path.name: sha256_file(path) for path in sorted(TEMPLATES.glob("*.j2"))}


@cache
def _environment(escape: bool) -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=escape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )


def _finalize(value: Any) -> Any:
    """Spell out hidden characters in every text that a template prints; escaping follows after it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
