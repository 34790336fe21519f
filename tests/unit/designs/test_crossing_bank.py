"""Our own items: answers of one token for the packaged model, by its own tokenizer, and nothing that leans."""

import csv
from collections import Counter
from pathlib import Path

from counterbalance.vendors.local import LocalEngine

BANK = Path(__file__).parents[3] / "config/items/crossing.csv"


def rows():
    with BANK.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_every_answer_is_one_token_for_the_models_own_tokenizer() -> None:
    answers = sorted({row[name] for row in rows() for name in ("answer_a", "answer_b")})
    with LocalEngine(context_tokens=128) as engine:
        found = engine.option_logprobs("The answer is", [f" {word}" for word in [*answers, "paris"]])
    assert dict(zip(answers, found.n_tokens, strict=False)) == dict.fromkeys(answers, 1)
    # The check can fail: this name in small letters is two tokens.
    assert found.n_tokens[-1] == 2


def test_items_are_enough_and_no_word_or_source_is_used_twice() -> None:
    bank = rows()
    assert len(bank) >= 12
    words = Counter(row[name] for row in bank for name in ("answer_a", "answer_b", "stale_source", "recent_source"))
    assert set(words.values()) == {1}
    # Neither letter always comes first in the alphabet, nor does the stale source.
    for first, second in (("answer_a", "answer_b"), ("stale_source", "recent_source")):
        earlier = sum(row[first].casefold() < row[second].casefold() for row in bank)
        assert 3 <= earlier <= len(bank) - 3
