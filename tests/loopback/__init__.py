"""Vendors for tests: a local server that speaks three wire formats, fails as scripted, and counts.

Base URLs: ``{url}/openai/v1``, ``{url}/anthropic``, ``{url}/google``; without the vendor's name the headers tell.
Control: ``GET /control/state``, ``/control/requests``, ``/control/replies``; ``POST /control/settings``,
``/control/topup``, ``/control/reset``.
"""

from .running import Remote, in_process, subprocess_server
from .server import Loopback
from .settings import Settings, Usage, cost_nano_usd, count_tokens

__all__ = [
    "Loopback",
    "Remote",
    "Settings",
    "Usage",
    "cost_nano_usd",
    "count_tokens",
    "in_process",
    "subprocess_server",
]
