"""Strict structure of a CSV file: where each record starts, and every way in which its quoting is broken."""

import re
from dataclasses import dataclass

from counterbalance.items.problems import Problems

_FIELD = re.compile(rb'"[^"]*+(?:""[^"]*+)*+"|[^",\r\n]*+')
_END = re.compile(rb",|\r?\n|\Z")


@dataclass(frozen=True)
class Shape:
    """Line at which each record starts (from 1), number of fields of each, and where the last record ends."""

    lines: list[int]
    widths: list[int]
    end: int


def scan_csv(data: bytes, problems: Problems) -> Shape:
    """Walk through a comma-separated file as RFC 4180 defines it.

    Parameters
    ----------
    data
        The file without a byte order mark; records end in LF or CRLF.
    problems
        Takes broken quoting (after which nothing more can be read), blank lines, and records whose number of fields
        differs from the first one's. Blank lines at the end of the file are no records.
    """
    end = len(data.rstrip(b"\r\n"))
    if data.startswith(b"\r\n", end):
        end += 2
    elif data.startswith(b"\n", end):
        end += 1
    shape = Shape([], [], end)
    position, line = 0, 1
    while position < end:
        start, width = position, 0
        while True:
            field = _FIELD.match(data, position, end)
            stop = field.end() if field else position
            mark = _END.match(data, stop, end)
            if field is None or mark is None:
                problems.add(line, None, _explain(data, position, stop, width + 1))
                return shape
            width, position = width + 1, mark.end()
            if mark.group() != b",":
                break
        if data[start:position].strip(b"\r\n"):
            shape.lines.append(line)
            shape.widths.append(width)
            if width != shape.widths[0]:
                problems.add(
                    line, None, f"{width} fields where the first record has {shape.widths[0]}; fix the commas or quotes"
                )
        else:
            problems.add(line, None, "the line is blank; delete it")
        line += data.count(b"\n", start, position)
    return shape


def _explain(data: bytes, start: int, stop: int, number: int) -> str:
    line = data.count(b"\n", 0, stop) + 1
    where = f"field {number} (line {line})"
    if data[start : start + 1] == b'"' and stop == start:
        return f"the quote that opens {where} is never closed; close it, or double the quotes inside the text"
    if data[start : start + 1] == b'"':
        return f"text follows the closing quote of {where}; double the quotes that belong to the text"
    if data[stop : stop + 1] == b'"':
        return f"a quote stands inside {where}, which is not quoted; quote the field and double its quotes"
    return f"{where} holds a carriage return without a line feed; save the file with LF or CRLF line ends"
