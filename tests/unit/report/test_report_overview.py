import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page import Element, Page
from sample import make_sample, sources_of

from counterbalance.report.build import Report, build_report
from counterbalance.report.mcq.figures.goldilocks import Point, draw_goldilocks, v_limit
from counterbalance.report.mcq.figures.labels import Label, place_labels
from counterbalance.report.mcq.kinds import NO_SHAPE, PICKS_ONLY, SHAPES, kind_of
from counterbalance.report.sources import Sources
from counterbalance.report.theme import SENTINEL
from counterbalance.stats.shape import ShapeLabel

KEY = ("letters", "smollm2", "copying")


@pytest.fixture(scope="module")
def answer(report: Report) -> Element:
    return main_of(report.html).find("section")[0]


def main_of(html: bytes) -> Element:
    (found,) = Page(html.decode()).root.find("main")
    return found


def region(root: Element, label: str) -> Element:
    (found,) = [entry for entry in root.find("div") if entry.attributes.get("aria-label") == label]
    return found


def plot_of(root: Element) -> Element:
    (found,) = [entry for entry in root.find("svg") if entry.attributes.get("class") == "live"]
    return found


def test_all_cells_are_summed_up_in_words_before_anything_else(answer: Element) -> None:
    words = answer.words
    counted = (
        "4 of 12 cells answer by position; 4 show no bias and would have shown V ≥ .10 with 80% power; 2 could not "
        "have shown it either way; 2 have nothing to test."
    )
    assert words.startswith(f"The answer {counted}")
    # The four sizes are .152, .152, .584 and .584.
    assert "Where there is a bias, V goes from .152 to .584, its median being .368." in words
    assert "Of what kind: falls from slot to slot (2), first slot higher (2)." in words
    # Mean accuracies, each twice: .4725 and .27 low; .6825 and .795 middle; .955 high; the degenerate have none.
    assert (
        "A bias is seen in 2 of 4 cells of low accuracy (below 60%), 2 of 4 cells of middle accuracy (60% to 95%) and "
        "0 of 2 cells of high accuracy (95% or more)."
    ) in words


def test_the_list_has_every_cell_those_with_most_bias_first(answer: Element) -> None:
    rows = region(answer, "All cells in order").find("tr")[1:]
    verdicts = [row.attributes["class"] for row in rows]
    assert verdicts == [*["bias"] * 4, *["no_bias_seen"] * 4, *["not_measurable"] * 2, *["degenerate"] * 2]
    assert [row.find("th")[0].words.split()[0] for row in rows] == [str(number) for number in range(1, 13)]
    first = rows[0].words
    assert first.startswith("1 smollm2 copying letters Bias .584 [.524, .644]")
    assert re.search(r"first slot higher accuracy <\.001 picks <\.001 \.076 \.47[23] low$", first)
    assert "would show V ≥ .076" in first
    assert rows[-1].find("td")[0].words == "Degenerate"


def test_bars_of_the_list_share_one_axis_with_the_aim_of_the_plan(answer: Element) -> None:
    table = region(answer, "All cells in order")
    assert "0 to .8" in table.words
    marks = table.find("svg")[0].children
    places = {entry.attributes.get("class", entry.tag): entry.attributes for entry in marks}
    # .10, .584, its interval, and .076, on an axis to .8.
    assert places["aim"]["x1"] == "12.5%"
    assert places["circle"]["cx"] == "73.0%"
    assert (places["ends"]["x1"], places["ends"]["x2"]) == ("65.5%", "80.5%")
    assert places["could"]["x1"] == "9.5%"


def test_the_grid_says_of_nulls_what_they_would_have_shown(answer: Element) -> None:
    grid = region(answer, "All cells of letters")
    assert [head.words for head in grid.find("tr")[0].find("th")][-1] == "sums"
    entries = [td.words for td in grid.find("td")]
    assert any(words.startswith("No bias seen V .008 [.000, .028] sees V ≥ .058") for words in entries)
    assert any("sees only V ≥ .213" in words for words in entries)
    assert any("first slot higher" in words for words in entries)


def test_every_cell_of_the_plot_can_be_pointed_at_and_leads_to_its_profile(answer: Element, report: Report) -> None:
    plot = plot_of(answer)
    links = plot.find("a")
    assert len(links) == 10
    assert "planted · copying · letters" in answer.words[answer.words.index("Not drawn") :]
    folded = [card for card in main_of(report.html).find("details") if card.attributes.get("class") == "cell"]
    inside = {entry.attributes.get("id") for card in folded for entry in card.all() if entry is not card}
    for link in links:
        # A browser opens what is folded only for a target inside of it.
        assert link.attributes["href"].removeprefix("#") in inside
        assert re.match(r"\d+\. \w+ · \w+ · \w+: [A-Z]", link.find("title")[0].words)
    words = links[-1].find("title")[0].words
    assert words == "1. smollm2 · copying · letters: Bias, accuracy 47%, V .584 [.524, .644], would show V ≥ .076"


def test_the_plot_stands_alone_too(report: Report) -> None:
    file = report.figures["goldilocks.svg"].decode()
    assert file.startswith("<?xml")
    assert "<a " not in file
    assert "var(" not in file
    assert not re.search("#0[0-9a-f]{2}0ab", file)
    assert ">middle<" in file


def test_a_grid_with_many_subsets_is_turned(tmp_path: Path) -> None:
    subsets = [f"subset{n}" for n in range(9)]
    study = make_sample(tmp_path, subsets=subsets, only={"verdict", "V.corrected", "status.ok"}.__contains__)
    main = main_of(build_report(sources_of(study)).html)
    head, *rows = region(main, "All cells of letters").find("tr")
    assert {cell.words for cell in head.find("th")} == {"letters", "smollm2", "planted"}
    assert {row.find("th")[0].words for row in rows} == set(subsets)


def test_a_cell_that_its_scout_left_out_says_so(small: Sources) -> None:
    reason = "not asked, as the frozen plan foresees: accuracy above the rule's limit"
    verdict = replace(small.cells[KEY]["verdict"], label="not_asked", status="not_asked", reason=reason)
    cells = {**small.cells, KEY: {"verdict": verdict}}
    main = main_of(build_report(replace(small, cells=cells)).html)
    assert "1 was not asked after its scout" in main.words
    assert "Not asked: left out after its scout, by the rule of the frozen plan" in main.words
    assert "Answers by position: not asked. Not asked, as the frozen plan foresees" in main.words
    # What was never asked is not called missing, cell by cell and number by number.
    assert "Not asked, and so without numbers" in main.words
    assert "not computed for this cell" not in main.words
    assert "left out after its scout" in region(main, "All cells of letters").words
    assert "Not asked" not in main_of(build_report(small).html).words


def test_one_experiment_is_summed_up_once(tmp_path: Path) -> None:
    study = make_sample(tmp_path, models=["smollm2"])
    config = study.config.model_copy(update={"experiments": study.config.experiments[:1]})
    main = main_of(build_report(replace(sources_of(study), study=replace(study, config=config))).html)
    assert main.words.count("1 of 3 cells answers by position") == 1


def test_every_shape_has_words(small: Sources) -> None:
    assert set(get_args(ShapeLabel)) - {"inactive"} <= SHAPES.keys()
    analysis, numbers = small.study.config.analysis, dict(small.cells[KEY])
    assert kind_of(numbers, analysis) == "first slot higher"
    numbers["shape.label"] = replace(numbers["shape.label"], label="inactive")
    assert kind_of(numbers, analysis) == NO_SHAPE
    numbers["relabelling.accuracy"] = replace(numbers["relabelling.accuracy"], p_adjusted=analysis.alpha)
    assert kind_of(numbers, analysis) == PICKS_ONLY


def point(accuracy: float, v: float, verdict: str = "bias", number: int = 1) -> Point:
    return Point(number, "#cell", "words", verdict, accuracy, v, None, None, 0.09)


def test_bands_without_room_on_the_axis_are_left_out() -> None:
    low = draw_goldilocks([point(0.3, 0.1)], (0.6, 0.95), 0.1)
    high = draw_goldilocks([point(0.97, 0.1)], (0.6, 0.95), 0.1)
    assert [f">{name}<" in low for name in ("low", "middle", "high")] == [True, True, True]
    assert [f">{name}<" in high for name in ("low", "middle", "high")] == [False, True, True]
    assert ">20%<" in low
    assert ">90%<" in high


def test_verdicts_differ_in_form_and_not_in_colour_alone() -> None:
    drawn = {
        verdict: draw_goldilocks([point(0.8, 0.1, verdict)], (0.6, 0.95), 0.1).partition("<a ")[2]
        for verdict in ("bias", "no_bias_seen", "not_measurable", "degenerate")
    }
    assert f"fill: {SENTINEL.bias}" in drawn["bias"]
    for verdict in ("no_bias_seen", "not_measurable", "degenerate"):
        assert f"fill: {SENTINEL.paper}" in drawn[verdict]
    assert "stroke-dasharray: 1.6" in drawn["not_measurable"]
    assert "rotate(45deg)" in drawn["degenerate"]


def test_the_axis_of_v_holds_what_is_drawn() -> None:
    assert v_limit([]) == 0.2
    assert v_limit([point(0.5, 0.19)]) == 0.3
    assert v_limit([replace(point(0.5, 0.1), high=0.95)]) == 1.0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 320)), max_size=30))
def test_numbers_lie_on_no_mark_and_on_no_other_number(marks: list[tuple[float, float]]) -> None:
    texts = [str(n) for n in range(1, len(marks) + 1)]
    labels = place_labels(marks, texts, narrow=300, wide=640)
    for width, shown in ((300, [label is not None and not label.roomy for label in labels]), (640, None)):
        boxes = [box(mark, label, text, width) for mark, label, text in shown_labels(marks, labels, texts, shown)]
        dots = [(x * width - 4, y - 4, x * width + 4, y + 4) for x, y in marks]
        taken: list[tuple[float, float, float, float]] = []
        for one in boxes:
            assert not any(overlap(one, other) for other in [*taken, *dots])
            taken.append(one)


def shown_labels(
    marks: Sequence[tuple[float, float]],
    labels: Sequence[Label | None],
    texts: Sequence[str],
    shown: Sequence[bool] | None,
) -> list[tuple[tuple[float, float], Label, str]]:
    every = shown or [True] * len(marks)
    return [
        (mark, label, text)
        for mark, label, text, wanted in zip(marks, labels, texts, every, strict=True)
        if label is not None and wanted
    ]


def box(mark: tuple[float, float], label: Label, text: str, width: float) -> tuple[float, float, float, float]:
    """Digits of 10.5 pixels are less than 6 wide and 8 high."""
    x, y = mark[0] * width + label.dx, mark[1] + label.dy
    return (x - 3 * len(text), y - 8, x + 3 * len(text), y)


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
