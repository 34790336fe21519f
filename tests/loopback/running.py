"""Starting the server, in this process or in one of its own, and talking to its controls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .server import Loopback
from .settings import Json, Settings

_TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Remote:
    """A running server. The control calls block: from a coroutine use them only where nothing is under way."""

    url: str
    pid: int | None = None

    def base_url(self, vendor: str) -> str:
        """Return what a client of this vendor is given as its base URL."""
        return f"{self.url}/{vendor}/v1" if vendor == "openai" else f"{self.url}/{vendor}"

    def state(self) -> dict[str, Json]:
        """Return all counts."""
        found: dict[str, Json] = self._call("state")
        return found

    def vendor(self, name: str) -> dict[str, Json]:
        """Return one vendor's counts."""
        found: dict[str, Json] = self.state()["vendors"][name]
        return found

    def requests(self) -> list[dict[str, Json]]:
        """Return one line a request, in the order in which they ended."""
        found: list[dict[str, Json]] = self._call("requests")
        return found

    def replies(self, vendor: str) -> dict[str, int]:
        """Return the price in nano-USD of each delivered reply, by its request id."""
        found: dict[str, int] = self._call("replies")[vendor]
        return found

    def set(self, **changes: Json) -> None:
        """Change settings."""
        self._call("settings", changes)

    def top_up(self, vendor: str, nano_usd: int) -> None:
        """Pay into an account."""
        self._call("topup", {"vendor": vendor, "nano_usd": nano_usd})

    def reset(self) -> None:
        """Forget everything counted."""
        self._call("reset", {})

    def _call(self, name: str, given: Json = None) -> Json:
        data = None if given is None else json.dumps(given).encode()
        request = urllib.request.Request(f"{self.url}/control/{name}", data=data)
        try:
            with urllib.request.urlopen(request, timeout=60) as answered:
                return json.load(answered)
        except urllib.error.HTTPError as error:
            raise ValueError(error.read().decode()) from None


@asynccontextmanager
async def in_process(**settings: Json) -> AsyncIterator[tuple[Loopback, str]]:
    """Run the server in this process and event loop; yields it and its URL."""
    made = Settings()
    made.update(settings)
    server = Loopback(made)
    runner, port = await server.start()
    try:
        yield server, f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@contextmanager
def subprocess_server(**settings: Json) -> Iterator[Remote]:
    """Run the server in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(_TESTS)}
    command = [sys.executable, "-m", "loopback", "--port", "0", "--settings", json.dumps(settings)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield Remote(f"http://127.0.0.1:{port}", process.pid)
        finally:
            # It also ends when its standard input is closed, so that no crash of a test leaves it behind.
            process.kill()
