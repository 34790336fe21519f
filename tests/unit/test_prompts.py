"""Prompts: the template's words and the item's texts, byte for byte, and nothing else."""

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterbalance.canonical import canonical_json
from counterbalance.config import Experiment
from counterbalance.errors import ConfigError
from counterbalance.prompts import Example, PromptOption, PromptTemplate, labels_for

TEMPLATE = """\
{{ question }}
{% for option in options %}{{ option.label }}. {{ option.text }}
{% endfor %}Answer:
"""
EXAMPLE = Example("1 + 1?", (PromptOption("A", "2"), PromptOption("B", "3")), "A", "2")


def experiment(read: str = "generate", **prompt: object) -> Experiment:
    return Experiment.model_validate(
        {
            "id": "letters",
            "design": "mcq",
            "datasets": ["sums"],
            "models": ["m"],
            "prompt": {"template": "t.j2", "style": "plain", **prompt},
            "read": {"kind": read},
        }
    )


@pytest.fixture
def template(tmp_path):
    def make(text: str | bytes = TEMPLATE, *, examples=(), read: str = "generate", **prompt: object) -> PromptTemplate:
        path = tmp_path / "t.j2"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return PromptTemplate(path, "config/t.j2", experiment(read, **prompt), examples)

    return make


def test_a_plain_prompt_is_the_rendered_text_without_the_files_last_line_feed(template) -> None:
    rendered = template().render("2 + 2?", ["4", "5"], ["A", "B"])
    assert json.loads(rendered.prompt) == {"text": "2 + 2?\nA. 4\nB. 5\nAnswer:"}
    assert rendered.sha256 == "sha256:" + hashlib.sha256(rendered.prompt.encode()).hexdigest()


def test_a_chat_prompt_is_one_user_message_after_the_system_message(template) -> None:
    user = {"role": "user", "content": "2 + 2?\nA. 4\nB. 5\nAnswer:"}
    assert json.loads(template(style="chat").render("2 + 2?", ["4", "5"], ["A", "B"]).prompt) == {"messages": [user]}
    rendered = template(style="chat", system="Answer {{ question }}.").render("2 + 2?", ["4", "5"], ["A", "B"])
    system = {"role": "system", "content": "Answer {{ question }}."}
    assert json.loads(rendered.prompt) == {"messages": [system, user]}


@pytest.mark.parametrize("text", ["{{ 7*7 }}", "{% for x in y %}", "{# gone #}", 'a < b & "c"', "\\n", "é\u2028☃"])
def test_item_texts_are_data(template, text) -> None:
    prompt = json.loads(template().render(text, [text, "x"], ["A", "B"]).prompt)
    assert prompt["text"] == f"{text}\nA. {text}\nB. x\nAnswer:"


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_the_fast_way_of_writing_equals_canonical_json(tmp_path_factory, text) -> None:
    path = tmp_path_factory.mktemp("t") / "t.j2"
    path.write_text(TEMPLATE, encoding="utf-8")
    made = PromptTemplate(path, "t.j2", experiment(style="chat", system=text)).render(text, ["x", "y"], ["A", "B"])
    assert made.prompt.encode() == canonical_json(json.loads(made.prompt))


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (TEMPLATE.replace("\n", "\r\n"), "q\nA. x\nB. y\nAnswer:"),
        ("\ufeff" + TEMPLATE, "q\nA. x\nB. y\nAnswer:"),
        (TEMPLATE + "\n", "q\nA. x\nB. y\nAnswer:\n"),
        ("{{ question }} {{ options[1].text }} {{ labels | join(' or ') }} ", "q y A or B "),
    ],
)
def test_white_space_is_as_jinja_has_it(template, file, expected) -> None:
    assert json.loads(template(file).render("q", ["x", "y"], ["A", "B"]).prompt)["text"] == expected


def test_solved_examples_are_shown(template) -> None:
    text = "{% for e in examples %}{{ e.question }} {{ e.options[1].text }} {{ e.answer_label }} {{ e.answer_text }}\n"
    made = template(text + "{% endfor %}{{ question }}{{ options[0].text }}", examples=[EXAMPLE])
    assert json.loads(made.render("q", ["x", "y"], ["A", "B"]).prompt)["text"] == "1 + 1? 3 A 2\nqx"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ question }}\n{{ options }}\n{% if %}", r"config/t\.j2 line 3: not a valid template"),
        ("{{ question }}\n{{ options | random }}", r"config/t\.j2 line 2: .*random"),
        ("{{ question }}{{ options }}\n\n{{ anwser }}", r"config/t\.j2 line 3: no variable 'anwser'; there are"),
        ("{{ question }}{{ options }}{{ lipsum() }}", r"line 1: no variable 'lipsum'"),
        ("{{ question }}{{ options }}\n{% include 'other.j2' %}", r"line 2: a template stands alone"),
        ("{% import 'other.j2' as o %}{{ question }}{{ options }}", r"line 1: a template stands alone"),
        ("{% extends 'other.j2' %}", r"line 1: a template stands alone"),
        ("{{ question }}", r"config/t\.j2: never uses `options`, which experiment 'letters' needs"),
        ("{{ options }}", r"never uses `question`"),
        (b"{{ question }}{{ options }}\xe9", r"config/t\.j2: not UTF-8"),
    ],
)  # fmt: skip
def test_a_template_that_cannot_be_right_is_refused_at_once(template, text, expected) -> None:
    with pytest.raises(ConfigError, match=expected):
        template(text)


def test_a_prompt_to_continue_need_not_show_the_options(template) -> None:
    assert json.loads(template("{{ question }}", read="option_text").render("q", ["x"], ["A"]).prompt) == {"text": "q"}


def test_examples_that_the_template_does_not_show_are_refused(template) -> None:
    with pytest.raises(ConfigError, match="never uses `examples`"):
        template(examples=[EXAMPLE])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ question }}\n{{ options[0].texts }}", r"config/t\.j2 line 2: UndefinedError: .*texts"),
        ("{{ question }}\n\n{{ options[7].text }}", r"config/t\.j2 line 3: UndefinedError"),
        ("{{ question }}{{ 1 // 0 }}{{ options }}", r"config/t\.j2 line 1: ZeroDivisionError"),
        ("{{ question }}\n{{ options.__class__.__mro__ }}", r"config/t\.j2 line 2: SecurityError"),
        ("{{ question }}{{ options }}{{ '\\ud800' }}", r"config/t\.j2: UnicodeEncodeError"),
        ("{% if question == options %}x{% endif %}", r"config/t\.j2: renders to nothing"),
    ],
)
def test_a_template_that_fails_with_an_item_names_its_line(template, text, expected) -> None:
    made = template(text)
    with pytest.raises(ConfigError, match=expected):
        made.render("q", ["x", "y"], ["A", "B"])


def test_labels_are_letters_unless_declared() -> None:
    assert labels_for(3, None, where="item 'x'") == ["A", "B", "C"]
    assert labels_for(26, None, where="item 'x'")[-1] == "Z"
    assert labels_for(2, ["1", "2", "3"], where="item 'x'") == ["1", "2"]


@pytest.mark.parametrize(
    ("k", "labels", "expected"),
    [
        (27, None, "item 'x': 27 options but only 26 labels"),
        (3, ["1", "2"], "item 'x': 3 options but only 2 labels; add"),
        (2, ["1", ""], "'' cannot be a label"),
        (2, ["1", "2 "], "'2 ' cannot be a label"),
        (2, ["1", "2\n3"], "cannot be a label"),
    ],
)
def test_labels_that_do_not_reach_are_refused(k, labels, expected) -> None:
    with pytest.raises(ConfigError, match=expected):
        labels_for(k, labels, where="item 'x'")
