"""The three batch vendors, set up for a server of the test's."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from loopback import Loopback, in_process

from counterbalance.config.models import Account, AnthropicModel, Experiment, GoogleModel, OpenAIModel
from counterbalance.vendors.anthropic_batch import AnthropicBatchVendor
from counterbalance.vendors.base import Request
from counterbalance.vendors.google_batch import GoogleBatchVendor
from counterbalance.vendors.openai_batch import OpenAIBatchVendor

# What a reply is read by: no log-probabilities were asked.
EXAMPLE = Request("any", None, "m", {"endpoint": "generateContent"}, {"text": ""}, None, 0)
VENDORS: dict[str, tuple[Any, Any, str]] = {
    "openai": (OpenAIModel, OpenAIBatchVendor, "/openai/v1"),
    "anthropic": (AnthropicModel, AnthropicBatchVendor, "/anthropic"),
    "google": (GoogleModel, GoogleBatchVendor, "/google"),
}


def make(name: str, url: str, read: dict | None = None) -> Any:
    model_class, vendor_class, place = VENDORS[name]
    model = model_class(id="asked", vendor=name, model="some-model", account="a", base_url=url + place)
    experiment = Experiment.model_validate(
        {
            "id": "letters",
            "design": "mcq",
            "datasets": ["sums"],
            "models": ["asked"],
            "prompt": {"template": "letter.j2", "style": "chat"},
            "read": read or {"kind": "generate", "temperature": None},
        }
    )
    paid = Account(id="a", key_env="CANARY_KEY", timeout_s=60.0, mode="batch")
    return vendor_class(model, paid, experiment, SimpleNamespace(path="study.yaml"))


def on_loopback(scenario: Callable[[Loopback, str], Awaitable[None]], **settings: Any) -> None:
    """Run a scenario beside a server of its own."""

    async def run() -> None:
        async with in_process(**settings) as (server, url):
            await scenario(server, url)

    asyncio.run(run())


def work_done(server: Loopback, name: str) -> list[int]:
    """Return how often each request was worked on."""
    return [counts[0] for counts in server.counts.vendors[name].bodies.values()]
