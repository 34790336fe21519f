"""Whether a file's columns are those that the study declares, and whether its first row is what it seems."""

import re

from counterbalance.config import Dataset
from counterbalance.errors import InputError
from counterbalance.items.folding import fold_text
from counterbalance.items.readers import RawTable, declared_columns

_QUESTION_WORD = re.compile(
    "questions?|prompt|stem|input|query|text|problem|frage|pregunta|domanda|pergunta|vraag|вопрос|问题|問題|質問"
)
_KEY_WORD = re.compile(
    "(?:correct[ _]?)?answers?(?:[ _]?(?:key|index))?|key|label|target|gold|correct|solution|antwort|respuesta|réponse|"
    "risposta|resposta|antwoord|ответ|答案"
)


def check_columns(table: RawTable, dataset: Dataset) -> list[str]:
    """Compare a file's columns with the declared ones.

    Returns
    -------
    list of str
        Columns that are there but not declared and not used.

    Raises
    ------
    InputError
        If a declared column is missing; if the first line is a header where none was declared, or an item where a
        header was; if a column that is not declared looks like one more option; or if a header-less file has a
        column that is not declared, since nothing shows what it holds.
    """
    declared = declared_columns(dataset)
    missing = [name for name in declared if name not in table.columns]
    if missing:
        raise InputError(f"{dataset.path}: {_explain_missing(missing, table, dataset)}")
    unused = [name for name in table.columns if name not in declared]
    following = _following(declared, unused, dataset)
    if following:
        raise InputError(
            f"{dataset.path}: column {following!r} looks like one more option but is not declared; name it in "
            "`columns.options` (with `trailing_empty_options: true` if not every row has it), or rename it"
        )
    if dataset.format == "csv_headerless":
        if unused:
            raise InputError(
                f"{dataset.path}: {len(table.columns)} columns, of which {', '.join(unused)} are not declared; without "
                "a header nothing says what they hold: declare them (for example as `strata`) or remove them"
            )
        _refuse_header(table, dataset)
    for row in table.rows:
        if all(row.values.get(name) == name for name in declared):
            raise InputError(f"{dataset.path} row {row.number}: repeats the header; files seem to be joined, delete it")
    return unused


def _explain_missing(missing: list[str], table: RawTable, dataset: Dataset) -> str:
    there = ", ".join(repr(name) for name in table.columns)
    text = f"no column {', '.join(repr(name) for name in missing)}; there are {there}"
    if dataset.format == "csv" and len(table.columns) == 1 and re.search(r"[;\t|]", table.columns[0]):
        return f"{text}; the fields are not separated by commas: save the file with commas"
    folded = {fold_text(name).casefold(): name for name in table.columns}
    twins = [folded.get(fold_text(name).casefold()) for name in missing]
    if all(twins):
        return f"{text}; {twins[0]!r} differs from {missing[0]!r} by case or white space only"
    if dataset.format == "csv" and missing == declared_columns(dataset):
        return f"{text}; row 1 looks like data and not like a header: use `format: csv_headerless` if there is none"
    return f"{text}; correct `columns` in the study file"


def _following(declared: list[str], unused: list[str], dataset: Dataset) -> str | None:
    """Return the undeclared column whose name goes on where the declared options stop, or None."""
    options = dataset.columns.options
    last = re.fullmatch(r"(.*?)([0-9]+|[A-Ya-y])", options[-1]) if isinstance(options, list) else None
    if last is None:
        return None
    tail = last[2]
    after = str(int(tail) + 1).zfill(len(tail)) if tail.isdigit() else chr(ord(tail) + 1)
    wanted = (last[1] + after).casefold()
    return next((name for name in unused if name.casefold() == wanted), None)


def _refuse_header(table: RawTable, dataset: Dataset) -> None:
    if not table.rows:
        return
    first, columns = table.rows[0], dataset.columns
    question = fold_text(first.values[columns.question]).casefold()
    key = fold_text(first.values[columns.key]).casefold() if columns.key else ""
    if _QUESTION_WORD.fullmatch(question) or _KEY_WORD.fullmatch(key):
        raise InputError(
            f"{dataset.path} row {first.number}: looks like a header and not like an item; use `format: csv`, "
            "or delete the row"
        )
