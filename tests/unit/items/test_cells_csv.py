import pytest

from counterbalance.errors import InputError
from counterbalance.items.cells import read_cell_file

HEADER = b"condition,item,e1,e2,e3,e4\n"


def test_a_quote_that_is_never_closed_is_named_by_the_line_where_its_record_starts():
    data = HEADER + b"T1,a,1,2,3,4\n" + b'T1,"b,1,2,3,4\nT1,c,1,2,3,4\n'
    with pytest.raises(InputError, match=r"^cells\.csv line 3: cannot be read as CSV: unexpected end of data"):
        read_cell_file(data, "cells.csv")


def test_a_broken_header_is_line_1():
    with pytest.raises(InputError, match=r"^cells\.csv line 1: cannot be read as CSV"):
        read_cell_file(b'condition,"item,e1\n', "cells.csv")
