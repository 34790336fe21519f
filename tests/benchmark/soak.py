"""20,000 calls, a fifth of the requests fail in random ways, and the process is killed three times with kill -9.

Prints a verdict: each trial answered once, the server's repeats within the re-sends on record, the charge for replies
equal to the server's bill for them, and the whole charge no less than the whole bill.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
# In place of this folder, whose files may be named like modules of the standard library.
sys.path[:1] = [str(HERE.parents[1]), str(HERE.parents[2] / "workflow")]

from loopback import subprocess_server  # noqa: E402
from loopback.soak import soak  # noqa: E402


def main() -> None:
    """Print the verdict; end with 1 if a claim fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vendor", choices=["openai", "anthropic", "google"], default="openai")
    parser.add_argument("--calls", type=int, default=20_004, help="a multiple of six")
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory() as name, subprocess_server(latency_ms=5.0, record=False) as server:
        verdict = soak(server, Path(name), given.vendor, calls=given.calls, kills=given.kills, seed=given.seed, say=say)
    say("done")
    print(verdict)
    sys.exit(not verdict.good)


if __name__ == "__main__":
    main()
