"""What counts as an answer and what does not, in English."""

import pytest
from reading_cases import LETTERS, NUMBERS, TEN, TEXTS, chosen, read

from counterbalance.errors import InputError
from counterbalance.reading import READER_VERSION, ReaderOptions, read_answer


@pytest.mark.parametrize(
    ("text", "label"),
    [
        # a retraction, and the firmer of two cues
        ("Answer: B? Hold on, I misread it. Answer: D", "D"),
        ("Answer: A. No, B.", "B"),
        ("Answer: A. Sorry, I meant C.", "C"),
        ("Answer: A\nOn reflection the answer is B.", "B"),
        ("A. Actually, D.", "D"),
        ("Answer: A\nFinal answer: B", "B"),
        ("At first I thought the answer was A, but the answer is C.", "C"),
        ("My first answer was A. I now choose B.", "B"),
        ("I leaned to [[A]] to begin with. Final: [[B]]", "B"),
        ("The answer is either B or C, I pick C.", "C"),
        # a cue, and letters elsewhere
        ("The answer is D, although B and C look tempting.", "D"),
        ("C. A is what most people say.", "C"),
        ("I believe it is C, not A", "C"),
        ("Answer: B (not A)", "B"),
        ("A mirror reflects, so the correct choice would be option B.", "B"),
        ("D because a mirror reflects.", "D"),
        ("D rather than A.", "D"),
        ("Sure, B.", "B"),
        ("Most likely C.", "C"),
        ("B, I think.", "B"),
        ("(B) is the correct answer because A is wrong.", "B"),
        ("Option A is a trap. Option C is better than option B.", "C"),
        ("We can exclude A, C and D. So B.", "B"),
        ("It can't be A. It must be D.", "D"),
        # denial with and without a better value
        ("The answer is not A but C.", "C"),
        ("The answer isn't A, it's B.", "B"),
        ("So the correct option is not A, C or D but B.", "B"),
        ("A tempting answer is A. The answer is B.", "B"),
        ("Many students think the answer is A. The answer is C.", "C"),
        ("Suppose the answer is A. Then light would bend twice. So the answer is C.", "C"),
        # hedged, but the only one named
        ("The answer might be B.", "B"),
        ("I can't be certain, but I'd go with B.", "B"),
        # the option's text
        ("blue light", "C"),
        ("The  LENS.", "B"),
        ("The answer is the lens.", "B"),
        ("The answer is the lens (B).", "B"),
        ("Answer: (B) the lens", "B"),
        ("B the lens", "B"),
        # the options listed before the answer
        ("A) a prism\nB) the lens\nAnswer: B", "B"),
        ("Answer (A, B, C, or D): B", "B"),
        ("Answer: D) a mirror", "D"),
        ("B\n\nA would be a trap.", "B"),
        ("B B B", "B"),
        ("B) the lens, not A) a prism", "B"),
        ("C (not B)", "C"),
    ],
)
def test_answers_that_are_given(text, label) -> None:
    assert chosen(text) == label


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("The answer is not B.", "unparsed"),
        ("The answer is neither A nor B.", "unparsed"),
        ("I don't think the answer is A.", "unparsed"),
        ("There's no way the answer is A.", "unparsed"),
        ("The wrong answer is B.", "unparsed"),
        ("If the answer is A then light bends.", "unparsed"),
        ("Is the answer B?", "unparsed"),
        ("The answer is a prism or a lens", "unparsed"),
        ("The answer is A lens with two sides", "unparsed"),
        ("Answer: A lens with two sides", "unparsed"),
        ("The answer is vitamin C.", "unparsed"),
        ("Hepatitis B is the correct diagnosis.", "unparsed"),
        ("Plan B is better.", "unparsed"),
        ("The answer is B cells", "unparsed"),
        ("Answer: C++", "unparsed"),
        ("Answer: A-level", "unparsed"),
        ("Answer: A's", "unparsed"),
        ("Answer: A*", "unparsed"),
        ("Answer: B12", "unparsed"),
        ("B+", "unparsed"),
        ("BC", "unparsed"),
        ("You should reply with one letter. The lens bends light.\nB it bends", "unparsed"),
        ("Answer with A, B, C or D.", "unparsed"),
        ("None of them", "unparsed"),
        ("The answer is none of the above.", "unparsed"),
        ("A. a prism B. the lens C. blue light", "unparsed"),
        ("Answer: A or the lens", "unparsed"),
        ("No answer is correct.", "unparsed"),
        ("A) a prism\nB) the lens\nC) blue light\nD) a mirror", "unparsed"),
        ("...", "unparsed"),
        ("E", "unparsed"),
        ("A/C", "multiple"),
        ("A & C", "multiple"),
        ("Either A or B", "multiple"),
        ("The answer is A and C since both bend light.", "multiple"),
        ("Answer:\nA. a prism\nC. blue light", "multiple"),
        ("A and B are both correct.", "multiple"),
        ("Both", "multiple"),
        ("Both are fine", "multiple"),
        ("All of the above", "multiple"),
        ("Answer: all of the above", "multiple"),
        ("Response A and Response B are equal", "multiple"),
        ("It's a tie", "multiple"),
        ("The answer is A. The answer is B.", "ambiguous"),
        ("So the answer is A. So the answer is B.", "ambiguous"),
        ("Verdict: [[A]] [[B]]", "ambiguous"),
        ("Answer: A. Wait, let me check that again.", "ambiguous"),
        ("Answer: A. Hold on, maybe B?", "ambiguous"),
        ("A. No. B. Yes. C. No. D. No.", "ambiguous"),
        ("A. blue light", "ambiguous"),
        ("The answer is C – the lens.", "ambiguous"),
        ("The answer is the lens (D).", "ambiguous"),
        ('""', "empty"),
        ("\u200b\u2060 \ufeff", "empty"),
    ],
)
def test_what_is_no_answer(text, status) -> None:
    reading = read(text)
    assert (reading.status, reading.slot) == (status, None), reading


@pytest.mark.parametrize(
    "text",
    [
        "I can't help with that.",
        "I\u2019m sorry, but I cannot\u2026",
        "As an AI language model, I cannot choose.",
        "I won't answer this question.",
        "I must decline.",
        "I cannot choose between A and B.",
    ],
)
@pytest.mark.parametrize("labels", [LETTERS, TEN])
def test_refusals(text, labels) -> None:
    assert chosen(text, labels) == "refused"


@pytest.mark.parametrize(
    "text", ["Answer: B. I can't help with more.", "I cannot be sure, but the answer is B", "Sorry, I misread. B."]
)
def test_an_answer_beside_an_apology_counts(text) -> None:
    assert chosen(text) == "B"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I", "I"),
        ("I think it's I.", "I"),
        ("The answer is I think C", "C"),
        ("Answer is C since I computed it.", "C"),
        ("So I went with E.", "E"),
        ("I can answer that", "unparsed"),
        ("I, for one, like light.", "unparsed"),
        ("I chose A lens.", "unparsed"),
        ("Actually, I, too, see a lens", "unparsed"),
    ],
)
def test_the_pronoun_is_no_label(text, label) -> None:
    assert chosen(text, TEN) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("10", "10"),
        ("Answer: 10", "10"),
        ("1.", "1"),
        ("(7)", "7"),
        ("$3$", "3"),
        ("I choose option 2.", "2"),
        ("The answer is 3 because", "3"),
        ("Answer: 12", "unparsed"),
        ("Answer: 1.5", "unparsed"),
        ("Answer: 3,000", "unparsed"),
        ("Answer: -3", "unparsed"),
        ("Answer: \u20133", "unparsed"),
        ("$5", "unparsed"),
        ("5%", "unparsed"),
        ("3 apples", "unparsed"),
        ("It is 5.", "unparsed"),
        ("2 + 2", "unparsed"),
        ("1/2", "multiple"),
    ],
)
def test_numbers_as_labels_are_no_quantities(text, label) -> None:
    assert chosen(text, NUMBERS) == label


@pytest.mark.parametrize(
    ("labels", "text", "label"),
    [
        (("i", "ii", "iii", "iv"), "Answer: iv", "iv"),
        (("i", "ii", "iii", "iv"), "II", "ii"),
        (("i", "ii", "iii", "iv"), "i think so", "unparsed"),
        (("a", "b", "c"), "the answer is a lens", "unparsed"),
        (("a", "b", "c"), "the answer is b.", "b"),
        (("Yes", "No"), "No, it does not.", "No"),
        (("Yes", "No"), "Answer: yes", "Yes"),
        (("Yes", "No"), "I don't know", "unparsed"),
        (("Yes", "No"), "No. The answer is yes.", "ambiguous"),
        (("BETTER", "NOT BETTER"), "Verdict: NOT BETTER", "NOT BETTER"),
        (("BETTER", "NOT BETTER"), "Verdict: better", "BETTER"),
        (("BETTER", "WORSE"), "Verdict: NOT BETTER", "unparsed"),
        (("(1)", "(2)"), "2", "(2)"),
        (("A>B", "A=B", "B>A"), "[[A=B]]", "A=B"),
        (("A", "B"), "[[A>B]]", "unparsed"),
        (("a", "A"), "A", "A"),
        (("a", "A"), "Answer: a", "a"),
        (("\u03b1", "\u03b2"), "Answer: \u03b2", "\u03b2"),
        (("\u7532", "\u4e59"), "\u7b54\u6848\u662f\u4e59\u3002", "\u4e59"),
    ],
)
def test_labels_of_other_kinds(labels, text, label) -> None:
    assert chosen(text, labels) == label


def test_a_label_that_is_another_options_text_is_not_guessed() -> None:
    # the digit 2 may mean the label or the first option
    assert chosen("2", ("1", "2"), ("2", "1")) == "ambiguous"
    assert chosen("Answer: 2", ("1", "2"), ("2", "1")) == "ambiguous"
    assert chosen("2", ("1", "2"), ("1", "2")) == "2"


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("E. coli", "B"),
        ("Answer: E. coli", "B"),
        ("The answer is E. coli.", "B"),
        ("Answer: E", "E"),
        ("Answer: E. none", "E"),
        ("E. coli lives in the gut", "ambiguous"),
    ],
)
def test_an_option_text_that_starts_like_a_label(text, label) -> None:
    assert chosen(text, TEN[:5], ("S. aureus", "E. coli", "H. pylori", "L. casei", "none")) == label


def test_option_texts_are_told_apart_by_sign_case_and_bracket() -> None:
    assert chosen("The correct answer is \u20137.", LETTERS, ("7", "\u20137", "70", "0.7")) == "B"
    assert chosen("ma", LETTERS, ("MA", "ma", "mA", "Ma")) == "B"
    assert chosen("[1, 2)", LETTERS, ("(1, 2)", "[1, 2)", "[1, 2]", "(1, 2]")) == "B"
    assert chosen("three", LETTERS, ("three", "one", "three", "four")) == "ambiguous"


def test_option_texts_can_be_left_out() -> None:
    off = ReaderOptions(option_text="off")
    assert read("blue light", options=off).status == "unparsed"
    assert read("B. blue light", options=off).slot == 1


def test_candidates_and_notes_say_what_was_seen() -> None:
    reading = read("Answer: A? Wait, that's off. Answer: C")
    assert reading.candidates == ("A", "C")
    assert "retracted" in reading.notes
    assert "struck text removed" in read("~~A~~ B").notes
    assert read("The answer is not B.").candidates == ("B",)


@pytest.mark.parametrize(
    ("text", "finish", "status"),
    [
        ("B", "length", "ok"),
        ("B", "max_tokens", "ok"),
        ("The answer is B", "MAX_TOKENS", "ok"),
        ("", "length", "truncated"),
        (None, "length", "truncated"),
        (None, "stop", "empty"),
        ("We first look at", "length", "truncated"),
        ("We first look at", None, "unparsed"),
        ("The answer is a", "length", "truncated"),
        ("Answer: A or", "length", "truncated"),
        ("Answer: A? Wait", "length", "truncated"),
        ("Answer: A and C. For", "length", "multiple"),
        ("I'm sorry, but I cannot", "length", "truncated"),
        ("I can't help with that. If you", "length", "refused"),
        ("<think>A or B", "length", "incomplete"),
        ("blue", "length", "truncated"),
        ("blue light", "length", "ok"),
    ],
)
def test_cut_replies(text, finish, status) -> None:
    reading = read(text, finish=finish)
    assert reading.status == status
    assert ("cut" in reading.notes) == (finish not in ("stop", None))


def test_a_cut_label_that_begins_another_one_is_not_read() -> None:
    assert read("Answer: 1", NUMBERS, finish="length").status == "truncated"
    assert read("Answer: 2", NUMBERS, finish="length").slot == 1
    assert read("red", LETTERS, ("red", "red light", "blue", "pink"), finish="length").status == "truncated"


@pytest.mark.parametrize(
    ("labels", "texts", "message"),
    [
        (("A",), (), "at least 2"),
        (("A", ""), (), "empty"),
        (("A", "(A)"), (), "tell them apart"),
        (LETTERS, TEXTS[:3], "3 given for 4"),
    ],
)
def test_label_sets_that_cannot_be_read_are_refused(labels, texts, message) -> None:
    with pytest.raises(InputError, match=message):
        read_answer("A", labels=labels, option_texts=texts, finish_reason="stop")


def test_an_unknown_language_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="'xx'"):
        read("The answer is A.", options=ReaderOptions(languages=("en", "xx")))


def test_only_the_chosen_languages_are_known() -> None:
    english = ReaderOptions(languages=("en",))
    assert read("Die Antwort ist B.", options=english).status == "unparsed"
    assert read("The answer is B.", options=english).slot == 1


def test_the_version_is_declared() -> None:
    assert READER_VERSION


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("Actually, Answer: D. Final answer: A", 0),
        ("Wait, answer: D. So the final answer: A", 0),
        ("Final answer: A. Wait. Answer: D. Final answer: B", 1),
    ],
)
def test_a_correction_is_no_firmer_than_a_final_answer_after_it(text: str, slot: int) -> None:
    reading = read_answer(text, labels=list("ABCD"), option_texts=["w", "x", "y", "z"], finish_reason="stop")
    assert (reading.status, reading.slot) == ("ok", slot)
