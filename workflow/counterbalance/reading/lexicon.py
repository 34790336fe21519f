"""The kinds of words that the reader knows, and those of the languages other than English.

Every field is a list of plain phrases joined by ``|``: no pattern syntax, so that a phrase can never cost
more than its own length. Languages that write without spaces set ``spaced=False``: their phrases are found
inside runs of letters too.

A language's words meet replies in all the other languages. So no phrase that may follow a label
(``because``, ``going_on``) is an English noun, verb or adjective: French *car* would turn "A car" into
the label A.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Lexicon:
    """One language's phrases.

    Attributes
    ----------
    nouns, copulas, fillers
        "the *answer* *is* *option* B": cue noun, link, and what may stand between link and label.
    picks, statements
        "*I choose* B" anywhere; "*it is* B" only at the start of a clause.
    items
        Words for an option as such, "*option* B"; they name a label without asserting it.
    asides
        Words that open a phrase between noun and link: "the answer *to* this question is B".
    good, bad, affirm, deny
        "B is *correct*", "B is *wrong*" (after a copula); "B *wins*", "B *cannot be* it" (without one).
    negations, disowned, hedges, unsure, others
        What takes an assertion back or weakens it: "is *not* B", "a *tempting* answer is B", "*maybe* B",
        "I am *not sure*" (which denies nothing), "*people* say B", "*if* the answer is B".
    attitudes
        Verbs through which a denial reaches the cue: "I don't *think* the answer is B".
    concluding, final, retractions, withdrawals
        "*so* the answer is B", "*final* answer", "B, *no*, C"; withdrawals count even when no answer follows.
    joins, pivots, plural
        "B *or* C", "not B *but* C", "B and C *are* right".
    because, contrasts, going_on, closing
        Words that may follow a label: after any label (the first two), after a label in a cue, at the end
        of a clause.
    both, none, equal
        Answers that name no single option.
    unable, deeds, sorry, refusals
        "*I can't* ... *help*"; "*I'm sorry*, but *I can't*"; whole phrases that refuse.
    subjects, clause_breaks, prefaces
        Words that may precede a label that is the subject; words at which a clause starts anew; words that
        may open a reply before its label ("*sure*, B").
    """

    nouns: str = ""
    copulas: str = ""
    fillers: str = ""
    picks: str = ""
    statements: str = ""
    items: str = ""
    asides: str = ""
    good: str = ""
    bad: str = ""
    affirm: str = ""
    deny: str = ""
    negations: str = ""
    disowned: str = ""
    hedges: str = ""
    unsure: str = ""
    attitudes: str = ""
    others: str = ""
    concluding: str = ""
    final: str = ""
    retractions: str = ""
    withdrawals: str = ""
    joins: str = ""
    pivots: str = ""
    because: str = ""
    going_on: str = ""
    closing: str = ""
    contrasts: str = ""
    plural: str = ""
    both: str = ""
    none: str = ""
    equal: str = ""
    unable: str = ""
    deeds: str = ""
    sorry: str = ""
    refusals: str = ""
    subjects: str = ""
    clause_breaks: str = ""
    prefaces: str = ""
    spaced: bool = True


CUE_NOUNS: dict[str, str] = {
    "ar": "الإجابة|الاجابة|الجواب|الإجابة الصحيحة|الجواب الصحيح|الإجابة النهائية",
    "cs": "odpověď|správná odpověď|konečná odpověď|možnost",
    "da": "svar|svaret|det rigtige svar|endeligt svar",
    "el": "απάντηση|σωστή απάντηση|τελική απάντηση|η απάντηση",
    "fa": "پاسخ|جواب|گزینه|پاسخ صحیح|پاسخ نهایی",
    "fi": "vastaus|oikea vastaus|lopullinen vastaus",
    "he": "תשובה|התשובה|התשובה הנכונה|תשובה סופית",
    "hi": "उत्तर|सही उत्तर|अंतिम उत्तर|जवाब",
    "hu": "válasz|helyes válasz|végső válasz|a válasz",
    "id": "jawaban|jawabannya|jawaban yang benar|jawaban akhir",
    "no": "svar|svaret|riktig svar|endelig svar",
    "ro": "răspuns|răspunsul|răspuns corect|răspunsul corect|răspuns final",
    "sv": "svar|svaret|rätt svar|slutligt svar",
    "th": "คำตอบ|คำตอบที่ถูกต้อง|ตอบ",
    "tr": "cevap|yanıt|doğru cevap|doğru yanıt|son cevap",
    "uk": "відповідь|правильна відповідь|остаточна відповідь|варіант",
    "vi": "đáp án|câu trả lời|trả lời|đáp án đúng|đáp án cuối cùng",
}
"""Languages of which only the cue nouns are known; a colon must follow."""
