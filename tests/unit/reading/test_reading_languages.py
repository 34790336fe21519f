"""Answers, denials and refusals in other languages, scripts and letter forms."""

import pytest
from reading_cases import LETTERS, chosen, read


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Antwort:\n\nAntwort: D", "D"),
        ("Die richtige Antwort ist B, weil Linsen Licht brechen.", "B"),
        ("Die Antwort ist nicht A, sondern C.", "C"),
        ("Antwort B ist richtig, A ist falsch.", "B"),
        ("La bonne réponse est B : the lens", "B"),
        ("C'est D.", "D"),
        ("La réponse n'est pas A mais C.", "C"),
        ("La respuesta correcta es la B.", "B"),
        ("La respuesta no es A, sino C.", "C"),
        ("Elijo la opción D.", "D"),
        ("La risposta corretta è B perché la lente piega la luce.", "B"),
        ("A resposta é a B.", "B"),
        ("A alternativa correta é C", "C"),
        ("Het juiste antwoord is niet A maar C.", "C"),
        ("Prawidłowa odpowiedź to B.", "B"),
        ("Poprawna odpowiedź to nie A, lecz C.", "C"),
        ("Правильный ответ не A, а C.", "C"),
        ("Я думаю, что ответ — C.", "C"),
        ("答案不是A，而是C。", "C"),
        ("正确答案是选项B，因为透镜折射光。", "B"),
        ("选B。", "B"),
        ("答えはAではなく、Cです。", "C"),
        ("正解はBです", "B"),
        ("Bが正解です。", "B"),
        ("정답은 A가 아니라 C입니다.", "C"),
        ("B입니다", "B"),
        ("Cevap: B", "B"),
        ("\u0130yi bir soru. Cevap: B", "B"),
        ("Đáp án: C", "C"),
        ("الإجابة: B", "B"),
        ("คำตอบ: B", "B"),
        ("Odpověď: D", "D"),
        ("Απάντηση: C", "C"),
        ("Die Antwort ist nicht A.", "unparsed"),
        ("La risposta non è A.", "unparsed"),
        ("答えはAではない。", "unparsed"),
        ("答案不是A。", "unparsed"),
        ("Respuesta: A y C", "multiple"),
        ("Die Antwort ist A oder B.", "multiple"),
        ("答案是A和C。", "multiple"),
        ("Ich kann diese Frage leider nicht beantworten.", "refused"),
        ("Je ne peux pas vous aider avec cela.", "refused"),
        ("Lo siento, no puedo ayudar con eso.", "refused"),
        ("Mi dispiace, non posso aiutarti.", "refused"),
        ("Desculpe, não posso ajudar com isso.", "refused"),
        ("Het spijt me, ik kan daar niet bij helpen.", "refused"),
        ("Przykro mi, nie mogę w tym pomóc.", "refused"),
        ("Извините, я не могу помочь с этим.", "refused"),
        ("抱歉，我无法回答这个问题。", "refused"),
        ("申し訳ありませんが、お答えできません。", "refused"),
        ("죄송하지만 답변할 수 없습니다.", "refused"),
    ],
)
def test_other_languages(text, label) -> None:
    assert chosen(text) == label


@pytest.mark.parametrize(
    ("text", "label", "code"),
    [
        ("\u0410", "A", "U+0410"),
        ("Ответ: \u0412", "B", "U+0412"),
        ("Answer: \u0392", "B", "U+0392"),
        ("**\u0421**", "C", "U+0421"),
        ("\U0001f171", "B", "U+1F171"),
    ],
)
def test_look_alikes_are_read_and_noted(text, label, code) -> None:
    reading = read(text)
    assert LETTERS[reading.slot if reading.slot is not None else -1] == label
    assert any(code in note for note in reading.notes)


@pytest.mark.parametrize("text", ["\uff22", "\u24b7", "\U0001d401", "B\ufe0f", "\u200bB\u200b", "\x00B\x07"])
def test_other_forms_of_a_letter_are_the_letter(text) -> None:
    reading = read(text)
    assert (reading.slot, reading.notes) == (1, ())


@pytest.mark.parametrize("text", ["\u0411", "Ответ: \u0411", "\u0628", "\u30a2", "\u00c1", "B\u0301"])
def test_letters_that_look_like_no_label_are_not_read(text) -> None:
    assert chosen(text) == "unparsed"


def test_a_reply_that_counts_in_its_own_alphabet_is_not_mapped() -> None:
    # the third Cyrillic letter looks like B, and the writer also uses the second
    assert chosen("Ответ: \u0412, а не \u0411") == "ambiguous"


def test_labels_of_another_alphabet_are_compared_as_they_are() -> None:
    cyrillic = ("\u0410", "\u0411", "\u0412", "\u0413")
    assert chosen("Ответ: \u0412", cyrillic) == "\u0412"
    assert chosen("\u0413", cyrillic) == "\u0413"


def test_two_labels_that_look_alike_are_read_as_spelled() -> None:
    assert chosen("A", ("A", "\u0410")) == "A"
    assert chosen("\u0410", ("A", "\u0410")) == "\u0410"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_every_line_end_is_one(end) -> None:
    assert chosen(f"Answer:{end}{end}B{end}A lens bends light.") == "B"
