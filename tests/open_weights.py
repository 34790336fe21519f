"""Tiny models with random weights, and a tokenizer trained on the test's own words; both made on the spot."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from counterbalance.config.models import TransformersModel
from counterbalance.vendors.base import Trial

WITHOUT = "PyTorch and transformers are an optional extra of this package and are not installed here"
POSITIONS = 512
UNUSED = 5
"""Rows of the vocabulary beyond the tokenizer's last token, as many models have them."""

WORDS = (
    "What about door is of Report Source lately recently before since . : ? , \n Question Answer A. B. C. "
    "red blue green white gold pink brown gray black teal plum rose jade rust one two three four five six"
)
CHAT = (
    "{% for m in messages %}{{ raise_exception('a role is missing') if not m.role }}"
    "<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
)


def libraries() -> tuple[Any, Any]:
    """Return torch and transformers, or skip the test."""
    return (
        pytest.importorskip("torch", reason=WITHOUT),
        pytest.importorskip("transformers", reason=WITHOUT),
    )


def write_model(
    folder: Path, *, kind: str = "llama", words: str = WORDS, chat: bool = False, seed: int = 3, **settings: Any
) -> Path:
    """Write configuration, tokenizer and weights of a model that has learnt nothing."""
    torch, transformers = libraries()
    size, end = write_tokenizer(folder, words, chat=chat)
    common = {"vocab_size": size + UNUSED, "bos_token_id": None, "eos_token_id": end, "pad_token_id": None}
    small: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    if kind == "gpt2":
        config = transformers.GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=POSITIONS, **common, **settings)
    elif kind == "gemma4":
        config = _gemma4(transformers, {**common, **small})
    else:
        config = transformers.LlamaConfig(
            num_key_value_heads=2, max_position_embeddings=POSITIONS, **small, **common, **settings
        )
    transformers.logging.disable_progress_bar()
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    # As drawn, all tokens are about equally likely; larger weights make a model with opinions.
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() > 1:
                value.mul_(6.0)
    model.save_pretrained(folder)
    return folder


def _gemma4(transformers: Any, settings: dict[str, Any]) -> Any:
    """Return the text part alone, with what sets this family apart: layers that share keys, tables for each layer."""
    text = {
        **settings,
        "num_hidden_layers": 4,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "sliding_window": 8,
        "num_kv_shared_layers": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "global_head_dim": 16,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": settings["vocab_size"],
        "max_position_embeddings": POSITIONS,
        "pad_token_id": 0,
    }
    return transformers.Gemma4Config(text_config=text, vision_config=None, audio_config=None)


def write_tokenizer(folder: Path, words: str = WORDS, *, chat: bool = False) -> tuple[int, int]:
    """Train a byte-level tokenizer that has the words, with a blank before them; return its size and end token."""
    tokenizers = pytest.importorskip("tokenizers", reason=WITHOUT)
    own = tokenizers.Tokenizer(tokenizers.models.BPE())
    own.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    own.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1000,
        show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|user|>", "<|assistant|>", "<|end|>"],
    )
    own.train_from_iterator([f" {words} {words}"] * 3, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    own.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>", "model_max_length": POSITIONS}
    if chat:
        settings["chat_template"] = CHAT
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return own.get_vocab_size(), own.token_to_id("<|end|>")


def a_model(**settings: Any) -> TransformersModel:
    return TransformersModel.model_validate(
        {"id": "tiny", "vendor": "transformers", "folder": "weights", "context_tokens": POSITIONS, **settings}
    )


def a_trial(text: str = "Question: What about door", options: Sequence[str] = ("red", "blue"), **changes: Any) -> Trial:
    settings: dict[str, Any] = {
        "trial_id": "i.mcq.0000.00",
        "experiment": "letters",
        "subset": "sums",
        "item_id": "i",
        "arrangement": ("o1", "o2"),
        "labels": ("A", "B"),
        "option_texts": tuple(options),
        "gold_slot": 0,
        "repeat": 0,
        "prompt": {"text": text},
        "prompt_sha256": "sha256:" + "0" * 64,
    }
    return Trial(**settings | changes)
