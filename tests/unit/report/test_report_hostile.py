"""Text of models, items and people is printed, never obeyed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from page import Page
from sample import make_sample, sources_of

from counterbalance.config import Study
from counterbalance.errors import InputError
from counterbalance.report.build import Report, build_report
from counterbalance.report.sources import Sources

HOSTILE = '"\'></td></pre></svg></style></title><script>alert(1)</script><img src=x onerror=alert(2)> " onload=" '
TRICKS = "{{ 7*7 }} {% raw %} $\\frac{1}$ &amp; ]]> <!-- \u202e\u2066 \u200b \ufeff "


def hostile(text: str) -> str:
    return f"{HOSTILE}{TRICKS}{text}"


def make(root: Path, text: Callable[[str], str] = str) -> Study:
    return make_sample(root, models=["smollm2"], subsets=["copying"], text=text)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return sources_of(make(tmp_path_factory.mktemp("hostile"), hostile))


@pytest.fixture(scope="module")
def attacked_report(attacked: Sources) -> Report:
    return build_report(attacked)


def test_hostile_text_changes_no_element_and_no_attribute(attacked_report: Report, small: Sources) -> None:
    assert Page(attacked_report.html.decode()).root.shape == Page(build_report(small).html.decode()).root.shape


def test_it_is_printed_as_text(attacked_report: Report) -> None:
    html = attacked_report.html.decode()
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "{{ 7*7 }}" in html
    assert "$\\frac{1}$" in html


def test_characters_that_reorder_or_hide_are_spelled_out(attacked_report: Report) -> None:
    text = attacked_report.html.decode()
    assert not set(text) & set("\u202e\u2066\u200b\ufeff")
    assert "⟨U+202E⟩⟨U+2066⟩" in text


def test_figures_escape_it_as_well(attacked_report: Report) -> None:
    for name, data in attacked_report.figures.items():
        if name.endswith(".svg"):
            assert b"<script" not in data
            assert "\u202e" not in data.decode()
            Page(data.decode().partition("?>")[2])


def test_a_hostile_quantity_name_is_printed_too(small: Sources) -> None:
    key = ("letters", "smollm2", "copying")
    number = replace(small.cells[key]["accuracy"], quantity=HOSTILE, method=HOSTILE, status=HOSTILE, reason=HOSTILE)
    odd = replace(small.cells[key]["verdict"], label=HOSTILE)
    cells = {**small.cells, key: {**small.cells[key], HOSTILE: number, "verdict": odd}}
    html = build_report(replace(small, cells=cells)).html.decode()
    Page(html)
    assert "<script" not in html
    assert "<img" not in html


def test_control_characters_in_a_reply_are_shown(small: Sources) -> None:
    example = small.examples["letters"]
    ((model, reply, outcome),) = example.replies
    odd = replace(example, replies=[(model, {**reply, "text": "A\x1b[2J\x00"}, outcome)])
    html = build_report(replace(small, examples={**small.examples, "letters": odd})).html.decode()
    assert "A⟨U+001B⟩[2J⟨U+0000⟩" in html


def test_a_cell_that_the_study_does_not_have_is_refused(small: Sources, tmp_path: Path) -> None:
    study = make(tmp_path)
    config = study.config.model_copy(update={"experiments": study.config.experiments[:1]})
    with pytest.raises(InputError, match=r"cell logprobs/smollm2/copying is not in sample\.yaml"):
        sources_of(replace(study, config=config))
