"""What holds without PyTorch: what is sent, what is refused, which calls share a pass. The engine is a stand-in."""

import asyncio
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import crossing_cases
import numpy as np
import pytest
from click.testing import CliRunner
from open_weights import a_model, a_trial

from counterbalance.cli.main import main
from counterbalance.config.models import Experiment, Prompt, TransformersModel
from counterbalance.errors import ConfigError, VendorError
from counterbalance.vendors import get_vendor, transformers_vendor
from counterbalance.vendors.base import Reply, Trial
from counterbalance.vendors.local import Generation, Usage
from counterbalance.vendors.openweights import Span, read_files
from counterbalance.vendors.transformers_vendor import TransformersVendor

HASH = "sha256:" + "a" * 64
COMMIT = "c" * 40
ROW = np.log(np.array([0.5, 0.3, 0.2], dtype=np.float32))


class FakeTokens:
    def text(self, token: int) -> str:
        return f" t{token}"

    def tail(self, text: str, specials: bool, context: list[int], words: str) -> list[int]:
        return [index % 3 for index in range(len(words.split()))]


class FakeEngine:
    """One token a character; keeps the spans of each pass."""

    def __init__(self, folder: Path, *, context_tokens: int, threads: int, batch_size: int) -> None:
        self.tokens, self.fingerprint = FakeTokens(), "fake 0"
        self.passes: list[list[Span]] = []
        self.is_open, self.threads = False, set()
        self.text, self.finish_reason = "A", "stop"
        self.written: list[tuple[Any, ...]] = []

    def __enter__(self):
        self.is_open = True
        return self

    def __exit__(self, *_error) -> None:
        self.is_open = False

    def encode(self, prompt, *, room: int = 0):
        text = prompt if isinstance(prompt, str) else prompt[-1]["content"]
        if "unreadable" in text:
            raise VendorError("this prompt is too long")
        return list(range(len(text))), text, not isinstance(prompt, str)

    def check_length(self, tokens: int) -> None:
        return

    def logprobs(self, spans):
        assert self.is_open
        self.threads.add(threading.current_thread())
        self.passes.append(list(spans))
        return [np.tile(ROW, (span.places, 1)) for span in spans]

    def generate(self, *arguments, **settings):
        self.threads.add(threading.current_thread())
        self.written.append((*arguments, settings))
        return Generation(self.text, self.finish_reason, Usage(40, 0, 1))


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers_vendor, "TorchEngine", FakeEngine)
    monkeypatch.setattr(transformers_vendor, "load_libraries", lambda: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "config.json").write_text("{}", encoding="utf-8")
    (weights / "model.safetensors").write_bytes(b"1")
    return weights


def make_vendor(read: dict, root: Path, model: TransformersModel | None = None) -> TransformersVendor:
    experiment = Experiment(
        id="letters",
        design="mcq",
        datasets=["sums"],
        models=["tiny"],
        prompt=Prompt(template="letter.j2", style="plain"),
        read=read,
    )
    study: Any = type("Study", (), {"root": root, "config": type("Config", (), {"seed": 7})})
    vendor = get_vendor(model or a_model(), experiment, study)
    assert isinstance(vendor, TransformersVendor)
    return vendor


def ask(vendor: TransformersVendor, *trials: Trial) -> tuple[list[Reply | BaseException], FakeEngine]:
    async def within() -> list[Reply | BaseException]:
        async with vendor:
            calls = [vendor.ask(vendor.request(trial), trial) for trial in trials]
            return await asyncio.gather(*calls, return_exceptions=True)

    replies = asyncio.run(within())
    engine: Any = vendor._engine
    assert not engine.is_open
    return replies, engine


def test_logprob_lists_the_best_tokens_and_says_which_files_answered(folder: Path) -> None:
    (reply,), engine = ask(make_vendor({"kind": "logprob", "top": 2}, folder.parent), a_trial("abcd"))
    assert isinstance(reply, Reply)
    assert reply.top_tokens == [" t0", " t1"]
    assert reply.top_logprobs == [float(ROW[0]), float(ROW[1])]
    assert engine.passes == [[Span((0, 1, 2, 3))]]
    assert reply.model_returned == f"tiny@{read_files(folder).sha256}"
    assert (reply.fingerprint, reply.input_tokens, reply.cached_tokens) == ("fake 0", 4, 0)


def test_option_texts_are_read_in_slot_order_and_their_tokens_counted(folder: Path) -> None:
    vendor = make_vendor({"kind": "option_text", "prefix": " "}, folder.parent)
    trial = a_trial("abcd", ["red", "light blue"])
    assert vendor.request(trial).continuations == [" red", " light blue"]
    (reply,), engine = ask(vendor, trial)
    assert isinstance(reply, Reply)
    assert engine.passes == [[Span((0, 1, 2, 3)), Span((0, 1, 2, 3, 0), 2)]]
    assert reply.option_tokens == [1, 2]
    assert reply.option_logprobs == [float(ROW[0]), float(ROW[0]) + float(ROW[1])]


@pytest.mark.parametrize(
    ("text", "finish", "status"),
    [("B", "stop", "ok"), ("B because", "length", "truncated"), (" \n", "stop", "empty"), ("", "length", "truncated")],
)
def test_written_replies_have_their_status(folder: Path, text: str, finish: str, status: str) -> None:
    vendor = make_vendor({"kind": "generate", "max_tokens": 5, "stop": ["\n"]}, folder.parent)

    async def within() -> Reply:
        async with vendor:
            engine: Any = vendor._engine
            engine.text, engine.finish_reason = text, finish
            return await vendor.ask(vendor.request(a_trial()), a_trial())

    reply = asyncio.run(within())
    assert (reply.status, reply.text, reply.finish_reason) == (status, text, finish)
    engine: Any = vendor._engine
    assert engine.written[0][1] == {"max_tokens": 5, "temperature": 0.0, "seed": 0, "stop": ["\n"]}


def test_calls_under_way_share_a_pass_and_one_thread(folder: Path) -> None:
    vendor = make_vendor({"kind": "logprob"}, folder.parent, a_model(batch_size=3))
    assert (vendor.max_in_flight, vendor.shares_prefixes) == (3, True)
    replies, engine = ask(vendor, a_trial("ab"), a_trial("unreadable"), a_trial("abc"))
    assert [type(reply) for reply in replies] == [Reply, VendorError, Reply]
    assert engine.passes == [[Span((0, 1)), Span((0, 1, 2))]]
    assert len(engine.threads) == 1
    assert threading.main_thread() not in engine.threads


def test_alone_by_default(folder: Path) -> None:
    vendor = make_vendor({"kind": "logprob"}, folder.parent)
    assert (vendor.max_in_flight, vendor.shares_prefixes) == (1, False)


def test_an_error_of_a_pass_reaches_every_call_in_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_engine, _spans):
        raise VendorError("the weights are damaged")

    monkeypatch.setattr(FakeEngine, "logprobs", fail)
    replies, _ = ask(make_vendor({"kind": "logprob"}, folder.parent, a_model(batch_size=2)), a_trial(), a_trial("b"))
    assert [str(reply) for reply in replies] == ["the weights are damaged"] * 2


def test_weights_threads_passes_and_read_belong_to_the_identity(folder: Path) -> None:
    plain = make_vendor({"kind": "generate"}, folder.parent)
    assert plain.request(a_trial()).parameters["files_sha256"] == read_files(folder).sha256
    hub = {"folder": None, "hub_id": "owner/name", "revision": COMMIT}
    others = [
        make_vendor({"kind": "generate"}, folder.parent, a_model(files_sha256=HASH)),
        make_vendor({"kind": "generate"}, folder.parent, a_model(**hub)),
        make_vendor({"kind": "generate"}, folder.parent, a_model(**hub | {"revision": "d" * 40})),
        make_vendor({"kind": "generate"}, folder.parent, a_model(threads=2)),
        make_vendor({"kind": "generate"}, folder.parent, a_model(batch_size=2)),
        make_vendor({"kind": "generate", "max_tokens": 17}, folder.parent),
        make_vendor({"kind": "generate", "stop": ["."]}, folder.parent),
        make_vendor({"kind": "generate", "temperature": 0.5}, folder.parent),
        make_vendor({"kind": "logprob"}, folder.parent),
        make_vendor({"kind": "logprob", "top": 10}, folder.parent),
        make_vendor({"kind": "option_text"}, folder.parent),
        make_vendor({"kind": "option_text", "prefix": ""}, folder.parent),
    ]
    assert len({vendor.request(a_trial()).sha256 for vendor in [plain, *others]}) == 13
    same = make_vendor({"kind": "generate"}, folder.parent, a_model(context_tokens=64))
    assert same.request(a_trial()).sha256 == plain.request(a_trial()).sha256


def test_other_weights_are_other_calls(folder: Path) -> None:
    before = make_vendor({"kind": "logprob"}, folder.parent).request(a_trial())
    (folder / "model.safetensors").write_bytes(b"2")
    after = make_vendor({"kind": "logprob"}, folder.parent).request(a_trial())
    assert before.sha256 != after.sha256


def test_pinned_models_are_planned_without_their_files(tmp_path: Path) -> None:
    make_vendor({"kind": "logprob"}, tmp_path, a_model(files_sha256=HASH)).request(a_trial())
    with pytest.raises(VendorError, match="no such folder"):
        make_vendor({"kind": "logprob"}, tmp_path).request(a_trial())


def test_only_sampling_has_a_seed_and_repeats_have_different_ones(folder: Path) -> None:
    assert "seed" not in make_vendor({"kind": "generate"}, folder.parent).request(a_trial()).parameters
    sampling = make_vendor({"kind": "generate", "temperature": 0.7}, folder.parent)
    seeds = [sampling.request(replace(a_trial(), repeat=repeat)).parameters["seed"] for repeat in range(20)]
    assert len(set(seeds)) == 20
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_files_that_are_not_the_plans_are_refused(folder: Path) -> None:
    vendor = make_vendor({"kind": "logprob"}, folder.parent, a_model(files_sha256=HASH))
    with pytest.raises(VendorError, match=rf"files_sha256 is {HASH}, but the files in .* have sha256:"):
        ask(vendor, a_trial())


@pytest.mark.parametrize(
    ("read", "message"),
    [
        ({"kind": "generate", "temperature": None}, "read.temperature is null, and a model in this process"),
        ({"kind": "decide"}, "is not for a model in this process"),
    ],
)
def test_what_open_weights_cannot_do_is_refused_at_once(tmp_path: Path, read: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        make_vendor(read, tmp_path)
    assert "experiment 'letters', model 'tiny'" in str(caught.value)


def test_a_call_that_fails_at_the_end_fails_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_engine, prompt: str, **_settings):
        if prompt == "long":
            raise VendorError("too long")
        return Generation("A", "stop", Usage(1, 0, 1))

    monkeypatch.setattr(FakeEngine, "generate", write)
    vendor = make_vendor({"kind": "generate"}, folder.parent, a_model(batch_size=2))
    replies, _ = ask(vendor, a_trial("long"), a_trial("short"))
    assert [type(reply) for reply in replies] == [VendorError, Reply]


def test_a_plan_does_not_pretend_to_know_the_time(tmp_path: Path) -> None:
    model = {"id": "tiny", "vendor": "transformers", "folder": "weights", "files_sha256": HASH}
    study = crossing_cases.make_study(tmp_path, models=[model], items=2)

    def run(*words: str) -> str:
        done = CliRunner().invoke(main, [words[0], "--study", str(study.path), *words[1:]])
        assert done.exit_code == 0, done.output
        return done.output

    run("prepare", "--dataset", "doors")
    run("expand", "--experiment", "notes", "--dataset", "doors")
    told = run("plan")
    assert "not known before the first reply" in told
    assert "112 new calls, time not known yet; no money is spent" in told


def test_without_the_extra_it_is_said_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "torch", None)
    vendor = make_vendor({"kind": "logprob"}, folder.parent)
    assert vendor.request(a_trial()).vendor == "transformers"
    with pytest.raises(VendorError, match="optional extra `transformers`") as caught:
        ask(vendor, a_trial())
    told = str(caught.value)
    assert "'torch' cannot be imported" in told
    assert "-e '.[transformers]'" in told
    assert "docs/transformers.md" in told
    assert "http" not in told
