"""Labels, option texts and a short way to read with them."""

from collections.abc import Sequence

from counterbalance.reading import ReaderOptions, Reading, read_answer

LETTERS = ("A", "B", "C", "D")
TEN = tuple("ABCDEFGHIJ")
NUMBERS = tuple(str(n) for n in range(1, 11))
TEXTS = ("a prism", "the lens", "blue light", "a mirror")


def read(
    text: str | None,
    labels: Sequence[str] = LETTERS,
    texts: Sequence[str] | None = None,
    finish: str | None = "stop",
    options: ReaderOptions | None = None,
) -> Reading:
    if texts is None:
        texts = TEXTS if tuple(labels) == LETTERS else ()
    reader = options or ReaderOptions()
    return read_answer(text, labels=labels, option_texts=texts, finish_reason=finish, reader=reader)


def chosen(text: str, labels: Sequence[str] = LETTERS, texts: Sequence[str] | None = None) -> str:
    """The chosen label, or the status where none was chosen."""
    reading = read(text, labels, texts)
    return labels[reading.slot] if reading.slot is not None else reading.status
