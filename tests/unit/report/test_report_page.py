import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest
from page import Element, Page
from sample import make_sample, sources_of

from counterbalance.config.models import DecideRead
from counterbalance.designs.mcq.quantities import describe
from counterbalance.report import render, sections
from counterbalance.report.build import Report, build_report
from counterbalance.report.mcq.glossary import GLOSSARY
from counterbalance.report.pictures import Cover, Picture
from counterbalance.report.sources import Sources


@pytest.fixture(scope="session")
def root(report: Report) -> Element:
    return Page(report.html.decode()).root


def one(root: Element, tag: str) -> Element:
    (found,) = root.find(tag)
    return found


def table_of(root: Element, label: str) -> Element:
    (region,) = [entry for entry in root.find("div") if entry.attributes.get("aria-label") == label]
    return one(region, "table")


def card_of(root: Element, anchor: str) -> Element:
    cards = [entry for entry in root.find("details") if entry.attributes.get("class") == "cell"]
    (found,) = [card for card in cards if any(e.attributes.get("id") == anchor for e in card.all())]
    return found


def test_the_page_is_balanced_and_has_its_landmarks(root: Element) -> None:
    for tag in ("head", "header", "nav", "main", "footer", "h1"):
        one(root, tag)
    assert one(one(root, "head"), "title").words == "Does a small model choose by position?"
    assert one(root, "html").attributes["lang"] == "en"


def test_it_loads_nothing_and_runs_nothing(report: Report, root: Element) -> None:
    html = report.html.decode()
    assert not root.find("script", "iframe", "object", "embed", "base", "form", "img")
    for element in root.all():
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            if name in ("href", "src", "action", "data", "xlink:href", "srcset", "poster"):
                assert value.startswith("#") or value == "data:,"
    assert "://" not in html
    assert not re.findall(r"url\((?!#)", html)
    assert "@import" not in html
    policy = next(entry.attributes["content"] for entry in root.find("meta") if "http-equiv" in entry.attributes)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "script" not in policy


def test_every_id_is_unique_and_every_reference_leads_somewhere(root: Element) -> None:
    ids = [entry.attributes["id"] for entry in root.all() if "id" in entry.attributes]
    assert len(ids) == len(set(ids))
    for entry in root.all():
        wanted = entry.attributes.get("aria-labelledby", "").split()
        if entry.attributes.get("href", "").startswith("#"):
            wanted.append(entry.attributes["href"][1:])
        assert set(wanted) <= set(ids), entry


def test_headings_step_down_one_level_at_a_time(root: Element) -> None:
    levels = [int(entry.tag[1]) for entry in root.find("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_every_picture_has_words(root: Element) -> None:
    pictures = root.find("svg")
    assert len(pictures) > 20
    for picture in pictures:
        # What is inside an image cannot be reached; the plot of all cells has links.
        assert picture.attributes["role"] == ("group" if picture.find("a") else "img")
        assert picture.children[0].tag == "title"
        assert picture.children[0].words
        assert picture.children[0].attributes["id"] in picture.attributes["aria-labelledby"].split()


def test_every_table_can_be_scrolled_alone_and_by_keyboard(root: Element) -> None:
    regions = [entry for entry in root.find("div") if entry.attributes.get("role") == "region"]
    assert len([table for region in regions for table in region.find("table")]) == len(root.find("table"))
    assert all(region.attributes["tabindex"] == "0" and region.attributes["aria-label"] for region in regions)
    for head in root.find("th"):
        assert head.attributes["scope"] in ("col", "row", "colgroup")


def test_the_answer_comes_first_and_covers_every_cell(root: Element) -> None:
    answer = one(root, "main").find("section")[0]
    assert "2 of 6 cells answer by position; 2 show no bias" in answer.words
    for cell in ("smollm2 · copying", "smollm2 · capitals", "planted · sums"):
        assert cell in answer.words
    assert "Answers by position: yes. Picks slot A in 71% of its answers (an even split would be 25%)." in answer.words
    assert "V .584 [.524, .644]; Holm p < .001 on accuracy and p < .001 on picks." in answer.words.replace(
        "\u00a0", " "
    )


def test_verdicts_are_told_by_words_not_by_colour_alone(root: Element) -> None:
    entries = [td for td in table_of(root, "All cells of letters").find("td") if td.attributes]
    words = {
        "bias": "Bias",
        "no_bias_seen": "No bias seen",
        "not_measurable": "Not measurable",
        "degenerate": "Degenerate",
    }
    assert len(entries) == 6
    for entry in entries:
        assert words[entry.attributes["class"]] in entry.words


def test_both_methods_stand_side_by_side(root: Element) -> None:
    table = table_of(root, "Published method beside ours: letters")
    row = table.find("tr")[2].words
    # V of these accuracies by hand: their standard deviation over sqrt(m (1 - m)), m = .4725.
    assert row.startswith("smollm2 copying 357.81 p <.001 .546 [.521, .571] Bergsma .526 −.900 v0.1 processing load")
    assert "v0.2 processing load .584 [.524, .644] p <.001 Holm <.001 recentred <.001" in row


def test_predictions_are_shown_with_their_verdicts(root: Element) -> None:
    rows = table_of(root, "Predictions and their verdicts").find("tr")[1:]
    assert [row.find("span")[0].words for row in rows] == [
        "Confirmed",
        "Falsified",
        "Not evaluable",
        "Confirmed",
        "Falsified",
    ]
    assert "picks.slot_1 estimate at least 0.5 .710" in rows[0].words
    # The statistic of a test is not what a rule on p is about.
    assert "812" not in rows[1].words
    assert "5 predictions: 2 confirmed, 2 falsified and 1 not evaluable." in one(root, "main").words
    assert "as record 2 has them, which was frozen when 144 replies had been bought" in one(root, "main").words


def test_failures_are_shown_by_slot(root: Element) -> None:
    table = table_of(root, "Replies without an answer: letters")
    assert table.find("tr")[1].words == "planted · capitals 95% refused 5% 0% 2% 6% 11%"
    assert "In 5 of 6 cells every reply was read as an answer." in one(root, "main").words


def test_the_example_is_the_prompt_as_sent(root: Element) -> None:
    prompts = [entry.text for entry in root.find("pre") if entry.attributes["class"] == "prompt"]
    text = "Which of these is the capital of Norway?\n\nA. Bergen\nB. Oslo\nC. Turku\nD. Malmö\n\nAnswer:"
    assert prompts == ["Answer with one letter.", text, text]
    assert "**Answer: A** read as A, wrong" in one(root, "main").words
    assert "log-probabilities: A −0.40, B −1.30, C −2.90, D −3.40" in one(root, "main").words


def test_the_chain_of_frozen_records_is_shown(root: Element, sources: Sources) -> None:
    rows = table_of(root, "Chain of frozen records").find("tr")[1:]
    assert [sources.chain[1].sha256 in rows[0].words, sources.chain[0].sha256 in rows[1].words] == [True, True]
    assert "144 calls item 12 had two right answers" in rows[0].words
    words = one(root, "main").words
    assert sources.study.sha256 in words
    assert "Code differs from the frozen one in score" in words
    assert "counterbalance verify results/sample" in words


def test_every_artifact_is_listed_with_its_hash(root: Element, sources: Sources) -> None:
    names = table_of(root, "Artifacts and hashes").words
    records = sorted(sources.study.layout.results.rglob("*.parquet.record.json"))
    assert len(records) == 50
    for path in records:
        assert path.name.removesuffix(".record.json") in names


def test_a_simulated_respondent_is_announced(root: Element) -> None:
    assert "Simulated respondent: not evidence about a real model. planted" in one(root, "header").words


def test_an_exploratory_study_is_stamped(tmp_path: Path) -> None:
    study = make_sample(tmp_path, models=["smollm2"], subsets=["copying"], exploratory=True)
    header = one(Page(build_report(sources_of(study)).html.decode()).root, "header").words
    assert "Exploratory: no predictions were registered" in header
    assert "Preregistered" not in header
    assert "Simulated" not in header


def test_degenerate_cells_give_reasons_and_no_blanks(root: Element) -> None:
    reason = "no item's answers change with the slot, so there is nothing to test"
    card = card_of(root, "cell-letters.planted.copying")
    assert "Degenerate" in card.words
    assert reason in card.words
    assert "not computed for this cell" in card.words
    assert "nan" not in one(root, "main").words.lower().split()
    assert "None" not in one(root, "main").words.split()
    for cell in table_of(root, "Published method beside ours: letters").find("td")[1:]:
        assert cell.words


def test_few_cells_are_open_and_many_are_folded_below_the_matrix(tmp_path: Path, root: Element) -> None:
    cards = [entry for entry in root.find("details") if entry.attributes.get("class") == "cell"]
    assert len(cards) == 12
    assert all("open" in card.attributes for card in cards)
    study = make_sample(tmp_path, models=["a1", "b1", "c1"], only={"verdict", "V.corrected"}.__contains__)
    page = Page(build_report(sources_of(study)).html.decode()).root
    cards = [entry for entry in page.find("details") if entry.attributes.get("class") == "cell"]
    assert len(cards) == 18
    assert not any("open" in card.attributes for card in cards)
    answer = one(page, "main").find("section")[0].words
    assert answer.index("3 of 9 cells answer by position") < answer.index("All 9 cells in words")
    assert len(table_of(page, "All cells of letters").find("a")) == 9


@pytest.mark.parametrize(
    "kept",
    [
        (),
        ("verdict",),
        ("picks",),
        ("accuracy", "V.corrected"),
        ("status",),
        ("slot_bonus",),
        ("detectable_V", "verdict"),
    ],
)
def test_any_quantity_may_be_missing(small: Sources, kept: tuple[str, ...]) -> None:
    cells = {
        key: {name: number for name, number in numbers.items() if name.startswith(kept) and kept}
        for key, numbers in small.cells.items()
    }
    words = one(Page(build_report(replace(small, cells=cells)).html.decode()).root, "main").words
    assert "not computed for this cell" in words


def test_items_with_other_numbers_of_options_are_listed_apart(small: Sources) -> None:
    key = ("letters", "smollm2", "copying")
    extra = replace(small.cells[key]["accuracy.slot_1"], quantity="accuracy.slot_7@k=7")
    cells = {**small.cells, key: {**small.cells[key], "accuracy.slot_7@k=7": extra}}
    page = Page(build_report(replace(small, cells=cells, option_counts={"copying": [4, 7]})).html.decode()).root
    rows = next(entry for entry in page.find("table") if entry.words.startswith("Slot Accuracy")).find("tr")
    assert len(rows) == 5
    assert "accuracy.slot_7@k=7" in table_of(page, "All numbers of letters · smollm2 · copying").words
    assert "an even split" not in one(page, "main").words
    assert "4 or 7" in table_of(page, "Data sets").words


def test_the_same_artifacts_give_the_same_bytes(small: Sources) -> None:
    first, second = build_report(small), build_report(sources_of(small.study))
    assert first.html == second.html
    assert dict(first.figures) == dict(second.figures)


def test_neither_hash_seed_nor_clock_nor_locale_changes_a_byte(small: Sources) -> None:
    program = (
        "import sys, hashlib; from counterbalance.config import load_study\n"
        "from counterbalance.prereg.record import read_chain\n"
        "from counterbalance.report.build import build_report; from counterbalance.report.sources import read_sources\n"
        "study = load_study(sys.argv[1]); made = build_report(read_sources(study, read_chain(study.layout)))\n"
        "print(hashlib.sha256(made.html + b''.join(made.figures.values())).hexdigest())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"}
    environment |= {"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONUTF8": "1", "SOURCE_DATE_EPOCH": "1"}
    # Without `site`: under LC_ALL=C Python 3.11 cannot read a .pth file that names a folder with an accent.
    command = [sys.executable, "-S", "-c", program, str(small.study.path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    made = build_report(small)
    assert done.stdout.strip() == hashlib.sha256(made.html + b"".join(made.figures.values())).hexdigest()


def test_figures_stand_alone_too(report: Report) -> None:
    assert {"hero.svg", "hero.png", "letters.smollm2.copying.accuracy.svg"} <= report.figures.keys()
    assert "logprobs.smollm2.capitals.slot_bonus.svg" in report.figures
    assert not any("letters" in name and "slot_bonus" in name for name in report.figures)
    hero = unescape(report.figures["hero.svg"].decode())
    assert "planted, letters: copying Degenerate, capitals Bias, V .152" in hero
    assert ">letters, simulated<" in hero


def test_the_glossary_knows_only_quantities_that_exist() -> None:
    named = [name for _, names, _ in GLOSSARY for name in names.split(", ") if name and name != "p_adjusted"]
    assert len(named) > 15
    for name in named:
        assert describe(name.replace("slot_J", "slot_1"))


KEY = ("letters", "smollm2", "copying")
REASON = "the calls were answered by more than one model: 48 by m@1, 24 by m@2; each part is estimated alone"


def changed(sources: Sources, **numbers: object) -> Page:
    cells = {**sources.cells, KEY: {**sources.cells[KEY], **numbers}}
    return Page(build_report(replace(sources, cells=cells)).html.decode())


def test_a_mixed_cell_says_so_at_its_top_and_shows_its_parts(small: Sources) -> None:
    unfit = {"status": "not_measurable", "reason": REASON, "p": None, "p_adjusted": None, "label": None}
    numbers = {name: replace(number, **unfit) for name, number in small.cells[KEY].items()}
    numbers["verdict"] = replace(numbers["verdict"], label="not_measurable")
    numbers["models_returned"] = replace(numbers["accuracy"], quantity="models_returned", estimate=2.0)
    for model in ("m@1", "m@2"):
        for name in ("accuracy", "V.corrected", "status.ok", "relabelling.accuracy", "relabelling.picks"):
            part = replace(small.cells[KEY][name], quantity=f"{name}@model={model}", n_calls=48, p_adjusted=None)
            numbers[part.quantity] = replace(part, estimate=0.6) if name == "accuracy" else part
    root = changed(small, **numbers).root
    card = card_of(root, "cell-letters.smollm2.copying")
    banner, *_ = card.find("p")
    assert banner.attributes["class"] == "banner"
    assert "48 by m@1, 24 by m@2" in banner.words
    rows = table_of(root, "By model that answered: smollm2, copying").find("tr")
    assert [row.words for row in rows[1:]] == [
        f"m@{n} 48 .600 [.453, .493] .584 [.524, .644] <.001 <.001" for n in (1, 2)
    ]
    # Said at the top; the facts below do not say it again one by one, only why two of them are missing.
    assert [entry.words for entry in card.find("dd") if REASON in entry.words] == [
        f"Accuracy band, Shape of the effect: {REASON}"
    ]
    assert "more than one model answered" in table_of(root, "All cells of letters").words
    assert "The one cell was answered by more than one model." in one(root, "main").words


def test_the_matrix_shows_a_constant_v_and_not_only_why_it_is_constant(small: Sources) -> None:
    constant = {"estimate": 1.0, "low": None, "high": None, "level": None, "status": "degenerate"}
    v = replace(small.cells[KEY]["V.corrected"], **constant, reason="all resamples give the same V")
    root = changed(small, **{"V.corrected": v}).root
    words = table_of(root, "All cells of letters").words
    assert "V 1.000" in words
    assert "no interval: V is constant" in words
    assert "all resamples give the same V" not in words
    assert "all resamples give the same V" in one(root, "main").words


def test_numbers_that_not_every_read_gives_are_shown_where_they_are(small: Sources) -> None:
    assert "Items whose option changes" not in changed(small).root.words
    v = small.cells[KEY]["V.published"]
    numbers = {
        "flip_rate": replace(v, quantity="flip_rate", estimate=0.66, low=0.5, high=0.8),
        "V.published.question": replace(v, quantity="V.published.question", low=0.4, high=0.7),
        "shape.support": replace(
            v, quantity="shape.support", estimate=0.83, low=None, high=None, label="last_drop", reason="no probability"
        ),
        "label_prior.slot_2": replace(v, quantity="label_prior.slot_2", estimate=0.41, low=None, high=None),
    }
    root = changed(small, **numbers).root
    card = card_of(root, "cell-letters.smollm2.copying")
    assert "Items whose option changes with the order .660 [.500, .800]" in card.words
    assert "Shape that fits best last slot lower, in 83% of resamples no probability" in card.words
    assert "Prior of the label" in card.words
    assert ".410" in card.words
    assert "by item .546 [.400, .700]" in table_of(root, "Published method beside ours: letters").words


def test_the_floor_is_shown_beside_the_effect_of_order(root: Element) -> None:
    card = card_of(root, "cell-letters.smollm2.copying")
    assert "Disagrees with itself, same order .040 [.010, .070]" in card.words
    assert "with another order in 62%" in card.words


def test_choice_probabilities_are_never_called_log_probabilities(small: Sources) -> None:
    config = small.study.config
    read = DecideRead(kind="decide")
    experiments = [entry.model_copy(update={"read": read}) for entry in config.experiments]
    study = replace(small.study, config=config.model_copy(update={"experiments": experiments}))
    example = small.examples["logprobs"]
    ((model, reply, outcome),) = example.replies
    zero = {"slot_logprobs": [math.log(0.7), math.log(0.3), -4.6, -4.6], "slot_censored": [False, False, True, True]}
    odd = replace(example, replies=[(model, reply, {**outcome, **zero, "rule": "choice_probability"})])
    html = build_report(replace(small, study=study, examples=dict.fromkeys(small.examples, odd))).html.decode()
    words = one(Page(html).root, "main").words
    assert "the vendor's own calibrated choice probability, which is not the log-probability of a token" in words
    assert "the vendor's choice probabilities: A 70%, B 30%, C 0%, D 0%" in words
    assert "Log of the vendor's choice probability, nats" in words
    assert "Log-probability, nats" not in words
    assert "choice probability as the vendor gives it" in words


def test_another_design_registers_its_room_and_the_shell_shows_it(
    small: Sources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @dataclass(frozen=True)
    class Plain:
        id: str
        template: str = "plain.html.j2"
        headline: str = "It is so."
        how: str = "By asking."
        pictures: tuple[Picture, ...] = ()

    def cover(name: str, sources: Sources, found: Sequence[Plain]) -> Cover:
        drawn = sections.room_of(sources.study.config.experiments[0]).cover(name, sources, [])
        return replace(drawn, picture=replace(drawn.picture, name=name, description=" ".join(s.id for s in found)))

    room = sections.Room("plain.html.j2", lambda _, e: Plain(e.id), cover, {"so": "So it is"}, [("Word", "", "Sense.")])
    monkeypatch.setitem(sections._ROOMS, "other", room)
    shutil.copytree(render.TEMPLATES, tmp_path / "report")
    (tmp_path / "report" / "plain.html.j2").write_text(
        "{% macro answer(section) %}<p>{{ section.headline }}</p>{% endmacro %}"
        "{% macro body(section, view) %}<p>body of {{ section.id }}</p>{% endmacro %}"
        "{% macro legend(view) %}<p>legend</p>{% endmacro %}{% macro nulls(view) %}<li>nothing</li>{% endmacro %}"
    )
    monkeypatch.setattr(render, "TEMPLATES", tmp_path / "report")
    render._environment.cache_clear()
    config = small.study.config
    second = config.experiments[1].model_copy(update={"design": "other"})
    study = replace(small.study, config=config.model_copy(update={"experiments": [config.experiments[0], second]}))
    report = build_report(replace(small, study=study))
    render._environment.cache_clear()
    words = one(Page(report.html.decode()).root, "main").words
    for text in ("It is so.", "body of logprobs", "legend", "nothing", "So it is", "Word", "Cell by cell"):
        assert text in words
    assert {"hero.svg", "hero.png", "hero-other.svg", "hero-other.png"} <= report.figures.keys()
