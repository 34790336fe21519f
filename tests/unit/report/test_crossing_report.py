"""The crossing's part of the page: every number that it shows is one of the table, and nothing is hidden."""

import re

import pytest
from crossing_cases import finish, make_study
from page import Page

from counterbalance.designs.crossing.conditions import CONDITIONS
from counterbalance.prereg.record import read_chain
from counterbalance.report.build import build_report
from counterbalance.report.crossing.figures import axis_limit
from counterbalance.report.crossing.words import CHIPS, VERDICTS, headline
from counterbalance.report.sources import read_sources
from counterbalance.report.text import signed

VARIED = {"vendor": "simulated", "distractor_sd": 0.3, "item_slot_sd": 0.3}
FIRST = {"id": "first", **VARIED, "seed": 3, "slot_bonus": [1.0, 0.0]}
FAIR = {"id": "fair", **VARIED, "seed": 4, "slot_bonus": [0.0], "refusal_rate": 0.15}
CONTRASTS = {
    "contrasts": [
        {"id": "cue", "expression": "T1c.serial - T1.serial", "status": "inferential", "family": "A"},
        {"id": "both", "expression": "mean(T1.serial, T3.serial)", "status": "post hoc"},
    ]
}


def report_of(study):
    sources = read_sources(study, read_chain(study.layout))
    return sources, build_report(sources)


@pytest.fixture(scope="module")
def nats(tmp_path_factory):
    study = make_study(
        tmp_path_factory.mktemp("nats") / ".",
        items=11,
        models=(FIRST, FAIR),
        contrasts=CONTRASTS,
        read={"kind": "logprob"},
    )
    return report_of(finish(study))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    noisy = {**FIRST, "call_noise": 1.0}
    conditions = [{"header": "neutral", "body": "verbatim", "cues": cues} for cues in (0, 2)]
    study = make_study(
        tmp_path_factory.mktemp("written"),
        items=8,
        models=(noisy,),
        read={"kind": "generate"},
        crossing={"conditions": conditions},
    )
    return report_of(finish(study))


def test_the_page_is_whole_and_loads_nothing(nats) -> None:
    html = nats[1].html.decode()
    page = Page(html)
    assert not re.search(r"(?:src|href)=\"https?:", html)
    ids = [element.attributes["id"] for element in page.root.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    targets = [e.attributes["href"][1:] for e in page.root.all() if e.attributes.get("href", "").startswith("#")]
    assert set(targets) <= set(ids)


def test_every_serial_effect_and_contrast_is_shown_as_in_the_table(nats) -> None:
    sources, report = nats
    page = Page(report.html.decode())
    cards = {e.attributes["id"]: e for e in page.root.find("details") if e.attributes.get("id", "").startswith("cell-")}
    assert len(cards) == 2
    for (experiment, model, subset), numbers in sources.cells.items():
        words = cards[f"cell-{experiment}.{model}.{subset}"].words
        for name in [*(f"serial.{c}" for c in CONDITIONS), "serial.T1@all", "token.T2", "contrast.both"]:
            number = numbers[name]
            assert number.estimate is not None
            assert signed(number.estimate, 3) in words
            assert f"[{signed(number.low, 3)}, {signed(number.high, 3)}]" in words


def test_a_planted_bonus_of_the_first_slot_reads_as_primacy(nats) -> None:
    sources, report = nats
    numbers = sources.cells["notes", "first", "doors"]
    # The first block gains 1 nat in all cells, so e is 1 lower where A is printed first and 1 higher where B is:
    # serial is -1, and role and order are 0. Each item's own bonus of either place has SD 0.3.
    assert numbers["serial.T1"].estimate == pytest.approx(-1, abs=4 * 0.3 * (2 / 11) ** 0.5)
    assert numbers["role.T1"].estimate == pytest.approx(0, abs=1e-9)
    assert numbers["verdict"].label == "primacy"
    card = next(e for e in Page(report.html.decode()).root.find("details") if "first" in e.attributes.get("id", ""))
    assert "Primacy" in card.words


def test_what_is_incomplete_is_listed_with_its_reason(nats) -> None:
    sources, report = nats
    refused = sources.cells["notes", "fair", "doors"]["status.refused"].estimate
    assert 0 < refused < 0.5
    page = Page(report.html.decode())
    card = next(e for e in page.root.find("details") if e.attributes.get("id") == "cell-notes.fair.doors")
    assert re.search(r"T\d\w?, incomplete door\d\d \(\d refused of [48] calls\)", card.words)
    assert "refused" in page.root.words


def test_figures_are_files_with_words(nats) -> None:
    sources, report = nats
    names = {name for name in report.figures if name.endswith(".svg")}
    assert {
        f"notes.{model}.doors.{kind}.svg" for model in ("first", "fair") for kind in ("forest", "framing", "items")
    } < names
    assert {"hero.svg", "hero.png"} <= set(report.figures)
    forest = report.figures["notes.first.doors.forest.svg"].decode()
    assert "T5b" in forest
    serial = sources.cells["notes", "first", "doors"]["serial.T1"].estimate
    assert f"T1 {signed(serial, 3)} [" in forest


def test_the_same_tables_give_the_same_bytes(nats) -> None:
    sources, report = nats
    again = build_report(sources)
    assert (again.html, again.figures) == (report.html, report.figures)


def test_probability_is_labelled_wherever_it_is_shown(written) -> None:
    words = Page(written[1].html.decode()).root.words
    assert "On the scale of probability" in words
    assert "Half-effects on the kept items, probability" in words
    assert "on the scale of probability" in words


def test_a_study_without_contrasts_has_no_table_of_them(written) -> None:
    assert "Planned contrasts" not in [e.words for e in Page(written[1].html.decode()).root.find("h4")]


def test_words_of_verdicts() -> None:
    assert list(CHIPS.values()) == list(VERDICTS.values())
    assert headline(["primacy"]) == "The one cell leans to the first block."
    assert headline(["primacy", "undecided", "primacy"]) == "Of 3 cells, 2 lean to the first block; 1 is undecided."
    assert headline(["degenerate"]) == "The one cell could not be measured."


@pytest.mark.parametrize(("reach", "limit"), [(0.0, 0.1), (0.18, 0.2), (0.19, 0.3), (4.0, 5.0), (80.0, 86.4)])
def test_an_axis_holds_what_is_drawn(reach, limit) -> None:
    assert axis_limit([-reach]) == pytest.approx(limit)
