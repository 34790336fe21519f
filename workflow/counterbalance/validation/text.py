"""The study as markdown: one table for each question, from the stored counts alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from counterbalance.simulation.scenarios import SCENARIOS, Scenario
from counterbalance.validation.measure import REJECTIONS
from counterbalance.validation.rows import (
    COVERAGE_BAND,
    JOINT,
    LEVEL_BAND,
    PUBLISHED_INTERVALS,
    PUBLISHED_TESTS,
    CoverageRow,
    RejectionRow,
    coverage_rows,
    rejection_rows,
    right_and_wrong,
    share,
)

_MARKS = {
    "holds": "",
    "power": "",
    "unclear": " ~",
    "conservative": " (low)",
    "liberal": " **(high)**",
    "exception": " (exception)",
    "too narrow": " **(low)**",
    "too wide": " (high)",
    "-": "",
}
_EFFECTS = ("V.corrected", "shape.linear", "shape.first", "shape.last", "shape.middle", JOINT)
_SHARES = (
    "accuracy",
    "accuracy.slot",
    "picks.slot",
    "picks_when_wrong.slot",
    "consistency",
    "flip_rate",
    "usual_share",
    "disagreement.other_order",
)
_RARE = (
    "disagreement.same_order",
    "disagreement.excess",
    "label_logprob.slot",
    "slot_bonus.slot",
    "label_prior.slot",
    "status.ok",
    "status.ok.slot",
    "status.refused",
    "status.refused.slot",
)
_COVERAGE_ORDER = (*_EFFECTS, *_SHARES, *_RARE, *PUBLISHED_INTERVALS)


def study_markdown(study: Mapping[str, Any]) -> str:
    """Return the whole result as markdown, without a title."""
    scenarios = study["scenarios"]
    tests, coverage = list(rejection_rows(scenarios)), list(coverage_rows(scenarios))
    nulls = [SCENARIOS[found["name"]] for found in scenarios if SCENARIOS[found["name"]].is_null]
    planted = [SCENARIOS[found["name"]] for found in scenarios if not SCENARIOS[found["name"]].is_null]
    parts = [
        _head(study),
        "### What does not hold\n\n" + "\n".join(_failures(tests, coverage)),
        "### Type I error\n\n" + _level_intro(study) + "\n\n" + _tests_table(nulls, tests, scenarios),
        *_exceptions(nulls),
        "### Power\n\n" + _tests_table(planted, tests, scenarios),
        "### Coverage of 95% intervals\n\n" + _coverage_intro(),
        *_coverage_tables([*nulls, *planted], coverage),
    ]
    if study["shapes"]:
        parts.append("### Labels of planted shapes\n\n" + _shapes_table(study["shapes"]))
    if study["detectable"]:
        parts.append("### The smallest detectable V\n\n" + _detectable_table(study["detectable"]))
    return "\n\n".join(parts) + "\n"


def rows_markdown(study: Mapping[str, Any]) -> str:
    """Return every rate with its interval and replicates, one row each."""
    lines = ["| scenario | test or interval | rate | 95% Wilson | replicates | word |", "|---|---|---|---|---|---|"]
    for test in rejection_rows(study["scenarios"]):
        lines.append(_full_row(test.scenario, test.test, test.rate, test.low, test.high, test.n, test.word))
    for row in coverage_rows(study["scenarios"]):
        name = f"coverage of {row.quantity}"
        lines.append(_full_row(row.scenario, name, row.rate, row.low, row.high, row.n, row.word))
    return "\n".join(lines) + "\n"


def _full_row(
    scenario: str, what: str, rate: float | None, low: float | None, high: float | None, n: float, word: str
) -> str:
    ends = "" if low is None or high is None else f"{low:.3f} to {high:.3f}"
    return f"| {scenario} | {what} | {_number(rate)} | {ends} | {n:.0f} | {word} |"


def _head(study: Mapping[str, Any]) -> str:
    cells = sum(found["replicates"] for found in study["scenarios"])
    doors = sum(found["through_doors"] for found in study["scenarios"])
    return (
        f"Size `{study['size']}`: {len(study['scenarios'])} scenarios, {cells:,} cells, {doors:,} of them answered, "
        f"read and scored reply by reply, the others drawn by the same response model; {study['resamples']} draws "
        f"of every resampling, nominal level {study['alpha']:g}. Code: `{study['code_sha256'][:19]}`. A rate is "
        "printed bare if it lies in its band; `~`: outside, but its 95% Wilson interval reaches the band."
    )


def _failures(tests: Sequence[RejectionRow], coverage: Sequence[CoverageRow]) -> Iterator[str]:
    """Yield a line for each calibrated test and interval that is beyond doubt outside its band."""
    lines = []
    for test in REJECTIONS:
        if test in PUBLISHED_TESTS:
            continue
        off = [row for row in tests if row.test == test and row.word in ("liberal", "conservative", "exception")]
        lines += [_failure(test, word, off) for word in ("liberal", "conservative", "exception")]
    for quantity in _COVERAGE_ORDER:
        if quantity not in PUBLISHED_INTERVALS:
            rows = [row for row in coverage if row.quantity == quantity]
            lines += [_failure(f"interval of {quantity}", word, rows) for word in ("too narrow", "too wide")]
    found = [line for line in lines if line]
    yield from found or ["Nothing: every calibrated test and interval is in its band, or not beyond doubt outside it."]


def _failure(what: str, word: str, rows: Iterable[RejectionRow | CoverageRow]) -> str:
    where = [f"{row.scenario} {_number(row.rate)}" for row in rows if row.word == word]
    return f"- `{what}`, {word}: {', '.join(where)}" if where else ""


def _level_intro(study: Mapping[str, Any]) -> str:
    low, high = LEVEL_BAND
    return (
        f"Nothing is planted that slots have in common. Band {low:g} to {high:g} (`bias`, Holm over both relabelling "
        "tests: from .02; `V.corrected > 0`, one end of an interval: up to .05)."
    )


def _tests_table(
    scenarios: Sequence[Scenario], rows: Sequence[RejectionRow], counts: Sequence[Mapping[str, Any]]
) -> str:
    found = {(row.scenario, row.test): row for row in rows}
    facts = {entry["name"]: entry for entry in counts}
    lines = [
        f"| scenario | V | accuracy | unstable | n | {' | '.join(REJECTIONS)} |",
        f"|---|---|---|---|---|{'---|' * len(REJECTIONS)}",
    ]
    for scenario in scenarios:
        fact = facts[scenario.name]
        cells = [found[scenario.name, test] for test in REJECTIONS]
        rates = " | ".join(f"{_number(cell.rate)}{_MARKS[cell.word]}" for cell in cells)
        lines.append(
            f"| {scenario.name}: {scenario.what} | {_number(fact['coverage']['V.corrected']['truth'])} | "
            f"{_number(fact['accuracy'])} | {fact['unstable']:.2f} | {fact['replicates']} | {rates} |"
        )
    return "\n".join(lines)


def _exceptions(scenarios: Sequence[Scenario]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for scenario in scenarios:
        for reason in dict.fromkeys(scenario.exceptions.values()):
            tests = ", ".join(test for test, why in scenario.exceptions.items() if why == reason)
            reasons.setdefault(reason, []).append(f"{scenario.name} ({tests})")
    lines = [f"- {', '.join(where)}: {reason}." for reason, where in reasons.items()]
    return ["Exceptions that are known and why:\n\n" + "\n".join(lines)] if lines else []


def _coverage_intro() -> str:
    low, high = COVERAGE_BAND
    return (
        f"Band {low:g} to {high:g}; slots pooled; the shape contrasts are simultaneous, so `{JOINT}` is what has to "
        "reach .95. A share in brackets: replicates without an interval."
    )


def _coverage_tables(scenarios: Sequence[Scenario], rows: Sequence[CoverageRow]) -> Iterator[str]:
    found = {(row.scenario, row.quantity): row for row in rows}
    for title, names in (
        ("Effects of slot", _EFFECTS),
        ("Shares and steadiness", _SHARES),
        ("Where they apply: calls repeated, label probabilities, refusals", _RARE),
        ("As published, for comparison", PUBLISHED_INTERVALS),
    ):
        shown = [name for name in names if any(row.quantity == name for row in rows)]
        having = [each for each in scenarios if any((each.name, name) in found for name in shown)]
        if having:
            yield f"#### {title}\n\n" + _coverage_table(having, shown, found)


def _coverage_table(
    scenarios: Sequence[Scenario], shown: Sequence[str], found: Mapping[tuple[str, str], CoverageRow]
) -> str:
    lines = [f"| scenario | {' | '.join(shown)} |", f"|---|{'---|' * len(shown)}"]
    for scenario in scenarios:
        cells = [_coverage_cell(found.get((scenario.name, name))) for name in shown]
        lines.append(f"| {scenario.name}: {scenario.what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _coverage_cell(row: CoverageRow | None) -> str:
    if row is None:
        return ""
    absent = f" [{_number(row.absent)}]" if row.absent > 0 else ""
    return f"{_number(row.rate)}{_MARKS[row.word]}{absent}"


def _shapes_table(rows: Sequence[Mapping[str, Any]]) -> str:
    labels = sorted({label for row in rows for label in row["labels"]})
    lines = [
        "`right`: the planted shape by its name, and `inactive` without one. `wrong`: another name, or `other_shape`; "
        "without a shape, anything but `inactive`.",
        "",
        f"| planted | V | items | n | right | wrong | {' | '.join(labels)} |",
        f"|---|---|---|---|---|---|{'---|' * len(labels)}",
    ]
    for row in sorted(rows, key=lambda row: row["n_items"]):
        counts, n = row["labels"], row["replicates"]
        shares = [counts.get(label, 0) / n for label in labels]
        size = f" {row['size']:g}" if row["size"] else ""
        cells = " | ".join(_number(value) if value else "" for value in shares)
        name = f"{row['shape'].replace('_', ' ')}{size}"
        right, wrong = right_and_wrong(row)
        lines.append(
            f"| {name} | {_number(row['v'])} | {row['n_items']} | {n} | {_number(right / n)} | {_number(wrong / n)} | "
            f"{cells} |"
        )
    return "\n".join(lines)


def _detectable_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "Computed for cells without bias; then the median is planted in new cells. `power` is how often the slot "
        "relabelling of accuracy finds it; it should be what the last column says.",
        "",
        "| cells | n | median | 10% to 90% | none | planted in | power | 95% Wilson | meant |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        start = f"| {row['what']} | {row['cells']} "
        if row["rejected"] is None:
            lines.append(f"{start}| {_number(row['median'])} |  | {row['without']} |  |  |  | {row['power']:g} |")
            continue
        rate, low, high = share(row["rejected"], row["replicates"])
        lines.append(
            f"{start}| {_number(row['median'])} | {_number(row['low'])} to {_number(row['high'])} | {row['without']} | "
            f"{row['replicates']} | {_number(rate)} | {low:.3f} to {high:.3f} | {row['power']:g} |"
        )
    return "\n".join(lines)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}".removeprefix("0") if value >= 0 else f"-{-value:.3f}".replace("-0.", "-.")
