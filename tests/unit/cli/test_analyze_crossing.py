"""`analyze crossing`: published digits, planted effects, and files that must be refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from counterbalance.cli import main

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "config" / "contrasts" / "ad_series.yaml"
PUBLISHED = ROOT.parent / "shared" / "data" / "ad_series" / "T1_T1c_cells.csv"
HEADER = "condition,item,e1,e2,e3,e4"

published = pytest.mark.skipif(
    not PUBLISHED.is_file(), reason="../shared/data/ad_series/T1_T1c_cells.csv is not beside the repository"
)

# arXiv 2609.30716: mean, 95% interval, whether zero is excluded; for serial also the 90% interval, items below zero,
# TOST p and whether the 90% interval lies below -0.15; verdicts on role and order.
KEPT = {
    "T1": {
        "token": ("-0.216", "-0.438", "-0.028", True),
        "role": ("+0.054", "+0.008", "+0.105", True),
        "order": ("+0.003", "-0.024", "+0.036", False),
        "serial": ("-0.485", "-0.611", "-0.283", True),
        "more": ("-0.592", "-0.318", 12, 13, "0.9992", True, "fail", "pass"),
    },
    "T1c": {
        "token": ("-0.142", "-0.360", "+0.058", False),
        "role": ("+0.008", "-0.045", "+0.088", False),
        "order": ("+0.056", "-0.025", "+0.125", False),
        "serial": ("-0.884", "-1.074", "-0.708", True),
        "more": ("-1.044", "-0.735", 13, 13, "1.0000", True, "pass", "pass"),
    },
}
ALL = {
    "T1": {
        "token": ("-0.229", "-0.425", "-0.041", True),
        "role": ("+0.051", "+0.008", "+0.099", True),
        "order": ("+0.005", "-0.020", "+0.035", False),
        "serial": ("-0.463", "-0.592", "-0.282", True),
        "more": ("-0.572", "-0.315", 13, 14, "0.9991", True, "fail", "pass"),
    },
    "T1c": {
        "token": ("-0.111", "-0.319", "+0.084", False),
        "role": ("+0.012", "-0.038", "+0.084", False),
        "order": ("+0.044", "-0.034", "+0.113", False),
        "serial": ("-0.871", "-1.062", "-0.708", True),
        "more": ("-1.029", "-0.733", 14, 14, "1.0000", True, "pass", "pass"),
    },
}
A1 = {"kept": ("-0.400", "-0.578", "-0.237", "0.324"), "all": ("-0.407", "-0.573", "-0.251", "0.313")}


def run(*arguments):
    return CliRunner().invoke(main, ["analyze", "crossing", *map(str, arguments)])


def rows_of(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def pick(rows, **wanted):
    (row,) = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    return row


@published
@pytest.mark.parametrize(("name", "printed"), [("kept", KEPT), ("all", ALL)])
def test_every_published_value_of_two_conditions(name, printed):
    rows = rows_of(PUBLISHED, "--contrasts", SHIPPED, "--stream", "legacy")
    for condition, expected in printed.items():
        for quantity in ("token", "role", "order", "serial"):
            row = pick(rows, set=name, condition=condition, quantity=quantity, level=0.95)
            shown = tuple(f"{row[key]:+.3f}" for key in ("estimate", "low", "high"))
            assert (*shown, row["excludes_zero"]) == expected[quantity]
        row = pick(rows, set=name, condition=condition, quantity="serial", level=0.9)
        nulls = [
            pick(rows, set=name, condition=condition, quantity=quantity, level=0.95)["null_verdict"]
            for quantity in ("role", "order")
        ]
        assert (
            f"{row['low']:+.3f}", f"{row['high']:+.3f}", row["n_negative"], row["n"], f"{row['p_tost']:.4f}",
            row["beyond_bound"], *nulls,
        ) == expected["more"]  # fmt: skip
    row = pick(rows, set=name, contrast="A1", level=0.95)
    shown = (*(f"{row[key]:+.3f}" for key in ("estimate", "low", "high")), f"{row['sd']:.3f}")
    assert shown == A1[name]
    assert row["excludes_zero"] is True


@published
def test_the_page_shows_the_published_lines_and_what_could_not_be_evaluated():
    result = run(PUBLISHED, "--contrasts", SHIPPED, "--stream", "legacy")
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "T1 serial -0.485 [-0.611, -0.283] * [-0.592, -0.318] 0.299 12/13 0.9992 yes" in lines
    assert "T1c serial -0.871 [-1.062, -0.708] * [-1.029, -0.733] 0.346 14/14 1.0000 yes" in lines
    assert any(line.startswith("T1 role +0.054 [+0.008, +0.105] *") and "FAIL" in line for line in lines)
    assert "B1: not evaluable: condition T2 not in the data, which have T1, T1c" in lines
    assert "nan" not in result.output.lower()


@published
def test_the_modern_stream_shifts_ends_by_little_and_no_mean():
    old, new = (rows_of(PUBLISHED, "--stream", stream) for stream in ("legacy", "modern"))
    ends = [(one[end], two[end]) for one, two in zip(old, new, strict=True) for end in ("low", "high")]
    # the largest shift reported for the whole paper is .0106
    assert 0 < max(abs(one - two) for one, two in ends) <= 0.0106
    assert [row["estimate"] for row in old] == [row["estimate"] for row in new]
    assert [row["excludes_zero"] for row in old] == [row["excludes_zero"] for row in new]


def plant(token=0.0, role=0.0, order=0.0, serial=0.0):
    return [
        token + role + order + serial,
        token + role - order - serial,
        token - role + order - serial,
        token - role - order + serial,
    ]


@pytest.fixture
def write(tmp_path):
    def to_file(lines, header=HEADER):
        path = tmp_path / "my cells é.csv"
        path.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
        return path

    return to_file


@pytest.fixture
def contrasts(tmp_path):
    def to_file(text):
        path = tmp_path / "contrasts.yaml"
        path.write_text("schema: counterbalance/contrasts/1\n" + text, encoding="utf-8")
        return path

    return to_file


TEN = ("T1", "T1c", "T2", "T2c", "T3", "T3c", "T4", "T4c", "T5", "T5b")


@pytest.fixture
def ten_conditions(write):
    """Effects that differ by condition and item; returns the file and what was planted."""
    rng = np.random.default_rng(8)
    planted, lines = {}, []
    for place, condition in enumerate(TEN):
        role = {"T5": 0.5, "T5b": 1.05}.get(condition, 0.0)
        rows = rng.normal([-0.1, role, 0, -0.9 + 0.08 * place], [0.3, 0.1, 0.08, 0.2], (14, 4))
        planted[condition] = rows
        lines += [
            f"{condition},item {item},{','.join(map(repr, plant(*map(float, row))))},{int(item != 3)}"
            for item, row in enumerate(rows)
        ]
    return write(lines, HEADER + ",kept"), planted


def test_planted_effects_of_ten_conditions_come_back(ten_conditions):
    path, planted = ten_conditions
    rows = rows_of(path, "--contrasts", SHIPPED, "--resamples", 999)
    for name, keep in (("kept", np.arange(14) != 3), ("all", np.arange(14) >= 0)):
        for condition, values in planted.items():
            for column, quantity in enumerate(("token", "role", "order", "serial")):
                row = pick(rows, set=name, condition=condition, quantity=quantity, level=0.95)
                assert row["estimate"] == pytest.approx(values[keep, column].mean())
                assert row["sd"] == pytest.approx(np.std(values[keep, column], ddof=1))
                assert row["n_negative"] == (values[keep, column] < 0).sum()
                assert row["n"] == keep.sum()
        serial = {condition: values[keep, 3] for condition, values in planted.items()}
        role = {condition: values[keep, 1] for condition, values in planted.items()}
        expected = {
            "A1": serial["T1c"] - serial["T1"],
            "A3": (serial["T1c"] - serial["T1"] + serial["T3c"] - serial["T3"]) / 2,
            "C3": serial["T4c"] - serial["T2c"] - serial["T3c"] + serial["T1c"],
            "D1": abs(role["T5b"]) - abs(serial["T5b"]),
            "full_swing": 2 * role["T5b"],
        }
        for contrast, values in expected.items():
            row = pick(rows, set=name, contrast=contrast, level=0.9)
            assert row["estimate"] == pytest.approx(values.mean())
            assert row["sd"] == pytest.approx(values.std(ddof=1))
            assert row["low"] < values.mean() < row["high"]
        means = pick(rows, set=name, contrast="ratio_of_sizes", quantity="ratio_of_means")
        assert means["estimate"] == pytest.approx(abs(role["T5b"]).mean() / abs(serial["T5b"]).mean())
        ratios = pick(rows, set=name, contrast="ratio_of_sizes", quantity="mean_of_ratios", level=0.95)
        assert ratios["estimate"] == pytest.approx((abs(role["T5b"]) / abs(serial["T5b"])).mean())
    assert {row["null_verdict"] for row in rows if row.get("quantity") == "role" and row["condition"] in TEN[8:]} == {
        "not_applicable"
    }


def test_rows_have_the_promised_keys_and_no_gaps(ten_conditions):
    rows = rows_of(ten_conditions[0], "--contrasts", SHIPPED, "--resamples", 99)
    needed = {"set", "quantity", "estimate", "low", "high", "level", "sd", "n", "p_tost", "n_negative"}
    assert all(needed <= set(row) and ("condition" in row) != ("contrast" in row) for row in rows)
    assert {row["level"] for row in rows if "condition" in row} == {0.95, 0.9}
    per_set = 10 * 4 * 2 + 22 * 2 + 2
    assert [row["set"] for row in rows] == ["kept"] * per_set + ["all"] * per_set


def test_broken_counterbalancing_fails_the_order_control(write):
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.1, (12, 4))
    sound = [f"T,i{i},{','.join(map(str, plant(serial=-0.5) + row))}" for i, row in enumerate(noise)]
    # e2 measured with the blocks of e1: the serial effect of that cell has the wrong sign
    broken = [f"T,i{i},{','.join(map(str, np.array([-0.5, -0.5, 0.5, -0.5]) + row))}" for i, row in enumerate(noise)]
    for lines, verdict in ((sound, "pass"), (broken, "fail")):
        rows = rows_of(write(lines), "--resamples", 999)
        assert pick(rows, set="all", quantity="order", level=0.95)["null_verdict"] == verdict


def test_without_a_column_items_are_kept_unless_flagged_in_any_condition(write):
    lines = []
    for condition in ("X", "Y"):
        for item in range(9):
            effects = {"token": 0.1 * item, "order": 0.01 * item, "serial": -0.3 - 0.02 * item}
            if (condition, item) == ("X", 2):
                effects["token"] = -2.1
            if (condition, item) == ("Y", 5):
                effects["order"] = 0.51
            if (condition, item) == ("Y", 6):
                effects["token"], effects["order"] = 1.9, -0.49
            lines.append(f"{condition},i{item},{','.join(map(repr, plant(**effects)))}")
    rows = rows_of(write(lines), "--resamples", 99)
    kept = pick(rows, set="kept", condition="X", quantity="serial", level=0.95)
    assert kept["n"] == 7
    assert kept["estimate"] == pytest.approx(np.mean([-0.3 - 0.02 * item for item in (0, 1, 3, 4, 6, 7, 8)]))
    assert pick(rows, set="all", condition="Y", quantity="serial", level=0.95)["n"] == 9


def test_what_excludes_zero_on_one_set_only_is_listed(write, contrasts):
    values = [0.05, 0.07, 0.04, 0.06, 0.05, 0.08, 0.03, 0.06]
    lines = [f"X,i{i},{','.join(map(repr, plant(serial=value)))},yes" for i, value in enumerate(values)]
    lines += [f"X,odd,{','.join(map(repr, plant(serial=-1.5)))},no"]
    path = write(lines, HEADER + ",mine")
    file = contrasts("contrasts:\n  - {id: twice, expression: 2 * X.serial, status: descriptive}\n")
    options = (path, "--kept-column", "mine", "--contrasts", file, "--resamples", 999)
    rows = rows_of(*options)
    assert pick(rows, set="all", contrast="twice", level=0.9)["differs_between_sets"] is True
    assert pick(rows, set="all", condition="X", quantity="role", level=0.9)["differs_between_sets"] is False
    assert "Excludes zero on one set only: X.serial (kept), twice (kept)" in run(*options).output


def test_constant_and_few_items_are_statuses(write):
    constant = rows_of(write([f"X,i{i},0.5,0.5,0.5,0.5" for i in range(8)]), "--resamples", 99)
    token = pick(constant, set="all", quantity="token", level=0.95)
    assert (token["estimate"], token["low"], token["p_tost"], token["evaluation"]) == (0.5, None, None, "degenerate")
    assert pick(constant, set="all", quantity="role", level=0.95)["null_verdict"] == "not_evaluable"
    for n, evaluation in ((1, "degenerate"), (3, "too_few")):
        lines = [f"X,i{i},{i},0.{i},-{i},0.5,{int(i > 5)}" for i in range(n)]
        rows = rows_of(write(lines, HEADER + ",kept"), "--resamples", 99)
        assert {row["evaluation"] for row in rows if row["set"] == "kept"} == {"undefined"}
        assert pick(rows, set="all", quantity="token", level=0.95)["evaluation"] == evaluation
        assert run(write(lines, HEADER + ",kept"), "--resamples", 99).exit_code == 0


def test_the_order_of_items_is_that_of_their_first_line(write):
    rng = np.random.default_rng(3)
    cells = {f"i{i}": ",".join(map(str, row)) for i, row in enumerate(rng.normal(size=(9, 4)))}
    forward = [f"X,{item},{row}" for item, row in cells.items()] + [f"Y,{item},{row}" for item, row in cells.items()]
    mixed = forward[:9] + forward[9:][::-1]
    first, second = (rows_of(write(lines), "--resamples", 199) for lines in (forward, mixed))
    assert first == second
    assert first != rows_of(write(forward[::-1]), "--resamples", 199)


GOOD = "X,a,0.1,0.2,0.3,0.4"


@pytest.mark.parametrize(
    ("lines", "header", "expected"),
    [
        ([GOOD.rsplit(",", 1)[0]], "condition,item,e1,e2,e3", "line 1: no column e4"),
        ([GOOD], "cond,item,e1,e2,e3,e4", "line 1: no column condition; expected condition,item,e1"),
        ([GOOD + ",1"], HEADER + ",e4", "line 1: column e4 is there twice"),
        ([GOOD, "X,b,0.1,nan,0.3,0.4"], HEADER, "line 3, e2: found 'nan'; expected a finite number of nats"),
        (["X,a,0.1,0.2,inf,0.4"], HEADER, "line 2, e3: found 'inf'"),
        (["X,a,0.1,0.2,,0.4"], HEADER, "line 2, e3: found ''"),
        (["X,a,0.1,0.2,1_0,0.4"], HEADER, "line 2, e3: found '1_0'"),
        (["X,a,0.1,0.2,1e9,0.4"], HEADER, "line 2, e3: found '1e9'"),
        (["X,a,0.1,0.2,x,0.4"], HEADER, "line 2, e3: found 'x'"),
        ([GOOD, GOOD], HEADER, "line 3: condition 'X', item 'a' is on line 2 too"),
        ([" ,a,0.1,0.2,0.3,0.4"], HEADER, "line 2, condition: empty"),
        (["X, ,0.1,0.2,0.3,0.4"], HEADER, "line 2, item: empty"),
        ([GOOD + ",maybe"], HEADER + ",kept", "line 2, kept: found 'maybe'; expected 1 or 0"),
        ([GOOD + ",2"], HEADER + ",kept", "line 2, kept: found '2'"),
        ([GOOD + ","], HEADER + ",kept", "line 2, kept: found ''"),
        ([GOOD + ",1", "Y" + GOOD[1:] + ",0"], HEADER + ",kept", "line 3: item 'a' is not kept here and otherwise"),
        (
            [GOOD + ",9,9"],
            HEADER,
            "line 2: 8 fields; the header has 6, and every row needs as many: add what is missing",
        ),
        (["X,a,0.1,0.2,x,0.4"], HEADER, ": 1 thing is wrong:"),
        ([GOOD, GOOD], HEADER, "on line 2 too; expected one row for an item in a condition: remove one"),
        ([GOOD + ",1", "Y" + GOOD[1:] + ",0"], HEADER + ",kept", "give it one flag"),
        (
            ["X;a;0,1;0,2;0,3;0,4"],
            HEADER.replace(",", ";"),
            "separated by semicolons, found 'condition;item;e1;e2;e3;e4'",
        ),
        (["X\ta\t1\t2\t3\t4"], HEADER.replace(",", "\t"), "separated by tabs"),
        ([], HEADER, "no rows"),
        ([], "", "line 1: no column condition, item"),
    ],
)
def test_files_that_are_wrong_are_refused_with_their_place(write, lines, header, expected):
    result = run(write(lines, header))
    assert result.exit_code == 3
    assert expected in result.output
    assert "my cells é.csv" in result.output


def test_a_column_that_was_asked_for_has_to_be_there(write):
    result = run(write([GOOD]), "--kept-column", "mine")
    assert result.exit_code == 3
    assert "no column mine, which --kept-column" in result.output
    assert "found condition,item,e1,e2,e3,e4: name one of these" in result.output


def test_flags_may_be_written_as_numbers_with_a_point(write):
    lines = [f"X,i{i},0.{i},0.2,-0.{i},0.4" for i in range(9)]
    whole, point = (
        rows_of(write([f"{line},{flag(i != 4)}" for i, line in enumerate(lines)], HEADER + ",kept"), "--resamples", 99)
        for flag in (int, float)
    )
    assert whole == point
    assert pick(point, set="kept", quantity="serial", level=0.95)["n"] == 8


@pytest.fixture
def with_gaps(write):
    """Conditions X and Y, where Y lacks items 2 and 5; returns the file and serial by condition and item."""
    rng = np.random.default_rng(5)
    serial = {name: {i: float(rng.normal(-0.4, 0.2)) for i in range(10)} for name in ("X", "Y")}
    del serial["Y"][2], serial["Y"][5]

    def file(kept=None):
        lines = [
            f"{name},i{i},{','.join(map(repr, plant(0.1 * i, serial=value)))}" + (f",{int(kept(i))}" if kept else "")
            for name, by_item in serial.items()
            for i, value in by_item.items()
        ]
        return write(lines, HEADER + (",kept" if kept else ""))

    return file, serial


def test_a_contrast_is_evaluated_on_the_items_that_all_its_conditions_have(with_gaps, contrasts):
    file, serial = with_gaps
    plan = contrasts("contrasts:\n  - {id: D, expression: Y.serial - X.serial, status: inferential}\n")
    differences = [serial["Y"][i] - serial["X"][i] for i in serial["Y"]]
    for column, kept_x, kept in ((None, 8, 8), (lambda i: i != 3, 9, 7)):
        rows = rows_of(file(column), "--contrasts", plan, "--resamples", 99)
        found = pick(rows, set="all", contrast="D", level=0.95)
        assert (found["n"], found["estimate"]) == (8, pytest.approx(np.mean(differences)))
        assert pick(rows, set="all", condition="X", quantity="serial", level=0.95)["n"] == 10
        assert pick(rows, set="all", condition="Y", quantity="serial", level=0.95)["n"] == 8
        # Without a column an item is kept if every condition has it; a column says itself which items are.
        assert pick(rows, set="kept", condition="X", quantity="serial", level=0.95)["n"] == kept_x
        assert pick(rows, set="kept", contrast="D", level=0.95)["n"] == kept
    result = run(file(), "--resamples", 99)
    assert "condition 'Y': no row for 2 of 10 items, 'i2', 'i5'" in result.stderr
    assert "kept: complete and unflagged in every condition" in result.stdout


def test_a_condition_that_is_neither_declared_nor_in_the_data_is_refused(with_gaps, contrasts):
    file, _ = with_gaps
    plan = contrasts("contrasts:\n  - {id: D, expression: Y.serial - x.serial, status: inferential}\n")
    result = run(file(), "--contrasts", plan)
    assert result.exit_code == 2
    assert "line 3, contrast D, column 12: no condition 'x' in the data, which have X, Y" in result.output
    assert "list under `conditions` all" in result.output


def test_contrasts_without_their_conditions_are_named_on_standard_error(write, contrasts):
    path = write([f"{name},i{i},0.{i},0.2,-0.{i},0.4" for name in ("long", "short_one") for i in range(9)])
    plan = contrasts(
        "conditions: {long: {}, short-one: {}, other: {}}\ncontrasts:\n"
        "  - {id: D, expression: '\"short-one\".serial - long.serial', status: inferential}\n"
        "  - {id: E, expression: D - other.role, status: inferential}\n"
    )
    result = run(path, "--contrasts", plan, "--resamples", 99, "--json")
    assert result.exit_code == 0
    told = "is not in the data, which have long, short_one"
    assert result.stderr.splitlines() == [
        f"condition short-one {told} (did you mean 'short_one'?): not evaluable D, E",
        f"condition other {told}: not evaluable E",
    ]
    assert pick(json.loads(result.stdout), set="all", contrast="D", level=0.9)["evaluation"] == "not_evaluable"


def test_columns_that_are_not_used_are_named(write):
    result = run(write([GOOD + ",1,x"], HEADER + ",kept,note"), "--resamples", 99)
    assert result.exit_code == 0
    assert "columns not used: note" in result.stderr


def test_a_wrong_file_of_contrasts_is_a_usage_error(write, contrasts):
    file = contrasts("contrasts:\n  - {id: A, expression: X.size, status: legacy}\n")
    result = run(write([GOOD]), "--contrasts", file)
    assert result.exit_code == 2
    assert "line 3, contrast A, column 1: no effect 'size'; there are token, role, order, serial" in result.output
    absent = run(write([GOOD]), "--contrasts", file.with_name("none.yaml"))
    assert absent.exit_code == 2
    assert "none.yaml: cannot be read (No such file or directory); start from config/contrasts" in absent.output


def test_missing_cells_are_an_input_error(tmp_path):
    result = run(tmp_path / "none.csv")
    assert result.exit_code == 3
    assert "none.csv: cannot be read (No such file or directory); give the path of a CSV of cells" in result.output


def test_help_teaches_with_an_example():
    output = run("--help").output
    assert "--contrasts config/contrasts/ad_series.yaml --stream legacy" in output
    assert "e1 stale (A), recent (B)" in output
    assert "expression: T1c.serial - T1.serial" in output
