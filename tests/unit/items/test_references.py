"""Options that speak of other options, in many languages, and those that only look like it."""

import pytest

from counterbalance.items.references import find_references

PLAIN = ("cats", "dogs")


@pytest.mark.parametrize(
    "option",
    [
        "None of the above",
        "none of the above.",
        "All  of\u00a0the above",
        "ALL OF THE ABOVE are true",
        "None of the above-mentioned",
        "Any of the above",
        "More than one of the above",
        "All of the above except B",
        "Both of the above",
        "none of these",
        "either of these",
        "All of them",
        "None of the other answers",
        "neither",
        "Both",
        "Both answers are correct",
        "all are correct",
        "both A and B",
        "Both (a) and (b).",
        "neither a. nor b.",
        "A & B",
        "A or B but not both",
        "A and C",
        "Options A and B",
        "A only",
        "Only B",
        "All except A",
        "Same as A",
        "Answers 1 and 2",
        "The first option",
        "the above",
        "A oder B",
        "sowohl A als auch B",
        "weder A noch B",
        "Antwort B",
        "Die Antworten A und B sind richtig",
        "alle der genannten",
        "Alle oben genannten",
        "Keine der obigen Antworten ist richtig",
        "Keine davon",
        "Alle Antworten sind richtig",
        "toutes ces réponses",
        "Aucune de ces réponses",
        "Toutes les réponses sont correctes",
        "aucune des réponses ci-dessus",
        "à la fois A et B",
        "Les deux",
        "todas las anteriores",
        "Ninguna de las anteriores",
        "ninguna",
        "Todas son correctas",
        "Ninguna es correcta",
        "tanto A como B",
        "ni A ni B",
        "tutte le precedenti",
        "nessuna delle precedenti",
        "sia A che B",
        "todas as anteriores",
        "nenhuma das alternativas anteriores",
        "nem A nem B",
        "alle bovenstaande",
        "Geen van de bovenstaande",
        "zowel A als B",
        "всё вышеперечисленное",
        "ни один из ответов не верен",
        "А и Б",
        "以上都是",
        "以上皆非",
        "以上皆對",
        "两者都不是",
        "A和B",
        "上記のすべて",
        "いずれでもない",
        "AとBの両方",
        "위의 모두",
    ],
)
def test_an_option_that_refers_to_others_is_found(option) -> None:
    assert find_references([*PLAIN, option, "owls"], "Which?") == [2]


@pytest.mark.parametrize(
    "option",
    [
        "A",
        "None",
        "All",
        "zero",
        "both parents",
        "Both the Aardvarks and the Chipmunks win their first games.",
        "neither clinically nor statistically significant",
        "none of them are successful.",
        "some, but not all of them are successful.",
        "above all else",
        "all above 5",
        "the above-ground parts",
        "Either Nancy or Marvin is at work.",
        "analytic and a priori",
        "hepatitis A and B",
        "vitamin A",
        "a bed",
        "AOB",
        "A to Z",
        "E and F",
        "Cannot be determined",
        "not enough information",
        "18岁以上",
        "all of our inward principles.",
        "Consistent valuation when A and B are true and C is false",
        "Blood type AB",
        "I and II only",
        "(1) and (2)",
    ],
)
def test_content_is_left_alone(option) -> None:
    assert find_references([*PLAIN, option, "owls"], "Which?") == []


@pytest.mark.parametrize(
    ("options", "stem"),
    [
        (["A", "B", "both A and B", "O"], "Which blood group?"),
        (["A and D", "B and C", "E and K", "A and B"], "Which vitamins dissolve in fat?"),
        (["a + b", "a - b", "ab", "a/b"], "What is the sum?"),
        (["Only A", "Only B", "Both A and B", "Neither A nor B"], "Which follow?"),
        (["C, E, G", "D, F, A", "E, G, B", "F, A, C"], "Which notes are in the chord?"),
        (["cats", "dogs", "Both (a) and (b)", "owls"], "(a) Cats purr. (b) Dogs bark. Which are true?"),
        (["cats", "dogs", "Neither A nor B", "owls"], "A. Cats bark.\nB. Dogs purr.\nWhich are true?"),
        (["I only", "II only", "Both", "Neither"], "I. Cats purr.\nII. Dogs bark.\nWhich are true?"),
        (["1 only", "2 only", "Both of these", "None of these"], "Consider: 1. cats 2. dogs"),
        (["(1) and (2)", "(2) and (3)", "(1)", "all three"], "(1) x (2) y (3) z"),
        (["Some of them", "All of them", "None of them", "Half"], "How many cats purr?"),
        (["Ninguna", "Una", "Dos", "Tres"], "¿Cuántas lunas tiene Venus?"),
        (["Aucune", "1", "2", "3"], "Combien de lunes a Vénus ?"),
        (["None", "1", "2", "3"], "How many moons has Venus?"),
    ],
)
def test_letters_and_numbers_that_the_item_itself_defines_are_content(options, stem) -> None:
    assert find_references(options, stem) == []


def test_several_references_are_all_found() -> None:
    assert find_references(["both b and c", *PLAIN, "none of these"], "Which?") == [0, 3]
