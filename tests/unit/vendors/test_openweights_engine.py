"""Real passes of tiny models with random weights, against PyTorch asked directly."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from open_weights import POSITIONS, UNUSED, WORDS, libraries, write_model, write_tokenizer

from counterbalance.errors import VendorError
from counterbalance.vendors.openweights import Span, TorchEngine
from counterbalance.vendors.openweights.engine import best

torch, transformers = libraries()

FIRST = "Report of Source one: red blue green white gold pink. "
PROMPTS = (
    FIRST + "Question: What about door one? red blue green Answer",
    FIRST + "Question: What about door two? blue red green Answer",
    FIRST + "Question: What about door six? green red blue Answer",
    FIRST + "Question: What about door four? rust red Answer",
)
# A float32 of this size has steps of a millionth; sums in another order differ by a few of them.
LAST_BITS = 5e-6
DRAWS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("weights") / "a model é", chat=True)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[TorchEngine]:
    with TorchEngine(folder, context_tokens=POSITIONS) as engine:
        yield engine


def spans_of(engine: TorchEngine) -> list[Span]:
    return [Span(tuple(engine.encode(prompt)[0])) for prompt in PROMPTS]


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma4"])
def test_values_are_those_of_pytorch_and_all_tokens_together_are_certain(tmp_path: Path, kind: str) -> None:
    folder = write_model(tmp_path / kind, kind=kind)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with TorchEngine(folder, context_tokens=POSITIONS) as engine:
        for span in spans_of(engine):
            ids = torch.tensor([span.ids])
            with torch.no_grad():
                logits = model(input_ids=ids).logits[0].double()
            expected = (logits - logits.logsumexp(dim=-1, keepdim=True)).numpy()
            last = engine.logprobs([span])[0]
            three = engine.logprobs([Span(span.ids, 3)])[0]
            assert (last.dtype, last.shape, three.shape) == (np.float32, (1, expected.shape[1]), (3, expected.shape[1]))
            np.testing.assert_allclose(last, expected[-1:], atol=1e-5)
            np.testing.assert_allclose(three, expected[-3:], atol=1e-5)
            assert math.fsum(np.exp(last[0].astype(float))) == pytest.approx(1, abs=1e-6)


def test_a_pass_of_one_depends_on_its_prompt_alone(engine: TorchEngine, folder: Path) -> None:
    spans = spans_of(engine)
    together = engine.logprobs(spans)
    engine.generate(PROMPTS[2], 3)
    backwards = engine.logprobs(spans[::-1])[::-1]
    with TorchEngine(folder, context_tokens=POSITIONS) as other:
        fresh = other.logprobs(spans[2:])
    assert [row.tobytes() for row in together] == [row.tobytes() for row in backwards]
    assert [row.tobytes() for row in together[2:]] == [row.tobytes() for row in fresh]


def test_passes_hold_prompts_of_one_length_and_move_the_last_bits_at_most(
    engine: TorchEngine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = spans_of(engine)
    spans = [*whole, Span(whole[0].ids[:5]), Span(whole[0].ids[1:6]), whole[0]]
    alone = engine.logprobs(spans)
    passes: list[list[int]] = []
    original = TorchEngine._pass

    def watched(self: TorchEngine, batch: list[Span]) -> Any:
        passes.append([len(span.ids) for span in batch])
        return original(self, batch)

    monkeypatch.setattr(TorchEngine, "_pass", watched)
    with TorchEngine(folder, context_tokens=POSITIONS, batch_size=2) as batching:
        batched = batching.logprobs(spans)
    lengths = [len(span.ids) for span in spans]
    assert lengths[0] == lengths[1] == lengths[2] != lengths[3]
    # Short ones go alone; the last is the first one again, which is not computed twice.
    assert passes == [[lengths[0], lengths[0]], [lengths[0]], [lengths[3]], [5], [5]]
    for one, other in zip(alone, batched, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=LAST_BITS)


def test_the_best_come_first_and_equal_ones_by_number() -> None:
    row = np.log(np.array([0.1, 0.3, 0.1, 0.3, 0.2], dtype=np.float32))
    assert [token for token, _ in best(row, 4)] == [1, 3, 4, 0]
    assert best(row, 1)[0][1] == float(row[1])


def test_words_have_the_tokens_that_follow_the_prompts(engine: TorchEngine) -> None:
    ids, text, specials = engine.encode(PROMPTS[0])
    assert len(engine.tokens.tail(text, specials, ids, " red")) == 1
    several = engine.tokens.tail(text, specials, ids, " chartreuse")
    assert len(several) > 1
    assert "".join(map(engine.tokens.text, several)) == " chartreuse"
    with pytest.raises(VendorError, match="does not start a token of its own"):
        engine.tokens.tail(text, specials, ids, "")
    ids, text, specials = engine.encode(PROMPTS[0] + " Rep")
    with pytest.raises(VendorError, match="end the prompt without a space"):
        engine.tokens.tail(text, specials, ids, "ort")


def test_tokens_have_readable_names(engine: TorchEngine) -> None:
    size = engine.logprobs(spans_of(engine)[:1])[0].shape[1]
    names = [engine.tokens.text(token) for token in range(size)]
    assert {" red", "red"[:1], "<|end|>"} <= set(names)
    assert names[-UNUSED:] == [f"<token {token}>" for token in range(size - UNUSED, size)]
    parts = [name for name in names if name.startswith("<token ")]
    # Bytes above 127 are no characters by themselves.
    assert len(parts) == UNUSED + 128
    assert len(set(names)) == size


def test_word_marks_of_other_tokenizers_become_blanks(tmp_path: Path) -> None:
    import tokenizers

    own = tokenizers.Tokenizer(tokenizers.models.WordLevel({"▁red": 0, "▁A": 1, "<0xE2>": 2, "</s>": 3}, "</s>"))
    own.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    own.decoder = tokenizers.decoders.Sequence(
        [tokenizers.decoders.ByteFallback(), tokenizers.decoders.Metaspace(prepend_scheme="always")]
    )
    folder = write_model(tmp_path / "marks")
    own.save(str(folder / "tokenizer.json"))
    with TorchEngine(folder, context_tokens=POSITIONS) as engine:
        assert [engine.tokens.text(token) for token in range(3)] == [" red", " A", "<token 2>"]


def test_marks_in_plain_text_are_characters_and_in_chats_control_tokens(engine: TorchEngine) -> None:
    plain, text, specials = engine.encode("<|end|> red")
    assert (text, specials, len(plain) > 2) == ("<|end|> red", False, True)
    chat, text, specials = engine.encode([{"role": "user", "content": "Answer"}])
    assert (text, specials) == ("<|user|>Answer<|end|><|assistant|>", True)
    assert [engine.tokens.text(chat[place]) for place in (0, -2, -1)] == ["<|user|>", "<|end|>", "<|assistant|>"]


def test_greedy_writing_takes_the_likeliest_token_each_time(engine: TorchEngine) -> None:
    ids, written = engine.encode(PROMPTS[0])[0], []
    for _ in range(4):
        written.append(best(engine.logprobs([Span((*ids, *written))])[0][0], 1)[0][0])
    made = engine.generate(PROMPTS[0], 4)
    assert made.text == engine.tokens.written(written)
    assert (made.finish_reason, made.usage.prompt_tokens, made.usage.written_tokens) == ("length", len(ids), 4)


def test_drawn_writing_follows_its_seed_and_the_probabilities(engine: TorchEngine) -> None:
    made = [engine.generate(PROMPTS[0], 6, temperature=1.0, seed=seed).text for seed in (1, 2, 1)]
    assert made[0] == made[2] != made[1]
    row = engine.logprobs(spans_of(engine)[:1])[0][0].astype(float)
    (first, logprob), *_ = best(row, 1)
    name = engine.tokens.written([first])
    drawn = sum(engine.generate(PROMPTS[0], 1, temperature=0.5, seed=seed).text == name for seed in range(DRAWS))
    # At half the temperature probabilities are squared and divided by their sum.
    expected = math.exp(2 * logprob) / math.fsum(np.exp(2 * row))
    assert abs(drawn / DRAWS - expected) < 4 * math.sqrt(expected * (1 - expected) / DRAWS)


def test_writing_ends_at_a_stop_and_at_the_models_own_end(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = engine.generate(PROMPTS[0], 5).text
    stopped = engine.generate(PROMPTS[0], 5, stop=["never written", whole[2:4]])
    assert (stopped.finish_reason, stopped.text) == ("stop", whole[: whole.index(whole[2:4])])
    first = best(engine.logprobs(spans_of(engine)[:1])[0][0], 1)[0][0]
    monkeypatch.setattr(engine, "_ends", frozenset({first}))
    ended = engine.generate(PROMPTS[0], 5)
    assert (ended.text, ended.finish_reason, ended.usage.written_tokens) == ("", "stop", 1)


def test_end_tokens_come_from_settings_and_tokenizer(engine: TorchEngine) -> None:
    assert {engine.tokens.text(token) for token in engine._ends} == {"<|end|>"}


def test_settings_of_the_process_are_put_back(folder: Path) -> None:
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    with TorchEngine(folder, context_tokens=POSITIONS, threads=before[0] + 1) as engine:
        assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == (before[0] + 1, True)
        assert f"torch {torch.__version__}" in engine.fingerprint
        assert f"float32, {before[0] + 1} threads, at most 1 a pass" in engine.fingerprint
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
    with pytest.raises(VendorError, match="not open"):
        engine.encode("A")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.encode(""), "has no tokens"),
        (lambda e: e.encode("red " * POSITIONS), f"context_tokens is {POSITIONS}"),
        (lambda e: e.generate("red", POSITIONS), f"context_tokens is {POSITIONS}"),
        (lambda e: e.encode([{"content": "no role"}]), "chat template refuses the prompt"),
    ],
)
def test_what_cannot_be_asked_is_refused(engine: TorchEngine, call, message: str) -> None:
    with pytest.raises(VendorError, match=message):
        call(engine)


def test_messages_need_a_chat_template(tmp_path: Path) -> None:
    with (
        TorchEngine(write_model(tmp_path / "plain"), context_tokens=POSITIONS) as engine,
        pytest.raises(VendorError, match="no chat template; use `style: plain`"),
    ):
        engine.encode([{"role": "user", "content": "Answer"}])


def lacks_a_tensor(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    values = load_file(folder / "model.safetensors")
    del values["model.norm.weight"]
    save_file(values, folder / "model.safetensors", metadata={"format": "pt"})


def has_no_numbers(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    values = load_file(folder / "model.safetensors")
    values["model.norm.weight"][:] = float("nan")
    save_file(values, folder / "model.safetensors", metadata={"format": "pt"})


def is_cut(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:900])


def is_no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")


def ends_every_text(folder: Path) -> None:
    import tokenizers

    own = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    own.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", own.token_to_id("<|end|>"))]
    )
    own.save(str(folder / "tokenizer.json"))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lacks_a_tensor, r"lack 1 tensors of the model \(first: model.norm.weight\)"),
        (has_no_numbers, "gives no numbers"),
        (is_cut, "the model cannot be loaded"),
        (is_no_tokenizer, "the tokenizer cannot be loaded"),
        (ends_every_text, r"the tokenizer ends a text with <\|end\|>"),
    ],
)
def test_damaged_models_are_refused(tmp_path: Path, damage, message: str) -> None:
    folder = write_model(tmp_path / "damaged")
    damage(folder)
    before = torch.get_num_threads()
    with pytest.raises(VendorError, match=message), TorchEngine(folder, context_tokens=POSITIONS) as engine:
        engine.generate("Question", 2)
    assert torch.get_num_threads() == before


def test_more_context_than_positions_is_refused(folder: Path) -> None:
    with pytest.raises(VendorError, match=f"write `context_tokens: {POSITIONS}` or less"):
        TorchEngine(folder, context_tokens=POSITIONS + 1).__enter__()


def test_the_trained_words_are_what_the_tests_take_them_for(tmp_path: Path) -> None:
    size, end = write_tokenizer(tmp_path / "tokenizer")
    assert 0 <= end < size
    assert "chartreuse" not in WORDS
