"""A finished run into the documentation: tables between the marks of its page, counts and figures beside it."""

from pathlib import Path

from counterbalance.canonical import parse_json
from counterbalance.errors import InputError
from counterbalance.files import write_bytes
from counterbalance.validation.collect import SCHEMA
from counterbalance.validation.text import study_markdown

BEGIN, END = "<!-- validation: begin -->\n\n", "\n<!-- validation: end -->"
"""Marks in `validation.md`; what stands between them is the stored run and nothing else."""


def renew_docs(run: Path, docs: Path) -> list[Path]:
    """Put a run into the documentation and return what was written.

    Parameters
    ----------
    run
        Folder of a finished study.
    docs
        Folder of `validation.md`.

    Raises
    ------
    InputError
        If the folder holds no finished study, or the page lacks a mark.
    """
    source, page = run / "validation.json", docs / "validation.md"
    counts = source.read_bytes()
    study = parse_json(counts, source=str(source))
    if not isinstance(study, dict) or study.get("schema") != SCHEMA:
        raise InputError(f"{source}: not a validation study of schema {SCHEMA}; run `counterbalance validate` again")
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{page}: expected the marks {BEGIN.strip()!r} and {END.strip()!r} once each; put them back")
    files = {page: f"{before}{begin}{study_markdown(study)}{end}{after}".encode(), docs / "validation.json": counts}
    for figure in sorted((run / "figures").glob("*.svg")):
        files[docs / f"validation-{figure.name.replace('_', '-')}"] = figure.read_bytes()
    for path, data in files.items():
        write_bytes(path, data)
    return list(files)
