"""``python -m loopback --port 0 --latency-ms 50``: prints the port and serves until standard input is closed."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys

from .server import Loopback
from .settings import Settings


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(prog="loopback", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=None)
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON object of settings")
    parser.add_argument("--stay", action="store_true", help="serve on when standard input is closed")
    given = parser.parse_args()
    settings = Settings()
    settings.update(given.settings)
    if given.latency_ms is not None:
        settings.latency_ms = given.latency_ms
    asyncio.run(_serve(settings, given.port, stay=given.stay))


async def _serve(settings: Settings, port: int, *, stay: bool) -> None:
    runner, port = await Loopback(settings).start(port=port)
    print(port, flush=True)
    # Nothing here makes cycles that matter; collections would only add to the cost of a request.
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    if stay:
        await asyncio.Event().wait()
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    main()
