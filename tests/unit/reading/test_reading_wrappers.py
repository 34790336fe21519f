"""Decoration around labels, and structured replies."""

import pytest
from reading_cases import chosen, read

from counterbalance.reading import ReaderOptions

WRAPPED = [
    "**{}**",
    "__{}__",
    "*{}*",
    "***{}***",
    "`{}`",
    "```\n{}\n```",
    "${}$",
    "$${}$$",
    r"\({}\)",
    r"\[{}\]",
    r"\boxed{{{}}}",
    r"$\boxed{{{}}}$",
    r"\text{{{}}}",
    r"\textbf{{{}}}",
    r"$\boxed{{\text{{{}}}}}$",
    r"\[\boxed{{\textbf{{({})}}}}\]",
    "({})",
    "(({}))",
    "[{}]",
    "[[{}]]",
    "{{{}}}",
    "<{}>",
    '"{}"',
    "'{}'",
    "\u201c{}\u201d",
    "\u2018{}\u2019",
    "\u00ab{}\u00bb",
    "\u300c{}\u300d",
    "\u3010{}\u3011",
    "<b>{}</b>",
    "<answer>{}</answer>",
    "<answer>\n{}\n</answer>",
]


@pytest.mark.parametrize("wrapper", WRAPPED)
@pytest.mark.parametrize("form", ["{}", "Answer: {}", "The answer is {}.", "{} is correct.", "I choose {}."])
def test_wrapped_labels(wrapper, form) -> None:
    assert chosen(form.format(wrapper.format("C"))) == "C"


@pytest.mark.parametrize("wrapper", WRAPPED)
@pytest.mark.parametrize(
    "text", ["Answer: A? Wait, recheck. Answer: C", "The answer is not C.", "C", "A lens bends light", "A or C", "C."]
)
def test_a_wrapper_around_the_whole_reply_changes_nothing(wrapper, text) -> None:
    bare, wrapped = read(text), read(wrapper.format(text))
    assert (wrapped.status, wrapped.slot, wrapped.candidates) == (bare.status, bare.slot, bare.candidates)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("**ANSWER: B**", "B"),
        ("**Final Answer**\n\nB", "B"),
        ("### Answer\n**B**", "B"),
        ("| Answer | B |", "B"),
        ("ANSWER: $B", "B"),
        ("- **B**: the lens", "B"),
        ("> B", "B"),
        ("Answer \u2192 B", "B"),
        ("Thus the final answer is $\\boxed{B}$. I hope it is correct.", "B"),
        (r"\boxed{B) the lens}", "B"),
        (r"\boxed{the lens}", "B"),
        (r"\boxed{A \text{ or } B}", "multiple"),
        ("The answer is **(B) the lens**.", "B"),
        ("<answer>B", "B"),
        ("[ANSWER]B[/ANSWER]", "B"),
        ("(A) or (B)", "multiple"),
        ("**A** or **B**", "multiple"),
        ("Answer: ~~A~~ B", "B"),
        ("The answer is B.<|im_end|>", "B"),
    ],
)
def test_decorated_replies(text, label) -> None:
    assert chosen(text) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ('{"answer": "B"}', "B"),
        ('{"Final_Answer": "(B)"}', "B"),
        ('```json\n{"answer": "B. the lens"}\n```', "B"),
        ('{"reasoning": "The answer is A? No.", "answer": "B"}', "B"),
        ('{"answer": {"label": "B"}, "confidence": 0.9}', "B"),
        ('{"respuesta": "B"}', "B"),
        ('Here it is: {"answer": "B"}', "B"),
        ('{"answer": ["A", "C"]}', "multiple"),
        ('{"answer": "A", "answer": "B"}', "ambiguous"),
        ('{"answer": null}', "empty"),
        ('{"answer": 7}', "unparsed"),
        ('{"answer": ', "unparsed"),
        ('{"answer": ' + "[" * 50_000 + "]" * 50_000 + "}", "unparsed"),
    ],
)
def test_json_replies(text, label) -> None:
    assert chosen(text) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("maybe A, no\n</think>\nB", "B"),
        ("[THINK]A?[/THINK]B", "B"),
        ("<THINKING >A</thinking>Answer: B", "B"),
        ("<reasoning>Answer: A</reasoning><answer>B</answer>", "B"),
        ("\u25c1think\u25b7A\u25c1/think\u25b7B", "B"),
        ("<think>a <think> b</think>A</think>B", "B"),
        ("<think>I close with </think> later</think>B", "B"),
        ("<|begin_of_thought|>A<|end_of_thought|>B", "B"),
        ("<|channel|>analysis<|message|>A?<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>", "B"),
        ("The tag `</think>` ends it. Answer: B", "B"),
        ('Answer: B. I used no "<think>" tag.', "B"),
        ("<think>A or B", "incomplete"),
        ("Answer: A <think> or", "incomplete"),
        ("[THINK]A</reasoning>B", "incomplete"),
        ("<|channel|>analysis<|message|>A or B?", "incomplete"),
        ("<think>A</think>", "empty"),
    ],
)
def test_deliberation_is_no_answer(text, label) -> None:
    assert chosen(text) == label


def test_tag_families_can_be_set() -> None:
    own = ReaderOptions(thinking_names=("ponder",), thinking_pairs=(("{{", "}}"),), channels=False)
    assert read("<ponder>A</ponder>B", options=own).slot == 1
    assert read("{{Answer: A}}Answer: B", options=own).slot == 1
    assert read("<think>Answer: A</think>", options=own).slot == 0
    none = ReaderOptions(thinking_names=(), thinking_pairs=())
    assert read("Answer: B <think>", options=none).slot == 1
