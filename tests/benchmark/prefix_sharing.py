"""Tokens the local model computes for all orders of some items, with and without sharing prefixes.

The answers are compared too: sharing must not change a single bit.
"""

import itertools
import sys
import time

from counterbalance.vendors.local import LocalEngine

ITEMS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
QUESTIONS = [
    ("The fruit is", ("apple", "hammer", "river", "cloud")),
    ("The opposite of hot is", ("cold", "wet", "loud", "tall")),
    ("Two plus three is", ("five", "four", "seven", "nine")),
]


# Solved examples come first in the demo's prompts too.
SHOTS = "A. bad\nB. blue\nC. late\nD. soft\nThe opposite of good is bad\n\n" * 4


def prompts() -> list[str]:
    return [
        SHOTS + "".join(f"{label}. {option}\n" for label, option in zip("ABCD", order, strict=True)) + question
        for question, options in itertools.islice(itertools.cycle(QUESTIONS), ITEMS)
        for order in itertools.permutations(options)
    ]


def run(texts: list[str], *, share: bool) -> tuple[list[tuple[float, ...]], int, float]:
    """Return the listed log-probabilities, the number of tokens computed, and CPU seconds."""
    answers, computed = [], 0
    with LocalEngine() as engine:
        start = time.process_time()
        for text in texts:
            if not share:
                # An unrelated prompt in between leaves nothing to share; its own tokens are not counted.
                engine.top_logprobs("Something else altogether, long enough to be a prompt of its own.", 1)
            found = engine.top_logprobs(text, 50)
            answers.append(found.logprobs)
            computed += found.usage.prompt_tokens - found.usage.cached_tokens
    return answers, computed, time.process_time() - start


def main() -> None:
    texts = prompts()
    shared, few, quick = run(texts, share=True)
    alone, many, slow = run(texts, share=False)
    print(f"{ITEMS} items x 24 orders = {len(texts)} prompts")
    print(f"alone : {many:7d} tokens computed, {slow:6.1f} s CPU (the prompts in between included)")
    print(f"shared: {few:7d} tokens computed, {quick:6.1f} s CPU; {many / few:.1f} times fewer tokens")
    print("answers equal bit by bit" if shared == alone else "ANSWERS DIFFER")


if __name__ == "__main__":
    main()
