"""The real model, loaded once for all tests of this file."""

import itertools
import math
from collections.abc import Iterator

import pytest

from counterbalance.errors import VendorError
from counterbalance.vendors.local import LocalEngine
from counterbalance.vendors.local import server as room
from counterbalance.vendors.local.server import MIN_TAIL, LlamaServer

QUESTION = "Question: Which of these is a fruit?\n"
PROMPT = QUESTION + "A. hammer\nB. apple\nC. river\nD. cloud\nAnswer:"
# A text that goes on with words that are easily guessed, so that they are among the listed tokens.
VERSE = "sofa apple river, sofa apple river, sofa apple river,"
CHAT = [{"role": "user", "content": "Name a fruit."}]
# The server counts probabilities in single precision over 49,152 tokens.
MASS_TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def engine() -> Iterator[LocalEngine]:
    with LocalEngine(context_tokens=512) as engine:
        yield engine


def test_probabilities_sum_to_at_most_one_and_come_best_first(engine: LocalEngine) -> None:
    listed = engine.top_logprobs(PROMPT, 1000)
    assert len(listed.tokens) == len(listed.ids) == len(listed.logprobs) == 1000
    assert sum(map(math.exp, listed.logprobs)) <= 1 + MASS_TOLERANCE
    assert list(listed.logprobs) == sorted(listed.logprobs, reverse=True)
    assert engine.top_logprobs(PROMPT, 3).logprobs == listed.logprobs[:3]


def test_replies_do_not_depend_on_the_calls_before_them_nor_on_a_restart(
    engine: LocalEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    written = engine.generate(PROMPT + " B", 4).text
    prompts = [PROMPT + " B" + written, PROMPT, PROMPT, QUESTION, PROMPT.replace("river", "pear")]
    warm = [engine.top_logprobs(prompt, 50) for prompt in prompts]
    with LocalEngine(context_tokens=512) as other:
        cold = [other.top_logprobs(prompt, 50) for prompt in reversed(prompts)][::-1]
        assert other.generate(PROMPT + " B", 4).text == written
    assert [reply.logprobs for reply in warm] == [reply.logprobs for reply in cold]
    assert [reply.ids for reply in warm] == [reply.ids for reply in cold]
    assert [reply.usage.cached_tokens for reply in warm] != [reply.usage.cached_tokens for reply in cold]
    assert capfd.readouterr() == ("", "")


def test_option_logprobs_are_a_chain_of_next_tokens(engine: LocalEngine) -> None:
    found = engine.option_logprobs(VERSE + " sofa", [" apple", " apple river"])
    first = engine.top_logprobs(VERSE + " sofa", 1000)
    second = engine.top_logprobs(VERSE + " sofa apple", 1000)
    apple = first.logprobs[first.tokens.index(" apple")]
    river = second.logprobs[second.tokens.index(" river")]
    assert found.n_tokens == (1, 2)
    assert found.logprobs == (apple, apple + river)


def test_option_logprobs_do_not_depend_on_the_other_options(engine: LocalEngine) -> None:
    together = engine.option_logprobs(VERSE, [" apple", " sofa", " sofa apple"])
    assert together.n_tokens == (1, 2, 3)
    assert engine.option_logprobs(VERSE, [" sofa apple"]).logprobs[0] == together.logprobs[2]
    assert engine.option_logprobs(VERSE, [" sofa"]).logprobs[0] == together.logprobs[1]


def test_words_beyond_the_listed_tokens_get_their_exact_value(engine: LocalEngine) -> None:
    listed = engine.top_logprobs(PROMPT, 1000)
    found = engine.option_logprobs(PROMPT, [" Honduras"])
    assert found.n_tokens == (1,)
    assert " Honduras" not in listed.tokens
    assert -100 < found.logprobs[0] < listed.logprobs[-1]


def test_characters_of_several_tokens_are_read(engine: LocalEngine) -> None:
    # After these the likeliest token is a part of a character, for which the server by itself lists nothing.
    listed = engine.top_logprobs("日本語のテキスト 東", 20)
    assert any(token.startswith("\\x") for token in listed.tokens)
    found = engine.option_logprobs(PROMPT, [" 愛"])
    assert found.n_tokens[0] > 1
    assert math.isfinite(found.logprobs[0])


def test_control_tokens_have_their_name_and_plain_text_has_none(engine: LocalEngine) -> None:
    assert "<|im_end|>" in engine.top_logprobs(PROMPT, 5).tokens
    plain, longer = (engine.top_logprobs(text, 1).usage.prompt_tokens for text in ("Hello", "Hello<|im_end|>"))
    assert longer > plain + 1


def test_orders_of_one_item_share_most_of_their_tokens(engine: LocalEngine) -> None:
    engine.top_logprobs("Something else.", 1)
    asked = computed = 0
    for order in itertools.islice(itertools.permutations(["hammer", "apple", "river", "cloud"]), 6):
        options = "".join(f"{label}. {text}\n" for label, text in zip("ABCD", order, strict=True))
        usage = engine.top_logprobs(QUESTION + options + "Answer:", 4).usage
        asked += usage.prompt_tokens
        computed += usage.prompt_tokens - usage.cached_tokens
        assert usage.prompt_tokens - usage.cached_tokens >= MIN_TAIL
    assert computed * 3 < asked * 2


def test_greedy_writing_repeats_and_drawn_writing_follows_its_seed(engine: LocalEngine) -> None:
    assert engine.generate(CHAT, 3).text == engine.generate(CHAT, 3).text
    drawn = [engine.generate(CHAT, 6, temperature=1.5, seed=seed).text for seed in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_writing_ends_at_the_limit_or_at_a_stop(engine: LocalEngine) -> None:
    cut = engine.generate(CHAT, 3)
    assert (cut.finish_reason, cut.usage.written_tokens) == ("length", 3)
    word = cut.text.split()[-1]
    stopped = engine.generate(CHAT, 3, stop=[word])
    assert stopped.finish_reason == "stop"
    assert stopped.text == cut.text[: cut.text.index(word)]


def test_replies_can_name_weights_and_binding(engine: LocalEngine) -> None:
    assert engine.model_id == f"smollm2-135m-instruct@f32-{engine.weights.f32_sha256}"
    assert engine.fingerprint.startswith("xllamacpp 20")


def test_reuse_beyond_what_is_exact_stops(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.top_logprobs(PROMPT, 1)
    monkeypatch.setattr(LlamaServer, "_make_reusable", lambda _self, _ids: 1)
    with pytest.raises(VendorError, match="at most 1 are exact"):
        engine.top_logprobs(PROMPT + " B", 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.top_logprobs(PROMPT, 0), "expected 1 to 1000"),
        (lambda e: e.top_logprobs(PROMPT, 1001), "expected 1 to 1000"),
        (lambda e: e.top_logprobs("", 1), "refused a prompt of 0 tokens"),
        (lambda e: e.top_logprobs("word " * 600, 1), r"refused a prompt of \d+ tokens: .*exceeds"),
        (lambda e: e.generate(PROMPT, 0), "expected at least 1"),
        (lambda e: e.generate(PROMPT, 1, temperature=-1), "at least 0"),
        (lambda e: e.option_logprobs(PROMPT, [""]), "does not start a token of its own"),
        (lambda e: e.option_logprobs(PROMPT + " ham", ["mer"]), "end the prompt without a space"),
        (lambda e: e.generate([{"content": "no role"}], 1), "refused /apply-template"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_advice(engine: LocalEngine, call, message: str) -> None:
    with pytest.raises(VendorError, match=message):
        call(engine)
    assert engine.top_logprobs(PROMPT, 1).tokens


def test_a_closed_model_says_so() -> None:
    with pytest.raises(VendorError, match="not open"):
        LocalEngine().generate(PROMPT, 1)


def test_a_base_model_gets_plain_prompts_only() -> None:
    base = LocalEngine("gemma-3-270m", accept_terms="Gemma Terms of Use")
    with pytest.raises(VendorError, match="without a chat template"):
        base.generate(CHAT, 1)


def test_a_file_that_is_no_model_is_refused(tmp_path) -> None:
    with pytest.raises(VendorError, match="no such weights file"):
        LlamaServer(tmp_path / "none.gguf", 64).__enter__()
    (tmp_path / "bad.gguf").write_bytes(b"GGUF and then nothing")
    with pytest.raises(VendorError, match="cannot load"):
        LlamaServer(tmp_path / "bad.gguf", 64).__enter__()


def test_a_missing_binding_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_name: str) -> None:
        raise ImportError("No module named 'xllamacpp'")

    monkeypatch.setattr(room.importlib, "import_module", absent)
    with pytest.raises(VendorError, match="needs the Python package xllamacpp"):
        room.load_binding()
