import asyncio
import threading
from dataclasses import replace

import pytest

from counterbalance.config.models import Experiment, LocalModel, Prompt
from counterbalance.errors import ConfigError
from counterbalance.vendors import local_vendor
from counterbalance.vendors.base import Reply, Trial
from counterbalance.vendors.local import KNOWN_WEIGHTS, Generation, NextToken, OptionLogprobs, Usage
from counterbalance.vendors.local_vendor import LocalVendor

USAGE = Usage(prompt_tokens=40, cached_tokens=30, written_tokens=1)
WEIGHTS = KNOWN_WEIGHTS["smollm2-135m-instruct"]


class FakeEngine:
    """Keeps what it is asked; the real engine has its own tests."""

    def __init__(self, model: str, *, context_tokens: int, accept_terms: str | None) -> None:
        self.weights = KNOWN_WEIGHTS[model]
        self.model_id, self.fingerprint = "fake@1", "fake 0"
        self.context_tokens = context_tokens
        self.asked: list = []
        self.is_open = False
        self.text = "A"
        self.finish_reason = "stop"

    def __enter__(self):
        self.is_open = True
        return self

    def __exit__(self, *_error) -> None:
        self.is_open = False

    def generate(self, prompt, max_tokens, temperature=0.0, seed=0, stop=()):
        self._note(prompt, max_tokens, temperature, seed, stop)
        return Generation(self.text, self.finish_reason, USAGE)

    def top_logprobs(self, prompt, k):
        self._note(prompt, k)
        return NextToken(("A", "B"), (1, 2), (-0.5, -1.5), USAGE)

    def option_logprobs(self, prompt, continuations):
        self._note(prompt, continuations)
        return OptionLogprobs((-2.0, -3.0), (1, 2), USAGE)

    def _note(self, *arguments) -> None:
        assert self.is_open
        assert threading.current_thread() is not threading.main_thread()
        self.asked.append(arguments)


@pytest.fixture(autouse=True)
def _no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_vendor, "LocalEngine", FakeEngine)


class _Study:
    """As much of a study as the vendor looks at."""

    class config:  # noqa: N801
        seed = 7


def make_vendor(read: dict, **model) -> LocalVendor:
    experiment = Experiment(
        id="letters",
        design="mcq",
        datasets=["sums"],
        models=["small"],
        prompt=Prompt(template="letter.j2", style="plain"),
        read=read,
    )
    return LocalVendor(LocalModel.model_validate({"id": "small", "vendor": "local", **model}), experiment, _Study())


TRIAL = Trial(
    trial_id="i.mcq.0000.00",
    experiment="letters",
    subset="sums",
    item_id="i",
    arrangement=("o1", "o2"),
    labels=("A", "B"),
    option_texts=("four", "five"),
    gold_slot=0,
    repeat=0,
    prompt={"text": "2 + 2 = ?"},
    prompt_sha256="sha256:" + "0" * 64,
)


def ask(vendor: LocalVendor, trial: Trial = TRIAL) -> tuple[Reply, tuple]:
    async def within() -> Reply:
        async with vendor:
            return await vendor.ask(vendor.request(trial), trial)

    reply = asyncio.run(within())
    assert not vendor._engine.is_open
    return reply, vendor._engine.asked[-1]


def test_generate_sends_its_settings_and_reports_usage() -> None:
    vendor = make_vendor({"kind": "generate", "max_tokens": 5, "stop": ["\n"]})
    reply, asked = ask(vendor)
    assert asked == ("2 + 2 = ?", 5, 0.0, 0, ["\n"])
    assert (reply.status, reply.text, reply.finish_reason) == ("ok", "A", "stop")
    assert (reply.input_tokens, reply.cached_tokens, reply.output_tokens) == (40, 30, 1)
    assert (reply.model_returned, reply.fingerprint) == ("fake@1", "fake 0")


@pytest.mark.parametrize(
    ("text", "finish", "status"),
    [("B because", "length", "truncated"), (" \n", "stop", "empty"), ("", "length", "truncated")],
)
def test_cut_and_empty_replies_have_their_status(text: str, finish: str, status: str) -> None:
    vendor = make_vendor({"kind": "generate"})
    vendor._engine.text, vendor._engine.finish_reason = text, finish
    reply, _ = ask(vendor)
    assert (reply.status, reply.text) == (status, text)


def test_logprob_lists_tokens() -> None:
    reply, asked = ask(make_vendor({"kind": "logprob", "top": 30}))
    assert asked == ("2 + 2 = ?", 30)
    assert (reply.top_tokens, reply.top_logprobs) == (("A", "B"), (-0.5, -1.5))


def test_option_texts_are_sent_in_slot_order_with_their_prefix() -> None:
    vendor = make_vendor({"kind": "option_text", "prefix": " "})
    reply, asked = ask(vendor)
    assert asked == ("2 + 2 = ?", [" four", " five"])
    assert (reply.option_logprobs, reply.option_tokens) == ((-2.0, -3.0), (1, 2))
    assert vendor.request(TRIAL).continuations == [" four", " five"]


def test_chat_prompts_go_as_messages() -> None:
    messages = [{"role": "user", "content": "2 + 2 = ?"}]
    _, asked = ask(make_vendor({"kind": "logprob"}), replace(TRIAL, prompt={"messages": messages}))
    assert asked[0] == messages


def test_weights_context_and_read_belong_to_the_identity() -> None:
    plain = make_vendor({"kind": "generate"})
    request = plain.request(TRIAL)
    assert request.parameters["weights_sha256"] == WEIGHTS.f32_sha256
    others = [
        make_vendor({"kind": "generate"}, context_tokens=512),
        make_vendor({"kind": "generate", "max_tokens": 17}),
        make_vendor({"kind": "generate", "stop": ["."]}),
        make_vendor({"kind": "generate", "temperature": 0.5}),
        make_vendor({"kind": "logprob"}),
        make_vendor({"kind": "logprob", "top": 10}),
        make_vendor({"kind": "option_text"}),
        make_vendor({"kind": "option_text", "prefix": ""}),
    ]
    assert len({vendor.request(TRIAL).sha256 for vendor in [plain, *others]}) == 9


def test_only_sampling_has_a_seed_and_repeats_have_different_ones() -> None:
    assert "seed" not in make_vendor({"kind": "generate"}).request(TRIAL).parameters
    sampling = make_vendor({"kind": "generate", "temperature": 0.7})
    seeds = [sampling.request(replace(TRIAL, repeat=repeat)).parameters["seed"] for repeat in range(20)]
    assert len(set(seeds)) == 20
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert sampling.request(TRIAL).parameters["seed"] == seeds[0]
    _, asked = ask(sampling)
    assert asked[3] == seeds[0]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ({"kind": "generate", "temperature": None}, "read.temperature is null, and a model in this process"),
        ({"kind": "decide"}, "kind: decide}` is not for a model in this process"),
    ],
)
def test_what_a_local_model_cannot_do_is_refused_before_anything_is_opened(read: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make_vendor(read)
    assert "experiment 'letters', model 'small'" in str(caught.value)
