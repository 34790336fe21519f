"""The vendor `simulated`: a respondent whose biases are planted, so that what the pipeline finds can be judged.

It picks the slot of the largest utility. The correct option's utility is N(ability_mean, ability_sd^2), a wrong
option's N(0, distractor_sd^2), both drawn once per item and option; a slot adds its bonus and, drawn once per item
and slot, N(0, item_slot_sd^2); each call adds Gumbel noise of scale `call_noise`.

Every draw is a pure function of the respondent's seed and name, the subset and what the draw is for: SHAKE-128 bytes
read as 53-bit uniforms, turned by the inverse distribution function. So no reply depends on the order of calls, nor
on the version of a random number library.
"""

import asyncio
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import TracebackType
from typing import Self, TypeVar

from counterbalance.canonical import Json, sha256_json
from counterbalance.config import Experiment
from counterbalance.config.models import (
    CellsRead,
    DecideRead,
    GenerateRead,
    LogprobRead,
    OptionTextRead,
    SimulatedModel,
)
from counterbalance.config.names import fold
from counterbalance.errors import ConfigError
from counterbalance.vendors.base import Reply, Request, TransportError, Trial

RESPONDENT_SCHEMA = "counterbalance/respondent/1"
LABEL_MASS = 0.9
"""Probability that all labels have together as the next token."""

REFUSAL = "I'm sorry, but I can't help with that."

_OTHER_TOKENS = ("\n", " The", "The", " answer", " (", "**", " Option", " correct", " is", "<|end|>")
_NORMAL = NormalDist()
_Value = TypeVar("_Value")


class SimulatedVendor:
    """A respondent with planted biases."""

    max_in_flight = 32
    shares_prefixes = False

    def __init__(self, model: SimulatedModel, experiment: Experiment) -> None:
        if model.refusal_rate + model.blank_rate > 1:
            raise ConfigError(
                f"models.{model.id}: refusal_rate {model.refusal_rate} and blank_rate {model.blank_rate} are together "
                "more than 1; lower one of them"
            )
        self._model, self._read = model, experiment.read
        self._means = {name: _pick(model.ability_mean, model.id, "ability_mean", name) for name in experiment.datasets}
        self._bonuses = {name: _bonuses(model, name) for name in experiment.datasets}
        self._settings = {name: self._digest(name) for name in experiment.datasets}
        self._items: dict[tuple[str, str, str | None], _Item] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._items.clear()

    def request(self, trial: Trial) -> Request:
        """Build the request; the respondent is sent all that its draws hang on, its settings as one hash."""
        parameters: dict[str, Json] = {
            "respondent": self._settings[trial.subset],
            "item": trial.item_id,
            "arrangement": list(trial.arrangement),
            "labels": list(trial.labels),
            "gold_slot": trial.gold_slot,
            "read": self._read.kind,
        }
        if isinstance(self._read, LogprobRead):
            parameters["top"] = self._read.top
        return Request("simulated", None, self._model.id, parameters, trial.prompt, None, trial.repeat)

    async def ask(self, request: Request, trial: Trial) -> Reply:
        """Answer a trial; `facts["attempt"]` is which sending this is, 1 where it is absent."""
        if self._model.latency_ms > 0:
            await asyncio.sleep(self._model.latency_ms / 1000)
        if self._model.error_rate > 0:
            attempt = trial.facts.get("attempt", 1)
            if self._uniforms(1, trial.subset, "error", trial.trial_id, attempt)[0] < self._model.error_rate:
                raise TransportError(f"simulated transport error at attempt {attempt} of {trial.trial_id}")
        return self.answer(trial)

    def answer(self, trial: Trial) -> Reply:
        """Return the reply to a trial, a pure function of the respondent and the trial."""
        utilities, fate = self._draw(trial)
        if fate < self._model.refusal_rate:
            return self._refusal()
        if fate < self._model.refusal_rate + self._model.blank_rate:
            return Reply("empty", reason="planted blank", text="", model_returned=self._model.id)
        match self._read:
            case GenerateRead():
                best = max(range(len(utilities)), key=utilities.__getitem__)
                text = trial.labels[best]
                return Reply("ok", text=text, finish_reason="stop", model_returned=self._model.id)
            case LogprobRead(top=top):
                tokens, logprobs = _next_tokens(trial.labels[: len(utilities)], utilities, top)
                return Reply("ok", top_tokens=tokens, top_logprobs=logprobs, model_returned=self._model.id)
            case OptionTextRead():
                return Reply(
                    "ok",
                    option_logprobs=_log_softmax(utilities),
                    option_tokens=[max(1, len(text.split())) for text in trial.option_texts],
                    model_returned=self._model.id,
                )
            case DecideRead():
                shares = _log_softmax(utilities)
                labels = list(trial.labels[: len(shares)])
                return Reply("ok", top_tokens=labels, top_logprobs=shares, model_returned=self._model.id)
            case CellsRead():
                raise ConfigError(f"models.{self._model.id}: a respondent answers prompts; cells are read from a file")

    def _refusal(self) -> Reply:
        # A model that writes refuses in words, and it is for the reader to see that.
        if isinstance(self._read, GenerateRead):
            return Reply("ok", text=REFUSAL, finish_reason="stop", model_returned=self._model.id)
        return Reply("refused", reason="planted refusal", model_returned=self._model.id)

    def _draw(self, trial: Trial) -> tuple[list[float], float]:
        """Return the utilities in slot order, and a uniform number that decides on refusals and blanks."""
        item = self._item(trial)
        bonus, slots = self._bonuses[trial.subset], len(trial.arrangement)
        utilities = [
            item.by_option[option] + item.by_slot[slot] + bonus[min(slot, len(bonus) - 1)]
            for slot, option in enumerate(trial.arrangement)
        ]
        scale = self._model.call_noise
        if scale == 0 and self._model.refusal_rate == 0 and self._model.blank_rate == 0:
            return utilities, 1.0
        call = self._uniforms(slots + 1, trial.subset, "call", trial.item_id, *trial.arrangement, trial.repeat)
        noisy = [value - scale * math.log(-math.log(u)) for value, u in zip(utilities, call[:slots], strict=True)]
        return noisy, call[slots]

    def _item(self, trial: Trial) -> "_Item":
        gold = None if trial.gold_slot is None else trial.arrangement[trial.gold_slot]
        key = (trial.subset, trial.item_id, gold)
        if key not in self._items:
            model, mean = self._model, self._means[trial.subset]
            by_option = {}
            for option in trial.arrangement:
                z = self._normal(trial, "option", option)
                by_option[option] = mean + model.ability_sd * z if option == gold else model.distractor_sd * z
            by_slot = [
                model.item_slot_sd * self._normal(trial, "slot", slot) if model.item_slot_sd > 0 else 0.0
                for slot in range(len(trial.arrangement))
            ]
            self._items[key] = _Item(by_option, by_slot)
        return self._items[key]

    def _normal(self, trial: Trial, purpose: str, which: str | int) -> float:
        return _NORMAL.inv_cdf(self._uniforms(1, trial.subset, purpose, trial.item_id, which)[0])

    def _uniforms(self, n: int, *purpose: str | int) -> list[float]:
        """Return `n` numbers strictly between 0 and 1."""
        name = json.dumps([self._model.seed, self._model.id, *purpose]).encode()
        data = hashlib.shake_128(name).digest(8 * n)
        words = (int.from_bytes(data[start : start + 8], "little") for start in range(0, 8 * n, 8))
        return [((word >> 11) + 0.5) * 2.0**-53 for word in words]

    def _digest(self, subset: str) -> str:
        model = self._model
        return sha256_json(
            {
                "schema": RESPONDENT_SCHEMA,
                "subset": subset,
                "seed": model.seed,
                "ability_mean": self._means[subset],
                "ability_sd": model.ability_sd,
                "distractor_sd": model.distractor_sd,
                "slot_bonus": list(self._bonuses[subset]),
                "item_slot_sd": model.item_slot_sd,
                "call_noise": model.call_noise,
                "refusal_rate": model.refusal_rate,
                "blank_rate": model.blank_rate,
            }
        )


@dataclass(frozen=True, slots=True)
class _Item:
    """What is drawn once per item: utility by option id, and the item's own effect by slot."""

    by_option: Mapping[str, float]
    by_slot: Sequence[float]


def _bonuses(model: SimulatedModel, subset: str) -> list[float]:
    bonus = _pick(model.slot_bonus, model.id, "slot_bonus", subset)
    if not bonus:
        raise ConfigError(f"models.{model.id}.slot_bonus: the list for {subset!r} is empty; write [0.0] for no bonus")
    return bonus


def _pick(value: dict[str, _Value] | _Value, model: str, key: str, subset: str) -> _Value:
    if not isinstance(value, dict):
        return value
    if subset not in value:
        raise ConfigError(
            f"models.{model}.{key}: no value for data set {subset!r}, only for {', '.join(sorted(value)) or 'none'}; "
            "add one, or give one value for all"
        )
    return value[subset]


def _log_softmax(utilities: Sequence[float]) -> list[float]:
    top = max(utilities)
    total = top + math.log(sum(math.exp(value - top) for value in utilities))
    return [value - total for value in utilities]


def _next_tokens(labels: Sequence[str], utilities: Sequence[float], top: int) -> tuple[list[str], list[float]]:
    """Return the likeliest tokens, best first: labels share `LABEL_MASS`, other tokens halve what is left."""
    known = {fold(label.strip()) for label in labels}
    others = [token for token in _OTHER_TOKENS if fold(token.strip()) not in known]
    listed = [
        (math.log(LABEL_MASS) + value, label) for value, label in zip(_log_softmax(utilities), labels, strict=True)
    ]
    listed += [(math.log((1 - LABEL_MASS) / 2 ** (place + 1)), token) for place, token in enumerate(others)]
    listed.sort(key=lambda entry: -entry[0])
    return [token for _, token in listed[:top]], [logprob for logprob, _ in listed[:top]]
